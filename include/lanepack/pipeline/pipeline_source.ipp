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
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/input_runner.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/pipeline_source.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/sample_cache.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Copies the part of a record that is wanted.
inline void copy_record(const sample& from, const record_read& to) {
  check_read(to, from.tokens.size());
  const auto first = static_cast<std::ptrdiff_t>(to.first_token);
  std::copy_n(from.tokens.begin() + first, to.tokens.size(), to.tokens.begin());
  if (to.loss_mask.empty()) return;
  if (from.loss_mask.empty()) {
    std::fill(to.loss_mask.begin(), to.loss_mask.end(), std::uint8_t{1});
  } else {
    std::copy_n(from.loss_mask.begin() + first, to.loss_mask.size(), to.loss_mask.begin());
  }
}

/// What the copies of a source share.
class pipeline_source_state {
 public:
  pipeline_source_state(const pipeline_input& input, const pipeline& stages, count_index index,
                        const pipeline_source_options& options)
      : runner_(input, stages, options.executor, options.memory_bytes),
        index_(std::move(index)),
        cache_(options.cache_bytes) {
    if (index_.input_fingerprint() != input.fingerprint() || index_.inputs() != input.size()) {
      throw_state_error("the index is of another corpus: found one of " +
                        std::to_string(index_.inputs()) + " inputs with the fingerprint " +
                        index_.input_fingerprint().hex() + ", expected that of " + runner_.corpus +
                        ", " + input.fingerprint().hex());
    }
    if (index_.pipeline_fingerprint() != stages.fingerprint()) {
      throw_state_error("the index is of another pipeline: found the fingerprint " +
                        index_.pipeline_fingerprint().hex() + ", expected that of " +
                        stages.describe() + ", " + stages.fingerprint().hex());
    }
  }

  [[nodiscard]] const count_index& index() const noexcept { return index_; }

  void read(std::span<const record_read> reads) {
    std::vector<wanted> order(reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      check_record(reads[i].id, index_.records());
      order[i] = {index_.input_of(reads[i].id), i};
    }
    std::sort(order.begin(), order.end());
    // Where the records of each input that has to be run begin in `order`.
    std::vector<record_id> missing;
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < order.size();) {
      const record_id input = order[at].input;
      if (const sample_cache::samples known = cache_.find(input)) {
        deliver(input, *known, std::span<const wanted>(order).subspan(at), reads);
      } else {
        missing.push_back(input);
        places.push_back(at);
      }
      while (at < order.size() && order[at].input == input) ++at;
    }
    run(missing, [&](std::size_t i, std::vector<sample>& samples) {
      check(missing[i], samples);
      deliver(missing[i], samples, std::span<const wanted>(order).subspan(places[i]), reads);
      cache_.add(missing[i], std::make_shared<const std::vector<sample>>(std::move(samples)));
    });
  }

  [[nodiscard]] std::vector<std::uint64_t> segments(record_id id) {
    check_record(id, index_.records());
    const record_id input = index_.input_of(id);
    sample_cache::samples samples = cache_.find(input);
    if (!samples) {
      run({&input, 1}, [&](std::size_t, std::vector<sample>& made) {
        check(input, made);
        samples = std::make_shared<const std::vector<sample>>(std::move(made));
        cache_.add(input, samples);
      });
    }
    const sample& found = (*samples)[static_cast<std::size_t>(id - index_.first_record(input))];
    if (found.segments.empty()) return {found.tokens.size()};
    return found.segments;
  }

  [[nodiscard]] std::string describe() const {
    return "pipeline: " + std::to_string(index_.records()) + " records by " +
           runner_.stages.describe() + " of " + runner_.corpus;
  }

 private:
  /// A read and the input that its record comes of.
  struct wanted {
    record_id input;
    std::size_t read;

    friend auto operator<=>(const wanted&, const wanted&) = default;
  };

  template <class Commit>
  void run(std::span<const record_id> inputs, Commit&& commit) {
    if (!runner_.stages.stateful()) {
      runner_.run(inputs, commit);
      return;
    }
    any_executor on = runner_.executor;
    const std::size_t together = 2 * std::max<std::size_t>(1, on.threads());
    std::vector<std::vector<sample>> results;
    for (std::size_t first = 0; first < inputs.size(); first += results.size()) {
      results.assign(std::min(together, inputs.size() - first), {});
      run_tasks(on, results.size(), [&](std::uint64_t task) {
        const record_id input = inputs[first + static_cast<std::size_t>(task)];
        results[static_cast<std::size_t>(task)] =
            runner_.run_one(input, index_.state_before(input));
      });
      for (std::size_t i = 0; i < results.size(); ++i) commit(first + i, results[i]);
    }
  }

  void deliver(record_id input, const std::vector<sample>& samples,
               std::span<const wanted> wanted_from, std::span<const record_read> reads) const {
    for (const wanted& each : wanted_from) {
      if (each.input != input) return;
      const record_read& to = reads[each.read];
      copy_record(samples[static_cast<std::size_t>(to.id - index_.first_record(input))], to);
    }
  }

  /// Throws unless the input became what the index says.
  void check(record_id input, const std::vector<sample>& samples) const {
    const record_id first = index_.first_record(input);
    const std::uint64_t count = index_.first_record(input + 1) - first;
    const auto fail = [&](const std::string& found, const std::string& expected) {
      throw_data_error({.path = runner_.corpus, .byte_offset = {}, .record = input, .line = {}},
                       "the pipeline made " + found + " of it, expected " + expected +
                           " as the index says: the corpus has changed, or a stage is no pure "
                           "function");
    };
    if (samples.size() != count) {
      fail(std::to_string(samples.size()) + " records", std::to_string(count));
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const record_shape found = shape_of(samples[i]);
      const record_shape expected = index_.shape(first + i);
      if (found == expected) continue;
      fail("a record of " + std::to_string(found.tokens) + " tokens, " +
               std::to_string(found.loss_tokens) + " to be predicted,",
           std::to_string(expected.tokens) + " and " + std::to_string(expected.loss_tokens));
    }
  }

  input_runner runner_;
  count_index index_;
  sample_cache cache_;
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
}

LANEPACK_FUNCTION void pipeline_source::read(std::span<const record_read> reads) const {
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

LANEPACK_FUNCTION std::vector<std::uint64_t> pipeline_source::segments(record_id id) const {
  return state_->segments(id);
}

}  // namespace lanepack::inline LANEPACK_ABI
