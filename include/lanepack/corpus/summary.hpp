#pragma once

/// @file
/// `corpus_summary`: what a corpus holds in all, made once with all cores and cached.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/checks.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The records of a corpus whose lengths lie in [first, last].
struct length_bucket {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  /// Records with such a length.
  std::uint64_t records = 0;
  /// Tokens of all of them.
  std::uint64_t tokens = 0;

  friend bool operator==(const length_bucket&, const length_bucket&) = default;
};

/// How many records have which length: every length below 4096 apart, longer ones in buckets whose
/// width is at most 1/2048 of their first length, with exact counts and token sums throughout.
/// @complexity  Memory 16 bytes a bucket up to the longest record: 350 KB at 2^20 tokens.
class length_histogram {
 public:
  /// Lengths below this are counted apart.
  static constexpr std::uint64_t exact_below = 4096;

  /// Counts `records` records of `length` tokens.
  void add(std::uint64_t length, std::uint64_t records = 1) {
    if (records == 0) return;
    const std::size_t index = index_of(length);
    if (index >= cells_.size()) cells_.resize(index + 1);
    const std::uint64_t tokens = saturating_mul(length, records);
    cells_[index].records = saturating_add(cells_[index].records, records);
    cells_[index].tokens = saturating_add(cells_[index].tokens, tokens);
    records_ = saturating_add(records_, records);
    tokens_ = saturating_add(tokens_, tokens);
  }

  /// Adds everything that `other` has counted.
  void merge(const length_histogram& other) {
    if (other.cells_.size() > cells_.size()) cells_.resize(other.cells_.size());
    for (std::size_t i = 0; i < other.cells_.size(); ++i) {
      cells_[i].records = saturating_add(cells_[i].records, other.cells_[i].records);
      cells_[i].tokens = saturating_add(cells_[i].tokens, other.cells_[i].tokens);
    }
    records_ = saturating_add(records_, other.records_);
    tokens_ = saturating_add(tokens_, other.tokens_);
  }

  /// Records counted.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Tokens of all of them.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }

  /// The buckets that hold a record, by rising length.
  [[nodiscard]] std::vector<length_bucket> buckets() const {
    std::vector<length_bucket> filled;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].records == 0) continue;
      filled.push_back({first_of(i), last_of(i), cells_[i].records, cells_[i].tokens});
    }
    return filled;
  }

  /// Length of the record number `rank`, from 0, of all records sorted by length: exact below
  /// `exact_below`, else the mean length of the record's bucket, rounded down.
  /// @pre         `rank < records()`.
  /// @complexity  O(buckets).
  [[nodiscard]] std::uint64_t length_at_rank(std::uint64_t rank) const {
    LANEPACK_ASSERT(rank < records_);
    for (const cell& counted : cells_) {
      if (rank < counted.records) return counted.tokens / counted.records;
      rank -= counted.records;
    }
    return 0;
  }

  /// The smallest length that at least `numerator / denominator` of the records do not exceed
  /// (0 for an empty histogram), as exact as `length_at_rank`: 1/2 is the lower median, 1/1 the
  /// longest.
  /// @pre  `numerator <= denominator`, `denominator > 0`.
  [[nodiscard]] std::uint64_t quantile(std::uint64_t numerator, std::uint64_t denominator) const {
    LANEPACK_ASSERT(denominator > 0 && numerator <= denominator);
    if (records_ == 0) return 0;
    const uint128 product = static_cast<uint128>(records_) * numerator;
    const auto covered = static_cast<std::uint64_t>((product + denominator - 1) / denominator);
    return length_at_rank(covered == 0 ? 0 : covered - 1);
  }

  /// First and last length of the bucket that `length` belongs to.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint64_t> bounds_of(
      std::uint64_t length) noexcept {
    const std::size_t index = index_of(length);
    return {first_of(index), last_of(index)};
  }

  /// Counts of one bucket, as `buckets` lists them; for restoring a saved histogram.
  /// @return  False, and nothing is added, where it is no bucket of this histogram or its token sum
  ///          cannot come from its records.
  [[nodiscard]] bool add_bucket(const length_bucket& bucket) {
    const std::size_t index = index_of(bucket.first);
    const uint128 count = bucket.records;
    if (first_of(index) != bucket.first || last_of(index) != bucket.last ||
        bucket.tokens < saturating_mul(bucket.first, bucket.records) ||
        static_cast<uint128>(bucket.tokens) > count * bucket.last) {
      return false;
    }
    if (index >= cells_.size()) cells_.resize(index + 1);
    cells_[index].records = saturating_add(cells_[index].records, bucket.records);
    cells_[index].tokens = saturating_add(cells_[index].tokens, bucket.tokens);
    records_ = saturating_add(records_, bucket.records);
    tokens_ = saturating_add(tokens_, bucket.tokens);
    return true;
  }

  friend bool operator==(const length_histogram& a, const length_histogram& b) {
    return a.records_ == b.records_ && a.tokens_ == b.tokens_ && a.buckets() == b.buckets();
  }

 private:
  static constexpr unsigned mantissa_bits = 11;
  static constexpr std::uint64_t mantissas = std::uint64_t{1} << mantissa_bits;

  struct cell {
    std::uint64_t records = 0;
    std::uint64_t tokens = 0;
  };

  static std::size_t index_of(std::uint64_t length) noexcept {
    if (length < 2 * mantissas) return static_cast<std::size_t>(length);
    const unsigned shift = static_cast<unsigned>(std::bit_width(length)) - 1 - mantissa_bits;
    return static_cast<std::size_t>(shift * mantissas + (length >> shift));
  }

  static std::uint64_t first_of(std::size_t index) noexcept {
    if (index < 2 * mantissas) return index;
    const std::uint64_t shift = index / mantissas - 1;
    return (index - shift * mantissas) << shift;
  }

  static std::uint64_t last_of(std::size_t index) noexcept {
    if (index < 2 * mantissas) return index;
    const std::uint64_t shift = index / mantissas - 1;
    return ((index - shift * mantissas) << shift) + ((std::uint64_t{1} << shift) - 1);
  }

  std::vector<cell> cells_;
  std::uint64_t records_ = 0;
  std::uint64_t tokens_ = 0;
};

