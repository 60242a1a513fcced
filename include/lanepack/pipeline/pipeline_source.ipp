#pragma once

/// @file
/// The bodies of the functions in pipeline_source.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/made_records.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/pipeline_source.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// What the copies of a source share.
class pipeline_source_state final : public made_records {
 public:
  pipeline_source_state(const pipeline_input& input, const pipeline& stages, count_index index,
                        const pipeline_source_options& options)
      : made_records(input, stages, options.executor, options.cache_bytes, options.memory_bytes),
        index_(std::move(index)) {
    if (index_.input_fingerprint() != input.fingerprint() || index_.inputs() != input.size()) {
      throw_state_error("the index is of another corpus: found one of " +
                        std::to_string(index_.inputs()) + " inputs with the fingerprint " +
                        index_.input_fingerprint().hex() + ", expected that of " + runner().corpus +
                        ", " + input.fingerprint().hex());
    }
    if (index_.pipeline_fingerprint() != stages.fingerprint()) {
      throw_state_error("the index is of another pipeline: found the fingerprint " +
                        index_.pipeline_fingerprint().hex() + ", expected that of " +
                        stages.describe() + ", " + stages.fingerprint().hex());
    }
  }

  [[nodiscard]] const count_index& index() const noexcept { return index_; }

  [[nodiscard]] std::string describe() const {
    return "pipeline: " + std::to_string(index_.records()) + " records by " +
           runner().stages.describe() + " of " + runner().corpus;
  }

 private:
  [[nodiscard]] record_id input_of(record_id record) const override {
    return index_.input_of(record);
  }
  [[nodiscard]] std::uint64_t place_of(record_id record, record_id input) const override {
    return record - index_.first_record(input);
  }
  [[nodiscard]] stage_state state_before(record_id input) const override {
    return index_.state_before(input);
  }

  void check(record_id input, const std::vector<sample>& samples) const override {
    const record_id first = index_.first_record(input);
    const std::uint64_t count = index_.first_record(input + 1) - first;
    const auto fail = [&](const std::string& found, const std::string& expected) {
      throw_data_error({.path = runner().corpus, .byte_offset = {}, .record = input, .line = {}},
                       "the pipeline made " + found + " of it, expected " + expected +
                           " as the index says: the corpus has changed, or a stage is no pure "
                           "function");
    };
    if (samples.size() != count) {
      fail(std::to_string(samples.size()) + " records", std::to_string(count));
    }
    segment_lists found_segments;
    segment_lists expected_segments;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      add_segments(samples[i], found_segments);
      index_.segments(first + i, expected_segments);
      const std::span<const std::uint64_t> made = found_segments[i];
      const std::span<const std::uint64_t> indexed = expected_segments[i];
      if (!std::equal(made.begin(), made.end(), indexed.begin(), indexed.end())) {
        fail("a record of " + std::to_string(made.size()) + " segments",
             std::to_string(indexed.size()) + " of other lengths");
      }
      const record_shape found = shape_of(samples[i]);
      const record_shape expected = index_.shape(first + i);
      if (found == expected) continue;
      fail("a record of " + std::to_string(found.tokens) + " tokens, " +
               std::to_string(found.loss_tokens) + " to be predicted,",
           std::to_string(expected.tokens) + " and " + std::to_string(expected.loss_tokens));
    }
  }

  count_index index_;
};

}  // namespace detail

LANEPACK_FUNCTION pipeline_source::pipeline_source(const pipeline_input& input,
                                                   const pipeline& stages, count_index index,
                                                   const pipeline_source_options& options)
    : state_(std::make_shared<detail::pipeline_source_state>(input, stages, std::move(index),
                                                             options)) {}

LANEPACK_FUNCTION std::uint64_t pipeline_source::size() const {
  return index().records();
}

LANEPACK_FUNCTION source_traits pipeline_source::traits() const {
  return {.has_payload = true, .has_all_shapes = true, .has_loss_mask = index().has_loss_mask()};
}

LANEPACK_FUNCTION void pipeline_source::shapes(std::span<const record_id> ids,
                                               std::span<record_shape> out) const {
  LANEPACK_ASSERT(ids.size() == out.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    detail::check_record(ids[i], size());
    out[i] = index().shape(ids[i]);
  }
  state_->add_patches(ids, out);
}

LANEPACK_FUNCTION std::span<const std::string> pipeline_source::payload_names() const {
  return state_->payload_names();
}

LANEPACK_FUNCTION void pipeline_source::payload_shapes(std::size_t payload,
                                                       std::span<const record_id> ids,
                                                       std::span<payload_shape> out) const {
  for (const record_id id : ids) detail::check_record(id, size());
  state_->payload_shapes(payload, ids, out);
}

LANEPACK_FUNCTION void pipeline_source::read_payloads(std::span<const payload_read> reads) const {
  for (const payload_read& each : reads) detail::check_record(each.id, size());
  state_->read_payloads(reads);
}

LANEPACK_FUNCTION record_payload_bytes pipeline_source::largest_payload() const {
  record_payload_bytes largest = state_->largest_payload();
  if (largest.bytes != 0) largest.id = index().first_record(largest.id);
  return largest;
}

LANEPACK_FUNCTION void pipeline_source::read(std::span<const record_read> reads) const {
  for (const record_read& each : reads) detail::check_record(each.id, size());
  state_->read(reads);
}

LANEPACK_FUNCTION digest128 pipeline_source::fingerprint() const {
  return index().fingerprint();
}

LANEPACK_FUNCTION std::string pipeline_source::describe() const {
  return state_->describe();
}

LANEPACK_FUNCTION const count_index& pipeline_source::index() const noexcept {
  return state_->index();
}

LANEPACK_FUNCTION std::uint64_t pipeline_source::most_segments() const {
  return index().most_segments();
}

LANEPACK_FUNCTION void pipeline_source::segments(std::span<const record_id> ids,
                                                 segment_lists& out) const {
  for (const record_id id : ids) {
    detail::check_record(id, size());
    index().segments(id, out);
  }
}

}  // namespace lanepack::inline LANEPACK_ABI
