#pragma once

/// @file
/// Bin packing of records by tokens: first fit, best fit and both forms of modified first fit
/// decreasing.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/packer/cost_order.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Micro-batches in order, stored flat; a record is named by its index in the span that was packed.
class micro_batch_list {
 public:
  /// Micro-batches in the list.
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }

  /// Records of micro-batch `index`.
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t index) const noexcept {
    LANEPACK_ASSERT(index < ends_.size());
    const std::size_t first = index == 0 ? 0 : ends_[index - 1];
    return std::span(records_).subspan(first, ends_[index] - first);
  }

  /// Adds a record to the micro-batch that is being filled.
  void add(std::uint32_t record) { records_.push_back(record); }
  /// Closes the micro-batch that is being filled; the next `add` starts another.
  void close() { ends_.push_back(records_.size()); }

  /// Records of all micro-batches, one after the other.
  [[nodiscard]] std::span<const std::uint32_t> records() const noexcept { return records_; }
  /// For every micro-batch, the number of records in it and those before it.
  [[nodiscard]] std::span<const std::size_t> ends() const noexcept { return ends_; }

  /// Empties the list and keeps its memory.
  void clear() noexcept {
    records_.clear();
    ends_.clear();
  }

  friend bool operator==(const micro_batch_list&, const micro_batch_list&) = default;

 private:
  std::vector<std::uint32_t> records_;
  std::vector<std::size_t> ends_;
};

/// The largest capacity of a bin, in tokens.
inline constexpr std::uint64_t max_bin_capacity = std::uint64_t{1} << 40;

namespace detail {

inline constexpr std::uint32_t no_bin = std::numeric_limits<std::uint32_t>::max();

/// Open bins by free space: a trie of 64-way nodes that finds the smallest sufficient space in a
/// handful of steps, whatever the capacity. Of bins with equal space it gives the latest.
class free_space_index {
 public:
  /// Empties the index for spaces up to `capacity` and bins below `bins`.
  void reset(std::uint64_t capacity, std::size_t bins) {
    levels_ = std::max(1U, (static_cast<unsigned>(std::bit_width(capacity)) + 5) / 6);
    nodes_.clear();
    unused_.clear();
    nodes_.emplace_back();
    if (next_.size() < bins) next_.resize(bins);
  }

  void insert(std::uint64_t space, std::uint32_t bin) {
    std::uint32_t at = 0;
    for (unsigned level = levels_; level > 1; --level) {
      const unsigned digit = digit_of(space, level);
      if ((nodes_[at].used >> digit & 1) == 0) {
        const std::uint32_t child = new_node();
        nodes_[at].used |= std::uint64_t{1} << digit;
        nodes_[at].children[digit] = child;
      }
      at = nodes_[at].children[digit];
    }
    const unsigned digit = digit_of(space, 1);
    node& leaf = nodes_[at];
    const std::uint64_t bit = std::uint64_t{1} << digit;
    next_[bin] = (leaf.used & bit) != 0 ? leaf.children[digit] : no_bin;
    leaf.used |= bit;
    leaf.children[digit] = bin;
  }

  /// Removes and returns the bin with the smallest space that is at least `space`, or `no_bin`.
  [[nodiscard]] std::uint32_t take(std::uint64_t space) {
    std::array<std::uint32_t, max_levels + 1> path{};
    std::array<unsigned, max_levels + 1> digits{};
    unsigned level = levels_;
    path[level] = 0;
    // Down along the digits of `space` as far as they exist ...
    for (;; --level) {
      digits[level] = digit_of(space, level);
      if (level == 1 || (nodes_[path[level]].used >> digits[level] & 1) == 0) break;
      path[level - 1] = nodes_[path[level]].children[digits[level]];
    }
    // ... up to the first level that has a larger digit, and down along the smallest ones.
    std::uint64_t candidates = nodes_[path[level]].used & (~std::uint64_t{0} << digits[level]);
    while (candidates == 0) {
      if (++level > levels_) return no_bin;
      candidates = nodes_[path[level]].used & (~std::uint64_t{1} << digits[level]);
    }
    digits[level] = static_cast<unsigned>(std::countr_zero(candidates));
    while (level > 1) {
      path[level - 1] = nodes_[path[level]].children[digits[level]];
      --level;
      digits[level] = static_cast<unsigned>(std::countr_zero(nodes_[path[level]].used));
    }

    const std::uint32_t bin = nodes_[path[1]].children[digits[1]];
    if (next_[bin] != no_bin) {
      nodes_[path[1]].children[digits[1]] = next_[bin];
      return bin;
    }
    for (level = 1; level <= levels_; ++level) {
      node& emptied = nodes_[path[level]];
      emptied.used &= ~(std::uint64_t{1} << digits[level]);
      if (emptied.used != 0 || level == levels_) break;
      unused_.push_back(path[level]);
    }
    return bin;
  }