/// A record that a summary lists.
struct listed_record {
  record_id id = 0;
  std::uint64_t tokens = 0;

  friend bool operator==(const listed_record&, const listed_record&) = default;
};

/// What a corpus holds in all.
struct corpus_summary {
  std::uint64_t records = 0;
  /// Records without a token.
  std::uint64_t empty_records = 0;
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;
  std::uint64_t patches = 0;
  /// Tokens of the longest record; 0 for an empty corpus.
  std::uint64_t max_tokens = 0;
  length_histogram histogram;
  /// The longest records, longest first, lower id first among equals; all records of a small
  /// corpus.
  std::vector<listed_record> longest;
  /// The empty records with the lowest ids, ascending.
  std::vector<record_id> empty_ids;
  /// The source's fingerprint.
  digest128 fingerprint;

  /// Ids of the records longer than `capacity` tokens, ascending, or nullopt where the list of the
  /// longest does not reach so far down.
  /// @complexity  O(n log n) in the n ids returned.
  [[nodiscard]] std::optional<std::vector<record_id>> ids_above(std::uint64_t capacity) const {
    const bool complete = longest.size() == records;
    if (!complete && (longest.empty() || longest.back().tokens > capacity)) return std::nullopt;
    std::vector<record_id> ids;
    for (const listed_record& record : longest) {
      if (record.tokens <= capacity) break;
      ids.push_back(record.id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  friend bool operator==(const corpus_summary&, const corpus_summary&) = default;
};

/// How a source is read through.
struct scan_options {
  /// Threads at work, at least 1.
  unsigned threads = available_threads();
  /// Told the number of records read through.
  progress_callback progress = {};
};

/// How a summary is made.
struct summary_options {
  /// Threads at work, at least 1. The summary does not depend on it.
  unsigned threads = available_threads();
  /// Told the number of records read through.
  progress_callback progress = {};
  /// Longest records that are listed, 16 bytes each.
  std::size_t listed_longest = std::size_t{1} << 16;
  /// Empty records that are listed, 8 bytes each.
  std::size_t listed_empty = std::size_t{1} << 16;
};

namespace detail {

struct longer_first {
  bool operator()(const listed_record& a, const listed_record& b) const noexcept {
    return a.tokens != b.tokens ? a.tokens > b.tokens : a.id < b.id;
  }
};

inline void check_threads(unsigned threads) {
  if (threads == 0) throw_invalid_option("threads", "0", "at least 1");
}

/// Reads all shapes with all threads. `State` gathers what one thread sees, through
/// `visit(state, id, shape)`; the states are returned in no particular order.
template <class State, class Visit>
std::vector<std::unique_ptr<State>> scan_shapes(const any_source& source,
                                                const scan_options& options, Visit&& visit) {
  constexpr std::uint64_t chunk_records = std::uint64_t{1} << 16;
  constexpr std::size_t batch_records = 1024;
  check_threads(options.threads);
  if (!source.traits().has_all_shapes) {
    throw_state_error(
        source.describe() +
        ": found a corpus whose record lengths are not known beforehand, expected one "
        "with an index");
  }
  const std::uint64_t size = source.size();
  chunk_progress progress(options.progress, size);
  std::mutex mutex;
  std::vector<std::unique_ptr<State>> idle;
  parallel_for(ceil_div(size, chunk_records), options.threads, [&](std::uint64_t chunk) {
    std::unique_ptr<State> state;
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        state = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!state) state = std::make_unique<State>();
    const std::uint64_t first = chunk * chunk_records;
    const std::uint64_t last = std::min(size, first + chunk_records);
    std::vector<record_id> ids(batch_records);
    std::vector<record_shape> shapes(batch_records);
    for (std::uint64_t begin = first; begin < last; begin += batch_records) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(batch_records, last - begin));
      for (std::size_t i = 0; i < count; ++i) ids[i] = begin + i;
      source.shapes(std::span(ids).first(count), std::span(shapes).first(count));
      for (std::size_t i = 0; i < count; ++i) visit(*state, ids[i], shapes[i]);
    }
    progress.advance(last - first);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(state));
  });
  progress.finish();
  return idle;
}

