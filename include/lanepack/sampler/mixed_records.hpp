#pragma once

/// @file
/// `mixed_records`: which record of which part stands at every position of a mixed stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/sampler/epoch_order.hpp>
#include <lanepack/sampler/mixture.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The seed of a part of a mixture: of its name, so that the order of its records depends on no
/// other part.
[[nodiscard]] inline std::uint64_t seed_of_part(std::uint64_t seed, const std::string& name) {
  digest_builder builder;
  builder.number(seed);
  builder.text(name);
  return builder.value().low;
}

/// The records at all positions of a mixed stream.
///
/// Record number i of a part that has n is at position i mod n of the part's epoch i / n; (epoch,
/// id) of a record counts the epochs of its own part.
/// @thread_safety  Immutable.
/// @determinism    A pure function of the mixture and the parts' orders.
class mixed_records {
 public:
  /// One part of the corpus.
  struct part {
    /// Id of its first record in the corpus.
    record_id first = 0;
    /// The orders of its epochs, with ids from 0.
    epoch_order order;
  };

  /// @param parts  As those of the mixture, by ascending first id.
  /// @param seed   Of the run; keys what is drawn for all parts together.
  /// @throws invalid_option  where the numbers of parts or of their records differ.
  mixed_records(mixture_order mixture, std::vector<part> parts, std::uint64_t seed = 0)
      : mixture_(std::move(mixture)), parts_(std::move(parts)), seed_(seed) {
    if (parts_.size() != mixture_.parts()) {
      detail::throw_invalid_option("parts", std::to_string(parts_.size()),
                                   std::to_string(mixture_.parts()) + " as in the mixture");
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].order.size() != mixture_.part(i).records ||
          (i != 0 && parts_[i].first < parts_[i - 1].first)) {
        detail::throw_invalid_option(
            "parts[" + std::to_string(i) + "]",
            std::to_string(parts_[i].order.size()) + " records from id " +
                std::to_string(parts_[i].first),
            std::to_string(mixture_.part(i).records) + " records, after those before");
      }
      records_ += parts_[i].order.size();
    }
  }

  [[nodiscard]] const mixture_order& mixture() const noexcept { return mixture_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Records of an epoch of all parts together.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// The orders of one part.
  [[nodiscard]] const epoch_order& order(std::size_t index) const noexcept {
    return parts_[index].order;
  }

  /// The part that a record is from.
  /// @complexity  O(log parts).
  [[nodiscard]] std::size_t part_of(record_id id) const noexcept {
    const auto after =
        std::upper_bound(parts_.begin(), parts_.end(), id,
                         [](record_id value, const part& each) { return value < each.first; });
    return static_cast<std::size_t>(after - parts_.begin()) - 1;
  }

  /// Writes the records at `first`, `first + stride`, ...
  /// @pre         No position is above 2^64 - 1.
  /// @complexity  A permuted position each, and about 0.2 us for each part and epoch of it among
  ///              16384 neighbours, so large batches are quicker where there are many parts. Memory
  ///              of 40 bytes for each of as many.
  void records(std::uint64_t first, std::uint64_t stride, std::span<record_ref> out) const {
    fill(out, [&](std::span<mixed_place> places) {
      mixture_.places(first, stride, places);
      first += places.size() * stride;
    });
  }

  /// Writes the records at ascending positions.
  /// @complexity  As above, and O(log sections) a position.
  void records(std::span<const std::uint64_t> positions, std::span<record_ref> out) const {
    fill(out, [&](std::span<mixed_place> places) {
      for (std::size_t i = 0; i < places.size(); ++i) places[i] = mixture_(positions[i]);
      positions = positions.subspan(places.size());
    });
  }

 private:
  static constexpr std::size_t batch_records = 16384;

  struct batch {
    std::vector<mixed_place> places;
    /// Indices of places, by part.
    std::vector<std::uint64_t> order;
    std::vector<std::uint64_t> ids;
    /// By part, the number of places of the parts before.
    std::vector<std::uint32_t> starts;
  };

  /// Writes the records at the places that `next_places` gives, a batch at a time.
  template <class NextPlaces>
  void fill(std::span<record_ref> out, NextPlaces&& next_places) const {
    batch memory;
    memory.places.resize(std::min(out.size(), batch_records));
    memory.order.resize(memory.places.size());
    memory.ids.resize(memory.places.size());
    while (!out.empty()) {
      const std::size_t count = std::min(out.size(), batch_records);
      next_places(std::span(memory.places).first(count));
      sort_by_part(memory, count);
      for (std::size_t at = 0; at < count;) at = of_one_epoch(memory, at, count, out);
      out = out.subspan(count);
    }
  }

  /// Indices of a part ascend with the places, so that its epochs follow each other.
  void sort_by_part(batch& memory, std::size_t count) const {
    const std::vector<mixed_place>& places = memory.places;
    if (count < parts_.size()) {
      for (std::size_t i = 0; i < count; ++i) {
        memory.order[i] = std::uint64_t{places[i].part} << 32 | i;
      }
      std::sort(memory.order.begin(), memory.order.begin() + static_cast<std::ptrdiff_t>(count));
      for (std::size_t i = 0; i < count; ++i) memory.order[i] &= 0xffff'ffff;
      return;
    }
    memory.starts.assign(parts_.size() + 1, 0);
    for (std::size_t i = 0; i < count; ++i) ++memory.starts[places[i].part + 1];
    std::partial_sum(memory.starts.begin(), memory.starts.end(), memory.starts.begin());
    for (std::size_t i = 0; i < count; ++i) memory.order[memory.starts[places[i].part]++] = i;
  }

  /// Writes the records of one epoch of one part, from place `at` of the order on; returns the
  /// place after them.
  std::size_t of_one_epoch(batch& memory, std::size_t at, std::size_t count,
                           std::span<record_ref> out) const {
    const mixed_place& head = memory.places[memory.order[at]];
    const part& from = parts_[head.part];
    const std::uint64_t n = from.order.size();
    const epoch_index epoch = head.index / n;
    const std::uint64_t begin = epoch * n;
    std::size_t end = at;
    for (; end < count; ++end) {
      const mixed_place& place = memory.places[memory.order[end]];
      if (place.part != head.part || place.index - begin >= n) break;
      memory.ids[end] = place.index - begin;
    }
    const std::span<std::uint64_t> those(memory.ids.data() + at, end - at);
    from.order.records(epoch, those, those);
    for (std::size_t i = at; i < end; ++i) {
      out[memory.order[i]] = {epoch, from.first + memory.ids[i]};
    }
    return end;
  }

  mixture_order mixture_;
  std::vector<part> parts_;
  std::uint64_t seed_;
  std::uint64_t records_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
