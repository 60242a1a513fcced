#pragma once

/// @file
/// Unicode's normalization form C.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/tokenizer/normalization_tables.hpp>
#include <lanepack/tokenizer/unicode.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// What normalization knows of code points, spread out for look-ups.
class normalization_data {
 public:
  /// The one table, made when it is first asked for.
  [[nodiscard]] static const normalization_data& table() {
    static const normalization_data made;
    return made;
  }

  /// True where the code point may change, or change its neighbours: it has a combining class, is
  /// composed otherwise, or may be the second part of a composition.
  [[nodiscard]] bool needs_a_look(std::uint32_t value) const noexcept {
    return value < watched && (watched_[value / 8] >> (value % 8) & 1) != 0;
  }

  [[nodiscard]] static std::uint32_t combining_class(std::uint32_t value) noexcept {
    if (value >= ill_formed_byte) return 0;
    const auto* run = std::upper_bound(std::begin(combining_class_runs),
                                       std::end(combining_class_runs), value << 8 | 0xff);
    return run == std::begin(combining_class_runs) ? 0 : *std::prev(run) & 0xff;
  }

  /// Appends the full canonical decomposition.
  static void decompose(std::uint32_t value, std::vector<std::uint32_t>& out) {
    if (value >= hangul_first && value < hangul_first + hangul_count) {
      const std::uint32_t index = value - hangul_first;
      out.push_back(hangul_lead + index / (hangul_vowels * hangul_tails));
      out.push_back(hangul_vowel + index / hangul_tails % hangul_vowels);
      if (index % hangul_tails != 0) out.push_back(hangul_tail + index % hangul_tails);
      return;
    }
    const auto* found =
        value >= ill_formed_byte
            ? std::end(canonical_decompositions)
            : std::lower_bound(std::begin(canonical_decompositions),
                               std::end(canonical_decompositions), std::uint64_t{value} << 43);
    if (found == std::end(canonical_decompositions) || *found >> 43 != value) {
      out.push_back(value);
      return;
    }
    // Only the first part may go on: at most three times, by Unicode's data.
    decompose(first_of(*found), out);
    if (second_of(*found) != 0) decompose(second_of(*found), out);
  }

  /// What two code points compose to; 0 where they do not.
  [[nodiscard]] std::uint32_t compose(std::uint32_t first, std::uint32_t second) const noexcept {
    if (first >= hangul_lead && first < hangul_lead + hangul_leads && second >= hangul_vowel &&
        second < hangul_vowel + hangul_vowels) {
      return hangul_first +
             ((first - hangul_lead) * hangul_vowels + (second - hangul_vowel)) * hangul_tails;
    }
    if (first >= hangul_first && first < hangul_first + hangul_count &&
        (first - hangul_first) % hangul_tails == 0 && second > hangul_tail &&
        second < hangul_tail + hangul_tails) {
      return first + (second - hangul_tail);
    }
    if (first >= ill_formed_byte || second >= ill_formed_byte) return 0;
    const composition wanted{std::uint64_t{first} << 21 | second, 0};
    const auto found = std::lower_bound(
        compositions_.begin(), compositions_.end(), wanted,
        [](const composition& a, const composition& b) { return a.parts < b.parts; });
    return found == compositions_.end() || found->parts != wanted.parts ? 0 : found->value;
  }

 private:
  static constexpr std::uint32_t watched = 0x3'0000;
  static constexpr std::uint32_t hangul_first = 0xac00;
  static constexpr std::uint32_t hangul_lead = 0x1100;
  static constexpr std::uint32_t hangul_vowel = 0x1161;
  static constexpr std::uint32_t hangul_tail = 0x11a7;
  static constexpr std::uint32_t hangul_leads = 19;
  static constexpr std::uint32_t hangul_vowels = 21;
  static constexpr std::uint32_t hangul_tails = 28;
  static constexpr std::uint32_t hangul_count = hangul_leads * hangul_vowels * hangul_tails;

  struct composition {
    /// First << 21 | second.
    std::uint64_t parts;
    std::uint32_t value;
  };