/// The first `limit` of all values added, in the order of `Less`.
template <class T, class Less>
class bounded_list {
 public:
  void add(const T& value, std::size_t limit) {
    if (limit == 0) return;
    if (values_.size() < limit) {
      values_.push_back(value);
      std::push_heap(values_.begin(), values_.end(), Less{});
    } else if (Less{}(value, values_.front())) {
      std::pop_heap(values_.begin(), values_.end(), Less{});
      values_.back() = value;
      std::push_heap(values_.begin(), values_.end(), Less{});
    }
  }

  void merge(const bounded_list& other, std::size_t limit) {
    for (const T& value : other.values_) add(value, limit);
  }

  [[nodiscard]] std::vector<T> sorted() && {
    std::sort_heap(values_.begin(), values_.end(), Less{});
    return std::move(values_);
  }

 private:
  std::vector<T> values_;
};

struct smaller_id {
  bool operator()(record_id a, record_id b) const noexcept { return a < b; }
};

struct summary_part {
  corpus_summary sums;
  bounded_list<listed_record, longer_first> longest;
  bounded_list<record_id, smaller_id> empty_ids;
};

}  // namespace detail

/// Reads all shapes of a corpus once and sums them up.
/// @throws invalid_option  `threads` is 0.
/// @throws state_error     The source does not know all shapes.
/// @throws data_error      The index is corrupt.
/// @complexity  O(records); memory of a histogram and the lists a thread.
/// @determinism Depends on the corpus and the lengths of the lists alone.
[[nodiscard]] inline corpus_summary summarize(const any_source& source,
                                              const summary_options& options = {}) {
  const auto parts = detail::scan_shapes<detail::summary_part>(
      source, {.threads = options.threads, .progress = options.progress},
      [&options](detail::summary_part& part, record_id id, const record_shape& shape) {
        part.sums.histogram.add(shape.tokens);
        part.sums.loss_tokens = saturating_add(part.sums.loss_tokens, shape.loss_tokens);
        part.sums.patches = saturating_add(part.sums.patches, shape.patches);
        part.sums.max_tokens = std::max(part.sums.max_tokens, shape.tokens);
        part.longest.add({id, shape.tokens}, options.listed_longest);
        if (shape.tokens == 0) {
          ++part.sums.empty_records;
          part.empty_ids.add(id, options.listed_empty);
        }
      });
  detail::summary_part all;
  for (const auto& part : parts) {
    all.sums.histogram.merge(part->sums.histogram);
    all.sums.loss_tokens = saturating_add(all.sums.loss_tokens, part->sums.loss_tokens);
    all.sums.patches = saturating_add(all.sums.patches, part->sums.patches);
    all.sums.max_tokens = std::max(all.sums.max_tokens, part->sums.max_tokens);
    all.sums.empty_records += part->sums.empty_records;
    all.longest.merge(part->longest, options.listed_longest);
    all.empty_ids.merge(part->empty_ids, options.listed_empty);
  }
  corpus_summary summary = std::move(all.sums);
  summary.records = source.size();
  summary.tokens = summary.histogram.tokens();
  summary.longest = std::move(all.longest).sorted();
  summary.empty_ids = std::move(all.empty_ids).sorted();
  summary.fingerprint = source.fingerprint();
  return summary;
}

/// Ids of the records longer than `capacity` tokens, ascending, found by reading all shapes.
/// @throws invalid_option, state_error, data_error  As `summarize`.
/// @complexity  O(records); memory 8 bytes an id returned.
[[nodiscard]] inline std::vector<record_id> ids_above(const any_source& source,
                                                      std::uint64_t capacity,
                                                      const scan_options& options = {}) {
  const auto parts = detail::scan_shapes<std::vector<record_id>>(
      source, options,
      [capacity](std::vector<record_id>& ids, record_id id, const record_shape& shape) {
        if (shape.tokens > capacity) ids.push_back(id);
      });
  std::vector<record_id> all;
  for (const auto& part : parts) all.insert(all.end(), part->begin(), part->end());
  std::sort(all.begin(), all.end());
  return all;
}

