#pragma once

/// @file
/// Documents found in the bytes of a text file, one range of it at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lanepack/core/config.hpp>
#include <lanepack/core/file.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a document of a text file is.
enum class text_unit : std::uint8_t {
  /// The whole file.
  file,
  /// Lines up to the next empty one; the end of the last line is not part of it.
  paragraph,
  /// A line without its end.
  line,
};

/// A document found in a file.
struct text_extent {
  /// First byte in the file.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  /// Line ends between the start of the range and the document.
  std::uint64_t lines_before = 0;
};

namespace detail {

/// Bytes of the byte order mark that a file begins with, 0 or 3.
[[nodiscard]] inline std::uint64_t byte_order_mark(const input_file& file) {
  std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), 3)), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(start)));
  return start == "\xef\xbb\xbf" ? 3 : 0;
}

}  // namespace detail

/// Finds the lines or paragraphs that begin in ranges of a file.
///
/// Every document of the file is found in exactly one of the ranges that it is cut into, however
/// they are cut. A line ends with byte 0x0A, which a carriage return may precede, or with the file;
/// a document of nothing but spaces, tabs and line ends is passed over, as is a byte order mark at
/// the start of the file.
/// @complexity  O(bytes), memory for the range and for the longest document in it.
/// @thread_safety  None: one thread per object.
class text_scan {
 public:
  /// @param max_document_bytes  At least 1. No more of a longer document is held in memory.
  text_scan(const input_file& file, text_unit unit, std::uint64_t max_document_bytes)
      : file_(file),
        unit_(unit),
        max_document_bytes_(max_document_bytes),
        start_(detail::byte_order_mark(file)) {
    LANEPACK_ASSERT(unit != text_unit::file && max_document_bytes != 0);
  }

  /// First byte of the file that can belong to a document.
  [[nodiscard]] std::uint64_t start() const noexcept { return start_; }

  /// Calls `take(extent, text)` for every document that begins in [begin, end), in order, and
  /// `too_long(extent)` for one that is longer than it may be; its `bytes` are those seen of it.
  /// `end` is at most the size of the file.
  /// @return  Line ends in [begin, end).
  /// @throws data_error  The file cannot be read.
  template <class Take, class TooLong>
  std::uint64_t run(std::uint64_t begin, std::uint64_t end, Take&& take, TooLong&& too_long) {
    begin = std::max(begin, start_);
    if (begin >= end) return 0;
    // What stands in front tells whether a document begins with the range: a line end, and for
    // paragraphs an empty line.
    const std::uint64_t before = std::min<std::uint64_t>(begin - start_, 3);
    first_ = begin - before;
    // A byte more than the range: a carriage return at its end may begin an empty line.
    buffer_.resize(static_cast<std::size_t>(std::min(end + 1, file_.size()) - first_));
    file_.read_at(first_, std::as_writable_bytes(std::span(buffer_)));
    const auto base = static_cast<std::size_t>(before);
    const auto limit = static_cast<std::size_t>(end - first_);
    counted_ = base;
    lines_ = 0;
    std::size_t at = first_line(base);
    bool after_empty = follows_empty_line(at);
    while (at < limit) {
      const std::size_t next = next_line(at);
      if (unit_ == text_unit::paragraph && (is_empty(at) || !after_empty)) {
        after_empty = is_empty(at);
        at = next;
        continue;
      }
      std::size_t stop = at;
      if (!find_stop(at, stop)) {
        // The rest of the range belongs to it.
        too_long(extent(at, buffer_.size() - at));
        break;
      }
      const std::string_view text = std::string_view(buffer_).substr(at, stop - at);
      if (text.find_first_not_of(" \t\r\n") != npos) {
        if (text.size() > max_document_bytes_) {
          too_long(extent(at, text.size()));
        } else {
          take(extent(at, text.size()), text);
        }
      }
      after_empty = false;
      at = next_line(stop);
    }
    return count_to(limit);
  }

 private:
  static constexpr std::size_t npos = std::string_view::npos;