 private:
  // 41 bits of free space in digits of 6.
  static constexpr unsigned max_levels = 7;

  struct node {
    std::uint64_t used = 0;
    /// Nodes one level down; at the lowest level the latest bin of that space.
    std::array<std::uint32_t, 64> children;
  };

  static unsigned digit_of(std::uint64_t space, unsigned level) noexcept {
    return static_cast<unsigned>(space >> (6 * (level - 1))) & 63U;
  }

  std::uint32_t new_node() {
    if (!unused_.empty()) {
      const std::uint32_t at = unused_.back();
      unused_.pop_back();
      return at;
    }
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  unsigned levels_ = 1;
  std::vector<node> nodes_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> next_;
};

/// Free space of bins in the order of their opening: a tree of maxima that finds the first bin with
/// enough of it.
class first_fit_index {
 public:
  void reset(std::uint64_t capacity, std::size_t bins) {
    leaves_ = std::bit_ceil(std::max<std::size_t>(bins, 1));
    largest_.assign(2 * leaves_, capacity);
  }

  /// Takes `tokens` from the first bin that has them; some bin must.
  std::uint32_t place(std::uint64_t tokens) {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (largest_[node] < tokens) ++node;
    }
    const auto bin = static_cast<std::uint32_t>(node - leaves_);
    largest_[node] -= tokens;
    for (node /= 2; node > 0; node /= 2) {
      largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
    }
    return bin;
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::uint64_t> largest_;
};

}  // namespace detail

/// Packs records into bins of a capacity in tokens.
///
/// Bins stand in the order of their opening and records in the order in which they were placed;
/// equal records are taken by ascending index.
///
/// @thread_safety  None: one thread per object; scratch memory is reused from call to call.
/// @determinism  Integers only; depends on the arguments alone.
class bin_packer {
 public:
  /// Largest record first, into the first bin that has room.
  /// @param tokens  Of every record: 1 to `capacity`; at most `max_ordered_records` of them.
  /// @throws data_error if a record is empty or larger than a bin.
  /// @complexity  O(n log n).
  void first_fit_decreasing(std::span<const std::uint64_t> tokens, std::uint64_t capacity,
                            micro_batch_list& out) {
    start(tokens, capacity);
    first_fit(keys_, 0);
    finish(out);
  }

  /// Largest record first, into the bin with the least room that suffices; of bins with equal room
  /// into the one that reached it last.
  /// @param tokens  Of every record: 1 to `capacity`; at most `max_ordered_records` of them.
  /// @throws data_error if a record is empty or larger than a bin.
  /// @complexity  O(n log n).
  void best_fit_decreasing(std::span<const std::uint64_t> tokens, std::uint64_t capacity,
                           micro_batch_list& out) {
    start(tokens, capacity);
    const std::uint64_t smallest =
        keys_.empty() ? 0 : detail::descending_key_cost(keys_[keys_.size() - 1]);
    by_space_.reset(capacity, keys_.size());
    for (const std::uint64_t key : keys_) {
      const std::uint64_t size = detail::descending_key_cost(key);
      std::uint32_t bin = by_space_.take(size);
      if (bin == detail::no_bin) bin = open_bin();
      place(key, bin);
      if (capacity - loads_[bin] >= smallest) by_space_.insert(capacity - loads_[bin], bin);
    }
    finish(out);
  }

  /// Modified first fit decreasing of D. S. Johnson and M. R. Garey, "A 71/60 theorem for bin
  /// packing" (1985).
  /// @param tokens  Of every record: 1 to `capacity`; at most `max_ordered_records` of them.
  /// @throws data_error if a record is empty or larger than a bin.
  /// @complexity  O(n log n).
  void mffd_johnson_garey(std::span<const std::uint64_t> tokens, std::uint64_t capacity,
                          micro_batch_list& out) {
    start(tokens, capacity);
    fill_large_bins();
    first_fit(leftovers_, bins_);
    finish(out);
  }

