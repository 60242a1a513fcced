#pragma once

/// @file
/// Records above the capacity, cut into chunks that follow each other in micro-batches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/packer/record_chunk.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What the records of a rank's step can come to at worst where records are cut.
struct worst_case_chunks {
  /// The step with the most chunks: its records that are not cut ...
  worst_case_step whole;
  /// ... the others, and their chunks.
  std::uint64_t cut_records = 0;
  std::uint64_t chunks = 0;
  /// A step of the same number of records of which none is cut.
  worst_case_step uncut;
};

/// True if `chunked_micro_batcher` with these options cannot fail on any step that stays within
/// the worst case; see the function of that name for whole records.
/// @param multiple  Chunks are cut at multiples of it.
/// @throws invalid_option as the constructor of `micro_batcher` does.
[[nodiscard]] inline bool worst_case_fits_micro_batches(const micro_batch_options& options,
                                                        const worst_case_chunks& step,
                                                        std::uint64_t multiple = 1) {
  if (step.chunks == 0) return worst_case_fits_micro_batches(options, step.whole);
  detail::check_micro_batch_options(options);
  if (!options.micro_batches) {
    // A step may have nothing to cut. Otherwise a record that is cut has more than a capacity of
    // units and can be cut into so many chunks: the fewest are two of capacity + 1 units.
    return worst_case_fits_micro_batches(options, step.uncut) &&
           options.multiple_of <= options.capacity_tokens / multiple;
  }
  const std::uint64_t micro_batches = *options.micro_batches;
  // Another step may have nothing to cut, and then no more micro-batches than records.
  if (micro_batches > saturating_add(step.whole.records, step.cut_records)) return false;
  if (step.whole.records == 0) return step.chunks <= micro_batches;
  const std::optional<std::uint64_t> most = largest_micro_batch_count(options, step.whole);
  return most && saturating_add(*most, step.chunks) <= micro_batches;
}

/// Splits a rank's records of a step into micro-batches and cuts those that fit none.
///
/// A record of more tokens than a micro-batch holds becomes the fewest chunks of nearly equal size
/// that fit, as ChunkFlow ("ChunkFlow: Efficient Training of Long-Context Models") makes them.
/// Every chunk has a micro-batch of its own; the chunks of a record follow each other in order, so
/// that a trainer can keep the keys and values of the chunks before and accumulate gradients
/// backwards through them. The longest record comes first, equal ones by index; micro-batches of
/// whole records follow as `micro_batcher` makes them. Chunks count towards `micro_batches` and
/// `multiple_of`; where those ask for more micro-batches than there are, whole records are spread,
/// and after that records are cut into more chunks.
///
/// @thread_safety  None: one thread per object.
/// @determinism  Integers only; depends on the options and the arguments alone.
class chunked_micro_batcher {
 public:
  /// @param options   As for `micro_batcher`; `capacity_tokens` is also the most tokens of a chunk.
  /// @param multiple  Chunks are cut at multiples of this, at least 1; it divides the capacity.
  /// @throws invalid_option as `micro_batcher` does, or if `multiple` does not divide the capacity.
  explicit chunked_micro_batcher(const micro_batch_options& options, std::uint64_t multiple = 1)
      : options_(options), whole_(unconstrained(options)), multiple_(multiple) {
    if (multiple_ == 0 || options.capacity_tokens % multiple_ != 0) {
      detail::throw_invalid_option(
          "multiple", std::to_string(multiple_),
          "a divisor of capacity_tokens = " + std::to_string(options.capacity_tokens));
    }
  }

  [[nodiscard]] const micro_batch_options& options() const noexcept { return options_; }
  /// Chunks are cut at multiples of it.
  [[nodiscard]] std::uint64_t multiple() const noexcept { return multiple_; }

  /// Replaces `out` by the micro-batches of a step.
  /// @param tokens  Tokens of every record, at least 1; padded to `multiple` where that counts.
  /// @param out     Indices of records; a record that is cut stands alone in as many consecutive
  ///                micro-batches as it has chunks.
  /// @param chunks  The chunks in the first `chunks.size()` micro-batches; those after them hold
  ///                whole records.
  /// @param costs   Costs that order the micro-batches of whole records, one a record, or empty.
  /// @throws data_error as `micro_batcher::form` does, and where a record would need more than
  ///         2^32 - 1 chunks.
  /// @complexity  O(n log n + chunks).
  void form(std::span<const std::uint64_t> tokens, micro_batch_list& out,
            std::vector<record_chunk>& chunks, std::span<const std::uint64_t> costs = {}) {
    form(options_.micro_batches, tokens, out, chunks, costs);
  }

  /// As `form`, with a number of micro-batches for this step alone.
  /// @throws data_error as `form` does with a fixed number.
  void form_exactly(std::uint32_t micro_batches, std::span<const std::uint64_t> tokens,
                    micro_batch_list& out, std::vector<record_chunk>& chunks,
                    std::span<const std::uint64_t> costs = {}) {
    form(std::optional(micro_batches), tokens, out, chunks, costs);
  }

 private:
  struct cut_record {
    std::uint64_t tokens;
    std::uint32_t index;
    std::uint32_t chunks;
  };

  static micro_batch_options unconstrained(micro_batch_options options) {
    detail::check_micro_batch_options(options);
    options.micro_batches.reset();
    options.multiple_of = 1;
    return options;
  }

