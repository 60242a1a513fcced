#pragma once

/// @file
/// `summarize` and its kin: the summary of a corpus, made once with all cores and cached.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
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
#include <lanepack/corpus/length_histogram.hpp>
#include <lanepack/corpus/source_part.hpp>
#include <lanepack/corpus/summary.hpp>

namespace lanepack::inline LANEPACK_ABI {

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

/// One part of a corpus as a source of its own.
class part_view {
 public:
  part_view(any_source whole, source_part part)
      : whole_(std::move(whole)), part_(std::move(part)) {}

  [[nodiscard]] std::uint64_t size() const { return part_.records; }
  [[nodiscard]] source_traits traits() const { return whole_.traits(); }
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    std::vector<record_id> global(ids.begin(), ids.end());
    for (record_id& id : global) id += part_.first;
    whole_.shapes(global, out);
  }
  void read(std::span<const record_read> reads) const {
    std::vector<record_read> global(reads.begin(), reads.end());
    for (record_read& each : global) each.id += part_.first;
    whole_.read(global);
  }
  [[nodiscard]] digest128 fingerprint() const { return part_.fingerprint; }
  [[nodiscard]] std::string describe() const {
    return "part " + detail::quoted(part_.name) + " of " + whole_.describe();
  }

 private:
  any_source whole_;
  source_part part_;
};

}  // namespace detail

/// The summary of a concatenated corpus out of those of its parts, which it keeps in `parts`.
///
/// A list of the longest or of empty records reaches as far down as the shortest such list of a
/// part.
/// @param parts  In the order of `source.parts()`.
/// @throws state_error  They are not of these parts.
/// @complexity  O(parts + listed records x log of that).
[[nodiscard]] inline corpus_summary summary_of_parts(const any_source& source,
                                                     std::vector<corpus_summary> parts,
                                                     const summary_options& options = {}) {
  const std::span<const source_part> expected = source.parts();
  if (parts.size() != expected.size()) {
    detail::throw_state_error("found summaries of " + std::to_string(parts.size()) +
                              " parts, expected " + std::to_string(expected.size()));
  }
  corpus_summary whole;
  whole.records = source.size();
  whole.fingerprint = source.fingerprint();
  std::optional<listed_record> complete_to;
  bool all_empty_listed = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const corpus_summary& part = parts[i];
    if (part.records != expected[i].records || part.fingerprint != expected[i].fingerprint) {
      detail::throw_state_error("part " + detail::quoted(expected[i].name) +
                                ": found the summary of " + std::to_string(part.records) +
                                " records, fingerprint " + part.fingerprint.hex() + ", expected " +
                                std::to_string(expected[i].records) + ", " +
                                expected[i].fingerprint.hex());
    }
    whole.empty_records += part.empty_records;
    whole.tokens = saturating_add(whole.tokens, part.tokens);
    whole.loss_tokens = saturating_add(whole.loss_tokens, part.loss_tokens);
    whole.patches = saturating_add(whole.patches, part.patches);
    whole.max_tokens = std::max(whole.max_tokens, part.max_tokens);
    whole.histogram.merge(part.histogram);
    for (const listed_record& record : part.longest) {
      whole.longest.push_back({record.id + expected[i].first, record.tokens});
    }
    if (part.longest.size() != part.records) {
      // A part without a list says nothing even of its longest record.
      const listed_record last = part.longest.empty()
                                     ? listed_record{0, std::numeric_limits<std::uint64_t>::max()}
                                     : whole.longest.back();
      if (!complete_to || detail::longer_first{}(last, *complete_to)) complete_to = last;
    }
    if (all_empty_listed) {
      for (const record_id id : part.empty_ids) whole.empty_ids.push_back(id + expected[i].first);
    }
    all_empty_listed = all_empty_listed && part.empty_ids.size() == part.empty_records;
  }
  std::sort(whole.longest.begin(), whole.longest.end(), detail::longer_first{});
  if (complete_to) {
    const auto end = std::upper_bound(whole.longest.begin(), whole.longest.end(), *complete_to,
                                      detail::longer_first{});
    whole.longest.erase(end, whole.longest.end());
  }
  whole.longest.resize(std::min(whole.longest.size(), options.listed_longest));
  whole.empty_ids.resize(std::min(whole.empty_ids.size(), options.listed_empty));
  whole.parts = std::move(parts);
  return whole;
}

/// Reads all shapes of a corpus once and sums them up; those of every part of a concatenated corpus
/// apart, as `summary_of_parts` does.
/// @throws invalid_option  `threads` is 0.
/// @throws state_error     The source does not know all shapes.
/// @throws data_error      The index is corrupt.
/// @complexity  O(records); memory of a histogram and the lists a thread.
/// @determinism Depends on the corpus and the lengths of the lists alone.
[[nodiscard]] inline corpus_summary summarize(const any_source& source,
                                              const summary_options& options = {}) {
  if (!source.parts().empty()) {
    std::vector<corpus_summary> summaries;
    for (const source_part& part : source.parts()) {
      summary_options of_part = options;
      if (options.progress) {
        of_part.progress = [&](std::uint64_t done, std::uint64_t) {
          options.progress(part.first + done, source.size());
        };
      }
      summaries.push_back(summarize(detail::part_view(source, part), of_part));
    }
    return summary_of_parts(source, std::move(summaries), options);
  }
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
