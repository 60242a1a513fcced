#pragma once

/// @file
/// `batch_payloads`: what the records of a micro-batch carry beside their tokens, behind each other
/// in the slab.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/batch/layout_options.hpp>
#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/corpus/payload.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Where the payloads of a micro-batch lie in its slab.
struct payload_plan {
  struct place {
    slab_field offsets;
    slab_field bytes;
  };

  std::shared_ptr<const std::vector<std::string>> names;
  std::size_t records = 0;
  /// Of payload p of record i at `p * records + i`.
  std::vector<payload_shape> shapes;
  std::vector<place> places;
  /// The slab's bytes up to the end of the last payload.
  std::size_t slab_bytes = 0;
};

}  // namespace detail

/// One payload of all records of a micro-batch, over a slab.
/// @thread_safety  Immutable; the slab must outlive it.
class payload_view {
 public:
  [[nodiscard]] std::string_view name() const noexcept { return (*plan_->names)[payload_]; }
  /// Records of the micro-batch.
  [[nodiscard]] std::size_t records() const noexcept { return plan_->records; }
  /// Those of all records, one after the other without gaps; it starts at a multiple of 64 bytes.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {base_ + place().bytes.offset, place().bytes.count};
  }
  /// Where each record's bytes start in `bytes()`, and their end: `records() + 1` numbers, which
  /// lie in the slab too.
  [[nodiscard]] std::span<const std::uint64_t> offsets() const noexcept {
    return {reinterpret_cast<const std::uint64_t*>(base_ + place().offsets.offset),
            place().offsets.count};
  }
  /// Those of one record; host memory only.
  /// @param record  Number of the record in the micro-batch.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t record) const noexcept {
    LANEPACK_ASSERT(record < records());
    const std::span<const std::uint64_t> at = offsets();
    return bytes().subspan(static_cast<std::size_t>(at[record]),
                           static_cast<std::size_t>(at[record + 1] - at[record]));
  }
  /// Type and extents for one record.
  [[nodiscard]] const payload_shape& shape(std::size_t record) const noexcept {
    LANEPACK_ASSERT(record < records());
    return plan_->shapes[payload_ * plan_->records + record];
  }

 private:
  friend class batch_payloads;
  payload_view(std::shared_ptr<const detail::payload_plan> plan, const std::byte* base,
               std::size_t payload)
      : plan_(std::move(plan)), base_(base), payload_(payload) {}

  [[nodiscard]] const detail::payload_plan::place& place() const noexcept {
    return plan_->places[payload_];
  }

  std::shared_ptr<const detail::payload_plan> plan_;
  const std::byte* base_;
  std::size_t payload_;
};

/// The payloads of a micro-batch, in the order of the source's `payload_names()`; none where
/// records carry tokens alone.
/// @thread_safety  Immutable; the slab must outlive it.
class batch_payloads {
 public:
  batch_payloads() = default;

  /// Number of payloads.
  [[nodiscard]] std::size_t size() const noexcept { return plan_ ? plan_->places.size() : 0; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// @param payload  Below `size()`.
  [[nodiscard]] payload_view operator[](std::size_t payload) const {
    LANEPACK_ASSERT(payload < size());
    return {plan_, base_, payload};
  }
  /// The payload of that name, or nullopt.
  [[nodiscard]] std::optional<payload_view> find(std::string_view name) const {
    for (std::size_t i = 0; i < size(); ++i) {
      if ((*plan_->names)[i] == name) return (*this)[i];
    }
    return std::nullopt;
  }
  /// The same payloads in a copy of the slab that starts at `base`, on a device for instance.
  [[nodiscard]] batch_payloads over(const std::byte* base) const noexcept { return {plan_, base}; }

 private:
  friend class payload_layout;
  batch_payloads(std::shared_ptr<const detail::payload_plan> plan, const std::byte* base) noexcept
      : plan_(std::move(plan)), base_(base) {}

  std::shared_ptr<const detail::payload_plan> plan_;
  const std::byte* base_ = nullptr;
};

/// Lays the payloads of one micro-batch behind its tokens: for every payload the offsets of the
/// records, then their bytes without gaps.
///
/// As a token layout it is used in two phases: the reader writes into `span`, then `complete` fills
/// in the offsets. A default-constructed one has no payloads.
/// @thread_safety  Const members may be called by any number of threads; the spans of different
///                 payloads or records do not overlap.
class payload_layout {
 public:
  payload_layout() = default;