  void form(std::optional<std::uint32_t> fixed, std::span<const std::uint64_t> tokens,
            micro_batch_list& out, std::vector<record_chunk>& chunks,
            std::span<const std::uint64_t> costs) {
    chunks.clear();
    find_cut_records(tokens);
    if (cut_.empty()) {
      form_whole(fixed, tokens, out, costs);
      return;
    }
    take_whole_records(tokens, costs);
    chunks.reserve(static_cast<std::size_t>(form_beside_chunks(fixed)));
    out.clear();
    for (const cut_record& record : cut_) {
      for (std::uint32_t k = 0; k < record.chunks; ++k) {
        chunks.push_back(chunk_of(record.tokens, record.chunks, k, multiple_));
        out.add(record.index);
        out.close();
      }
    }
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      for (const std::uint32_t record : bins_[i]) out.add(whole_records_[record]);
      out.close();
    }
  }

  void find_cut_records(std::span<const std::uint64_t> tokens) {
    const std::uint64_t capacity = options().capacity_tokens;
    cut_.clear();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] <= capacity) continue;
      const std::uint64_t chunks = ceil_div(tokens[i], capacity);
      if (chunks > std::numeric_limits<std::uint32_t>::max()) {
        detail::throw_data_error({}, "found a record of " + std::to_string(tokens[i]) +
                                         " tokens, expected at most 4294967295 chunks of " +
                                         std::to_string(capacity));
      }
      cut_.push_back(
          {tokens[i], static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(chunks)});
    }
    std::sort(cut_.begin(), cut_.end(), [](const cut_record& a, const cut_record& b) {
      return a.tokens != b.tokens ? a.tokens > b.tokens : a.index < b.index;
    });
  }

  void take_whole_records(std::span<const std::uint64_t> tokens,
                          std::span<const std::uint64_t> costs) {
    whole_records_.clear();
    whole_tokens_.clear();
    whole_costs_.clear();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] > options().capacity_tokens) continue;
      whole_records_.push_back(static_cast<std::uint32_t>(i));
      whole_tokens_.push_back(tokens[i]);
      if (!costs.empty()) whole_costs_.push_back(costs[i]);
    }
  }

  /// A step without long records.
  void form_whole(std::optional<std::uint32_t> fixed, std::span<const std::uint64_t> tokens,
                  micro_batch_list& out, std::span<const std::uint64_t> costs) {
    if (fixed) {
      whole_.form_exactly(*fixed, tokens, out, costs);
      return;
    }
    whole_.form(tokens, out, costs);
    const std::uint64_t wanted = round_up(out.size(), options_.multiple_of);
    if (wanted != out.size()) {
      whole_.form_exactly(static_cast<std::uint32_t>(wanted), tokens, out, costs);
    }
  }

  /// Puts the whole records into `bins_` and settles how many chunks there are.
  std::uint64_t form_beside_chunks(std::optional<std::uint32_t> fixed) {
    std::uint64_t chunks = 0;
    for (const cut_record& record : cut_) chunks += record.chunks;
    bins_.clear();
    if (!whole_records_.empty()) whole_.form(whole_tokens_, bins_, whole_costs_);
    const std::uint64_t made = chunks + bins_.size();
    const std::uint64_t wanted = fixed ? *fixed : round_up(made, options_.multiple_of);
    if (wanted == made) return chunks;
    const std::uint64_t whole = whole_records_.size();
    if (wanted > chunks + whole) chunks = cut_further(chunks, wanted - whole);
    if (whole == 0) {
      if (wanted < chunks) do_not_fit(wanted, chunks);
      return chunks;
    }
    if (wanted <= chunks) do_not_fit(wanted, chunks + 1);
    whole_.form_exactly(static_cast<std::uint32_t>(wanted - chunks), whole_tokens_, bins_,
                        whole_costs_);
    return chunks;
  }

  /// Adds to the chunks, each time one of the record whose chunks are longest, until there are
  /// `wanted`.
  std::uint64_t cut_further(std::uint64_t chunks, std::uint64_t wanted) {
    while (chunks < wanted) {
      cut_record* longest = nullptr;
      for (cut_record& record : cut_) {
        if (record.chunks == ceil_div(record.tokens, multiple_)) continue;
        if (longest == nullptr || static_cast<uint128>(record.tokens) * longest->chunks >
                                      static_cast<uint128>(longest->tokens) * record.chunks) {
          longest = &record;
        }
      }
      if (longest == nullptr) do_not_fit(wanted, chunks);
      ++longest->chunks;
      ++chunks;
    }
    return chunks;
  }

  [[noreturn]] LANEPACK_COLD void do_not_fit(std::uint64_t wanted, std::uint64_t found) const {
    detail::throw_data_error({}, "found a step that takes " + std::to_string(found) +
                                     " micro-batches with the chunks of its long records, "
                                     "expected " +
                                     std::to_string(wanted) + " (micro_batches or multiple_of)");
  }

  micro_batch_options options_;
  /// Without a number to keep: that counts chunks too.
  micro_batcher whole_;
  std::uint64_t multiple_;
  std::vector<cut_record> cut_;
  std::vector<std::uint32_t> whole_records_;
  std::vector<std::uint64_t> whole_tokens_;
  std::vector<std::uint64_t> whole_costs_;
  micro_batch_list bins_;
};

}  // namespace lanepack::inline LANEPACK_ABI