  static std::uint32_t first_of(std::uint64_t entry) noexcept {
    return static_cast<std::uint32_t>(entry >> 22 & 0x1f'ffff);
  }
  static std::uint32_t second_of(std::uint64_t entry) noexcept {
    return static_cast<std::uint32_t>(entry >> 1 & 0x1f'ffff);
  }

  normalization_data() {
    for (const std::uint64_t entry : canonical_decompositions) {
      const auto value = static_cast<std::uint32_t>(entry >> 43);
      if ((entry & 1) != 0) {
        compositions_.push_back({std::uint64_t{first_of(entry)} << 21 | second_of(entry), value});
        watch(second_of(entry));
      } else {
        watch(value);
      }
    }
    std::sort(compositions_.begin(), compositions_.end(),
              [](const composition& a, const composition& b) { return a.parts < b.parts; });
    for (std::uint32_t i = 0; i < hangul_vowels; ++i) watch(hangul_vowel + i);
    for (std::uint32_t i = 1; i < hangul_tails; ++i) watch(hangul_tail + i);
    for (std::size_t i = 0; i + 1 < std::size(combining_class_runs); ++i) {
      if ((combining_class_runs[i] & 0xff) == 0) continue;
      for (std::uint32_t value = combining_class_runs[i] >> 8;
           value < combining_class_runs[i + 1] >> 8; ++value) {
        watch(value);
      }
    }
  }

  void watch(std::uint32_t value) noexcept {
    if (value >= watched) return;
    watched_[value / 8] = static_cast<std::uint8_t>(watched_[value / 8] | 1U << (value % 8));
  }

  std::vector<composition> compositions_;
  std::array<std::uint8_t, watched / 8> watched_{};
};

/// Normalizes texts; keeps its memory between them.
class nfc_normalizer {
 public:
  /// `text`, or its form C in `storage` where it is not in that form.
  /// @complexity  O(bytes) where no long run of combining marks is out of order, a sort of it else.
  [[nodiscard]] std::string_view normalize(std::string_view text, std::string& storage) {
    const char* const end = text.data() + text.size();
    const char* copied = text.data();
    const char* p = text.data();
    const char* before = text.data();
    bool changed = false;
    storage.clear();
    while ((p = next_watched(p, end, before)) != end) {
      // `before` is where the code point in front starts, which may take part in a composition.
      storage.append(copied, before);
      const char* const segment_end = after_watched(p, end);
      append_composed(before, segment_end, storage);
      copied = segment_end;
      p = segment_end;
      before = segment_end;
      changed = true;
    }
    if (!changed) return text;
    storage.append(copied, end);
    return storage;
  }

 private:
  /// The first code point from `p` on that needs a look, or `end`; `before` becomes the start of
  /// the one in front of it, where there is one from `p` on.
  [[nodiscard]] const char* next_watched(const char* p, const char* end,
                                         const char*& before) const {
    while (p != end) {
      const auto lead = static_cast<unsigned char>(*p);
      if (lead < 0x80) {
        while (end - p > 8) {
          std::uint64_t bytes = 0;
          std::memcpy(&bytes, p, sizeof bytes);
          if ((bytes & 0x8080'8080'8080'8080) != 0) break;
          p += 8;
          before = p - 1;
        }
        if (static_cast<unsigned char>(*p) >= 0x80) continue;
        before = p++;
        continue;
      }
      const code_point point = decode_utf8(p, end);
      if (data_->needs_a_look(point.value)) return p;
      before = p;
      p += point.bytes;
    }
    return p;
  }

  [[nodiscard]] const char* after_watched(const char* p, const char* end) const {
    while (p != end) {
      const code_point point = decode_utf8(p, end);
      if (!data_->needs_a_look(point.value)) break;
      p += point.bytes;
    }
    return p;
  }

  void append_composed(const char* p, const char* end, std::string& out) {
    points_.clear();
    while (p != end) {
      const code_point point = decode_utf8(p, end);
      normalization_data::decompose(point.value, points_);
      p += point.bytes;
    }
    order_marks();
    std::size_t kept = 0;
    bool has_starter = false;
    std::size_t starter = 0;
    std::uint32_t last_class = 0;
    for (const std::uint32_t value : points_) {
      const std::uint32_t own_class = normalization_data::combining_class(value);
      // What lies between a starter and a mark of no higher class keeps them apart.
      if (has_starter && (kept == starter + 1 || last_class < own_class)) {
        const std::uint32_t composed = data_->compose(points_[starter], value);
        if (composed != 0) {
          points_[starter] = composed;
          continue;
        }
      }
      if (own_class == 0) {
        starter = kept;
        has_starter = true;
      }
      last_class = own_class;
      points_[kept++] = value;
    }
    for (std::size_t i = 0; i < kept; ++i) append_utf8(out, points_[i]);
  }

  /// Runs of code points with a combining class go in the order of it.
  void order_marks() {
    const auto is_starter = [](std::uint32_t value) {
      return normalization_data::combining_class(value) == 0;
    };
    for (auto first = points_.begin(); first != points_.end();) {
      first = std::find_if_not(first, points_.end(), is_starter);
      const auto last = std::find_if(first, points_.end(), is_starter);
      std::stable_sort(first, last, [](std::uint32_t a, std::uint32_t b) {
        return normalization_data::combining_class(a) < normalization_data::combining_class(b);
      });
      first = last;
    }
  }

  const normalization_data* data_ = &normalization_data::table();
  std::vector<std::uint32_t> points_;
};

}  // namespace detail

/// `text` in normalization form C, with the compositions and combining classes of Unicode 9 (those
/// of the tokenizers that ask for it). Bytes that are no UTF-8 stay as they are and where they are.
[[nodiscard]] inline std::string normalize_nfc(std::string_view text) {
  std::string storage;
  return std::string(detail::nfc_normalizer().normalize(text, storage));
}

}  // namespace lanepack::inline LANEPACK_ABI
