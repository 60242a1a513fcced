#pragma once

/// @file
/// Tar archives: the members of an archive and where their bytes lie.
///
/// Read are ustar (POSIX.1-1988), pax (POSIX.1-2001: `path` and `size`) and GNU tar's long names.
/// Sources: POSIX.1-2017, "pax"; GNU tar manual, "Basic Tar Format".

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/file_window.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A regular file in an archive.
struct tar_member {
  std::string name;
  /// Byte of its header in the archive.
  std::uint64_t header_offset = 0;
  /// Its first byte in the archive.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const tar_member&, const tar_member&) = default;
};

/// Goes through the members of an archive from front to back without reading their bytes.
///
/// Directories, links and devices are passed over. An archive ends with a block of zeros, behind
/// which there is nothing else; one without it was cut short.
/// @thread_safety  None: one thread per object.
class tar_reader {
 public:
  /// @param file  Must outlive the reader.
  explicit tar_reader(const input_file& file) : window_(file) {}

  /// The next regular file, or nullopt at the archive's end.
  /// @throws data_error  The archive is damaged, cut short or goes on behind its end; or a member
  ///                     is a sparse file.
  [[nodiscard]] std::optional<tar_member> next() {
    std::optional<std::string> name;
    std::optional<std::uint64_t> size;
    while (true) {
      const std::uint64_t at = position_;
      const std::array<std::byte, block_bytes> header = read_block(at);
      if (is_zero(header)) {
        if (name || size) fail(at, "found the archive's end, expected the member of a long name");
        check_end(at);
        return std::nullopt;
      }
      check_sum(at, header);
      const char type = character(header, 156);
      const bool extends = type == 'L' || type == 'K' || type == 'x' || type == 'g';
      const std::uint64_t stored = number(at, header, 124, 12);
      std::uint64_t bytes = size && !extends ? *size : stored;
      // What is no file has no bytes, whatever its header says.
      if (type >= '1' && type <= '6') bytes = 0;
      const std::uint64_t first = at + block_bytes;
      if (bytes > window_.file().size() - first) {
        fail(at, "found a member of " + std::to_string(bytes) + " bytes, expected at most the " +
                     std::to_string(window_.file().size() - first) + " that follow");
      }
      position_ = first + round_up(bytes, block_bytes);
      if (extends) {
        extend(type, first, bytes, name, size);
        continue;
      }
      if (type == 'S') fail(at, "found a sparse file, expected its bytes");
      const bool is_file = type == '0' || type == '\0' || type == '7';
      if (!name) name = name_in(header);
      // A name that ends so was a directory before there were types.
      if (is_file && !name->ends_with('/')) {
        return tar_member{
            .name = std::move(*name), .header_offset = at, .offset = first, .bytes = bytes};
      }
      name.reset();
      size.reset();
    }
  }

 private:
  static constexpr std::size_t block_bytes = 512;
  using block = std::array<std::byte, block_bytes>;

  [[noreturn]] LANEPACK_COLD void fail(std::uint64_t offset, const std::string& what) const {
    detail::throw_file_error_at(window_.file().path(), offset, "tar archive: " + what);
  }

  [[nodiscard]] block read_block(std::uint64_t at) {
    const std::uint64_t size = window_.file().size();
    if (at > size || size - at < block_bytes) {
      fail(std::min(at, size),
           "found the end of the file, expected another header or the block of "
           "zeros that ends an archive");
    }
    block header;
    const std::span<const std::byte> found = window_.view(at, block_bytes);
    std::copy(found.begin(), found.end(), header.begin());
    return header;
  }

