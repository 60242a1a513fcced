// Payloads of inputs beside the records that stages make.

#include <lanepack/pipeline/pipeline_source.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/pipeline/carrying_stages.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/unindexed_pipeline.hpp>

#include "support/catch.hpp"
#include "support/payloads.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::uint64_t> lengths{5, 12, 3, 9, 20, 1, 7, 8};
const std::vector<std::uint64_t> image_bytes{40, 0, 25, 70, 10, 90, 0, 33};

const pipeline stages({filter("no single ones",
                              [](const sample& each) { return each.tokens.size() > 1; }),
                       split({.tokens = 6})});

}  // namespace

TEST_CASE("pipeline: payloads go with the first record of their input", "[pipeline]") {
  const any_source images = lanepack_test::corpus_with_payloads(lengths, image_bytes);
  const pipeline_source source(images, stages, make_count_index(images, stages));
  // 1 + 2 + 1 + 2 + 4 + 0 + 2 + 2 records.
  REQUIRE(source.size() == 14);
  REQUIRE(source.payload_names().size() == 2);
  REQUIRE(source.largest_payload().bytes >= 90);
  std::map<record_id, record_id> firsts{{0, 0}, {1, 1}, {3, 2}, {4, 3}, {6, 4}, {10, 6}, {12, 7}};
  for (record_id id = 0; id < source.size(); ++id) {
    CAPTURE(id);
    const auto first = firsts.find(id);
    record_shape shape;
    source.shapes({&id, 1}, {&shape, 1});
    REQUIRE(shape.patches == (first == firsts.end() ? 0 : image_bytes[first->second] / 10));
    for (std::size_t p = 0; p < 2; ++p) {
      payload_shape found;
      source.payload_shapes(p, {&id, 1}, {&found, 1});
      if (first == firsts.end()) {
        REQUIRE(found == payload_shape());
        continue;
      }
      REQUIRE(found == lanepack_test::expected_payload_shape(p, first->second, image_bytes));
      std::vector<std::byte> bytes(static_cast<std::size_t>(found.bytes()));
      const payload_read read{.id = id, .payload = p, .bytes = bytes};
      source.read_payloads({&read, 1});
      REQUIRE(lanepack_test::is_expected_payload(bytes, p, first->second));
    }
  }
  const record_id beyond = 14;
  payload_shape found;
  REQUIRE_THROWS_AS(source.payload_shapes(0, {&beyond, 1}, {&found, 1}), state_error);
  const record_id second = 2;
  REQUIRE_THROWS_AS(source.payload_shapes(2, {&second, 1}, {&found, 1}), state_error);
  std::vector<std::byte> some(3);
  const payload_read read{.id = second, .payload = 0, .bytes = some};
  REQUIRE_THROWS_AS(source.read_payloads({&read, 1}), state_error);
}

TEST_CASE("pipeline: payloads reach the batch, with an index and without", "[pipeline]") {
  const any_source images = lanepack_test::corpus_with_payloads(lengths, image_bytes);
  const any_source indexed = pipeline_source(images, stages, make_count_index(images, stages));
  const any_source unindexed = unindexed_pipeline(images, stages);
  for (const any_source& source : {indexed, unindexed}) {
    loader_options options;
    options.plan = {.seed = 3,
                    .lanes = 2,
                    .records_per_pack = 2,
                    .rule = epoch_end::continue_epochs,
                    .steps = 7,
                    .policy = "window",
                    .lookahead_steps = 2};
    options.plan.limits.capacity_tokens = 64;
    loader loading(source, {0, 1}, options);
    std::uint64_t with_images = 0;
    for (auto&& step : loading) {
      for (auto&& micro_batch : step) {
        const payload_view found = *micro_batch.payloads().find("image");
        for (std::size_t i = 0; i < found.records(); ++i) {
          if (found.bytes(i).empty()) continue;
          ++with_images;
          // The record begins as the input with this image does.
          bool is_there = false;
          for (std::uint64_t id = 0; id < lengths.size(); ++id) {
            is_there =
                is_there ||
                (found.bytes(i).size() == image_bytes[id] &&
                 lanepack_test::is_expected_payload(found.bytes(i), 0, id) &&
                 micro_batch.tokens()[static_cast<std::size_t>(micro_batch.cu_seqlens()[i])] ==
                     lanepack_test::expected_token(id, 0));
          }
          REQUIRE(is_there);
        }
      }
    }
    REQUIRE(with_images >= 8);
  }
}

TEST_CASE("pipeline: stages that carry over cannot have payloads", "[pipeline]") {
  const any_source images = lanepack_test::corpus_with_payloads(lengths, image_bytes);
  const pipeline carrying({concatenate_and_cut({.tokens = 4})});
  REQUIRE_THROWS_WITH(
      pipeline_source(images, carrying, make_count_index(images, carrying)),
      ContainsSubstring("stages: found concatenate_and_cut") && ContainsSubstring("payloads"));
}
