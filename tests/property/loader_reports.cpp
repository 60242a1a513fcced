// Faults that users of data loaders have reported, each as a test that is named by its symptom.

#include <lanepack/json/run_state.hpp>
#include <lanepack/loader.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/topology/grid.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"
#include "support/plans.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::kept_pack;

namespace {

/// Counts what is asked of a source.
class counting_source {
 public:
  struct counts {
    std::atomic<std::uint64_t> shapes{0};
    std::atomic<std::uint64_t> reads{0};
  };
  counting_source(memory_source source, std::shared_ptr<counts> count)
      : source_(std::move(source)), count_(std::move(count)) {}

  [[nodiscard]] std::uint64_t size() const { return source_.size(); }
  [[nodiscard]] source_traits traits() const { return source_.traits(); }
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    count_->shapes += ids.size();
    source_.shapes(ids, out);
  }
  void read(std::span<const record_read> reads) const {
    count_->reads += reads.size();
    source_.read(reads);
  }
  [[nodiscard]] digest128 fingerprint() const { return source_.fingerprint(); }
  [[nodiscard]] std::string describe() const { return source_.describe(); }

 private:
  memory_source source_;
  std::shared_ptr<counts> count_;
};

const std::vector<std::string> all_policies{"sequential", "window", "calendar", "replicated"};

loader_options options_of(std::uint32_t lanes, std::uint32_t records_per_pack,
                          const std::string& policy) {
  loader_options options;
  options.plan.seed = 5;
  options.plan.lanes = lanes;
  options.plan.records_per_pack = records_per_pack;
  options.plan.lookahead_steps = 3;
  options.plan.policy = policy;
  options.plan.tuning = calendar_tuning{};
  options.plan.limits.capacity_tokens = 4096;
  options.staging_bytes = 1 << 20;
  return options;
}

std::vector<std::uint64_t> lengths_of(std::uint64_t records) {
  std::vector<std::uint64_t> lengths(records);
  for (std::uint64_t i = 0; i < records; ++i)
    lengths[i] = 1 + i * 53 % 97 + (i % 41 == 0 ? 900 : 0);
  return lengths;
}

/// Takes a step whole.
std::vector<record_ref> take(loaded_step<thd_layout>& step) {
  for (auto&& micro_batch : step) static_cast<void>(micro_batch);
  return {step.records().begin(), step.records().end()};
}

/// The records of the steps of one rank, from a state on, at most `steps` of them; the state after
/// the last.
std::vector<record_ref> run(const any_source& source, const world& where, loader_options options,
                            std::optional<run_state> from, std::uint64_t steps, run_state* after) {
  options.resume_from = std::move(from);
  loader loader(source, where, options);
  std::vector<record_ref> seen;
  for (std::uint64_t i = 0; i < steps; ++i) {
    auto step = loader.next();
    if (!step) break;
    const std::vector<record_ref> records = take(*step);
    seen.insert(seen.end(), records.begin(), records.end());
  }
  if (after != nullptr) *after = loader.state();
  return seen;
}

constexpr std::uint64_t to_the_end = std::uint64_t{1} << 40;

}  // namespace

TEST_CASE("report: the second resume starts over or loses records", "[reports]") {
  const any_source source = lanepack_test::corpus_of(lengths_of(300));
  for (const std::string& policy : all_policies) {
    CAPTURE(policy);
    loader_options options = options_of(4, 3, policy);
    const auto whole = run(source, {0, 1}, options, std::nullopt, to_the_end, nullptr);
    REQUIRE(whole.size() == 300);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(seed);
      gen random(seed);
      std::vector<record_ref> seen;
      std::optional<run_state> state;
      for (int resume = 0; resume < 6; ++resume) {
        run_state after;
        const std::uint64_t steps = resume == 5 ? to_the_end : random.between(0, 6);
        const auto part = run(source, {0, 1}, options, state, steps, &after);
        seen.insert(seen.end(), part.begin(), part.end());
        state = after;
      }
      REQUIRE(seen == whole);
    }
  }
}