  [[nodiscard]] static bool is_zero(std::span<const std::byte> bytes) noexcept {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte value) { return value == std::byte{0}; });
  }

  void check_end(std::uint64_t at) {
    const std::uint64_t size = window_.file().size();
    while (at < size) {
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(size - at, std::uint64_t{1} << 16));
      const std::span<const std::byte> bytes = window_.view(at, part);
      if (!is_zero(bytes)) {
        const auto found = std::find_if(bytes.begin(), bytes.end(),
                                        [](std::byte value) { return value != std::byte{0}; });
        fail(at + static_cast<std::uint64_t>(found - bytes.begin()),
             "found more behind the archive's end, expected zeros; archives that were joined have "
             "to be taken apart");
      }
      at += part;
    }
  }

  void check_sum(std::uint64_t at, const block& header) const {
    // The sum of all bytes, with spaces in its own place; old programs took them as signed.
    std::int64_t plain = 0;
    std::int64_t as_signed = 0;
    for (std::size_t i = 0; i < block_bytes; ++i) {
      const bool own = i >= 148 && i < 156;
      const auto value = own ? 32 : std::to_integer<std::int64_t>(header[i]);
      plain += value;
      as_signed += value < 128 ? value : value - 256;
    }
    const auto stored = static_cast<std::int64_t>(number(at, header, 148, 8));
    if (stored == plain || stored == as_signed) return;
    fail(at, "found a header with checksum " + std::to_string(stored) + ", expected " +
                 std::to_string(plain));
  }

  [[nodiscard]] static char character(const block& header, std::size_t at) noexcept {
    return static_cast<char>(std::to_integer<unsigned char>(header[at]));
  }

  /// Octal digits, or a binary number where the top bit is set (GNU).
  [[nodiscard]] std::uint64_t number(std::uint64_t at, const block& header, std::size_t first,
                                     std::size_t count) const {
    const auto bytes = std::span(header).subspan(first, count);
    std::uint64_t value = 0;
    if (std::to_integer<unsigned>(bytes[0]) >= 128) {
      bool fits = bytes[0] == std::byte{128};
      for (std::size_t i = 1; i < count; ++i) {
        fits = fits && value >> 55 == 0;
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
      }
      if (!fits) fail(at + first, "found a number that is negative or above 2^63");
      return value;
    }
    std::size_t i = 0;
    while (i < count && character(header, first + i) == ' ') ++i;
    for (; i < count; ++i) {
      const char digit = character(header, first + i);
      if (digit == ' ' || digit == '\0') break;
      if (digit < '0' || digit > '7') {
        fail(at + first + i, "found byte " + std::to_string(static_cast<unsigned char>(digit)) +
                                 " in a number, expected octal digits");
      }
      value = value << 3 | static_cast<std::uint64_t>(digit - '0');
    }
    return value;
  }

  [[nodiscard]] static std::string text(const block& header, std::size_t first, std::size_t count) {
    std::string found(reinterpret_cast<const char*>(header.data()) + first, count);
    found.resize(std::min(found.find('\0'), found.size()));
    return found;
  }

  [[nodiscard]] static std::string name_in(const block& header) {
    std::string name = text(header, 0, 100);
    // GNU's own format has other things in the place of the prefix.
    if (text(header, 257, 6) != "ustar") return name;
    const std::string prefix = text(header, 345, 155);
    return prefix.empty() ? name : prefix + "/" + name;
  }

  /// Takes what a header says of the member that follows it.
  void extend(char type, std::uint64_t first, std::uint64_t bytes, std::optional<std::string>& name,
              std::optional<std::uint64_t>& size) {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    if (bytes > most) {
      fail(first - block_bytes, "found an extended header of " + std::to_string(bytes) +
                                    " bytes, expected at most " + std::to_string(most));
    }
    const std::span<const std::byte> found = window_.view(first, static_cast<std::size_t>(bytes));
    const std::string text(reinterpret_cast<const char*>(found.data()), found.size());
    if (type == 'L') {
      name = text.substr(0, text.find('\0'));
    } else if (type == 'x' || type == 'g') {
      read_records(text, first, type == 'g', name, size);
    }
  }

  /// Records "length key=value\n", the length counting all of it.
  void read_records(std::string_view text, std::uint64_t first, bool global,
                    std::optional<std::string>& name, std::optional<std::uint64_t>& size) const {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t space = text.find(' ', at);
      const std::optional<std::uint64_t> length =
          space == std::string_view::npos ? std::nullopt : decimal(text.substr(at, space - at));
      if (!length || *length > text.size() - at || at + *length <= space + 1 ||
          text[at + static_cast<std::size_t>(*length) - 1] != '\n') {
        fail(first + at,
             "found a damaged record of a pax header, expected its length, a key and "
             "a value");
      }
      const std::string_view record =
          text.substr(space + 1, at + static_cast<std::size_t>(*length) - space - 2);
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos) {
        fail(first + space, "found a record of a pax header without '='");
      }
      const std::string_view key = record.substr(0, equals);
      const std::string_view value = record.substr(equals + 1);
      const bool matters = key == "path" || key == "size";
      if (key.starts_with("GNU.sparse."))
        fail(first + at, "found a sparse file, expected its bytes");
      if (global && matters) {
        fail(first + at, "found a " + std::string(key) + " for all members, expected one for each");
      }
      if (key == "path") name = std::string(value);
      if (key == "size") {
        size = decimal(value);
        if (!size) {
          fail(first + space, "found the size " + detail::quoted(value.substr(0, 40)) +
                                  " in a pax header, expected a number below 2^63");
        }
      }
      at += static_cast<std::size_t>(*length);
    }
  }

  [[nodiscard]] static std::optional<std::uint64_t> decimal(std::string_view text) noexcept {
    std::uint64_t value = 0;
    if (text.empty() || text.size() > 18) return std::nullopt;
    for (const char digit : text) {
      if (digit < '0' || digit > '9') return std::nullopt;
      value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    }
    return value;
  }

  detail::file_window window_;
  std::uint64_t position_ = 0;
};

}  // namespace lanepack::inline LANEPACK_ABI
