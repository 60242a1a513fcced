#pragma once

/// @file
/// The bodies of the functions in unindexed_pipeline.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/corpus/unindexed.hpp>
#include <lanepack/pipeline/made_records.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>
#include <lanepack/pipeline/unindexed_pipeline.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// What the copies of a source share.
class unindexed_pipeline_state final : public unindexed_records {
 public:
  unindexed_pipeline_state(const pipeline_input& input, const pipeline& stages,
                           const unindexed_pipeline_options& options)
      : made_(checked(input, stages), stages, options),
        has_loss_mask_(options.has_loss_mask),
        has_segments_(options.has_segments) {
    digest_builder digest;
    digest.text("pipeline without index 1");
    digest.digest(input.fingerprint());
    digest.digest(stages.fingerprint());
    fingerprint_ = digest.value();
  }

  [[nodiscard]] std::uint64_t inputs() const override { return made_.from().size(); }
  void expand(std::span<const record_id> inputs,
              std::span<std::vector<record_shape>> out) const override {
    made_.expand(inputs, out);
  }
  void read(std::span<const record_read> reads) const { made_.read(reads); }
  void segments(std::span<const record_id> ids, segment_lists& out) const {
    made_.segments(ids, out);
  }
  [[nodiscard]] const made_records& made() const noexcept { return made_; }
  [[nodiscard]] bool has_loss_mask() const noexcept { return has_loss_mask_; }
  [[nodiscard]] bool has_segments() const noexcept { return has_segments_; }
  [[nodiscard]] const digest128& fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::string describe() const { return made_.describe(); }

 private:
  class records final : public made_records {
   public:
    records(const pipeline_input& input, const pipeline& stages,
            const unindexed_pipeline_options& options)
        : made_records(input, stages, options.executor, options.cache_bytes, options.memory_bytes),
          has_segments_(options.has_segments) {}

    [[nodiscard]] const pipeline_input& from() const noexcept { return runner().input; }
    [[nodiscard]] std::string describe() const {
      return "pipeline without index: " + runner().stages.describe() + " of " + runner().corpus;
    }

    void expand(std::span<const record_id> inputs, std::span<std::vector<record_shape>> out) {
      std::vector<record_id> each(inputs.begin(), inputs.end());
      std::sort(each.begin(), each.end());
      each.erase(std::unique(each.begin(), each.end()), each.end());
      if (!each.empty()) check_record(each.back(), from().size());
      std::vector<std::vector<record_shape>> shapes(each.size());
      visit(each, [&](std::size_t i, const std::vector<sample>& samples) {
        for (const sample& made : samples) shapes[i].push_back(shape_of(made));
        if (shapes[i].empty()) return;
        const record_id first = each[i] << record_bits;
        add_patches({&first, 1}, {shapes[i].data(), 1});
      });
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto at = std::lower_bound(each.begin(), each.end(), inputs[i]) - each.begin();
        out[i] = shapes[static_cast<std::size_t>(at)];
      }
    }

    void segments(std::span<const record_id> ids, segment_lists& out) {
      std::vector<record_id> each(ids.begin(), ids.end());
      for (record_id& id : each) id = input_of(id);
      std::sort(each.begin(), each.end());
      each.erase(std::unique(each.begin(), each.end()), each.end());
      std::vector<segment_lists> lists(each.size());
      visit(each, [&](std::size_t i, const std::vector<sample>& samples) {
        for (const sample& made : samples) add_segments(made, lists[i]);
      });
      for (const record_id id : ids) {
        const auto at = std::lower_bound(each.begin(), each.end(), input_of(id)) - each.begin();
        const segment_lists& of_input = lists[static_cast<std::size_t>(at)];
        const std::uint64_t place = place_of(id, input_of(id));
        if (place >= of_input.size()) throw_no_such_record(id, from().size() << record_bits);
        out.add(of_input[static_cast<std::size_t>(place)]);
      }
    }

   private:
    [[nodiscard]] record_id input_of(record_id record) const override {
      return record >> record_bits;
    }
    [[nodiscard]] std::uint64_t place_of(record_id record, record_id) const override {
      return record & (most_records - 1);
    }
    [[nodiscard]] stage_state state_before(record_id) const override { return {}; }
    void check(record_id input, const std::vector<sample>& samples) const override {
      const auto several = [](const sample& made) { return made.segments.size() > 1; };
      if (!has_segments_ && std::any_of(samples.begin(), samples.end(), several)) {
        throw_data_error({.path = runner().corpus, .byte_offset = {}, .record = input, .line = {}},
                         "the pipeline made a record of several segments of it, expected one "
                         "unless unindexed_pipeline_options::has_segments is set");
      }
      if (samples.size() <= most_records) return;
      throw_data_error({.path = runner().corpus, .byte_offset = {}, .record = input, .line = {}},
                       "the pipeline made " + std::to_string(samples.size()) +
                           " records of it, expected at most " + std::to_string(most_records) +
                           " without a count index");
    }

