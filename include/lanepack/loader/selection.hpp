#pragma once

/// @file
/// Which records of a corpus take part in a run, and how much of each.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/feasibility.hpp>
#include <lanepack/sampler/domain.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The records of a run, and what the limits did to the others.
struct record_selection {
  /// Records that take part, numbered without gaps.
  record_domain domain{0};
  /// The limits that they were selected by.
  feasibility limits{{}};
  /// Records above the capacity: left out, truncated or cut into chunks, as the policy says.
  std::uint64_t infeasible_records = 0;
  /// Records without tokens; left out.
  std::uint64_t empty_records = 0;
  /// Tokens that truncation cuts off.
  std::uint64_t truncated_tokens = 0;
  /// Tokens and loss tokens of an epoch as they are delivered. Loss tokens are an upper bound where
  /// records with a loss mask are truncated.
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;

  /// The shape of a record as it is delivered.
  [[nodiscard]] record_shape delivered(const record_shape& shape) const noexcept {
    return limits.delivered(shape);
  }
};

namespace detail {

[[noreturn]] LANEPACK_COLD inline void fail_contradiction(const any_source& source,
                                                          const char* expected) {
  throw_state_error("the summary is of another corpus: found none in " + source.describe() +
                    ", expected " + expected);
}

}  // namespace detail

/// Applies the limits to a corpus.
/// @throws  data_error naming the first offending record where a policy is `fail`.
/// @complexity  O(1) where no record is infeasible or empty; otherwise O(m log m) in those m
///              records, or one parallel pass over the index where the summary does not list them.
///              A record left out takes 8 bytes.
[[nodiscard]] inline record_selection select_records(const any_source& source,
                                                     const corpus_summary& summary,
                                                     const feasibility_options& options) {
  record_selection selection;
  selection.limits = feasibility(options);
  const std::uint64_t limit = selection.limits.largest_record();
  std::vector<record_id> excluded;
  selection.tokens = summary.tokens;
  selection.loss_tokens = summary.loss_tokens;

  if (summary.max_tokens > limit) {
    std::vector<record_id> above = ids_above(summary, source, limit);
    selection.infeasible_records = above.size();
    if (above.empty()) detail::fail_contradiction(source, "a record above the limit");
    if (options.infeasible == infeasible_policy::fail) {
      record_shape shape;
      source.shapes({&above.front(), 1}, {&shape, 1});
      selection.limits.check(shape.tokens, {.path = source.describe(), .record = above.front()});
    }
    const bool kept = selection.limits.keeps_infeasible();
    std::vector<record_shape> shapes(above.size());
    source.shapes(above, shapes);
    for (std::size_t i = 0; i < above.size(); ++i) {
      const record_shape& shape = shapes[i];
      if (kept) {
        selection.limits.check(shape.tokens, {.path = source.describe(), .record = above[i]});
      }
      const record_shape delivered = kept ? selection.delivered(shape) : record_shape{};
      selection.tokens -= std::min(selection.tokens, shape.tokens - delivered.tokens);
      selection.loss_tokens -=
          std::min(selection.loss_tokens, shape.loss_tokens - delivered.loss_tokens);
      if (kept) selection.truncated_tokens += shape.tokens - delivered.tokens;
    }
    if (!kept) excluded = std::move(above);
  }
  if (summary.empty_records != 0) {
    const std::vector<record_id> empty = empty_ids(summary, source);
    selection.empty_records = empty.size();
    if (empty.empty()) detail::fail_contradiction(source, "a record without tokens");
    if (options.empty == empty_policy::fail) {
      selection.limits.check(0, {.path = source.describe(), .record = empty.front()});
    }
    std::vector<record_id> merged;
    merged.reserve(excluded.size() + empty.size());
    std::merge(excluded.begin(), excluded.end(), empty.begin(), empty.end(),
               std::back_inserter(merged));
    excluded = std::move(merged);
  }
  selection.domain = record_domain(source.size(), std::move(excluded));
  return selection;
}

}  // namespace lanepack::inline LANEPACK_ABI