  /// Modified first fit decreasing as NeMo-RL ships it: what is left after the bins with a large
  /// record goes into the emptiest new bin (worst fit) instead of the first. Same bins, in the same
  /// order, as its `ModifiedFirstFitDecreasingPacker`.
  /// @param tokens  Of every record: 1 to `capacity`; at most `max_ordered_records` of them.
  /// @throws data_error if a record is empty or larger than a bin.
  /// @complexity  O(n log n).
  void mffd_nemo(std::span<const std::uint64_t> tokens, std::uint64_t capacity,
                 micro_batch_list& out) {
    start(tokens, capacity);
    fill_large_bins();
    worst_fit_leftovers();
    finish(out);
  }

  /// Runs of records in descending order that fill a bin as rows padded to its longest record: rows
  /// x longest is at most `capacity`. No other split needs fewer bins.
  /// @param tokens  Of every record: 1 to `capacity`; at most `max_ordered_records` of them.
  /// @throws data_error if a record is empty or larger than a bin.
  /// @complexity  O(n) and a radix sort.
  void padded_rows(std::span<const std::uint64_t> tokens, std::uint64_t capacity,
                   micro_batch_list& out) {
    start(tokens, capacity);
    for (std::size_t i = 0; i < keys_.size();) {
      const std::uint32_t bin = open_bin();
      std::uint64_t rows = capacity / detail::descending_key_cost(keys_[i]);
      for (; rows > 0 && i < keys_.size(); --rows, ++i) place(keys_[i], bin);
    }
    finish(out);
  }

 private:
  struct load_order {
    std::uint64_t load;
    std::uint64_t sequence;
    std::uint32_t bin;

    /// Puts the emptiest, then the earliest, on top of a heap.
    friend bool operator<(const load_order& a, const load_order& b) noexcept {
      return a.load != b.load ? a.load > b.load : a.sequence > b.sequence;
    }
  };

