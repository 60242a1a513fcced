#include <lanepack/corpus/lengths.hpp>
#include <lanepack/loader.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::gen;

namespace {

loader_options small_options(std::uint32_t lanes, std::uint32_t records_per_pack) {
  loader_options options;
  options.plan.seed = 7;
  options.plan.lanes = lanes;
  options.plan.records_per_pack = records_per_pack;
  options.plan.lookahead_steps = 3;
  options.plan.limits.capacity_tokens = 400;
  options.staging_bytes = 64 << 10;
  return options;
}

/// A source whose reads of some records fail.
class failing_source {
 public:
  failing_source(memory_source source, std::set<record_id> bad)
      : source_(std::move(source)), bad_(std::move(bad)) {}

  [[nodiscard]] std::uint64_t size() const { return source_.size(); }
  [[nodiscard]] source_traits traits() const { return source_.traits(); }
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    source_.shapes(ids, out);
  }
  void read(std::span<const record_read> reads) const {
    for (const record_read& read : reads) {
      if (bad_.count(read.id) != 0) {
        data_location where;
        where.path = "somewhere";
        where.record = read.id;
        throw data_error(where, "damaged");
      }
    }
    source_.read(reads);
  }
  [[nodiscard]] digest128 fingerprint() const { return source_.fingerprint(); }
  [[nodiscard]] std::string describe() const { return "failing " + source_.describe(); }

 private:
  memory_source source_;
  std::set<record_id> bad_;
};

static_assert(record_source<failing_source>);

template <class Loader>
std::vector<record_ref> all_records(Loader& loader) {
  std::vector<record_ref> seen;
  while (auto step = loader.next()) {
    while (auto micro_batch = step->next()) {
      for (std::size_t i = 0; i < micro_batch->counts().records; ++i) {
        seen.push_back(micro_batch->record(i));
      }
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("loader: every rank's micro-batches hold the records of its packs, token for token",
          "[loader]") {
  lanepack_test::for_each_seed(30, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const bool masks = random.one_in(2);
    const std::uint64_t n = random.between(40, 300);
    const any_source source =
        lanepack_test::corpus_of(lanepack_test::random_lengths(random, n, 8), masks);
    loader_options options = small_options(6, static_cast<std::uint32_t>(random.between(1, 5)));
    options.plan.seed = seed;
    options.plan.limits.record_multiple = static_cast<std::uint32_t>(random.between(1, 8));
    options.plan.limits.total_multiple = static_cast<std::uint32_t>(random.between(1, 16));
    options.plan.limits.infeasible = infeasible_policy::truncate;
    options.plan.rule = epoch_end::pad;
    options.prefetch_micro_batches = static_cast<std::uint32_t>(random.between(1, 5));
    options.digests = true;

    std::vector<std::vector<digest128>> digests_of_whole;
    for (const rank_index size : {1u, 2u, 3u, 6u}) {
      std::vector<std::vector<digest128>> digests;
      std::set<std::pair<std::uint64_t, std::uint64_t>> ids;
      for (rank_index rank = 0; rank < size; ++rank) {
        loader loader(source, {rank, size}, options);
        const std::uint64_t capacity = loader.selection().limits.largest_record();
        std::size_t step_number = 0;
        for (auto&& step : loader) {
          REQUIRE(step.number() == step_number);
          REQUIRE(step.records().size() == 6 / size * options.plan.records_per_pack);
          batch_counts counts;
          std::size_t taken = 0;
          for (auto&& micro_batch : step) {
            REQUIRE(micro_batch.index() == taken++);
            REQUIRE(micro_batch.total_tokens() <= capacity);
            const auto padded = micro_batch.cu_seqlens_padded();
            for (std::size_t i = 0; i < micro_batch.counts().records; ++i) {
              const record_id id = micro_batch.record(i).id;
              const auto real = static_cast<std::size_t>(micro_batch.cu_seqlens()[i + 1] -
                                                         micro_batch.cu_seqlens()[i]);
              const auto start = static_cast<std::size_t>(padded[i]);
              record_shape shape;
              source.shapes({&id, 1}, {&shape, 1});
              REQUIRE(real == std::min(shape.tokens, capacity));
              std::size_t wrong = 0;
              for (std::size_t k = 0; k < real; ++k) {
                const bool target = k + 1 < real && !(masks && id % 2 == 1 && (k + 1) % 3 == 0);
                const std::int32_t label =
                    target ? lanepack_test::expected_token(id, k + 1) : ignored_label;
                // One check a token would take longer than everything else here.
                wrong +=
                    micro_batch.tokens()[start + k] == lanepack_test::expected_token(id, k) &&
                            micro_batch.labels()[start + k] == label &&
                            micro_batch.loss_mask()[start + k] == (target ? 1 : 0) &&
                            micro_batch.position_ids()[start + k] == static_cast<std::int32_t>(k)
                        ? 0
                        : 1;
              }
              CAPTURE(id, micro_batch.index());
              REQUIRE(wrong == 0);
            }
            counts += micro_batch.counts();
          }
          REQUIRE(taken == step.micro_batches());
          REQUIRE(counts.records == step.planned().records);
          REQUIRE(counts.tokens == step.planned().tokens);
          REQUIRE(counts.padding_tokens == step.planned().padding_tokens);
          REQUIRE(counts.loss_tokens <= step.planned().loss_tokens);
          if (!masks) REQUIRE(counts.loss_tokens == step.planned().loss_tokens);
          if (digests.size() <= step_number) digests.resize(step_number + 1);
          for (const digest128& digest : step.pack_digests()) {
            digests[step_number].push_back(digest);
          }
          for (const record_ref& record : step.records()) ids.insert({record.epoch, record.id});
          ++step_number;
        }
        REQUIRE(step_number == *loader.steps());
      }
      REQUIRE(ids.size() == n);
      if (size == 1) digests_of_whole = digests;
      REQUIRE(digests == digests_of_whole);
    }
  });
}

TEST_CASE("loader: finite runs add no loss and end on the same step everywhere", "[loader]") {
  const std::vector<std::uint64_t> lengths(37, 5);
  const any_source source = lanepack_test::corpus_of(lengths);
  loader_options options = small_options(4, 3);
  options.plan.rule = epoch_end::finite;
  std::uint64_t loss_tokens = 0;
  std::uint64_t records = 0;
  for (rank_index rank = 0; rank < 4; ++rank) {
    loader loader(source, {rank, 4}, options);
    std::uint64_t steps = 0;
    for (auto&& step : loader) {
      ++steps;
      for (auto&& micro_batch : step) {
        loss_tokens += micro_batch.counts().loss_tokens;
        records += micro_batch.counts().records;
      }
    }
    REQUIRE(steps == 4);
  }
  REQUIRE(records == 4 * 4 * 3);
  REQUIRE(loss_tokens == 37 * 4);
}

TEST_CASE("loader: padded rows stay within the capacity", "[loader]") {
  gen random(5);
  const any_source source =
      lanepack_test::corpus_of(lanepack_test::random_lengths(random, 200, 7), true);
  loader_options options = small_options(2, 10);
  options.plan.limits.record_multiple = 4;
  options.plan.limits.total_multiple = 24;
  padded_loader loader(source, {}, options);
  std::uint64_t records = 0;
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) {
      REQUIRE(micro_batch.rows() * micro_batch.width() <= 400);
      REQUIRE(micro_batch.rows() * micro_batch.width() % 24 == 0);
      for (std::size_t row = 0; row < micro_batch.rows(); ++row) {
        const record_id id = micro_batch.record(row).id;
        for (std::int32_t k = 0; k < micro_batch.lengths()[row]; ++k) {
          const std::size_t at = row * micro_batch.width() + static_cast<std::size_t>(k);
          REQUIRE(micro_batch.tokens()[at] ==
                  lanepack_test::expected_token(id, static_cast<std::uint64_t>(k)));
        }
        ++records;
      }
    }
  }
  REQUIRE(records == 200);
}

