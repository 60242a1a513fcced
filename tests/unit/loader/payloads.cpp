// Payloads on their way through the loader.

#include <lanepack/loader/loader.hpp>
#include <lanepack/loader/statistics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/corpus/webdataset.hpp>
#include <lanepack/cost/token.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"
#include "support/payloads.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::corpus_with_payloads;
using lanepack_test::gen;

namespace {

struct corpus {
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint64_t> image_bytes;
  any_source source = lanepack_test::corpus_of({});
};

corpus make_corpus(std::uint64_t records = 96) {
  gen random(11);
  corpus made;
  made.lengths = lanepack_test::random_lengths(random, records, 6);
  made.image_bytes = lanepack_test::random_image_bytes(random, records);
  made.source = corpus_with_payloads(made.lengths, made.image_bytes);
  return made;
}

loader_options options_of(const std::string& policy = "window") {
  loader_options options;
  options.plan.seed = 7;
  options.plan.lanes = 6;
  options.plan.records_per_pack = 4;
  options.plan.lookahead_steps = 2;
  options.plan.policy = policy;
  options.plan.tuning = calendar_tuning{};
  options.plan.limits.capacity_tokens = 256;
  options.digests = true;
  options.payload_bytes = 1200;
  return options;
}

using digests = std::map<std::pair<step_index, lane_index>, digest128>;

/// Checks every payload of a step and adds the digests of its packs.
template <class Step>
void check_step(Step& step, const corpus& made, const loader_options& options, digests& packs,
                std::vector<record_id>& seen) {
  for (auto&& micro_batch : step) {
    REQUIRE(micro_batch.payloads().size() == 2);
    std::uint64_t bytes = 0;
    for (std::size_t p = 0; p < 2; ++p) {
      const payload_view payload = micro_batch.payloads()[p];
      REQUIRE(payload.records() == micro_batch.record_indices().size());
      REQUIRE(payload.offsets().back() == payload.bytes().size());
      bytes += payload.bytes().size();
      for (std::size_t i = 0; i < payload.records(); ++i) {
        const record_id id = micro_batch.record(i).id;
        CAPTURE(id, p);
        REQUIRE(payload.shape(i) == lanepack_test::expected_payload_shape(p, id, made.image_bytes));
        REQUIRE(payload.bytes(i).size() == payload.shape(i).bytes());
        REQUIRE(lanepack_test::is_expected_payload(payload.bytes(i), p, id));
      }
    }
    REQUIRE(bytes <= *options.payload_bytes);
    for (std::size_t i = 0; i < micro_batch.record_indices().size(); ++i) {
      seen.push_back(micro_batch.record(i).id);
    }
  }
  for (std::size_t i = 0; i < step.packs().size(); ++i) {
    packs[{step.number(), step.packs()[i].lane}] = step.pack_digests()[i];
  }
}

template <class Loader>
digests run_all(const corpus& made, const loader_options& options, std::uint32_t ranks,
                std::vector<record_id>& seen) {
  digests packs;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    Loader loader(made.source, {rank, ranks}, options);
    for (auto&& step : loader) check_step(step, made, options, packs, seen);
  }
  return packs;
}

}  // namespace

TEST_CASE("loader: payloads come with their records on any number of ranks", "[loader]") {
  const corpus made = make_corpus();
  for (const std::string policy : {"sequential", "window", "calendar", "replicated"}) {
    CAPTURE(policy);
    const loader_options options = options_of(policy);
    std::optional<digests> expected;
    for (const std::uint32_t ranks : {1U, 2U, 3U, 6U}) {
      std::vector<record_id> seen;
      const digests packs = run_all<loader>(made, options, ranks, seen);
      if (!expected) expected = packs;
      REQUIRE(packs == *expected);
      // Of 96 records, 4 steps of 24.
      std::sort(seen.begin(), seen.end());
      REQUIRE(seen.size() == 96);
      REQUIRE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    }
    std::vector<record_id> seen;
    REQUIRE(run_all<padded_loader>(made, options, 2, seen) == *expected);
  }
}