    bool has_segments_;
  };

  static const pipeline_input& checked(const pipeline_input& input, const pipeline& stages) {
    if (stages.stateful()) {
      throw_invalid_option("stages", stages.describe(),
                           "stages that carry nothing over from input to input, or a count index: "
                           "open_count_index makes one, and pipeline_source reads with it");
    }
    if (input.size() > most_inputs) {
      throw_invalid_option("input", std::to_string(input.size()) + " inputs",
                           "at most " + std::to_string(most_inputs));
    }
    return input;
  }

  /// Only its cache changes.
  mutable records made_;
  bool has_loss_mask_;
  bool has_segments_;
  digest128 fingerprint_;
};

}  // namespace detail

LANEPACK_FUNCTION unindexed_pipeline::unindexed_pipeline(const pipeline_input& input,
                                                         const pipeline& stages,
                                                         const unindexed_pipeline_options& options)
    : state_(std::make_shared<detail::unindexed_pipeline_state>(input, stages, options)) {}

LANEPACK_FUNCTION std::uint64_t unindexed_pipeline::size() const {
  return state_->inputs() << unindexed_records::record_bits;
}

LANEPACK_FUNCTION source_traits unindexed_pipeline::traits() const {
  return {.has_payload = true, .has_all_shapes = false, .has_loss_mask = state_->has_loss_mask()};
}

LANEPACK_FUNCTION void unindexed_pipeline::shapes(std::span<const record_id> ids,
                                                  std::span<record_shape> out) const {
  LANEPACK_ASSERT(ids.size() == out.size());
  std::vector<record_id> inputs(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) inputs[i] = ids[i] >> unindexed_records::record_bits;
  std::vector<std::vector<record_shape>> expanded(ids.size());
  state_->expand(inputs, expanded);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t place = ids[i] & (unindexed_records::most_records - 1);
    if (place >= expanded[i].size()) detail::throw_no_such_record(ids[i], size());
    out[i] = expanded[i][static_cast<std::size_t>(place)];
  }
}

LANEPACK_FUNCTION void unindexed_pipeline::read(std::span<const record_read> reads) const {
  for (const record_read& each : reads) detail::check_record(each.id, size());
  state_->read(reads);
}

LANEPACK_FUNCTION digest128 unindexed_pipeline::fingerprint() const {
  return state_->fingerprint();
}

LANEPACK_FUNCTION std::string unindexed_pipeline::describe() const {
  return state_->describe();
}

LANEPACK_FUNCTION std::uint64_t unindexed_pipeline::most_segments() const {
  return state_->has_segments() ? std::numeric_limits<std::uint64_t>::max() : 1;
}

LANEPACK_FUNCTION void unindexed_pipeline::segments(std::span<const record_id> ids,
                                                    segment_lists& out) const {
  for (const record_id id : ids) detail::check_record(id, size());
  state_->segments(ids, out);
}

LANEPACK_FUNCTION std::span<const std::string> unindexed_pipeline::payload_names() const {
  return state_->made().payload_names();
}

LANEPACK_FUNCTION void unindexed_pipeline::payload_shapes(std::size_t payload,
                                                          std::span<const record_id> ids,
                                                          std::span<payload_shape> out) const {
  for (const record_id id : ids) detail::check_record(id, size());
  state_->made().payload_shapes(payload, ids, out);
}

LANEPACK_FUNCTION void unindexed_pipeline::read_payloads(
    std::span<const payload_read> reads) const {
  for (const payload_read& each : reads) detail::check_record(each.id, size());
  state_->made().read_payloads(reads);
}

LANEPACK_FUNCTION record_payload_bytes unindexed_pipeline::largest_payload() const {
  record_payload_bytes largest = state_->made().largest_payload();
  largest.id <<= unindexed_records::record_bits;
  return largest;
}

LANEPACK_FUNCTION const unindexed_records* unindexed_pipeline::unindexed() const noexcept {
  return state_.get();
}

}  // namespace lanepack::inline LANEPACK_ABI