  [[nodiscard]] text_extent extent(std::size_t at, std::size_t bytes) {
    return {.offset = first_ + at, .bytes = bytes, .lines_before = count_to(at)};
  }

  /// Line ends from the start of the range to `at`, which never goes back.
  std::uint64_t count_to(std::size_t at) {
    if (at > counted_) {
      const auto begin = buffer_.begin();
      lines_ +=
          static_cast<std::uint64_t>(std::count(begin + static_cast<std::ptrdiff_t>(counted_),
                                                begin + static_cast<std::ptrdiff_t>(at), '\n'));
      counted_ = at;
    }
    return lines_;
  }

  /// The first place from `base` on where a line begins.
  [[nodiscard]] std::size_t first_line(std::size_t base) const {
    if (base == 0 || buffer_[base - 1] == '\n') return base;
    return next_line(base);
  }

  /// Where the line after the one at `at` begins, as far as the buffer goes.
  [[nodiscard]] std::size_t next_line(std::size_t at) const {
    const std::size_t newline = std::string_view(buffer_).find('\n', at);
    return newline == npos ? buffer_.size() : newline + 1;
  }

  [[nodiscard]] bool is_empty(std::size_t at) const {
    const std::string_view text = std::string_view(buffer_).substr(at);
    return text.starts_with('\n') || text.starts_with("\r\n");
  }

  /// Whether the line in front of the one at `at` is empty, or there is none.
  [[nodiscard]] bool follows_empty_line(std::size_t at) const {
    if (at == 0) return true;
    std::string_view before = std::string_view(buffer_).substr(0, at - 1);
    if (before.ends_with('\r')) before.remove_suffix(1);
    return before.empty() ? first_ == start_ : before.back() == '\n';
  }

  /// Finds where the document at `at` ends, reading on as far as it may go; false where it is
  /// longer.
  bool find_stop(std::size_t at, std::size_t& stop) {
    std::size_t from = at;
    for (;;) {
      const std::size_t newline = std::string_view(buffer_).find('\n', from);
      const bool is_last = first_ + buffer_.size() == file_.size();
      if (newline == npos) {
        if (is_last) {
          stop = without_return(at, buffer_.size());
          return true;
        }
        from = buffer_.size();
        if (!extend(at)) return false;
        continue;
      }
      if (unit_ == text_unit::paragraph && !ends_paragraph(newline)) {
        // Two bytes more tell whether the next line is empty.
        if (newline + 2 >= buffer_.size() && !is_last) {
          if (!extend(at)) return false;
        } else {
          from = newline + 1;
        }
        continue;
      }
      stop = without_return(at, newline);
      return true;
    }
  }

  /// Whether an empty line or the end of the file follows this line end.
  [[nodiscard]] bool ends_paragraph(std::size_t newline) const {
    if (newline + 1 == buffer_.size()) return first_ + buffer_.size() == file_.size();
    return is_empty(newline + 1);
  }

  [[nodiscard]] std::size_t without_return(std::size_t at, std::size_t stop) const {
    return stop > at && buffer_[stop - 1] == '\r' ? stop - 1 : stop;
  }

  /// Reads on behind the buffer; false where the document at `at` is too long by now.
  bool extend(std::size_t at) {
    const std::size_t old = buffer_.size();
    // The longest document may have a line end and the start of an empty line behind it.
    const std::uint64_t most = max_document_bytes_ + 4;
    if (old - at >= most) return false;
    const std::uint64_t left = file_.size() - first_ - old;
    const std::uint64_t wanted = std::max<std::uint64_t>(old - at, 4096);
    buffer_.resize(old + static_cast<std::size_t>(std::min({left, wanted, most - (old - at)})));
    file_.read_at(first_ + old, std::as_writable_bytes(std::span(buffer_)).subspan(old));
    return true;
  }

  const input_file& file_;
  text_unit unit_;
  std::uint64_t max_document_bytes_;
  std::uint64_t start_;
  std::uint64_t first_ = 0;
  std::size_t counted_ = 0;
  std::uint64_t lines_ = 0;
  std::string buffer_;
};

}  // namespace lanepack::inline LANEPACK_ABI
