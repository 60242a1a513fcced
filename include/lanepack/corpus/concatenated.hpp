#pragma once

/// @file
/// `concatenated_source`: several corpora as one, with named parts.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/part_names.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/corpus/source_part.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A corpus and the name by which a mixture knows it.
struct named_source {
  std::string name;
  any_source source;
};

/// The records of several corpora, one after the other; a `payload_source` with `parts()`.
///
/// Record i of part k has the id first(k) + i. A part that is appended leaves the ids of the others
/// as they are. The corpus has the payloads of all parts, by name; records have no bytes of those
/// that their part lacks.
/// @complexity     O(log parts) a record beside what its part takes; each part is called once a
///                 batch. Construction O(parts) and the parts' fingerprints.
/// @thread_safety  Const members may be called by any number of threads.
class concatenated_source {
 public:
  /// @param parts  At least one, with names that are not empty and differ.
  /// @throws invalid_option  where that does not hold, or there are more than 2^63 records or 2^31
  ///                         parts.
  /// @throws data_error      as the parts' fingerprints.
  explicit concatenated_source(std::vector<named_source> parts) {
    if (parts.empty() || parts.size() >> 31 != 0) {
      detail::throw_invalid_option("parts", std::to_string(parts.size()), "1 to 2^31 - 1");
    }
    digest_builder digest;
    digest.text("concatenated");
    digest.number(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      named_source& part = parts[i];
      if (part.name.empty()) {
        detail::throw_invalid_option("parts[" + std::to_string(i) + "].name", "''",
                                     "a name that is not empty");
      }
      parts_.push_back({.name = std::move(part.name),
                        .first = size_,
                        .records = part.source.size(),
                        .fingerprint = part.source.fingerprint()});
      digest.number(parts_.back().records);
      digest.digest(parts_.back().fingerprint);
      size_ = saturating_add(size_, parts_.back().records);
      if (size_ >> 63 != 0) {
        detail::throw_invalid_option("parts", "2^63 records or more", "fewer");
      }
      const source_traits traits = part.source.traits();
      traits_.has_payload = traits_.has_payload && traits.has_payload;
      traits_.has_all_shapes = traits_.has_all_shapes && traits.has_all_shapes;
      traits_.has_loss_mask = traits_.has_loss_mask || traits.has_loss_mask;
      most_segments_ = std::max(most_segments_, part.source.most_segments());
      take_payloads(part.source);
      sources_.push_back(std::move(part.source));
    }
    fingerprint_ = digest.value();
    if (const std::optional<std::string> name = part_names(parts_).repeated()) {
      detail::throw_invalid_option("parts", "two called " + detail::quoted(*name),
                                   "names that differ");
    }
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Payload and shapes where all parts have them, a loss mask where any has one.
  [[nodiscard]] source_traits traits() const { return traits_; }
  /// By ascending first id.
  [[nodiscard]] std::span<const source_part> parts() const { return parts_; }

  /// @throws state_error  An id is not in the corpus.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    std::vector<record_id> local;
    std::vector<record_shape> found;
    for_each_part(
        ids.size(), [&](std::size_t i) { return ids[i]; },
        [&](std::size_t part, std::span<const std::uint64_t> places) {
          local.clear();
          for (const std::uint64_t place : places) {
            local.push_back(ids[place_in(place)] - parts_[part].first);
          }
          found.resize(local.size());
          sources_[part].shapes(local, found);
          for (std::size_t i = 0; i < places.size(); ++i) out[place_in(places[i])] = found[i];
        });
  }

  /// @throws state_error  An id or a range is not in the corpus.
  /// @throws data_error   As the part that cannot be read, with the number of the record in it.
  void read(std::span<const record_read> reads) const {
    std::vector<record_read> local;
    for_each_part(
        reads.size(), [&](std::size_t i) { return reads[i].id; },
        [&](std::size_t part, std::span<const std::uint64_t> places) {
          local.clear();
          for (const std::uint64_t place : places) {
            local.push_back(reads[place_in(place)]);
            local.back().id -= parts_[part].first;
          }
          sources_[part].read(local);
        });
  }

  /// The largest of the parts.
  [[nodiscard]] std::uint64_t most_segments() const { return most_segments_; }

  /// @throws state_error  An id is not in the corpus.
  void segments(std::span<const record_id> ids, segment_lists& out) const {
    std::vector<record_id> local;
    segment_lists found;
    std::vector<std::size_t> place_of(ids.size());
    for_each_part(
        ids.size(), [&](std::size_t i) { return ids[i]; },
        [&](std::size_t part, std::span<const std::uint64_t> places) {
          local.clear();
          for (const std::uint64_t place : places) {
            place_of[place_in(place)] = found.size() + local.size();
            local.push_back(ids[place_in(place)] - parts_[part].first);
          }
          sources_[part].segments(local, found);
        });
    for (const std::size_t place : place_of) out.add(found[place]);
  }

  /// Those of the first part, then what later parts add.
  [[nodiscard]] std::span<const std::string> payload_names() const { return payload_names_; }

