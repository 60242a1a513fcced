#include <lanepack/corpus/summarize.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/memory.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using lanepack_test::read_file;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

namespace {

corpus_summary summary_of(const std::vector<std::uint32_t>& lengths,
                          const summary_options& options = {}) {
  return summarize(length_source(lengths), options);
}

std::vector<std::uint32_t> random_lengths(lanepack_test::gen& random, std::size_t count,
                                          unsigned bits) {
  std::vector<std::uint32_t> lengths(count);
  for (auto& length : lengths) length = static_cast<std::uint32_t>(random.heavy_tailed(bits));
  return lengths;
}

const cache_key some_key{.files = {{100, 5}, {200, -6}}, .variant = "test"};

}  // namespace

TEST_CASE("corpus: a summary sums up a small corpus", "[corpus]") {
  const memory_source source({1, 2, 3, 4, 5, 6}, {0, 3, 3, 6, 6}, {1, 0, 1, 1, 1, 1});
  const corpus_summary summary = summarize(source);
  REQUIRE(summary.records == 4);
  REQUIRE(summary.empty_records == 2);
  REQUIRE(summary.tokens == 6);
  REQUIRE(summary.loss_tokens == 3);
  REQUIRE(summary.patches == 0);
  REQUIRE(summary.max_tokens == 3);
  REQUIRE(summary.longest == std::vector<listed_record>{{0, 3}, {2, 3}, {1, 0}, {3, 0}});
  REQUIRE(summary.empty_ids == std::vector<record_id>{1, 3});
  REQUIRE(summary.fingerprint == source.fingerprint());
  REQUIRE(summary.histogram.records() == 4);
}

TEST_CASE("corpus: the summary of an empty corpus is empty", "[corpus]") {
  const corpus_summary summary = summary_of({});
  REQUIRE(summary.records == 0);
  REQUIRE(summary.max_tokens == 0);
  REQUIRE(summary.ids_above(0)->empty());
  REQUIRE(summary.histogram.buckets().empty());
}

TEST_CASE("corpus: a summary does not depend on the number of threads", "[corpus]") {
  lanepack_test::gen random(3);
  const auto lengths = random_lengths(random, 200'000, 15);
  summary_options options;
  options.listed_longest = 100;
  options.listed_empty = 50;
  options.threads = 1;
  const corpus_summary one = summary_of(lengths, options);
  for (const unsigned threads : {2U, 3U, 16U}) {
    options.threads = threads;
    REQUIRE(summary_of(lengths, options) == one);
  }
  // Worked out apart.
  std::vector<listed_record> sorted(lengths.size());
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;
  std::vector<record_id> empty;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sorted[i] = {i, lengths[i]};
    tokens += lengths[i];
    loss_tokens += lengths[i] == 0 ? 0 : lengths[i] - 1;
    if (lengths[i] == 0) empty.push_back(i);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.tokens > b.tokens; });
  REQUIRE(one.tokens == tokens);
  REQUIRE(one.loss_tokens == loss_tokens);
  REQUIRE(one.empty_records == empty.size());
  REQUIRE(one.longest == std::vector<listed_record>(sorted.begin(), sorted.begin() + 100));
  REQUIRE(one.empty_ids == std::vector<record_id>(empty.begin(), empty.begin() + 50));
  REQUIRE(empty_ids(one, length_source(lengths), {.threads = 2}) == empty);
}

TEST_CASE("corpus: ids above a capacity come from the list or from all shapes", "[corpus]") {
  const std::vector<std::uint32_t> lengths = {5, 9, 9, 1, 20, 9, 7};
  summary_options options;
  options.listed_longest = 3;
  const corpus_summary summary = summary_of(lengths, options);
  REQUIRE(summary.longest == std::vector<listed_record>{{4, 20}, {1, 9}, {2, 9}});
  REQUIRE(summary.ids_above(9) == std::vector<record_id>{4});
  REQUIRE(summary.ids_above(20)->empty());
  REQUIRE_FALSE(summary.ids_above(8).has_value());
  const length_source source(lengths);
  for (std::uint64_t capacity = 0; capacity < 22; ++capacity) {
    std::vector<record_id> expected;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > capacity) expected.push_back(i);
    }
    REQUIRE(ids_above(summary, length_source(lengths), capacity) == expected);
    REQUIRE(ids_above(length_source(lengths), capacity, {.threads = 3}) == expected);
  }
  options.listed_longest = 0;
  REQUIRE_FALSE(summary_of(lengths, options).ids_above(100).has_value());
}

TEST_CASE("corpus: progress never falls and ends at the total", "[corpus]") {
  const std::vector<std::uint32_t> lengths(300'000, 1);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls;
  summary_options options;
  options.threads = 4;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    calls.emplace_back(done, total);
  };
  REQUIRE(summary_of(lengths, options).records == lengths.size());
  REQUIRE_FALSE(calls.empty());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    REQUIRE(calls[i].second == lengths.size());
    if (i > 0) REQUIRE(calls[i].first >= calls[i - 1].first);
  }
  REQUIRE(calls.back().first == lengths.size());
}

TEST_CASE("corpus: a scan needs threads and shapes", "[corpus]") {
  struct unindexed {
    [[nodiscard]] std::uint64_t size() const { return 1; }
    [[nodiscard]] source_traits traits() const {
      return {.has_payload = true, .has_all_shapes = false, .has_loss_mask = false};
    }
    void shapes(std::span<const record_id>, std::span<record_shape>) const {}
    void read(std::span<const record_read>) const {}
    [[nodiscard]] digest128 fingerprint() const { return {}; }
    [[nodiscard]] std::string describe() const { return "unindexed"; }
  };
  REQUIRE_THROWS_AS(summarize(unindexed{}), state_error);
  summary_options options;
  options.threads = 0;
  REQUIRE_THROWS_AS(summary_of({1}, options), invalid_option);
}

