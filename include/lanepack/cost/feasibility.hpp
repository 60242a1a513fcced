#pragma once

/// @file
/// Which records fit at all: capacities, empty records, and records that no pack can balance.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What happens to a record that does not fit a micro-batch alone.
enum class infeasible_policy : std::uint8_t {
  /// An error before the first step.
  fail,
  /// The record is left out of every epoch, and counted.
  skip_and_count,
  /// Its first tokens that fit are kept, and the record is counted.
  truncate,
  /// It is kept whole and cut into chunks in consecutive micro-batches, and counted; see
  /// `chunked_micro_batcher`.
  chunk,
};

/// What happens to a record without tokens, which cannot be a segment.
enum class empty_policy : std::uint8_t {
  /// An error before the first step.
  fail,
  /// The record is left out of every epoch, and counted.
  skip_and_count,
};

[[nodiscard]] constexpr const char* to_string(infeasible_policy policy) noexcept {
  switch (policy) {
    case infeasible_policy::fail:
      return "fail";
    case infeasible_policy::skip_and_count:
      return "skip_and_count";
    case infeasible_policy::truncate:
      return "truncate";
    case infeasible_policy::chunk:
      return "chunk";
  }
  return "?";
}

[[nodiscard]] constexpr const char* to_string(empty_policy policy) noexcept {
  switch (policy) {
    case empty_policy::fail:
      return "fail";
    case empty_policy::skip_and_count:
      return "skip_and_count";
  }
  return "?";
}

/// The policy of that name.
/// @throws  invalid_option with `option` as its name.
[[nodiscard]] inline infeasible_policy parse_infeasible_policy(
    std::string_view text, const std::string& option = "infeasible") {
  for (const auto policy : {infeasible_policy::fail, infeasible_policy::skip_and_count,
                            infeasible_policy::truncate, infeasible_policy::chunk}) {
    if (text == to_string(policy)) return policy;
  }
  detail::throw_invalid_option(option, detail::quoted(text),
                               "fail, skip_and_count, truncate or chunk");
}

/// The policy of that name.
/// @throws  invalid_option with `option` as its name.
[[nodiscard]] inline empty_policy parse_empty_policy(std::string_view text,
                                                     const std::string& option = "empty") {
  for (const auto policy : {empty_policy::fail, empty_policy::skip_and_count}) {
    if (text == to_string(policy)) return policy;
  }
  detail::throw_invalid_option(option, detail::quoted(text), "fail or skip_and_count");
}

/// Tokens of the largest record that fits a micro-batch alone, after padding.
///
/// A record of n tokens fits where n rounded up to `record_multiple`, and the whole micro-batch
/// rounded up to a multiple of both, are at most `capacity_tokens`. The result is also the room
/// that records, each rounded up to `record_multiple`, may take together. 0 if nothing fits.
/// @pre  Neither multiple is 0.
[[nodiscard]] constexpr std::uint64_t largest_feasible_record(
    std::uint64_t capacity_tokens, std::uint32_t record_multiple,
    std::uint32_t total_multiple = 1) noexcept {
  const std::uint64_t multiple =
      std::lcm<std::uint64_t, std::uint64_t>(record_multiple, total_multiple);
  return capacity_tokens - capacity_tokens % multiple;
}

/// The shape of a record of which the first `limit` tokens are kept.
///
/// `loss_tokens` becomes min(loss_tokens, limit - 1). That is exact for a record without a loss
/// mask; with one it is an upper bound, used for planning, because only the mask says how many of
/// the kept tokens are predicted. Batches count exactly. `patches` stays, also an upper bound.
[[nodiscard]] constexpr record_shape truncate_shape(const record_shape& shape,
                                                    std::uint64_t limit) noexcept {
  if (shape.tokens <= limit) return shape;
  record_shape kept = shape;
  kept.tokens = limit;
  kept.loss_tokens = std::min(shape.loss_tokens, limit == 0 ? 0 : limit - 1);
  return kept;
}

/// Limits of a record and what to do beyond them.
struct feasibility_options {
  /// Tokens that a micro-batch may hold after padding: the smaller of the user's capacity and
  /// `memory_model::feasible_tokens()`. Absent: the range of int32 offsets, 2^31 - 1.
  std::optional<std::uint64_t> capacity_tokens;
  /// Every record is padded to a multiple of this.
  std::uint32_t record_multiple = 1;
  /// Every micro-batch is padded to a multiple of this and of `record_multiple`.
  std::uint32_t total_multiple = 1;
  infeasible_policy infeasible = infeasible_policy::fail;
  empty_policy empty = empty_policy::fail;
};

/// The most chunks that a record may be cut into: each is a micro-batch of its own.
inline constexpr std::uint64_t max_record_chunks = std::uint64_t{1} << 16;

/// What a record's length means against the limits.
enum class record_fit : std::uint8_t {
  /// It fits a micro-batch.
  feasible,
  /// It does not fit a micro-batch alone.
  infeasible,
  /// It has no tokens.
  empty,
};

