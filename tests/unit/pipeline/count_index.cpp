#include <lanepack/pipeline/count_index.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/pipeline/carrying_stages.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/thread_pool.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/documents.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using lanepack_test::memory_documents;

namespace {

const tokenize bytes{byte_level_tokenizer()};

}  // namespace

TEST_CASE("count index: how many records of which shape an input becomes", "[pipeline]") {
  const pipeline stages({bytes,
                         filter("not c", [](const sample& each) { return each.tokens[0] != 'c'; }),
                         split({.tokens = 3, .overlap = 1})});
  const pipeline_input input = memory_documents({"aaaaa", "c", "bb"});
  const count_index index = make_count_index(input, stages);
  REQUIRE(index.inputs() == 3);
  // Tokens 0-2 and 2-4 of the first, whose overlap is not predicted; nothing; the third.
  REQUIRE(index.records() == 3);
  REQUIRE(index.shape(0) == record_shape{3, 2, 0});
  REQUIRE(index.shape(1) == record_shape{3, 2, 0});
  REQUIRE(index.shape(2) == record_shape{2, 1, 0});
  REQUIRE_FALSE(index.has_loss_mask());
  REQUIRE(index.input_of(0) == 0);
  REQUIRE(index.input_of(1) == 0);
  REQUIRE(index.input_of(2) == 2);
  REQUIRE(index.first_record(1) == 2);
  REQUIRE(index.first_record(2) == 2);
  REQUIRE(index.first_record(4) == 3);
  REQUIRE(index.state_before(2) == stage_state{});
}

TEST_CASE("count index: segments are kept, in a file too", "[pipeline]") {
  const pipeline stages({bytes, group_consecutive({.samples = 3})});
  const count_index index =
      make_count_index(memory_documents({"aaaa", "b", "cc", "ddd", "", "e", "f"}), stages);
  REQUIRE(index.records() == 2);
  REQUIRE(index.most_segments() == 3);
  segment_lists lists;
  for (record_id id = 0; id < 2; ++id) index.segments(id, lists);
  REQUIRE(std::ranges::equal(lists[0], std::vector<std::uint64_t>{4, 1, 2}));
  REQUIRE(std::ranges::equal(lists[1], std::vector<std::uint64_t>{3, 1, 1}));
  REQUIRE(index.shape(0) == record_shape{7, 4, 0});
  const lanepack_test::scratch_dir dir;
  REQUIRE(index.save(dir.path("index")));
  REQUIRE(count_index::load(dir.path("index")) == index);
  // The same shapes in other segments are another corpus.
  const pipeline others({bytes, group_consecutive({.samples = 4})});
  REQUIRE(make_count_index(memory_documents({"aaaa", "b", "cc", "ddd", "", "e", "f"}), others)
              .fingerprint() != index.fingerprint());
}

TEST_CASE("count index: the state before each input of a stage with a memory", "[pipeline]") {
  const pipeline stages({bytes, concatenate_and_cut({.tokens = 4, .keep_rest = true})});
  const count_index index =
      make_count_index(memory_documents({"aa", "bb", "", "ccc", "dddd"}), stages);
  // aabb | cccd | ddd
  REQUIRE(index.records() == 3);
  REQUIRE(index.input_of(0) == 1);
  REQUIRE(index.input_of(1) == 4);
  REQUIRE(index.input_of(2) == 5);
  REQUIRE(index.shape(2).tokens == 3);
  REQUIRE(index.state_before(0) == stage_state{0, {0}});
  REQUIRE(index.state_before(1) == stage_state{1, {0}});
  REQUIRE(index.state_before(4) == stage_state{1, {0}});
  REQUIRE(index.state_before(5) == stage_state{1, {1}});
}

TEST_CASE("count index: the executor and the memory do not matter", "[pipeline]") {
  lanepack_test::for_each_seed(6, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    const pipeline_input input =
        memory_documents(lanepack_test::random_texts(random, random.between(0, 400), 8));
    std::vector<any_stage> parts{bytes, split({.tokens = 20, .overlap = 5})};
    if (random.one_in(2)) parts.emplace_back(concatenate_and_cut({.tokens = 33}));
    const pipeline stages(parts);
    const count_index expected = make_count_index(input, stages);
    const std::vector<any_executor> others{thread_pool(1), thread_pool(8),
                                           lanepack_test::shuffling_executor(seed)};
    for (const any_executor& on : others) {
      std::uint64_t told = 0;
      const count_index found =
          make_count_index(input, stages,
                           {.executor = on,
                            .memory_bytes = random.between(1, 100'000),
                            .progress = [&](auto done, auto) { told = done; }});
      REQUIRE(found == expected);
      REQUIRE(told == input.size());
    }
  });
}

TEST_CASE("count index: a file holds it, and only the right one is taken", "[pipeline]") {
  const lanepack_test::scratch_dir dir;
  const std::string path = dir.path("index");
  const pipeline_input input = memory_documents({"aaaaa", "", "bb"});
  const pipeline splitting({bytes, split({.tokens = 2})});
  const pipeline cutting({bytes, concatenate_and_cut({.tokens = 3})});
  REQUIRE_FALSE(count_index::load(path));
  for (const pipeline& stages : {splitting, cutting, splitting}) {
    const count_index made = open_count_index(path, input, stages);
    REQUIRE(made == make_count_index(input, stages));
    REQUIRE(count_index::load(path) == made);
    REQUIRE(open_count_index(path, input, stages) == made);
    REQUIRE(dir.entries() == 1);
  }
  REQUIRE(open_count_index(path, memory_documents({"a"}), splitting).records() == 1);
  // Damage is no error: the index is made again.
  std::string damaged = lanepack_test::read_file(path);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  lanepack_test::write_file(path, damaged);
  REQUIRE_FALSE(count_index::load(path));
  REQUIRE(open_count_index(path, input, splitting).records() == 5);
  REQUIRE(count_index::load(path));
  REQUIRE(open_count_index(dir.path("no/such/place"), input, splitting).records() == 5);
}

TEST_CASE("count index: inputs in flight are bounded by bytes", "[pipeline]") {
  // Counts the inputs that are taken on together.
  class counting_executor {
   public:
    counting_executor(std::shared_ptr<std::atomic<int>> seen, std::shared_ptr<int> most)
        : seen_(std::move(seen)), most_(std::move(most)) {}
    void run(const task_list& tasks) {
      *seen_ = 0;
      for (std::uint64_t i = tasks.size(); i > 0; --i) tasks.run(i - 1);
      *most_ = std::max<int>(*most_, *seen_);
    }
    [[nodiscard]] unsigned threads() const { return 16; }

   private:
    std::shared_ptr<std::atomic<int>> seen_;
    std::shared_ptr<int> most_;
  };
  const auto seen = std::make_shared<std::atomic<int>>(0);
  const auto most = std::make_shared<int>(0);
  const pipeline stages({map_samples("count", [seen](sample&) { ++*seen; }), bytes});
  const pipeline_input input =
      memory_documents(std::vector<std::string>(40, std::string(10'000, 'a')));
  const count_index whole = make_count_index(input, stages);
  // Text, tokens and mask of an input of 10'000 bytes are 60'000 bytes, and a little more.
  for (const auto& [memory, inputs] :
       {std::pair(1, 1), std::pair(200'000, 3), std::pair(1 << 30, 40)}) {
    *most = 0;
    REQUIRE(make_count_index(input, stages,
                             {.executor = counting_executor(seen, most),
                              .memory_bytes = static_cast<std::uint64_t>(memory)}) == whole);
    REQUIRE(*most == inputs);
  }
}