  /// @param names        Of the payloads.
  /// @param shapes       That of payload p of record i at `p * records + i`.
  /// @param first_byte   Bytes of the slab that are taken.
  /// @throws  invalid_option where the slab would have more bytes than memory has addresses.
  /// @complexity  O(payloads x records).
  payload_layout(std::shared_ptr<const std::vector<std::string>> names,
                 std::vector<payload_shape> shapes, std::size_t records, std::size_t first_byte) {
    LANEPACK_ASSERT(shapes.size() == names->size() * records);
    detail::payload_plan plan;
    plan.names = std::move(names);
    plan.records = records;
    plan.shapes = std::move(shapes);
    std::uint64_t end = round_up(first_byte, detail::field_alignment);
    const auto add = [&end](std::uint64_t count, std::uint64_t bytes) {
      const detail::slab_field field{static_cast<std::size_t>(end),
                                     static_cast<std::size_t>(count)};
      end = saturating_add(end, round_up(saturating_mul(count, bytes), detail::field_alignment));
      return field;
    };
    for (std::size_t p = 0; p < plan.names->size(); ++p) {
      std::uint64_t bytes = 0;
      for (std::size_t i = 0; i < records; ++i) {
        bytes = saturating_add(bytes, plan.shapes[p * records + i].bytes());
      }
      const detail::slab_field offsets = add(std::uint64_t{records} + 1, sizeof(std::uint64_t));
      plan.places.push_back({.offsets = offsets, .bytes = add(bytes, 1)});
    }
    if (end > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
      detail::throw_invalid_option("payloads",
                                   "a slab of at least " + std::to_string(end) + " bytes",
                                   "payloads that fit the memory");
    }
    plan.slab_bytes = static_cast<std::size_t>(end);
    plan_ = std::make_shared<const detail::payload_plan>(std::move(plan));
  }

  /// Bytes that payloads of `payload_bytes` bytes take at most in the slab of a micro-batch of at
  /// most `max_records` records, behind its tokens.
  [[nodiscard]] static std::uint64_t slab_bytes_bound(std::size_t payloads,
                                                      std::uint64_t payload_bytes,
                                                      std::uint64_t max_records) noexcept {
    constexpr std::uint64_t alignment = detail::field_alignment;
    const std::uint64_t offsets =
        round_up(saturating_mul(saturating_add(max_records, 1), sizeof(std::uint64_t)), alignment);
    return saturating_add(payload_bytes,
                          saturating_mul(payloads, saturating_add(offsets, alignment)));
  }

  /// Number of payloads.
  [[nodiscard]] std::size_t payloads() const noexcept { return plan_ ? plan_->places.size() : 0; }
  /// Bytes of the slab up to the end of the last payload; 0 where there is none.
  [[nodiscard]] std::size_t slab_bytes() const noexcept { return plan_ ? plan_->slab_bytes : 0; }
  /// Type and extents of one payload of one record.
  [[nodiscard]] const payload_shape& shape(std::size_t payload, std::size_t record) const noexcept {
    LANEPACK_ASSERT(payload < payloads() && record < plan_->records);
    return plan_->shapes[payload * plan_->records + record];
  }

  /// Where the reader writes the payloads of the records, in order: payload p of record i is number
  /// `p * records + i`.
  /// @param slab  At least `slab_bytes()` bytes, aligned to 8 bytes.
  /// @throws  state_error if the slab is too small or not aligned.
  [[nodiscard]] std::vector<std::span<std::byte>> spans(std::span<std::byte> slab) const {
    check_slab(slab);
    std::vector<std::span<std::byte>> all;
    for (std::size_t p = 0; p < payloads(); ++p) {
      std::size_t at = plan_->places[p].bytes.offset;
      for (std::size_t i = 0; i < plan_->records; ++i) {
        all.push_back(slab.subspan(at, static_cast<std::size_t>(shape(p, i).bytes())));
        at += all.back().size();
      }
    }
    return all;
  }

  /// Writes the offsets. Once per slab.
  /// @throws  state_error if the slab is too small or not aligned.
  [[nodiscard]] batch_payloads complete(std::span<std::byte> slab) const {
    check_slab(slab);
    for (std::size_t p = 0; p < payloads(); ++p) {
      auto* const out =
          reinterpret_cast<std::uint64_t*>(slab.data() + plan_->places[p].offsets.offset);
      out[0] = 0;
      for (std::size_t i = 0; i < plan_->records; ++i) out[i + 1] = out[i] + shape(p, i).bytes();
    }
    return {plan_, slab.data()};
  }

 private:
  void check_slab(std::span<std::byte> slab) const {
    if (slab.size() >= slab_bytes() &&
        reinterpret_cast<std::uintptr_t>(slab.data()) % alignof(std::uint64_t) == 0) {
      return;
    }
    detail::throw_state_error("slab: found " + std::to_string(slab.size()) +
                              " bytes, expected at least " + std::to_string(slab_bytes()) +
                              ", aligned to 8 bytes");
  }

  std::shared_ptr<const detail::payload_plan> plan_;
};

}  // namespace lanepack::inline LANEPACK_ABI