TEST_CASE("loader: micro-batches that are not taken are passed over", "[loader]") {
  const std::vector<std::uint64_t> lengths(240, 90);
  const any_source source = lanepack_test::corpus_of(lengths);
  loader_options options = small_options(2, 20);
  loader loader(source, {}, options);
  auto first = loader.next();
  REQUIRE(first);
  REQUIRE(first->micro_batches() == 10);
  REQUIRE(first->next());
  auto second = loader.next();
  REQUIRE(second);
  REQUIRE_FALSE(first->next());
  auto micro_batch = second->next();
  REQUIRE(micro_batch);
  REQUIRE(micro_batch->step() == 1);
  REQUIRE(micro_batch->tokens()[0] == lanepack_test::expected_token(micro_batch->record(0).id, 0));
}

TEST_CASE("loader: starts at a given step with the packs of a run from the beginning", "[loader]") {
  gen random(11);
  const any_source source = lanepack_test::corpus_of(lanepack_test::random_lengths(random, 300, 6));
  loader_options options = small_options(3, 4);
  options.digests = true;
  const auto digests_from = [&](step_index start) {
    options.start_step = start;
    loader loader(source, {1, 3}, options);
    std::vector<std::pair<step_index, digest128>> out;
    for (auto&& step : loader) {
      for (auto&& micro_batch : step) static_cast<void>(micro_batch);
      out.emplace_back(step.number(), step.pack_digests()[0]);
    }
    return out;
  };
  const auto whole = digests_from(0);
  REQUIRE(whole.size() == 25);
  for (const step_index start : {step_index{1}, step_index{3}, step_index{13}, step_index{24}}) {
    const auto rest = digests_from(start);
    REQUIRE(rest == std::vector(whole.begin() + static_cast<std::ptrdiff_t>(start), whole.end()));
  }
  REQUIRE(digests_from(25).empty());
  REQUIRE(digests_from(1000).empty());
}