/// Decides per record whether and how it is delivered.
/// @thread_safety  Immutable.
class feasibility {
 public:
  /// @throws  invalid_option if a multiple is 0 or no record fits the capacity.
  explicit feasibility(const feasibility_options& options) : options_(options) {
    const auto require_multiple = [](const char* name, std::uint32_t found) {
      if (found == 0) detail::throw_invalid_option(name, "0", "at least 1");
    };
    const auto require_known = [](const char* name, const char* found, unsigned number) {
      if (*found == '?') {
        detail::throw_invalid_option(name, std::to_string(number), "one of its named values");
      }
    };
    require_known("infeasible", to_string(options_.infeasible),
                  static_cast<unsigned>(options_.infeasible));
    require_known("empty", to_string(options_.empty), static_cast<unsigned>(options_.empty));
    require_multiple("record_multiple", options_.record_multiple);
    require_multiple("total_multiple", options_.total_multiple);
    const std::uint64_t capacity =
        std::min(options_.capacity_tokens.value_or(int32_tokens), int32_tokens);
    largest_record_ =
        largest_feasible_record(capacity, options_.record_multiple, options_.total_multiple);
    if (largest_record_ == 0) {
      detail::throw_invalid_option("capacity_tokens", std::to_string(capacity),
                                   "at least " +
                                       std::to_string(std::lcm<std::uint64_t, std::uint64_t>(
                                           options_.record_multiple, options_.total_multiple)) +
                                       ", the smallest padded micro-batch");
    }
  }

  [[nodiscard]] const feasibility_options& options() const noexcept { return options_; }

  /// Tokens of the largest record that fits, a multiple of both multiples.
  [[nodiscard]] std::uint64_t largest_record() const noexcept { return largest_record_; }

  /// The length at which records are cut; nullopt where the policy never cuts.
  [[nodiscard]] std::optional<std::uint64_t> truncate_at() const noexcept {
    if (options_.infeasible != infeasible_policy::truncate) return std::nullopt;
    return largest_record_;
  }

  [[nodiscard]] record_fit fit(std::uint64_t tokens) const noexcept {
    if (tokens == 0) return record_fit::empty;
    return tokens <= largest_record_ ? record_fit::feasible : record_fit::infeasible;
  }

  /// Whether records above the capacity are cut into chunks.
  [[nodiscard]] bool chunks() const noexcept {
    return options_.infeasible == infeasible_policy::chunk;
  }

  /// Whether records above the capacity take part, truncated or in chunks.
  [[nodiscard]] bool keeps_infeasible() const noexcept {
    return chunks() || options_.infeasible == infeasible_policy::truncate;
  }

  /// Whether the policies keep a record of that length, cut or whole.
  [[nodiscard]] bool keeps(std::uint64_t tokens) const noexcept {
    const record_fit found = fit(tokens);
    return found == record_fit::feasible || (found == record_fit::infeasible && keeps_infeasible());
  }

  /// The shape that is delivered of a record that is kept.
  [[nodiscard]] record_shape delivered(const record_shape& shape) const noexcept {
    return chunks() ? shape : truncate_shape(shape, largest_record_);
  }

  /// Stops on a record that a policy `fail` forbids, or that is too long for chunks: positions in a
  /// record are int32.
  /// @param where  Path and record for the message.
  /// @throws  data_error with the length found, the limit and the options that would accept it.
  void check(std::uint64_t tokens, const data_location& where) const {
    const record_fit found = fit(tokens);
    if (found == record_fit::infeasible && options_.infeasible == infeasible_policy::fail) {
      throw_infeasible(tokens, where);
    }
    if (found == record_fit::infeasible && chunks()) check_chunks(tokens, where);
    if (found == record_fit::empty && options_.empty == empty_policy::fail) throw_empty(where);
  }

 private:
  void check_chunks(std::uint64_t tokens, const data_location& where) const {
    const std::uint64_t longest =
        largest_feasible_record(int32_tokens, options_.record_multiple, options_.total_multiple);
    if (tokens > longest) {
      detail::throw_data_error(where, "found " + std::to_string(tokens) +
                                          " tokens, expected at most " + std::to_string(longest) +
                                          ", the range of positions, also with infeasible = chunk");
    }
    const std::uint64_t chunks = ceil_div(tokens, largest_record_);
    if (chunks > max_record_chunks) {
      detail::throw_data_error(
          where, "found a record of " + std::to_string(tokens) + " tokens, which is " +
                     std::to_string(chunks) + " chunks of " + std::to_string(largest_record_) +
                     ", expected at most " + std::to_string(max_record_chunks) +
                     "; a larger capacity_tokens makes fewer");
    }
  }

  static constexpr std::uint64_t int32_tokens = std::numeric_limits<std::int32_t>::max();

  [[noreturn]] LANEPACK_COLD void throw_infeasible(std::uint64_t tokens,
                                                   const data_location& where) const {
    std::string limit = std::to_string(largest_record_);
    if (options_.capacity_tokens && *options_.capacity_tokens != largest_record_) {
      limit += " (capacity_tokens " + std::to_string(*options_.capacity_tokens) + " after padding)";
    }
    detail::throw_data_error(
        where, "infeasible record: found " + std::to_string(tokens) + " tokens, expected at most " +
                   limit + ", or the policy infeasible = skip_and_count, truncate or chunk");
  }

  [[noreturn]] LANEPACK_COLD static void throw_empty(const data_location& where) {
    detail::throw_data_error(where,
                             "empty record: found 0 tokens, expected at least 1, or the policy "
                             "empty = skip_and_count");
  }

  feasibility_options options_;
  std::uint64_t largest_record_ = 0;
};

/// Whether a record costs more than a whole pack should, so that no partition can balance it.
/// @param cost         Cost of the record.
/// @param target_cost  Cost of a mean pack: records per pack times the mean cost of a record.
[[nodiscard]] constexpr bool unbalanceable(std::uint64_t cost, std::uint64_t target_cost) noexcept {
  return cost > target_cost;
}

}  // namespace lanepack::inline LANEPACK_ABI