  /// @throws state_error  An id or a payload is not in the corpus.
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    detail::check_payload(payload, payload_names_.size());
    std::vector<record_id> local;
    std::vector<payload_shape> found;
    for_each_part(
        ids.size(), [&](std::size_t i) { return ids[i]; },
        [&](std::size_t part, std::span<const std::uint64_t> places) {
          local.clear();
          for (const std::uint64_t place : places) {
            local.push_back(ids[place_in(place)] - parts_[part].first);
          }
          found.assign(local.size(), payload_shape());
          const std::optional<std::size_t> own = own_payload(part, payload);
          if (own) sources_[part].payload_shapes(*own, local, found);
          for (std::size_t i = 0; i < places.size(); ++i) out[place_in(places[i])] = found[i];
        });
  }

  /// @throws state_error  An id or a payload is not in the corpus, or memory is of another size.
  /// @throws data_error   As the part that cannot be read, with the number of the record in it.
  void read_payloads(std::span<const payload_read> reads) const {
    std::vector<payload_read> local;
    for_each_part(
        reads.size(), [&](std::size_t i) { return reads[i].id; },
        [&](std::size_t part, std::span<const std::uint64_t> places) {
          local.clear();
          for (const std::uint64_t place : places) {
            payload_read read = reads[place_in(place)];
            detail::check_payload(read.payload, payload_names_.size());
            const std::optional<std::size_t> own = own_payload(part, read.payload);
            if (!own) {
              detail::check_payload_read(read, 0);
              continue;
            }
            read.payload = *own;
            read.id -= parts_[part].first;
            local.push_back(read);
          }
          sources_[part].read_payloads(local);
        });
  }

  [[nodiscard]] record_payload_bytes largest_payload() const { return largest_; }

  /// Of the parts' fingerprints in their order.
  [[nodiscard]] digest128 fingerprint() const { return fingerprint_; }
  [[nodiscard]] std::string describe() const {
    std::string text = "concatenated: " + std::to_string(size_) + " records of " +
                       std::to_string(parts_.size()) + " parts, first " +
                       detail::quoted(parts_.front().name);
    return text + " (" + sources_.front().describe() + ")";
  }

 private:
  static constexpr std::size_t no_payload = ~std::size_t{0};

  void take_payloads(const any_source& source) {
    std::vector<std::size_t>& own = own_payloads_.emplace_back();
    for (const std::string& name : source.payload_names()) {
      const auto at = std::find(payload_names_.begin(), payload_names_.end(), name);
      const auto number = static_cast<std::size_t>(at - payload_names_.begin());
      if (at == payload_names_.end()) payload_names_.push_back(name);
      if (own.size() <= number) own.resize(number + 1, no_payload);
      own[number] = static_cast<std::size_t>(&name - source.payload_names().data());
    }
    record_payload_bytes largest = source.largest_payload();
    largest.id += parts_.back().first;
    if (largest.bytes > largest_.bytes) largest_ = largest;
  }

  /// The number of a payload in a part.
  [[nodiscard]] std::optional<std::size_t> own_payload(std::size_t part,
                                                       std::size_t payload) const noexcept {
    const std::vector<std::size_t>& own = own_payloads_[part];
    if (payload >= own.size() || own[payload] == no_payload) return std::nullopt;
    return own[payload];
  }

  static std::size_t place_in(std::uint64_t place) noexcept {
    return static_cast<std::size_t>(place & 0xffff'ffff);
  }

  [[nodiscard]] std::uint64_t part_of(record_id id) const noexcept {
    const auto after = std::upper_bound(
        parts_.begin(), parts_.end(), id,
        [](record_id value, const source_part& part) { return value < part.first; });
    return static_cast<std::uint64_t>(after - parts_.begin()) - 1;
  }

  /// Calls `visit(part, places)` for every part that has one of `count` ids; a place in the batch
  /// is in the lower half of a word.
  template <class IdAt, class Visit>
  void for_each_part(std::size_t count, IdAt&& id_at, Visit&& visit) const {
    std::vector<std::uint64_t> order(count);
    for (std::size_t i = 0; i < count; ++i) {
      detail::check_record(id_at(i), size_);
      order[i] = part_of(id_at(i)) << 32 | i;
    }
    if (parts_.size() > 1) std::sort(order.begin(), order.end());
    for (std::size_t first = 0; first < count;) {
      const std::uint64_t part = order[first] >> 32;
      std::size_t last = first + 1;
      while (last < count && order[last] >> 32 == part) ++last;
      visit(static_cast<std::size_t>(part), std::span(order).subspan(first, last - first));
      first = last;
    }
  }

  std::vector<source_part> parts_;
  std::vector<any_source> sources_;
  std::vector<std::string> payload_names_;
  /// Of each part, its number of each of the corpus's payloads.
  std::vector<std::vector<std::size_t>> own_payloads_;
  record_payload_bytes largest_;
  std::uint64_t most_segments_ = 1;
  std::uint64_t size_ = 0;
  source_traits traits_;
  digest128 fingerprint_;
};

static_assert(payload_source<concatenated_source>);
static_assert(segmented_source<concatenated_source>);

}  // namespace lanepack::inline LANEPACK_ABI