TEST_CASE("loader: an error of the reading thread reaches the caller once, in its place",
          "[loader]") {
  const std::vector<std::uint64_t> lengths(60, 50);
  loader_options options = small_options(2, 5);
  options.plan.shuffle.kind = shuffle_kind::none;
  options.plan.policy = "sequential";
  std::atomic<int> hook_calls{0};
  options.on_failure = [&](const std::exception_ptr&) { ++hook_calls; };
  // Steps of 10 records in file order: record 33 is in step 3.
  loader loader(failing_source(lanepack_test::corpus_of(lengths), {33}), {}, options);
  std::uint64_t whole_steps = 0;
  std::string message;
  try {
    while (auto step = loader.next()) {
      while (step->next()) {
      }
      ++whole_steps;
    }
  } catch (const data_error& failure) {
    message = failure.what();
  }
  REQUIRE_THAT(message, ContainsSubstring("somewhere, record 33: damaged"));
  REQUIRE(whole_steps <= 3);
  REQUIRE(hook_calls == 1);
  REQUIRE_THROWS_AS(loader.next(), state_error);
  REQUIRE_THROWS_AS(loader.next(), state_error);
}

TEST_CASE("loader: a bad record can be masked in its place", "[loader]") {
  const std::vector<std::uint64_t> lengths(60, 50);
  loader_options options = small_options(2, 5);
  options.bad_records = bad_record_policy::mask;
  options.fields.pad_token = 3;
  options.digests = true;
  loader clean(lanepack_test::corpus_of(lengths), {}, options);
  loader damaged(failing_source(lanepack_test::corpus_of(lengths), {17, 33}), {}, options);
  std::uint64_t loss_tokens = 0;
  std::uint64_t masked = 0;
  while (auto step = damaged.next()) {
    auto reference = clean.next();
    REQUIRE(reference);
    REQUIRE(std::equal(step->records().begin(), step->records().end(), reference->records().begin(),
                       reference->records().end()));
    while (auto micro_batch = step->next()) {
      loss_tokens += micro_batch->counts().loss_tokens;
      for (std::size_t i = 0; i < micro_batch->counts().records; ++i) {
        const record_id id = micro_batch->record(i).id;
        if (id != 17 && id != 33) continue;
        ++masked;
        const auto start = static_cast<std::size_t>(micro_batch->cu_seqlens_padded()[i]);
        for (std::size_t k = 0; k < 50; ++k) {
          REQUIRE(micro_batch->tokens()[start + k] == 3);
          REQUIRE(micro_batch->labels()[start + k] == ignored_label);
        }
      }
    }
  }
  REQUIRE(masked == 2);
  REQUIRE(damaged.statistics().masked_records == 2);
  REQUIRE(loss_tokens == 58 * 49);
}

TEST_CASE("loader: a forked child gets an error and the parent goes on", "[loader]") {
  const std::vector<std::uint64_t> lengths(60, 50);
  loader loader(lanepack_test::corpus_of(lengths), {}, small_options(2, 5));
  REQUIRE(loader.next());
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 1;
    try {
      static_cast<void>(loader.next());
    } catch (const state_error&) {
      code = 0;
    }
    ::_exit(code);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  REQUIRE(all_records(loader).size() == 50);
}

TEST_CASE("loader: can go away at any moment", "[loader]") {
  const std::vector<std::uint64_t> lengths(600, 50);
  const any_source source = lanepack_test::corpus_of(lengths);
  { const loader unused(source, {}, small_options(2, 5)); }
  {
    loader started(source, {}, small_options(2, 5));
    REQUIRE(started.next());
  }
  {
    std::optional<loader> first(std::in_place, source, world{}, small_options(2, 5));
    auto step = first->next();
    auto held = step->next();
    first.reset();
    REQUIRE(held->tokens()[0] == lanepack_test::expected_token(held->record(0).id, 0));
  }
  {
    loader a(source, {}, small_options(2, 5));
    REQUIRE(a.next());
    loader b(source, {}, small_options(3, 5));
    a = std::move(b);
    REQUIRE(all_records(a).size() == 600);
  }
}