  void start(std::span<const std::uint64_t> tokens, std::uint64_t capacity) {
    LANEPACK_ASSERT(capacity > 0 && capacity <= max_bin_capacity);
    total_ = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == 0 || tokens[i] > capacity) bad_record(i, tokens[i], capacity);
      total_ += tokens[i];
    }
    capacity_ = capacity;
    bins_ = 0;
    placed_.clear();
    placed_bins_.clear();
    loads_.clear();
    bin_order_.clear();
    keys_ = order_.sort_descending(tokens);
  }

  [[noreturn]] LANEPACK_COLD static void bad_record(std::size_t record, std::uint64_t tokens,
                                                    std::uint64_t capacity) {
    detail::throw_data_error({}, "record " + std::to_string(record) + " of the step: found " +
                                     std::to_string(tokens) + " tokens, expected 1 to " +
                                     std::to_string(capacity) + " (the capacity of a bin)");
  }

  std::uint32_t open_bin() {
    loads_.push_back(0);
    return static_cast<std::uint32_t>(bins_++);
  }

  void place(std::uint64_t key, std::uint32_t bin) {
    placed_.push_back(detail::descending_key_index(key));
    placed_bins_.push_back(bin);
    loads_[bin] += detail::descending_key_cost(key);
  }

  /// First fit of `keys` into bins from number `first` on.
  void first_fit(std::span<const std::uint64_t> keys, std::size_t first) {
    // Two bins that are never more than half full together would have been one.
    const std::uint64_t bound = 2 * ceil_div(total_, capacity_) + 1;
    by_opening_.reset(capacity_,
                      static_cast<std::size_t>(std::min<std::uint64_t>(keys.size(), bound)));
    for (const std::uint64_t key : keys) {
      const auto bin =
          static_cast<std::uint32_t>(first + by_opening_.place(detail::descending_key_cost(key)));
      if (bin == bins_) open_bin();
      place(key, bin);
    }
  }

  /// The phases before the last of modified first fit decreasing; the rest is in `leftovers_`.
  void fill_large_bins() {
    const std::size_t n = keys_.size();
    // Classes by thirds and sixths of the capacity, exact in integers.
    const auto first_not_above = [this](std::uint64_t parts) {
      return static_cast<std::size_t>(
          std::partition_point(keys_.begin(), keys_.end(),
                               [&](std::uint64_t key) {
                                 return detail::descending_key_cost(key) * parts > capacity_;
                               }) -
          keys_.begin());
    };
    const std::size_t medium = first_not_above(2);
    const std::size_t small = first_not_above(3);
    const std::size_t tiny = first_not_above(6);

    // next_[i] leads to the first record at or after i that is not placed.
    next_.resize(n + 1);
    std::iota(next_.begin(), next_.end(), 0U);

    for (std::size_t i = 0; i < medium; ++i) place(keys_[i], open_bin());

    // Forward: room grows from bin to bin, so the largest medium that fits lies on top of a stack.
    has_medium_.assign(medium, 0);
    stack_.clear();
    std::size_t unseen = small;
    for (std::uint32_t bin = 0; bin < medium; ++bin) {
      const std::uint64_t room = capacity_ - loads_[bin];
      while (unseen > medium && size_at(unseen - 1) <= room) {
        stack_.push_back(static_cast<std::uint32_t>(--unseen));
      }
      if (stack_.empty()) continue;
      take(stack_.back(), bin);
      stack_.pop_back();
      has_medium_[bin] = 1;
    }

    // Backward: the smallest small with the largest that still fits; what is once too large stays
    // so, since room shrinks and the smallest grows.
    ascending_.clear();
    for (std::size_t end = tiny; end > small;) {
      std::size_t begin = end - 1;
      while (begin > small && size_at(begin - 1) == size_at(end - 1)) --begin;
      for (std::size_t i = begin; i < end; ++i) ascending_.push_back(static_cast<std::uint32_t>(i));
      end = begin;
    }
    std::size_t low = 0;
    std::size_t high = ascending_.size();
    for (std::size_t bin = medium; bin > 0;) {
      --bin;
      if (has_medium_[bin] != 0) continue;
      const std::uint64_t room = capacity_ - loads_[bin];
      while (high > low && size_at(ascending_[high - 1]) + size_at(ascending_[low]) > room) --high;
      if (high - low < 2) break;
      take(ascending_[low++], static_cast<std::uint32_t>(bin));
      take(ascending_[--high], static_cast<std::uint32_t>(bin));
    }

    // Forward: the largest that fits, until nothing does.
    std::size_t last = n;
    for (std::uint32_t bin = 0; bin < medium; ++bin) {
      std::size_t at = medium;
      for (;;) {
        while (last > medium && find(last - 1) != last - 1) --last;
        if (last == medium) break;
        const std::uint64_t room = capacity_ - loads_[bin];
        if (size_at(last - 1) > room) break;
        at = static_cast<std::size_t>(
            std::partition_point(
                keys_.begin() + static_cast<std::ptrdiff_t>(at), keys_.end(),
                [room](std::uint64_t key) { return detail::descending_key_cost(key) > room; }) -
            keys_.begin());
        take(find(at), bin);
      }
      if (last == medium) break;
    }

    leftovers_.clear();
    for (std::size_t i = find(medium); i < n; i = find(i + 1)) leftovers_.push_back(keys_[i]);
  }

  [[nodiscard]] std::uint64_t size_at(std::size_t i) const noexcept {
    return detail::descending_key_cost(keys_[i]);
  }

  /// First record at or after `i` that is not placed.
  [[nodiscard]] std::size_t find(std::size_t i) noexcept {
    while (next_[i] != i) {
      next_[i] = next_[next_[i]];
      i = next_[i];
    }
    return i;
  }

  void take(std::size_t i, std::uint32_t bin) {
    next_[i] = static_cast<std::uint32_t>(i + 1);
    place(keys_[i], bin);
  }

  /// Into the emptiest new bin, or another where even that has no room; bins end up by load.
  void worst_fit_leftovers() {
    const std::size_t first = bins_;
    heap_.clear();
    std::uint64_t sequence = 0;
    for (const std::uint64_t key : leftovers_) {
      const std::uint64_t size = detail::descending_key_cost(key);
      std::uint32_t bin = 0;
      if (!heap_.empty() && heap_.front().load + size <= capacity_) {
        bin = heap_.front().bin;
        std::pop_heap(heap_.begin(), heap_.end());
        heap_.pop_back();
      } else {
        bin = open_bin();
      }
      place(key, bin);
      heap_.push_back({loads_[bin], sequence++, bin});
      std::push_heap(heap_.begin(), heap_.end());
    }
    std::sort(heap_.begin(), heap_.end(),
              [](const load_order& a, const load_order& b) { return b < a; });
    bin_order_.resize(first);
    std::iota(bin_order_.begin(), bin_order_.end(), 0U);
    for (const load_order& entry : heap_) bin_order_.push_back(entry.bin);
  }

  /// Groups the placed records by bin.
  void finish(micro_batch_list& out) {
    starts_.assign(bins_ + 1, 0);
    for (const std::uint32_t bin : placed_bins_) ++starts_[bin + 1];
    for (std::size_t bin = 0; bin < bins_; ++bin) starts_[bin + 1] += starts_[bin];
    grouped_.resize(placed_.size());
    cursors_.assign(starts_.begin(), starts_.end() - 1);
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      grouped_[cursors_[placed_bins_[i]]++] = placed_[i];
    }
    out.clear();
    for (std::size_t place = 0; place < bins_; ++place) {
      const std::size_t bin = bin_order_.empty() ? place : bin_order_[place];
      for (std::size_t i = starts_[bin]; i < starts_[bin + 1]; ++i) out.add(grouped_[i]);
      out.close();
    }
  }

  std::uint64_t capacity_ = 1;
  std::uint64_t total_ = 0;
  std::size_t bins_ = 0;
  detail::cost_order order_;
  detail::free_space_index by_space_;
  detail::first_fit_index by_opening_;
  std::span<const std::uint64_t> keys_;
  std::vector<std::uint64_t> loads_;
  std::vector<std::uint32_t> placed_;
  std::vector<std::uint32_t> placed_bins_;
  std::vector<std::uint32_t> bin_order_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::uint32_t> ascending_;
  std::vector<std::uint8_t> has_medium_;
  std::vector<std::uint64_t> leftovers_;
  std::vector<load_order> heap_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> cursors_;
  std::vector<std::uint32_t> grouped_;
};

