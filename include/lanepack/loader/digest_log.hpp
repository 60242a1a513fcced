#pragma once

/// @file
/// `digest_log`: a file of the digests of a rank's packs, for `lanepack-verify` to compare runs by.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/loader/step.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a digest log says of one pack.
struct logged_pack {
  step_index step = 0;
  lane_index lane = 0;
  digest128 digest;
  /// Of every record: what it is, the tokens delivered of it, and a digest of their bytes.
  std::span<const record_ref> records;
  std::span<const std::uint64_t> tokens;
  std::span<const digest128> record_digests;
};

/// Appends the packs of a rank's steps to a file of JSON Lines, one line a pack:
/// `{"step":0,"lane":3,"digest":"<32 hex digits>","records":[ids],"epochs":[...],"tokens":[...],
/// "record_digests":["<16 hex digits>",...]}`.
///
/// The lines of all ranks together are the log of a run; they do not depend on the number of ranks.
/// The lines of a step are written at once and are in the file when `add` returns, so that a
/// process that is killed leaves whole steps; what it left of a line is removed when the file is
/// opened again. A run that goes on from an earlier state may write steps again: they are the same.
/// @complexity     About 40 bytes a record.
/// @thread_safety  None: one thread per object.
class digest_log {
 public:
  /// Opens or creates the file.
  /// @throws data_error  It cannot be opened or read.
  explicit digest_log(std::string path) : path_(std::move(path)) {
    fd_ =
        detail::unique_fd(detail::open_file(path_, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!fd_.is_open()) detail::throw_file_error(path_, "open the digest log", errno);
    remove_unfinished_line();
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Appends the packs of a step whose micro-batches were all taken.
  /// @throws  state_error as `loaded_step::pack_digests`; data_error where the file cannot be
  ///          written.
  template <class Layout>
  void add(const loaded_step<Layout>& step) {
    const std::span<const digest128> digests = step.pack_digests();
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const delivered_pack& pack = step.packs()[i];
      const std::size_t count = pack.last - pack.first;
      append({.step = step.number(),
              .lane = pack.lane,
              .digest = digests[i],
              .records = step.records().subspan(pack.first, count),
              .tokens = step.record_tokens().subspan(pack.first, count),
              .record_digests = step.record_digests().subspan(pack.first, count)});
    }
    write();
  }

  /// Appends one pack.
  /// @throws  data_error  The file cannot be written.
  void add(const logged_pack& pack) {
    append(pack);
    write();
  }

 private:
  void append(const logged_pack& pack) {
    text_ += "{\"step\":" + std::to_string(pack.step) + ",\"lane\":" + std::to_string(pack.lane) +
             ",\"digest\":\"" + pack.digest.hex() + "\"";
    list("records", pack.records, [](const record_ref& r) { return std::to_string(r.id); });
    list("epochs", pack.records, [](const record_ref& r) { return std::to_string(r.epoch); });
    list("tokens", pack.tokens, [](std::uint64_t tokens) { return std::to_string(tokens); });
    list("record_digests", pack.record_digests,
         [](const digest128& digest) { return "\"" + digest.hex().substr(16) + "\""; });
    text_ += "}\n";
  }

  template <class Value, class Text>
  void list(const char* key, std::span<const Value> values, Text&& text) {
    text_ += ",\"" + std::string(key) + "\":[";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i != 0) text_ += ',';
      text_ += text(values[i]);
    }
    text_ += ']';
  }

  void write() {
    std::string_view left = text_;
    while (!left.empty()) {
      const ::ssize_t put = ::write(fd_.value(), left.data(), left.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) detail::throw_file_error(path_, "write the digest log", errno);
      left.remove_prefix(static_cast<std::size_t>(put));
    }
    text_.clear();
  }

  void remove_unfinished_line() {
    ::off_t end = ::lseek(fd_.value(), 0, SEEK_END);
    std::array<char, 4096> block;
    while (end > 0) {
      const ::off_t first =
          end > static_cast<::off_t>(block.size()) ? end - static_cast<::off_t>(block.size()) : 0;
      const ::ssize_t got =
          ::pread(fd_.value(), block.data(), static_cast<std::size_t>(end - first), first);
      if (got < 0 && errno == EINTR) continue;
      if (got != end - first) {
        detail::throw_file_error(path_, "read the digest log", got < 0 ? errno : EIO);
      }
      const std::size_t newline =
          std::string_view(block.data(), static_cast<std::size_t>(got)).rfind('\n');
      if (newline != std::string_view::npos) {
        end = first + static_cast<::off_t>(newline) + 1;
        break;
      }
      end = first;
    }
    if (end >= 0 && ::ftruncate(fd_.value(), end) == 0) return;
    // Pipes and devices have no end to look at.
    if (errno != EINVAL && errno != ESPIPE) {
      detail::throw_file_error(path_, "cut the digest log", errno);
    }
  }

  std::string path_;
  detail::unique_fd fd_;
  std::string text_;
};

}  // namespace lanepack::inline LANEPACK_ABI