TEST_CASE("loader: refuses what cannot work and says what would", "[loader]") {
  const any_source source = lanepack_test::corpus_of(std::vector<std::uint64_t>(60, 50));
  const auto message_of = [&](const any_source& from, const world& where,
                              const loader_options& options) {
    try {
      loader made(from, where, options);
    } catch (const error& refusal) {
      return std::string(refusal.what());
    }
    return std::string("accepted");
  };
  loader_options options = small_options(2, 5);
  REQUIRE(message_of(source, {}, options) == "accepted");

  options.plan.lanes = 0;
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("lanes: found 0"));
  options = small_options(2, 31);
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("60 feasible records"));
  options = small_options(2, 5);
  REQUIRE_THAT(message_of(source, {0, 3}, options), ContainsSubstring("2 lanes"));
  options = small_options(12, 1);
  REQUIRE_THAT(message_of(source, {0, 5}, options), ContainsSubstring("1, 2, 3, 4, 6, 12"));
  options.uneven = uneven_lanes::allow;
  REQUIRE(message_of(source, {0, 5}, options) == "accepted");
  options = small_options(2, 5);
  options.plan.policy = "widow";
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("window"));
  options = small_options(2, 5);
  options.plan.limits.capacity_tokens = 49;
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("record 0: infeasible record"));
  options = small_options(2, 5);
  options.staging_bytes = 100;
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("staging_bytes: found 100"));
  options = small_options(2, 5);
  options.plan.lookahead_steps = 1U << 24;
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("lookahead_steps"));
  options = small_options(2, 5);
  options.prefetch_micro_batches = 0;
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("prefetch_micro_batches"));
  options = small_options(2, 5);
  options.micro_batching = micro_batch_rule::padded_rows;
  REQUIRE_THAT(message_of(source, {}, options), ContainsSubstring("padded_loader"));
  options = small_options(2, 5);
  REQUIRE_THAT(message_of(length_source(std::vector<std::uint32_t>(60, 50)), {}, options),
               ContainsSubstring("table of lengths"));
}

TEST_CASE("loader: a fixed number of micro-batches is kept or refused at the start", "[loader]") {
  gen random(3);
  const any_source source = lanepack_test::corpus_of(lanepack_test::random_lengths(random, 400, 6));
  loader_options options = small_options(2, 10);
  options.micro_batches = 8;
  loader accepted(source, {}, options);
  for (auto&& step : accepted) REQUIRE(step.micro_batches() == 8);
  options.micro_batches = 1;
  REQUIRE_THROWS_WITH(loader(source, {}, options), ContainsSubstring("micro_batches: found 1"));
  options.micro_batches.reset();
  options.micro_batch_multiple = 3;
  loader rounded(source, {}, options);
  for (auto&& step : rounded) REQUIRE(step.micro_batches() % 3 == 0);
}

TEST_CASE("loader: level micro-batches hold the same records and are alike", "[loader]") {
  gen random(5);
  const any_source source = lanepack_test::corpus_of(lanepack_test::random_lengths(random, 600, 6));
  loader_options options = small_options(2, 20);
  loader tight(source, {}, options);
  options.micro_batching = micro_batch_rule::level;
  loader level(source, {}, options);
  std::uint64_t tight_spread = 0;
  std::uint64_t level_spread = 0;
  const auto spread_of = [](auto& step, std::set<record_ref>& records) {
    std::uint64_t most = 0;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    while (auto micro_batch = step.next()) {
      const std::uint64_t tokens = micro_batch->counts().tokens;
      REQUIRE(tokens <= 400);
      most = std::max(most, tokens);
      least = std::min(least, tokens);
      for (std::size_t i = 0; i < micro_batch->counts().records; ++i) {
        records.insert(micro_batch->record(i));
      }
    }
    return most - least;
  };
  std::size_t several = 0;
  while (auto step = level.next()) {
    auto other = tight.next();
    REQUIRE(other);
    REQUIRE(step->micro_batches() <= other->micro_batches());
    several += step->micro_batches() > 1 ? 1 : 0;
    std::set<record_ref> records;
    std::set<record_ref> expected;
    level_spread += spread_of(*step, records);
    tight_spread += spread_of(*other, expected);
    REQUIRE(records.size() == 40);
    REQUIRE(records == expected);
  }
  REQUIRE_FALSE(tight.next());
  REQUIRE(several > 0);
  REQUIRE(4 * level_spread < tight_spread);

  // A fixed number is kept.
  options.micro_batches = 12;
  loader fixed(source, {}, options);
  for (auto&& step : fixed) REQUIRE(step.micro_batches() == 12);
}