TEST_CASE("loader: a run with payloads goes on from any step on other ranks", "[loader]") {
  const corpus made = make_corpus();
  for (const std::string policy : {"window", "calendar"}) {
    loader_options options = options_of(policy);
    std::vector<record_id> seen;
    const digests expected = run_all<loader>(made, options, 1, seen);
    for (std::uint64_t stop = 1; stop < 4; ++stop) {
      CAPTURE(policy, stop);
      digests packs;
      std::vector<run_state> parts;
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        loader loader(made.source, {rank, 3}, options);
        for (std::uint64_t i = 0; i < stop; ++i) {
          auto step = loader.next();
          check_step(*step, made, options, packs, seen);
          if (i + 1 == stop) parts.push_back(step->state());
        }
      }
      loader_options resumed = options;
      resumed.resume_from = merge(parts);
      const digests rest = run_all<loader>(made, resumed, 2, seen);
      packs.insert(rest.begin(), rest.end());
      REQUIRE(packs == expected);
    }
  }
}

TEST_CASE("loader: digests cover payloads, and only those of sources that have any", "[loader]") {
  const corpus made = make_corpus();
  std::vector<record_id> seen;
  const loader_options options = options_of();
  const digests with = run_all<loader>(made, options, 1, seen);
  corpus other = made;
  other.image_bytes[5] = made.image_bytes[5] == 9 ? 8 : 9;
  other.source = corpus_with_payloads(other.lengths, other.image_bytes);
  const digests changed = run_all<loader>(other, options, 1, seen);
  std::size_t differ = 0;
  for (const auto& [place, digest] : with) differ += changed.at(place) != digest ? 1 : 0;
  REQUIRE(differ == 1);
}

TEST_CASE("loader: of a record that is cut the first chunk has the payloads", "[loader]") {
  corpus made;
  made.lengths = {100, 7, 5, 9};
  made.image_bytes = {50, 60, 0, 10};
  made.source = corpus_with_payloads(made.lengths, made.image_bytes);
  loader_options options = options_of("sequential");
  options.plan.lanes = 1;
  options.plan.limits.capacity_tokens = 40;
  options.plan.limits.infeasible = infeasible_policy::chunk;
  loader loader(made.source, {0, 1}, options);
  std::size_t chunks = 0;
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) {
      if (!micro_batch.chunk()) continue;
      ++chunks;
      REQUIRE(micro_batch.record(0).id == 0);
      const payload_view image = micro_batch.payloads()[0];
      REQUIRE(image.bytes().size() == (micro_batch.chunk()->index == 0 ? 50 : 0));
    }
    REQUIRE(step.pack_digests().size() == 1);
  }
  REQUIRE(chunks == 3);
}

TEST_CASE("loader: payloads that a micro-batch has no room for are refused with record and bytes",
          "[loader]") {
  corpus made = make_corpus();
  made.image_bytes[17] = 5000;
  made.source = corpus_with_payloads(made.lengths, made.image_bytes);
  // Record 17 has 17 % 3 rows of 24 bytes too.
  loader_options options = options_of();
  REQUIRE_THROWS_WITH(loader(made.source, {0, 1}, options),
                      ContainsSubstring("payload_bytes: found 1200, expected at least 5048") &&
                          ContainsSubstring("record 17 has payloads of 5048 bytes"));
  options.payload_bytes.reset();
  options.staging_bytes = 5000;
  REQUIRE_THROWS_WITH(loader(made.source, {0, 1}, options),
                      ContainsSubstring("staging_bytes: found 5000") &&
                          ContainsSubstring("record 17 has payloads of 5048 bytes"));
  // A fixed number of micro-batches is kept only where all payloads of a step fit one.
  options = options_of();
  options.payload_bytes = 6000;
  options.micro_batches = 24;
  options.plan.limits.capacity_tokens = 4096;
  REQUIRE_THROWS_WITH(loader(made.source, {0, 1}, options), ContainsSubstring("micro_batches"));
  options.payload_bytes = 5048 * 24;
  REQUIRE_NOTHROW(loader(made.source, {0, 1}, options));
}

namespace {

/// Cannot deliver the payloads of one record.
struct failing_source {
  any_source inner;
  record_id bad = 0;