TEST_CASE("report: what a shuffle buffer held is lost or comes twice", "[reports]") {
  const any_source source = lanepack_test::corpus_of(lengths_of(12));
  for (const std::string& policy : all_policies) {
    const loader_options options = options_of(2, 1, policy);
    for (std::uint64_t cut = 0; cut <= 6; ++cut) {
      CAPTURE(policy, cut);
      run_state state;
      auto seen = run(source, {0, 1}, options, std::nullopt, cut, &state);
      const auto rest = run(source, {0, 1}, options, state, to_the_end, nullptr);
      seen.insert(seen.end(), rest.begin(), rest.end());
      REQUIRE(seen.size() == 12);
      REQUIRE(std::set<record_ref>(seen.begin(), seen.end()).size() == 12);
    }
  }
}

TEST_CASE("report: the epochs after a resume replay only the tail", "[reports]") {
  const any_source source = lanepack_test::corpus_of(lengths_of(120));
  for (const std::string& policy : all_policies) {
    for (const epoch_end rule : {epoch_end::drop_last, epoch_end::pad}) {
      CAPTURE(policy, to_string(rule));
      loader_options options = options_of(4, 3, policy);
      options.plan.rule = rule;
      options.plan.epochs = 3;
      run_state state;
      auto seen = run(source, {0, 1}, options, std::nullopt, 7, &state);
      const auto rest = run(source, {0, 1}, options, state, to_the_end, nullptr);
      seen.insert(seen.end(), rest.begin(), rest.end());
      std::map<epoch_index, std::set<record_id>> epochs;
      for (const record_ref& record : seen) epochs[record.epoch].insert(record.id);
      REQUIRE(seen.size() == 360);
      REQUIRE(epochs.size() == 3);
      for (const auto& [epoch, ids] : epochs) REQUIRE(ids.size() == 120);
    }
  }
}

TEST_CASE("report: fewer ranks than the checkpoint had drop the state of the others", "[reports]") {
  const any_source source = lanepack_test::corpus_of(lengths_of(24 * 20));
  for (const std::string& policy : all_policies) {
    CAPTURE(policy);
    const loader_options options = options_of(24, 2, policy);
    std::map<std::uint64_t, std::multiset<record_ref>> whole;
    const auto collect = [&](std::uint32_t ranks, const std::optional<run_state>& from,
                             std::uint64_t steps,
                             std::map<std::uint64_t, std::multiset<record_ref>>& out) {
      std::vector<run_state> states;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        loader_options own = options;
        own.resume_from = from;
        loader loader(source, {rank, ranks}, own);
        for (std::uint64_t i = 0; i < steps; ++i) {
          auto step = loader.next();
          if (!step) break;
          for (const record_ref& record : take(*step)) out[step->number()].insert(record);
        }
        states.push_back(loader.state());
      }
      return states;
    };
    static_cast<void>(collect(1, std::nullopt, to_the_end, whole));
    REQUIRE(whole.size() == 10);
    // 8 -> 6 -> 8 ranks, and 2 -> 1, 3, 4.
    std::map<std::uint64_t, std::multiset<record_ref>> resized;
    run_state state = merge(collect(8, std::nullopt, 3, resized));
    state = merge(collect(6, state, 3, resized));
    static_cast<void>(collect(8, state, to_the_end, resized));
    REQUIRE(resized == whole);
    for (const std::uint32_t ranks : {1U, 3U, 4U}) {
      resized.clear();
      const std::vector<run_state> parts = collect(2, std::nullopt, 4, resized);
      static_cast<void>(collect(ranks, merge(parts), to_the_end, resized));
      REQUIRE(resized == whole);
      // The state of one rank alone is enough, or it is refused.
      loader_options alone = options;
      alone.resume_from = parts[0];
      if (policy == "calendar") {
        REQUIRE_THROWS_AS(loader(source, {1, 2}, alone), state_error);
      } else {
        REQUIRE(run_state_bytes(parts[0]) == run_state_bytes(parts[1]));
        REQUIRE(loader(source, {1, 2}, alone).state().next_step == 4);
      }
    }
  }
}

TEST_CASE("report: tensor parallelism changes the order", "[reports]") {
  const any_source source = lanepack_test::corpus_of(lengths_of(200));
  const loader_options options = options_of(4, 5, "window");
  std::optional<std::vector<record_ref>> first;
  for (const std::uint32_t tensor : {1U, 2U, 4U}) {
    const parallel_grid grid(4 * tensor, {.tensor = tensor});
    for (rank_index process = 0; process < 4 * tensor; ++process) {
      const world where = grid.data_world(process);
      REQUIRE(where.size == 4);
      if (where.rank != 2) continue;
      const auto seen = run(source, where, options, std::nullopt, to_the_end, nullptr);
      if (!first) first = seen;
      REQUIRE(seen == *first);
    }
  }
}