TEST_CASE("loader: a policy that plans all lanes tells every rank what a step holds in all",
          "[loader]") {
  gen random(4);
  const any_source source =
      lanepack_test::corpus_of(lanepack_test::random_lengths(random, 300, 6), true);
  loader_options options = small_options(6, 4);
  options.plan.policy = "replicated";
  // The last step has masked records, which have no loss tokens.
  options.plan.rule = epoch_end::finite;
  std::vector<global_step_counts> sums;
  std::vector<global_step_counts> said;
  for (rank_index rank = 0; rank < 3; ++rank) {
    loader own(source, {rank, 3}, options);
    for (auto&& step : own) {
      sums.resize(std::max<std::size_t>(sums.size(), step.number() + 1));
      said.resize(sums.size());
      global_step_counts& sum = sums[step.number()];
      sum.records += step.planned().records;
      sum.tokens += step.planned().tokens;
      for (auto&& micro_batch : step) sum.loss_tokens += micro_batch.counts().loss_tokens;
      REQUIRE(step.global_counts());
      if (rank == 0) said[step.number()] = *step.global_counts();
      REQUIRE(*step.global_counts() == said[step.number()]);
    }
  }
  REQUIRE(sums.size() == 13);
  REQUIRE(sums == said);

  options.plan.policy = "window";
  loader lane_local(source, {0, 3}, options);
  REQUIRE_FALSE(lane_local.next()->global_counts());
}

TEST_CASE("loader: infeasible and empty records follow their policies", "[loader]") {
  std::vector<std::uint64_t> lengths(100, 30);
  lengths[10] = 500;
  lengths[20] = 401;
  lengths[30] = 0;
  lengths[99] = 0;
  const any_source source = lanepack_test::corpus_of(lengths);
  loader_options options = small_options(2, 2);
  options.plan.rule = epoch_end::pad;
  options.plan.limits.empty = empty_policy::skip_and_count;
  options.plan.limits.infeasible = infeasible_policy::skip_and_count;
  {
    loader loader(source, {}, options);
    REQUIRE(loader.selection().infeasible_records == 2);
    REQUIRE(loader.selection().empty_records == 2);
    std::set<record_id> seen;
    for (const record_ref& record : all_records(loader)) seen.insert(record.id);
    REQUIRE(seen.size() == 96);
    for (const record_id id : {10u, 20u, 30u, 99u}) REQUIRE(seen.count(id) == 0);
  }
  options.plan.limits.infeasible = infeasible_policy::truncate;
  {
    loader loader(source, {}, options);
    REQUIRE(loader.selection().truncated_tokens == 101);
    std::uint64_t longest = 0;
    std::uint64_t cut = 0;
    for (auto&& step : loader) {
      for (auto&& micro_batch : step) {
        longest =
            std::max<std::uint64_t>(longest, static_cast<std::uint64_t>(micro_batch.max_seqlen()));
        if (micro_batch.max_seqlen() == 400) ++cut;
      }
    }
    REQUIRE(longest == 400);
    REQUIRE(cut == 2);
  }
  options.plan.limits.empty = empty_policy::fail;
  REQUIRE_THROWS_WITH(loader(source, {}, options), ContainsSubstring("record 30: empty record"));
}

namespace {

/// What a record was delivered as, put together from its chunks.
struct joined_record {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> positions;
  std::vector<std::uint8_t> mask;
  std::uint32_t chunks = 0;
  std::size_t last_micro_batch = 0;
};

template <class MicroBatch>
void append_record(const MicroBatch& micro_batch, std::size_t first, std::size_t count,
                   joined_record& out) {
  const auto part = [&](auto span) { return span.subspan(first, count); };
  const auto add = [](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
  add(out.tokens, part(micro_batch.tokens()));
  add(out.labels, part(micro_batch.labels()));
  add(out.positions, part(micro_batch.position_ids()));
  add(out.mask, part(micro_batch.loss_mask()));
}

/// The record as it would be without chunks.
void check_record(const joined_record& found, std::uint64_t id, std::uint64_t length, bool masks) {
  CAPTURE(id, length);
  REQUIRE(found.tokens.size() == length);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const bool counts = i + 1 < length && !(masks && id % 2 == 1 && (i + 1) % 3 == 0);
    const std::int32_t label = counts ? lanepack_test::expected_token(id, i + 1) : ignored_label;
    wrong += found.tokens[i] == lanepack_test::expected_token(id, i) &&
                     found.positions[i] == static_cast<std::int32_t>(i) &&
                     found.labels[i] == label && found.mask[i] == (counts ? 1 : 0)
                 ? 0
                 : 1;
  }
  REQUIRE(wrong == 0);
}

}  // namespace