TEST_CASE("corpus: an error of the source reaches the caller of a scan", "[corpus]") {
  const scratch_dir scratch;
  std::string stored;
  for (std::uint32_t i = 0; i < 100'000; ++i) stored += lanepack_test::little_endian(i);
  write_file(scratch.path("f.u32"), stored);
  const any_source source = length_source::from_u32(scratch.path("f.u32"), file_access::mapped);
  write_file(scratch.path("f.u32"), "");
  summary_options options;
  options.threads = 3;
  REQUIRE_THROWS_AS(summarize(source, options), data_error);
}

TEST_CASE("corpus: a saved summary is loaded as it was", "[corpus]") {
  const scratch_dir scratch;
  lanepack_test::for_each_seed(20, [&](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    const auto lengths = random_lengths(random, random.between(0, 500), 31);
    summary_options options;
    options.listed_longest = random.between(0, 600);
    options.listed_empty = random.between(0, 20);
    const corpus_summary summary = summary_of(lengths, options);
    REQUIRE(save_summary(scratch.path("s"), some_key, summary));
    const auto loaded = load_summary(scratch.path("s"), some_key);
    REQUIRE(loaded.has_value());
    REQUIRE(*loaded == summary);
  });
  REQUIRE(scratch.entries() == 1);
}

TEST_CASE("corpus: a summary of other files or options is not loaded", "[corpus]") {
  const scratch_dir scratch;
  REQUIRE(save_summary(scratch.path("s"), some_key, summary_of({1, 2, 3})));
  cache_key other = some_key;
  other.variant = "tes";
  REQUIRE_FALSE(load_summary(scratch.path("s"), other).has_value());
  other = some_key;
  other.files[1].size = 201;
  REQUIRE_FALSE(load_summary(scratch.path("s"), other).has_value());
  other = some_key;
  other.files[0].mtime_ns = 6;
  REQUIRE_FALSE(load_summary(scratch.path("s"), other).has_value());
  other = some_key;
  other.files.pop_back();
  REQUIRE_FALSE(load_summary(scratch.path("s"), other).has_value());
  REQUIRE_FALSE(load_summary(scratch.path("missing"), some_key).has_value());
  REQUIRE_FALSE(load_summary(scratch.path(), some_key).has_value());
}

TEST_CASE("corpus: damage anywhere in a saved summary is noticed", "[corpus]") {
  const scratch_dir scratch;
  REQUIRE(save_summary(scratch.path("s"), some_key, summary_of({1, 20000, 0})));
  const std::string whole = read_file(scratch.path("s"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_file(scratch.path("s"), damaged);
    REQUIRE_FALSE(load_summary(scratch.path("s"), some_key).has_value());
    write_file(scratch.path("s"), whole.substr(0, i));
    REQUIRE_FALSE(load_summary(scratch.path("s"), some_key).has_value());
  }
  write_file(scratch.path("s"), whole + "x");
  REQUIRE_FALSE(load_summary(scratch.path("s"), some_key).has_value());
}

TEST_CASE("corpus: a cached summary is made once and again when damaged", "[corpus]") {
  const scratch_dir scratch;
  const any_source source = length_source(std::vector<std::uint32_t>{3, 4, 5});
  int calls = 0;
  summary_options options;
  options.progress = [&](std::uint64_t, std::uint64_t) { ++calls; };
  const corpus_summary first = cached_summary(source, scratch.path("s"), some_key, options);
  REQUIRE(calls > 0);
  calls = 0;
  REQUIRE(cached_summary(source, scratch.path("s"), some_key, options) == first);
  REQUIRE(calls == 0);
  write_file(scratch.path("s"), "junk");
  REQUIRE(cached_summary(source, scratch.path("s"), some_key, options) == first);
  REQUIRE(calls > 0);
  REQUIRE(load_summary(scratch.path("s"), some_key).has_value());
}

TEST_CASE("corpus: a directory that cannot be written is no error for a summary", "[corpus]") {
  const scratch_dir scratch;
  const corpus_summary summary = summary_of({3, 4, 5});
  const std::string path = scratch.path("no/such/directory/s");
  REQUIRE_FALSE(save_summary(path, some_key, summary));
  const any_source source = length_source(std::vector<std::uint32_t>{3, 4, 5});
  REQUIRE(cached_summary(source, path, some_key) == summary);
  if (::geteuid() != 0) {
    ::chmod(scratch.path().c_str(), 0555);
    REQUIRE(cached_summary(source, scratch.path("s"), some_key) == summary);
    REQUIRE(scratch.entries() == 0);
  }
}

TEST_CASE("corpus: eight processes make one summary at once", "[corpus]") {
  const scratch_dir scratch;
  std::vector<std::uint32_t> lengths(50'000);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = static_cast<std::uint32_t>(i * 7919 % 100'000);
  }
  const any_source source = length_source(lengths);
  const corpus_summary expected = summarize(source, {.threads = 1});
  std::vector<::pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const ::pid_t child = ::fork();
    if (child == 0) {
      bool good = true;
      for (int round = 0; round < 5; ++round) {
        const corpus_summary made =
            cached_summary(source, scratch.path("s"), some_key, {.threads = 1});
        good = good && made == expected;
        if (round < 4) ::unlink(scratch.path("s").c_str());
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const ::pid_t child : children) {
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  REQUIRE(load_summary(scratch.path("s"), some_key) == expected);
  REQUIRE(scratch.entries() == 1);
}