TEST_CASE("report: resuming late takes hours because the data is read again", "[reports]") {
  const auto count = std::make_shared<counting_source::counts>();
  const any_source source = counting_source(lanepack_test::corpus_of(lengths_of(500)), count);
  const corpus_summary summary = summarize(source, {.threads = 1});
  for (const std::string& policy : all_policies) {
    loader_options options = options_of(4, 3, policy);
    options.plan.rule = epoch_end::continue_epochs;
    std::map<std::uint64_t, std::uint64_t> shapes;
    for (const std::uint64_t step : {std::uint64_t{10}, std::uint64_t{1'000'000}}) {
      CAPTURE(policy, step);
      // The state of a calendar is that of step 10, as many steps later as the run is older.
      run_state state;
      static_cast<void>(run(source, {0, 1}, options, std::nullopt, 10, &state));
      state.next_step += step - 10;
      state.fragments_step += step - 10;
      for (lane_fragment& fragment : state.fragments) {
        fragment.admitted += (step - 10) * 3;
        for (held_record& record : fragment.held) {
          record.arrival += (step - 10) * 3;
          record.admitted += step - 10;
        }
      }
      options.resume_from = state;
      options.prefetch_micro_batches = 1;
      count->shapes = count->reads = 0;
      {
        loader loader(source, {0, 1}, options, default_cost(), summary);
        auto next = loader.next();
        REQUIRE(next->number() == step);
        static_cast<void>(take(*next));
        REQUIRE(next->state().next_step == step + 1);
      }
      // At most the costs of the corpus's records, a window, and what is planned and read ahead.
      shapes[step] = count->shapes;
      REQUIRE(count->shapes <= 500 + 60 * 4 * 3 * 3);
      REQUIRE(count->reads <= 60 * 4 * 3);
    }
  }
}

TEST_CASE("report: a checkpoint right after a resume is not the one that was loaded", "[reports]") {
  lanepack_test::for_each_seed(20, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const any_source source = lanepack_test::corpus_of(lengths_of(200));
    loader_options options = options_of(4, 3, random.pick(all_policies));
    run_state state;
    static_cast<void>(run(source, {0, 1}, options, std::nullopt, random.between(0, 16), &state));
    for (int again = 0; again < 3; ++again) {
      options.resume_from = parse_run_state(run_state_bytes(state));
      loader loader(source, {0, 1}, options);
      REQUIRE(run_state_bytes(loader.state()) == run_state_bytes(state));
      state = loader.state();
    }
  });
}

TEST_CASE("report: ranks have different numbers of steps and the collective hangs", "[reports]") {
  // Nearly all tokens are in the records of one lane.
  for (const std::string& policy : all_policies) {
    std::vector<std::uint64_t> lengths(8 * 30 + 5, 1);
    for (std::uint64_t i = 0; i < lengths.size(); i += 8) lengths[i] = 4000;
    const any_source source = lanepack_test::corpus_of(lengths);
    loader_options options = options_of(8, 3, policy);
    options.plan.shuffle.kind = shuffle_kind::none;
    for (const std::uint32_t ranks : {1U, 2U, 4U, 8U}) {
      CAPTURE(policy, ranks);
      loader_options own = options;
      // As many as the records of a rank in a step: the worst case fits.
      own.micro_batches = 24 / ranks;
      std::set<std::vector<std::uint64_t>> seen;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        loader loader(source, {rank, ranks}, own);
        std::vector<std::uint64_t> micro_batches;
        for (auto&& step : loader) {
          std::uint64_t count = 0;
          for (auto&& micro_batch : step) count += micro_batch.counts().tokens > 0 ? 1 : 0;
          micro_batches.push_back(count);
        }
        seen.insert(micro_batches);
      }
      REQUIRE(seen.size() == 1);
      REQUIRE(seen.begin()->size() == 10);
    }
  }
}