TEST_CASE("loader: records above the capacity travel as chunks", "[loader]") {
  lanepack_test::for_each_seed(30, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const bool masks = random.one_in(2);
    const std::vector<std::uint64_t> lengths =
        lanepack_test::random_lengths(random, random.between(40, 200), 9);
    const any_source source = lanepack_test::corpus_of(lengths, masks);
    loader_options options = small_options(6, static_cast<std::uint32_t>(random.between(1, 5)));
    options.plan.seed = seed;
    options.plan.limits.capacity_tokens = random.between(40, 120);
    options.plan.limits.record_multiple = static_cast<std::uint32_t>(random.between(1, 8));
    options.plan.limits.total_multiple = static_cast<std::uint32_t>(random.between(1, 4));
    options.plan.limits.infeasible = infeasible_policy::chunk;
    options.micro_batch_multiple = 1;
    options.fields.loss_mask = true;
    options.fields.position_ids = true;
    options.digests = true;
    options.prefetch_micro_batches = static_cast<std::uint32_t>(random.between(1, 5));

    std::vector<digest128> digests_of_whole;
    {
      loader_options whole = options;
      whole.plan.limits.capacity_tokens = 1 << 12;
      whole.plan.limits.infeasible = infeasible_policy::fail;
      whole.staging_bytes = 1 << 20;
      loader loader(source, {0, 1}, whole);
      for (auto&& step : loader) {
        while (step.next()) {
        }
        const auto digests = step.pack_digests();
        digests_of_whole.insert(digests_of_whole.end(), digests.begin(), digests.end());
      }
    }
    std::vector<digest128> digests;
    loader loader(source, {0, 1}, options);
    const std::uint64_t capacity = loader.selection().limits.largest_record();
    std::uint64_t infeasible = 0;
    for (const std::uint64_t length : lengths) infeasible += length > capacity ? 1 : 0;
    REQUIRE(loader.selection().infeasible_records == infeasible);
    for (auto&& step : loader) {
      std::vector<joined_record> joined(step.records().size());
      batch_counts counts;
      for (auto&& micro_batch : step) {
        REQUIRE(micro_batch.total_tokens() <= capacity);
        counts += micro_batch.counts();
        const std::optional<record_chunk> chunk = micro_batch.chunk();
        for (std::size_t k = 0; k < micro_batch.record_indices().size(); ++k) {
          joined_record& record = joined[micro_batch.record_indices()[k]];
          const auto real = static_cast<std::size_t>(micro_batch.cu_seqlens()[k + 1] -
                                                     micro_batch.cu_seqlens()[k]);
          if (chunk) {
            REQUIRE(micro_batch.record_indices().size() == 1);
            REQUIRE(chunk->index == record.chunks);
            REQUIRE(chunk->prefix_tokens == record.tokens.size());
            REQUIRE(chunk->tokens == real);
            REQUIRE((chunk->index == 0 || record.last_micro_batch + 1 == micro_batch.index()));
          }
          append_record(micro_batch, static_cast<std::size_t>(micro_batch.cu_seqlens_padded()[k]),
                        real, record);
          ++record.chunks;
          record.last_micro_batch = micro_batch.index();
        }
      }
      for (std::size_t i = 0; i < joined.size(); ++i) {
        const std::uint64_t id = step.records()[i].id;
        check_record(joined[i], id, lengths[id], masks);
        REQUIRE((joined[i].chunks > 1) ==
                (round_up(lengths[id], options.plan.limits.record_multiple) > capacity));
      }
      REQUIRE(counts.records == step.records().size());
      REQUIRE(counts.tokens == step.planned().tokens);
      REQUIRE(counts.loss_tokens == step.planned().loss_tokens);
      const auto of_step = step.pack_digests();
      digests.insert(digests.end(), of_step.begin(), of_step.end());
    }
    REQUIRE(digests == digests_of_whole);
  });
}

TEST_CASE("loader: rows hold chunks too, and a fixed number counts them", "[loader]") {
  const any_source source = lanepack_test::corpus_of({250, 30, 30, 30, 30, 30, 30, 30});
  loader_options options = small_options(1, 4);
  options.plan.limits.capacity_tokens = 100;
  options.plan.limits.infeasible = infeasible_policy::chunk;
  options.fields.position_ids = true;
  {
    padded_loader loader(source, {0, 1}, options);
    std::uint64_t next = 0;
    for (auto&& step : loader) {
      for (auto&& micro_batch : step) {
        if (!micro_batch.chunk()) continue;
        REQUIRE(micro_batch.rows() == 1);
        REQUIRE(micro_batch.position_ids().front() == static_cast<std::int32_t>(next));
        next += micro_batch.chunk()->tokens;
      }
    }
    REQUIRE(next == 250);
  }
  // 3 chunks, and 3 records of 30 tokens in one micro-batch.
  options.micro_batches = 4;
  loader loader(source, {0, 1}, options);
  while (auto step = loader.next()) REQUIRE(step->micro_batches() == 4);
  options.micro_batches = 3;
  REQUIRE_THROWS_WITH(lanepack::loader(source, {0, 1}, options), ContainsSubstring("3 chunks"));
  // A step without the long record has 4 records, which are no 5 micro-batches.
  options.micro_batches = 5;
  REQUIRE_THROWS_WITH(lanepack::loader(source, {0, 1}, options), ContainsSubstring("3 chunks"));
}