  [[nodiscard]] std::uint64_t size() const { return inner.size(); }
  [[nodiscard]] source_traits traits() const { return inner.traits(); }
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    inner.shapes(ids, out);
  }
  void read(std::span<const record_read> reads) const { inner.read(reads); }
  [[nodiscard]] digest128 fingerprint() const { return inner.fingerprint(); }
  [[nodiscard]] std::string describe() const { return inner.describe(); }
  [[nodiscard]] std::span<const std::string> payload_names() const { return inner.payload_names(); }
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const {
    inner.payload_shapes(payload, ids, out);
  }
  void read_payloads(std::span<const payload_read> reads) const {
    for (const payload_read& read : reads) {
      if (read.id == bad) throw data_error({.path = "f", .record = bad}, "a bad image");
    }
    inner.read_payloads(reads);
  }
  [[nodiscard]] record_payload_bytes largest_payload() const { return inner.largest_payload(); }
};

}  // namespace

TEST_CASE("loader: a record whose payload cannot be read is masked or ends the run", "[loader]") {
  const corpus made = make_corpus();
  const auto bad =
      static_cast<record_id>(std::find_if(made.image_bytes.begin(), made.image_bytes.end(),
                                          [](std::uint64_t bytes) { return bytes > 20; }) -
                             made.image_bytes.begin());
  const any_source source = failing_source{made.source, bad};
  loader_options options = options_of();
  {
    loader loader(source, {0, 1}, options);
    const auto run = [&] {
      for (auto&& step : loader) {
        for (auto&& micro_batch : step) static_cast<void>(micro_batch);
      }
    };
    REQUIRE_THROWS_WITH(run(), ContainsSubstring("a bad image"));
  }
  options.bad_records = bad_record_policy::mask;
  loader loader(source, {0, 1}, options);
  std::size_t found = 0;
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) {
      for (std::size_t i = 0; i < micro_batch.record_indices().size(); ++i) {
        if (micro_batch.record(i).id != bad) continue;
        ++found;
        const payload_view image = micro_batch.payloads()[0];
        REQUIRE(image.bytes(i).size() == made.image_bytes[bad]);
        REQUIRE(std::all_of(image.bytes(i).begin(), image.bytes(i).end(),
                            [](std::byte value) { return value == std::byte{0}; }));
        const auto at = static_cast<std::size_t>(micro_batch.cu_seqlens_padded()[i]);
        REQUIRE(micro_batch.loss_mask()[at] == 0);
      }
    }
  }
  REQUIRE(found == 1);
  REQUIRE(loader.statistics().masked_records == 1);
}

TEST_CASE("loader: parts of a mixture may carry different payloads or none", "[loader]") {
  const corpus made = make_corpus(24);
  const any_source source = concatenated_source(
      {{"text", lanepack_test::corpus_of(made.lengths)}, {"images", made.source}});
  loader_options options = options_of("sequential");
  loader loader(source, {0, 1}, options);
  std::size_t checked = 0;
  for (auto&& step : loader) {
    for (auto&& micro_batch : step) {
      const payload_view image = *micro_batch.payloads().find("image");
      for (std::size_t i = 0; i < image.records(); ++i) {
        const record_id id = micro_batch.record(i).id;
        ++checked;
        if (id < 24) {
          REQUIRE(image.bytes(i).empty());
        } else {
          REQUIRE(image.bytes(i).size() == made.image_bytes[id - 24]);
          REQUIRE(lanepack_test::is_expected_payload(image.bytes(i), 0, id - 24));
        }
      }
    }
  }
  REQUIRE(checked == 48);
}

TEST_CASE("loader: shards of images and tokens are balanced by tokens and patches", "[loader]") {
  webdataset_options images;
  images.payloads = {"jpg"};
  images.patches = {.payload = "jpg", .patch_pixels = 10};
  const any_source source = open_webdataset(
      expand_shards(std::string(LANEPACK_GOLDEN_WEBDATASET) + "/shard-{000..002}.tar"), images,
      {.cache_index = false, .threads = 1});
  loader_options options;
  options.plan.lanes = 1;
  options.plan.records_per_pack = 5;
  loader loader(source, {0, 1}, options, token_cost({.per_token = 10, .per_patch = 1}));
  auto step = loader.next();
  REQUIRE(step.has_value());
  // Sample i has i + 3 tokens; the first image has 6 patches, the others have 9.
  REQUIRE(step->cost() == 10 * (3 + 4 + 5 + 6 + 7) + 6 + 4 * 9);
  for (auto&& micro_batch : *step) {
    const payload_view jpg = *micro_batch.payloads().find("jpg");
    for (std::size_t i = 0; i < jpg.records(); ++i) {
      REQUIRE(image_size_of(jpg.bytes(i)) == image_size{20 + micro_batch.record(i).id, 30});
    }
  }
}