TEST_CASE("report: counts and offsets overflow at 2^31 records", "[reports]") {
  // A plan needs no memory for its records, so there can be many.
  class endless_source {
   public:
    [[nodiscard]] std::uint64_t size() const { return std::uint64_t{1} << 40; }
    [[nodiscard]] source_traits traits() const {
      source_traits traits;
      traits.has_payload = false;
      traits.has_all_shapes = true;
      return traits;
    }
    void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        out[i] = {.tokens = 1 + ids[i] % 1000, .loss_tokens = ids[i] % 1000, .patches = 0};
      }
    }
    void read(std::span<const record_read>) const {}
    [[nodiscard]] digest128 fingerprint() const { return {.low = 1, .high = 2}; }
    [[nodiscard]] std::string describe() const { return "2^40 records"; }
  };
  corpus_summary summary;
  summary.records = std::uint64_t{1} << 40;
  summary.fingerprint = {.low = 1, .high = 2};
  summary.max_tokens = 1000;
  for (std::uint64_t tokens = 1; tokens <= 1000; ++tokens)
    summary.histogram.add(tokens, summary.records / 1000);
  summary.tokens = summary.records * 500;
  summary.loss_tokens = summary.records * 499;
  plan_options options;
  options.seed = 1;
  options.lanes = 8;
  options.records_per_pack = 4;
  options.policy = "sequential";
  const any_source source = endless_source();
  const auto feed = make_candidate_feed(source, summary, default_cost(), options);
  const std::uint64_t last = (std::uint64_t{1} << 40) / 32;
  REQUIRE(feed->sampler().schedule().steps() == last);
  for (const std::uint64_t start : {std::uint64_t{0}, last / 2, last - 2}) {
    const auto packs = lanepack_test::packs_of(feed, make_policy(options, *feed),
                                               lanepack_test::lanes_from(0, 8), start, 2);
    REQUIRE(packs.size() == 16);
    for (const kept_pack& pack : packs) {
      for (const candidate& record : pack.records) {
        const auto position = feed->sampler().order().epoch(0).position_of(record.record.id);
        REQUIRE(position.has_value());
        REQUIRE(*position / 32 == pack.step);
        REQUIRE(*position % 8 == pack.lane);
      }
    }
  }
}

TEST_CASE("report: a buffer of so many records takes all memory where records are large",
          "[reports]") {
  std::vector<std::uint64_t> lengths(64, 3000);
  const any_source source = lanepack_test::corpus_of(lengths);
  for (const std::string& policy : all_policies) {
    CAPTURE(policy);
    loader_options options = options_of(2, 4, policy);
    options.plan.lookahead_steps = 8;
    options.staging_bytes = 3 * 4096 * 16;
    loader loader(source, {0, 1}, options);
    std::uint64_t records = 0;
    for (auto&& step : loader) {
      for (auto&& micro_batch : step) records += micro_batch.counts().records;
    }
    REQUIRE(records == 64);
    const loader_statistics end = loader.statistics();
    // Slots of a whole capacity with all fields: three at most are in the bytes.
    REQUIRE(end.staging.peak_slots <= 3);
  }
}

TEST_CASE("report: positions or segments do not restart with the record", "[reports]") {
  lanepack_test::for_each_seed(20, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const any_source source =
        lanepack_test::corpus_of(lanepack_test::random_lengths(random, 96, 9));
    loader_options options = options_of(4, 3, random.pick(all_policies));
    options.plan.limits.record_multiple = static_cast<std::uint32_t>(random.between(1, 16));
    options.plan.limits.total_multiple = static_cast<std::uint32_t>(random.between(1, 16));
    loader loader(source, {0, 1}, options);
    for (auto&& step : loader) {
      for (auto&& batch : step) {
        const auto& padded = batch.cu_seqlens_padded();
        const auto& plain = batch.cu_seqlens();
        REQUIRE(padded.front() == 0);
        REQUIRE(static_cast<std::size_t>(padded.back()) == batch.tokens().size());
        for (std::size_t i = 0; i + 1 < padded.size(); ++i) {
          REQUIRE(padded[i] < padded[i + 1]);
          REQUIRE(plain[i] < plain[i + 1]);
          REQUIRE(plain[i + 1] - plain[i] <= padded[i + 1] - padded[i]);
          for (std::int32_t at = padded[i]; at < padded[i + 1]; ++at) {
            REQUIRE(batch.position_ids()[static_cast<std::size_t>(at)] == at - padded[i]);
          }
        }
      }
    }
  });
}