TEST_CASE("loader: statistics say what was delivered and what comes next", "[loader]") {
  // 40 records of 10 tokens: 10 steps of 4 records.
  const any_source source = lanepack_test::corpus_of(std::vector<std::uint64_t>(40, 10));
  loader_options options = small_options(2, 2);
  loader loader(source, {0, 1}, options, quadratic_cost({.linear = 1, .quadratic = 0}));
  REQUIRE(loader.statistics().coming.empty());
  std::uint64_t taken = 0;
  while (auto step = loader.next()) {
    ++taken;
    while (auto micro_batch = step->next()) {
    }
    const loader_statistics now = loader.statistics();
    REQUIRE(now.steps == taken);
    REQUIRE(now.planned.records == 4 * taken);
    REQUIRE(now.planned.tokens == 40 * taken);
    REQUIRE(now.planned.loss_tokens == 36 * taken);
    REQUIRE(now.cost == 40 * taken);
    REQUIRE(now.coming.size() <= 10 - taken);
    for (std::size_t i = 0; i < now.coming.size(); ++i) {
      REQUIRE(now.coming[i].step == taken + i);
      REQUIRE(now.coming[i].cost == 40);
      REQUIRE(now.coming[i].tokens == 40);
    }
    REQUIRE(now.micro_batches_to_read + now.micro_batches_ready <= now.coming.size());
    REQUIRE(now.bytes > 0);
  }
  const loader_statistics end = loader.statistics();
  REQUIRE(end.steps == 10);
  REQUIRE(end.micro_batches == 10);
  REQUIRE(end.micro_batches_ready == 0);
  REQUIRE(end.staging.delivered == 10);
  // Tokens, labels, positions and mask of 40 tokens, and more for the segments.
  REQUIRE(end.bytes >= 10 * 40 * 13);
}

TEST_CASE("loader: a number of micro-batches that some rank cannot keep is refused", "[loader]") {
  const auto constructs = [](const any_source& source, const world& where,
                             const loader_options& options) {
    try {
      loader loader(source, where, options);
      std::uint64_t steps = 0;
      while (auto step = loader.next()) {
        while (auto micro_batch = step->next()) {
        }
        ++steps;
      }
      REQUIRE(steps == loader.steps());
      return true;
    } catch (const invalid_option& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("micro_batch"));
      return false;
    }
  };
  const any_source even = lanepack_test::corpus_of(std::vector<std::uint64_t>(120, 10));

  // Of 4 lanes two ranks have 1 and one has 2: 4 and 8 records.
  loader_options uneven = small_options(4, 4);
  uneven.uneven = uneven_lanes::allow;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    uneven.micro_batches = 8;
    REQUIRE_FALSE(constructs(even, {rank, 3}, uneven));
    uneven.micro_batches = 4;
    REQUIRE(constructs(even, {rank, 3}, uneven));
    uneven.micro_batches.reset();
    uneven.micro_batch_multiple = 6;
    REQUIRE_FALSE(constructs(even, {rank, 3}, uneven));
    uneven.micro_batch_multiple = 4;
    REQUIRE(constructs(even, {rank, 3}, uneven));
    uneven.micro_batch_multiple = 1;
  }

  // From step 3 on there are 2 records instead of 8.
  loader_options shrinking = small_options(2, 4);
  shrinking.plan.pack_size_changes = {{3, 1}};
  shrinking.micro_batches = 8;
  REQUIRE_FALSE(constructs(even, {0, 1}, shrinking));
  shrinking.micro_batches = 2;
  REQUIRE(constructs(even, {0, 1}, shrinking));
  shrinking.micro_batches.reset();
  shrinking.micro_batch_multiple = 3;
  REQUIRE_FALSE(constructs(even, {0, 1}, shrinking));

  // One lane ends with short records only, which cannot be cut.
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 64; ++i) lengths.push_back(i % 2 == 1 || i < 8 ? 300 : 10);
  const any_source long_ones = lanepack_test::corpus_of(lengths);
  loader_options chunks = small_options(2, 4);
  chunks.plan.shuffle.kind = shuffle_kind::none;
  chunks.plan.policy = "sequential";
  chunks.plan.limits.capacity_tokens = 100;
  chunks.plan.limits.infeasible = infeasible_policy::chunk;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    chunks.micro_batch_multiple = 6;
    REQUIRE_FALSE(constructs(long_ones, {rank, 2}, chunks));
    chunks.micro_batch_multiple = 4;
    REQUIRE(constructs(long_ones, {rank, 2}, chunks));
  }
}