/// Ids of the records longer than `capacity` tokens, ascending: from the summary's list where that
/// reaches so far down, else by reading all shapes.
[[nodiscard]] inline std::vector<record_id> ids_above(const corpus_summary& summary,
                                                      const any_source& source,
                                                      std::uint64_t capacity,
                                                      const scan_options& options = {}) {
  if (auto listed = summary.ids_above(capacity)) return *std::move(listed);
  return ids_above(source, capacity, options);
}

/// Ids of the records without a token, ascending: from the summary's list where that is complete,
/// else by reading all shapes.
[[nodiscard]] inline std::vector<record_id> empty_ids(const corpus_summary& summary,
                                                      const any_source& source,
                                                      const scan_options& options = {}) {
  if (summary.empty_ids.size() == summary.empty_records) return summary.empty_ids;
  const auto parts = detail::scan_shapes<std::vector<record_id>>(
      source, options, [](std::vector<record_id>& ids, record_id id, const record_shape& shape) {
        if (shape.tokens == 0) ids.push_back(id);
      });
  std::vector<record_id> all;
  for (const auto& part : parts) all.insert(all.end(), part->begin(), part->end());
  std::sort(all.begin(), all.end());
  return all;
}

namespace detail {

inline constexpr std::string_view summary_cache_kind = "lanepack summary 1";

}  // namespace detail

/// Saves a summary for `load_summary`, atomically.
/// @return  False where the directory cannot be written; that is not an error.
inline bool save_summary(const std::string& path, const cache_key& key,
                         const corpus_summary& summary) {
  detail::cache_writer out;
  detail::write_key(out, key);
  for (const std::uint64_t number :
       {summary.records, summary.empty_records, summary.tokens, summary.loss_tokens,
        summary.patches, summary.max_tokens, summary.fingerprint.low, summary.fingerprint.high}) {
    out.number(number);
  }
  const std::vector<length_bucket> buckets = summary.histogram.buckets();
  out.number(buckets.size());
  for (const length_bucket& bucket : buckets) {
    out.small_number(bucket.first);
    out.small_number(bucket.records);
    out.small_number(bucket.tokens);
  }
  out.number(summary.longest.size());
  for (const listed_record& record : summary.longest) {
    out.small_number(record.id);
    out.small_number(record.tokens);
  }
  out.number(summary.empty_ids.size());
  for (const record_id id : summary.empty_ids) out.small_number(id);
  return out.save(path, detail::summary_cache_kind);
}

/// A summary saved by `save_summary` with the same key.
/// @return  nullopt where there is none, it was made from other files or options, or its bytes are
///          damaged.
[[nodiscard]] inline std::optional<corpus_summary> load_summary(const std::string& path,
                                                                const cache_key& key) {
  detail::cache_reader in(path, detail::summary_cache_kind);
  if (!detail::read_key(in, key)) return std::nullopt;
  corpus_summary summary;
  for (std::uint64_t* number : {&summary.records, &summary.empty_records, &summary.tokens,
                                &summary.loss_tokens, &summary.patches, &summary.max_tokens,
                                &summary.fingerprint.low, &summary.fingerprint.high}) {
    *number = in.number();
  }
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) {
    const std::uint64_t first = in.small_number();
    const std::uint64_t records = in.small_number();
    const std::uint64_t tokens = in.small_number();
    const auto [low, high] = length_histogram::bounds_of(first);
    if (!summary.histogram.add_bucket({low, high, records, tokens})) return std::nullopt;
  }
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) {
    const record_id id = in.small_number();
    summary.longest.push_back({id, in.small_number()});
  }
  for (std::uint64_t left = in.number(); left > 0 && in.good(); --left) {
    summary.empty_ids.push_back(in.small_number());
  }
  if (!in.good() || !in.at_end() || summary.histogram.records() != summary.records ||
      summary.histogram.tokens() != summary.tokens) {
    return std::nullopt;
  }
  return summary;
}

/// The summary saved at `path` under this key, or a new one, which is then saved there.
/// @throws invalid_option, state_error, data_error  As `summarize`.
[[nodiscard]] inline corpus_summary cached_summary(const any_source& source,
                                                   const std::string& path, const cache_key& key,
                                                   const summary_options& options = {}) {
  if (auto saved = load_summary(path, key)) return *std::move(saved);
  corpus_summary summary = summarize(source, options);
  save_summary(path, key, summary);
  return summary;
}

}  // namespace lanepack::inline LANEPACK_ABI