namespace detail {

/// How many bins there are to be: at least `minimum`, a multiple of `multiple`.
/// @throws data_error if there are fewer records than that.
[[nodiscard]] inline std::uint64_t raised_bin_count(const micro_batch_list& bins,
                                                    std::uint64_t minimum, std::uint64_t multiple) {
  LANEPACK_ASSERT(multiple > 0);
  const std::uint64_t target = round_up(std::max<std::uint64_t>(bins.size(), minimum), multiple);
  const std::size_t records = bins.records().size();
  if (target != bins.size() && records < target) {
    throw_data_error({}, "cannot make " + std::to_string(target) + " bins of " +
                             std::to_string(records) +
                             " records, expected at least one record a bin");
  }
  return target;
}

}  // namespace detail

/// Raises the number of bins as NeMo-RL's packers do (`_adjust_bin_count`): the bin with the most
/// records, ties by the higher number, gives its last record to each new bin until it has one
/// left, then the next one gives. Tokens play no part.
/// @param bins     Any packing without empty bins.
/// @param minimum  Least number of bins.
/// @param multiple The number of bins is rounded up to a multiple of this; at least 1.
/// @throws data_error if there are fewer records than bins.
inline void adjust_bin_count_nemo(micro_batch_list& bins, std::uint64_t minimum,
                                  std::uint64_t multiple) {
  const std::size_t before = bins.size();
  const std::uint64_t target = detail::raised_bin_count(bins, minimum, multiple);
  if (target == before) return;

  std::vector<std::uint32_t> sources(before);
  std::iota(sources.begin(), sources.end(), 0U);
  std::sort(sources.begin(), sources.end(), [&bins](std::uint32_t a, std::uint32_t b) {
    return bins[a].size() != bins[b].size() ? bins[a].size() > bins[b].size() : a > b;
  });
  std::vector<std::size_t> kept(before);
  for (std::size_t bin = 0; bin < before; ++bin) kept[bin] = bins[bin].size();
  std::vector<std::uint32_t> moved;
  std::size_t source = 0;
  while (before + moved.size() < target) {
    std::size_t& left = kept[sources[source]];
    if (left > 1) {
      moved.push_back(bins[sources[source]][--left]);
    } else {
      ++source;
    }
  }

  micro_batch_list adjusted;
  for (std::size_t bin = 0; bin < before; ++bin) {
    for (const std::uint32_t record : bins[bin].first(kept[bin])) adjusted.add(record);
    adjusted.close();
  }
  for (const std::uint32_t record : moved) {
    adjusted.add(record);
    adjusted.close();
  }
  bins = adjusted;
}

}  // namespace lanepack::inline LANEPACK_ABI