TEST_CASE("loader: one that lives through many steps can be ended meanwhile", "[loader]") {
  const any_source source = lanepack_test::corpus_of(std::vector<std::uint64_t>(64, 10));
  loader_options options = small_options(2, 4);
  options.plan.rule = epoch_end::continue_epochs;
  options.plan.policy = "calendar";
  options.plan.tuning = calendar_tuning{};
  {
    options.start_step = std::uint64_t{1} << 40;
    loader loader(source, {0, 1}, options);
    REQUIRE_THROWS_AS(loader.state(), state_error);
  }
  options.start_step = 0;
  options.plan.skip_steps = {{1, std::uint64_t{1} << 40}};
  loader loader(source, {0, 1}, options);
  auto step = loader.next();
  while (step->next()) {
  }
  REQUIRE(step->state().next_step == 1);
}

TEST_CASE("loader: a summary of another corpus is refused", "[loader]") {
  // As many records, of other lengths.
  const any_source source = lanepack_test::corpus_of({5, 9, 300, 7});
  const corpus_summary other = summarize(lanepack_test::corpus_of({5, 9, 30, 7}));
  loader_options options = small_options(1, 2);
  options.plan.limits.capacity_tokens = 100;
  const auto refused = [&](const corpus_summary& summary) {
    try {
      loader loader(source, {0, 1}, options, default_cost(), summary);
      FAIL("no exception");
    } catch (const state_error& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("another corpus"));
    }
  };
  refused(other);
  // Even one that claims to be of this corpus delivers nothing that the limits forbid.
  corpus_summary liar = other;
  liar.fingerprint = source.fingerprint();
  loader loader(source, {0, 1}, options, default_cost(), liar);
  REQUIRE_THROWS_AS(
      [&] {
        while (auto step = loader.next()) {
          while (step->next()) {
          }
        }
      }(),
      data_error);
  liar.empty_records = 1;
  REQUIRE_THROWS_AS(select_records(source, liar, options.plan.limits), state_error);
}

TEST_CASE("loader: a file that changed ends a run that masks bad records", "[loader]") {
  class changed_source {
   public:
    explicit changed_source(memory_source source) : source_(std::move(source)) {}
    [[nodiscard]] std::uint64_t size() const { return source_.size(); }
    [[nodiscard]] source_traits traits() const { return source_.traits(); }
    void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
      source_.shapes(ids, out);
    }
    void read(std::span<const record_read> reads) const {
      throw file_changed({.path = "c.bin", .byte_offset = 0, .record = reads[0].id, .line = {}},
                         "cut short");
    }
    [[nodiscard]] digest128 fingerprint() const { return source_.fingerprint(); }
    [[nodiscard]] std::string describe() const { return source_.describe(); }

   private:
    memory_source source_;
  };
  loader_options options = small_options(1, 2);
  options.bad_records = bad_record_policy::mask;
  loader loader(changed_source(lanepack_test::corpus_of({5, 9, 30, 7})), {0, 1}, options);
  auto step = loader.next();
  REQUIRE_THROWS_AS(step->next(), file_changed);
  REQUIRE(loader.statistics().masked_records == 0);
}

TEST_CASE("loader: values that no enumeration has are refused", "[loader]") {
  const any_source source = lanepack_test::corpus_of({5, 9, 30, 7});
  const auto refused = [&](auto&& change, const char* name) {
    loader_options options = small_options(1, 2);
    change(options);
    try {
      loader loader(source, {0, 1}, options);
      FAIL("no exception for " << name);
    } catch (const invalid_option& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring(name));
      REQUIRE_THAT(error.what(), ContainsSubstring("99"));
    }
  };
  refused([](loader_options& o) { o.plan.rule = static_cast<epoch_end>(99); }, "rule");
  refused([](loader_options& o) { o.plan.shuffle.kind = static_cast<shuffle_kind>(99); },
          "shuffle");
  refused([](loader_options& o) { o.plan.limits.infeasible = static_cast<infeasible_policy>(99); },
          "infeasible");
  refused([](loader_options& o) { o.plan.limits.empty = static_cast<empty_policy>(99); }, "empty");
  refused([](loader_options& o) { o.micro_batching = static_cast<micro_batch_rule>(99); }, "rule");
}

TEST_CASE("loader: a record of too many chunks is refused before the first step", "[loader]") {
  loader_options options = small_options(1, 1);
  options.plan.limits.capacity_tokens = 1;
  options.plan.limits.infeasible = infeasible_policy::chunk;
  options.staging_bytes = 1 << 20;
  REQUIRE_NOTHROW(loader(lanepack_test::corpus_of({65'536, 1}), {0, 1}, options));
  try {
    loader loader(lanepack_test::corpus_of({65'537, 1}), {0, 1}, options);
    FAIL("no exception");
  } catch (const data_error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("65537 chunks of 1, expected at most 65536"));
    REQUIRE(error.where().record == 0);
  }
}
