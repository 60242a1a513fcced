#pragma once

/// @file
/// Files as the library reads and writes them: positioned reads, and writes that are all or
/// nothing.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file_access.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A range of a file and the memory that receives it.
struct file_range {
  /// First byte of the range.
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

namespace detail {

inline std::string system_message(int code) {
  return std::generic_category().message(code);
}

[[noreturn]] LANEPACK_COLD inline void throw_file_error(const std::string& path,
                                                        const std::string& action, int code) {
  throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}},
                   "cannot " + action + ": " + system_message(code));
}

[[noreturn]] LANEPACK_COLD inline void throw_file_error_at(const std::string& path,
                                                           std::uint64_t offset,
                                                           const std::string& what) {
  throw_data_error({.path = path, .byte_offset = offset, .record = {}, .line = {}}, what);
}

inline file_identity identity_of(const struct ::stat& status) noexcept {
#if defined(__APPLE__)
  const struct ::timespec time = status.st_mtimespec;
#else
  const struct ::timespec time = status.st_mtim;
#endif
  return {static_cast<std::uint64_t>(status.st_size),
          static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 +
              static_cast<std::int64_t>(time.tv_nsec)};
}

/// Closes a descriptor when it goes out of scope.
class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~unique_fd() { close(); }

  [[nodiscard]] int value() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  void close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

/// `open` that goes on after a signal.
inline int open_file(const std::string& path, int flags, ::mode_t mode) noexcept {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// What a file that is not a regular one is.
inline const char* kind_of_file(::mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "something else";
}

/// Throws where a file that is to appear at `path` would take the place of something that is no
/// regular file: a device would be gone for every program.
inline void check_replaceable(const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}},
                   std::string("cannot create the file: found ") + kind_of_file(status.st_mode) +
                       ", expected a regular file or nothing");
}

}  // namespace detail

/// Size and time of the file at `path`, or nullopt where there is no regular file to be seen.
[[nodiscard]] inline std::optional<file_identity> identify_file(const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return detail::identity_of(status);
}

/// A file open for reading at any 64-bit offset.
/// @thread_safety  Const members may be called by any number of threads.
class input_file {
 public:
  /// Opens the regular file at `path`. Waits for nobody: a FIFO is refused at once.
  /// @throws data_error  It cannot be opened or mapped, is not a regular file, or is one that the
  ///                     system makes as it is read and whose size it does not know (/proc).
  explicit input_file(std::string path, file_access access = file_access::positioned)
      : path_(std::move(path)),
        fd_(detail::open_file(path_, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0)) {
    if (!fd_.is_open()) detail::throw_file_error(path_, "open the file", errno);
    struct ::stat status {};
    if (::fstat(fd_.value(), &status) != 0) {
      detail::throw_file_error(path_, "read the file's size", errno);
    }
    if (!S_ISREG(status.st_mode)) {
      detail::throw_data_error({.path = path_, .byte_offset = {}, .record = {}, .line = {}},
                               std::string("cannot read the file: found ") +
                                   detail::kind_of_file(status.st_mode) +
                                   ", expected a regular file");
    }
    identity_ = detail::identity_of(status);
    check_known_size();
    had_links_ = status.st_nlink > 0;
    if (access == file_access::mapped) map();
  }

  input_file(input_file&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::move(other.fd_)),
        identity_(other.identity_),
        had_links_(other.had_links_),
        mapping_(std::exchange(other.mapping_, nullptr)),
        try_cached_(other.try_cached_.load(std::memory_order_relaxed)) {}
  input_file& operator=(input_file&& other) noexcept {
    if (this != &other) {
      unmap();
      path_ = std::move(other.path_);
      fd_ = std::move(other.fd_);
      identity_ = other.identity_;
      had_links_ = other.had_links_;
      mapping_ = std::exchange(other.mapping_, nullptr);
      try_cached_.store(other.try_cached_.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
    }
    return *this;
  }
  ~input_file() { unmap(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes of the file when it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return identity_.size; }
  /// Size and time of the file when it was opened.
  [[nodiscard]] const file_identity& identity() const noexcept { return identity_; }
  [[nodiscard]] file_access access() const noexcept {
    return mapping_ != nullptr ? file_access::mapped : file_access::positioned;
  }
  /// All bytes of a mapped file; nullptr where the file is not mapped.
  [[nodiscard]] const std::byte* mapping() const noexcept { return mapping_; }

  /// Reports a range that does not lie in the file.
  /// @throws data_error  It does not.
  void check_range(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset <= identity_.size && bytes <= identity_.size - offset) return;
    detail::throw_file_error_at(path_, offset,
                                "found a file of " + std::to_string(identity_.size) +
                                    " bytes, expected " + std::to_string(bytes) +
                                    " bytes from here on");
  }

  /// Fills `out` with the bytes from `offset` on.
  /// @throws data_error  The file has no such range (any more), or the read failed.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const {
    check_range(offset, out.size());
    if (out.empty()) return;
    if (mapping_ != nullptr) {
      std::memcpy(out.data(), mapping_ + offset, out.size());
      return;
    }
    while (!out.empty()) {
      const ::ssize_t got =
          ::pread(fd_.value(), out.data(), out.size(), static_cast<::off_t>(offset));
      const std::size_t bytes = accepted(got, offset);
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

  /// Fills every range, joining neighbours into one system call, and calls `done(first, last)` when
  /// ranges [first, last) are filled, while they are still in the processor's caches.
  ///
  /// What the page cache holds is read first; the rest is announced to the kernel, which fetches it
  /// side by side, and read after that.
  /// @param ranges  In order of offset, else neighbours are not seen.
  /// @throws data_error  As `read_at`.
  /// @complexity  O(bytes), at most a system call a range.
  template <class Done>
  void read_ranges(std::span<const file_range> ranges, Done&& done) const {
    std::vector<joined> waiting;
    std::size_t first = 0;
    std::size_t filled = 0;
    std::uint64_t filled_bytes = 0;
    const auto hand_over = [&](std::size_t next) {
      if (first != filled) done(first, filled);
      first = next;
      filled = next;
      filled_bytes = 0;
    };
    while (filled < ranges.size()) {
      if (mapping_ != nullptr) {
        read_at(ranges[filled].offset, ranges[filled].out);
        filled_bytes += ranges[filled].out.size();
        ++filled;
      } else {
        const joined group = join(ranges, filled);
        if (!read_joined(ranges, group, ask_for_cached())) {
          cached_in_a_row_.store(0, std::memory_order_relaxed);
          announce(group.offset, group.bytes);
          waiting.push_back(group);
          hand_over(group.last);
          continue;
        }
        filled_bytes += group.bytes;
        filled = group.last;
      }
      // Not one by one: the processor then overlaps the cache misses of several copies.
      if (filled_bytes >= handed_over_bytes) hand_over(filled);
    }
    hand_over(filled);
    for (const joined& group : waiting) {
      read_joined(ranges, group, false);
      done(group.first, group.last);
    }
  }

  /// Reports a file that was cut, written or replaced since it was opened.
  ///
  /// A change that keeps the size and falls into the same tick of the file system's clock as the
  /// last change before opening cannot be seen.
  /// @throws data_error  It was.
  /// @complexity  One system call.
  void check_unchanged() const {
    struct ::stat status {};
    if (::fstat(fd_.value(), &status) != 0) {
      detail::throw_file_error(path_, "read the file's size", errno);
    }
    const file_identity now = detail::identity_of(status);
    if (now == identity_ && (status.st_nlink > 0 || !had_links_)) return;
    throw_changed(now);
  }

 private:
  static constexpr std::size_t max_parts = 128;
  static constexpr std::size_t max_joined_bytes = std::size_t{1} << 18;
  static constexpr std::size_t handed_over_bytes = std::size_t{1} << 14;
  // A hole up to this size costs less to read than another system call.
  static constexpr std::size_t max_hole_bytes = 1024;

  struct joined {
    std::size_t first = 0;
    std::size_t last = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::size_t parts = 0;
  };

  void check_known_size() const {
    std::byte byte{};
    if (identity_.size != 0 || ::pread(fd_.value(), &byte, 1, 0) <= 0) return;
    detail::throw_file_error_at(path_, 0,
                                "found content in a file of 0 bytes, expected one whose size the "
                                "system knows: copy it to a regular file");
  }

  void map() {
    if (identity_.size == 0) return;
    if (identity_.size > std::numeric_limits<std::size_t>::max()) {
      detail::throw_file_error(path_, "map the file", EFBIG);
    }
    void* address = ::mmap(nullptr, static_cast<std::size_t>(identity_.size), PROT_READ, MAP_SHARED,
                           fd_.value(), 0);
    if (address == MAP_FAILED) detail::throw_file_error(path_, "map the file", errno);
    mapping_ = static_cast<const std::byte*>(address);
  }

  void unmap() noexcept {
    if (mapping_ != nullptr) {
      ::munmap(const_cast<std::byte*>(mapping_), static_cast<std::size_t>(identity_.size));
    }
    mapping_ = nullptr;
  }

  /// Bytes that a read call delivered; 0 for one that a signal broke off.
  std::size_t accepted(::ssize_t got, std::uint64_t offset) const {
    if (got > 0) return static_cast<std::size_t>(got);
    if (got < 0 && errno == EINTR) return 0;
    if (got < 0) {
      detail::throw_file_error_at(path_, offset,
                                  "cannot read the file: " + detail::system_message(errno));
    }
    throw file_changed({.path = path_, .byte_offset = offset, .record = {}, .line = {}},
                       "the file ends here, expected " + std::to_string(identity_.size) +
                           " bytes: it was cut short after it was opened");
  }

  joined join(std::span<const file_range> ranges, std::size_t first) const {
    joined group;
    group.first = first;
    group.last = first + 1;
    group.offset = ranges[first].offset;
    group.bytes = ranges[first].out.size();
    group.parts = 1;
    check_range(group.offset, group.bytes);
    while (group.last < ranges.size() && group.parts + 2 <= max_parts) {
      const file_range& next = ranges[group.last];
      const std::uint64_t end = group.offset + group.bytes;
      if (next.offset < end || next.offset - end > max_hole_bytes) break;
      const std::uint64_t hole = next.offset - end;
      if (group.bytes + hole + next.out.size() > max_joined_bytes) break;
      check_range(next.offset, next.out.size());
      group.bytes += hole + next.out.size();
      group.parts += hole != 0 ? 2 : 1;
      ++group.last;
    }
    return group;
  }

  /// Whether the next read asks for what the page cache holds alone. That costs a fifth of a
  /// microsecond a read, so it is seldom done while everything is there.
  bool ask_for_cached() const noexcept {
    constexpr std::uint32_t trusted = 256;
    constexpr std::uint32_t asked_one_in = 8;
    if (!try_cached_.load(std::memory_order_relaxed)) return false;
    const std::uint32_t reads = cached_in_a_row_.load(std::memory_order_relaxed);
    cached_in_a_row_.store(reads + 1 == 2 * trusted ? trusted : reads + 1,
                           std::memory_order_relaxed);
    return reads < trusted || reads % asked_one_in == 0;
  }

  /// False where the read would have to wait for the device and `cached_only` is set.
  bool read_joined(std::span<const file_range> ranges, const joined& group,
                   bool cached_only) const {
    std::array<std::byte, max_hole_bytes> hole;
    std::array<::iovec, max_parts> parts;
    std::size_t count = 0;
    std::uint64_t end = group.offset;
    for (std::size_t i = group.first; i < group.last; ++i) {
      if (ranges[i].offset != end) {
        parts[count++] = {hole.data(), static_cast<std::size_t>(ranges[i].offset - end)};
      }
      if (!ranges[i].out.empty()) parts[count++] = {ranges[i].out.data(), ranges[i].out.size()};
      end = ranges[i].offset + ranges[i].out.size();
    }
    std::span<::iovec> left(parts.data(), count);
    std::uint64_t offset = group.offset;
    while (!left.empty()) {
      const ::ssize_t got = read_parts(left, offset, cached_only);
      if (got < 0 && cached_only) {
        if (errno == EAGAIN) return false;
        if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) {
          try_cached_.store(false, std::memory_order_relaxed);
          cached_only = false;
          continue;
        }
      }
      std::size_t bytes = accepted(got, offset);
      offset += bytes;
      while (!left.empty() && bytes >= left.front().iov_len) {
        bytes -= left.front().iov_len;
        left = left.subspan(1);
      }
      if (bytes != 0) {
        left.front().iov_base = static_cast<std::byte*>(left.front().iov_base) + bytes;
        left.front().iov_len -= bytes;
      }
    }
    return true;
  }

  ::ssize_t read_parts(std::span<::iovec> parts, std::uint64_t offset, bool cached_only) const {
    const auto position = static_cast<::off_t>(offset);
#if defined(RWF_NOWAIT)
    if (cached_only) {
      return ::preadv2(fd_.value(), parts.data(), static_cast<int>(parts.size()), position,
                       RWF_NOWAIT);
    }
#else
    static_cast<void>(cached_only);
#endif
    if (parts.size() == 1) {
      return ::pread(fd_.value(), parts[0].iov_base, parts[0].iov_len, position);
    }
    return ::preadv(fd_.value(), parts.data(), static_cast<int>(parts.size()), position);
  }

  void announce(std::uint64_t offset, std::uint64_t bytes) const noexcept {
#if defined(POSIX_FADV_WILLNEED)
    // Only advice: where it fails, the read that follows waits longer.
    static_cast<void>(::posix_fadvise(fd_.value(), static_cast<::off_t>(offset),
                                      static_cast<::off_t>(bytes), POSIX_FADV_WILLNEED));
#else
    static_cast<void>(offset);
    static_cast<void>(bytes);
#endif
  }

  [[noreturn]] LANEPACK_COLD void throw_changed(const file_identity& now) const {
    if (now.size != identity_.size) {
      throw file_changed({.path = path_,
                          .byte_offset = std::min(now.size, identity_.size),
                          .record = {},
                          .line = {}},
                         "found a file of " + std::to_string(now.size) + " bytes, expected " +
                             std::to_string(identity_.size) + ": it changed after it was opened");
    }
    throw file_changed({.path = path_, .byte_offset = {}, .record = {}, .line = {}},
                       now == identity_
                           ? std::string("the file was deleted or replaced after it was opened")
                           : "found a file changed at " + std::to_string(now.mtime_ns) +
                                 " ns, expected " + std::to_string(identity_.mtime_ns) +
                                 " ns: it was written after it was opened");
  }

  std::string path_;
  detail::unique_fd fd_;
  file_identity identity_;
  bool had_links_ = false;
  const std::byte* mapping_ = nullptr;
  /// Cleared where the file system cannot say what is cached.
  mutable std::atomic<bool> try_cached_{true};
  /// Reads since one found something that the page cache did not hold; beyond a number that is
  /// trusted, only where it stands in a cycle of them.
  mutable std::atomic<std::uint32_t> cached_in_a_row_{0};
};

/// A file that appears under its name only when it is complete.
///
/// Bytes go to a temporary file in the same directory; `commit` makes it durable and renames it.
/// @thread_safety  None: one thread per object.
class output_file {
 public:
  /// Creates the temporary file.
  /// @throws data_error  It cannot be created, or there is something at `path` that is no regular
  ///                     file.
  explicit output_file(std::string path) : path_(std::move(path)) {
    detail::check_replaceable(path_);
    static std::atomic<std::uint64_t> serial{0};
    int code = EEXIST;
    // Another host may have the same process number, so a name in use is not a failure.
    for (int attempt = 0; attempt < 10'000 && code == EEXIST; ++attempt) {
      temporary_ = path_ + ".tmp-" + std::to_string(::getpid()) + "-" +
                   std::to_string(serial.fetch_add(1, std::memory_order_relaxed));
      fd_ = detail::unique_fd(
          detail::open_file(temporary_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (fd_.is_open()) return;
      code = errno;
    }
    temporary_.clear();
    detail::throw_file_error(path_, "create the file", code);
  }
  output_file(output_file&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::move(other.fd_)),
        buffer_(std::move(other.buffer_)),
        flushed_(other.flushed_) {}
  output_file& operator=(output_file&&) = delete;
  /// Removes what was not committed.
  ~output_file() { discard(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes appended so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return flushed_ + buffer_.size(); }

  /// Appends bytes.
  /// @throws data_error  The device is full or fails.
  void append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > buffer_bytes) flush();
    if (bytes.size() >= buffer_bytes) {
      write_fully(flushed_, bytes);
      flushed_ += bytes.size();
      return;
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }

  /// Overwrites bytes that were appended before; `offset + bytes.size() <= size()`.
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
    flush();
    write_fully(offset, bytes);
  }

  /// Reads back bytes that were appended before; `offset + out.size() <= size()`.
  void read_back(std::uint64_t offset, std::span<std::byte> out) {
    flush();
    while (!out.empty()) {
      const ::ssize_t got =
          ::pread(fd_.value(), out.data(), out.size(), static_cast<::off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        detail::throw_file_error(temporary_, "read the file back", got < 0 ? errno : EIO);
      }
      offset += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

  /// Makes the contents durable and gives the file its name, replacing what had it before.
  /// @throws data_error  That failed; nothing is left behind.
  void commit() {
    flush();
    if (::fsync(fd_.value()) != 0 && errno != EINVAL && errno != ENOTSUP) {
      fail("write the file");
    }
    fd_.close();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the file");
    temporary_.clear();
    sync_directory();
  }

  /// Removes what was not committed; nothing can be written after that.
  void discard() noexcept {
    fd_.close();
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

  [[noreturn]] LANEPACK_COLD void fail(const std::string& action) {
    const int code = errno;
    discard();
    detail::throw_file_error(path_, action, code);
  }

  void flush() {
    if (buffer_.empty()) return;
    write_fully(flushed_, buffer_);
    flushed_ += buffer_.size();
    buffer_.clear();
  }

  void write_fully(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t put =
          ::pwrite(fd_.value(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail("write the file at byte " + std::to_string(offset));
      offset += static_cast<std::uint64_t>(put);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }

  /// Best effort: not every file system lets a directory be synced.
  void sync_directory() const {
    const std::size_t slash = path_.rfind('/');
    const std::string directory = slash == std::string::npos ? "."
                                  : slash == 0               ? "/"
                                                             : path_.substr(0, slash);
    const detail::unique_fd fd(detail::open_file(directory, O_RDONLY | O_CLOEXEC, 0));
    if (fd.is_open()) static_cast<void>(::fsync(fd.value()));
  }

  std::string path_;
  std::string temporary_;
  detail::unique_fd fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t flushed_ = 0;
};

/// Writes a whole file so that a reader sees the old contents or the new ones, never a part.
/// @throws data_error  That failed; the old file is still there and nothing is left behind.
inline void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  output_file file(path);
  file.append(bytes);
  file.commit();
}

/// The whole contents of a file; a file larger than `max_bytes` is refused.
/// @throws data_error  It cannot be read or is larger.
[[nodiscard]] inline std::vector<std::byte> read_whole_file(
    const std::string& path, std::uint64_t max_bytes = std::uint64_t{1} << 30) {
  const input_file file(path);
  if (file.size() > max_bytes) {
    detail::throw_file_error_at(path, max_bytes,
                                "found a file of " + std::to_string(file.size()) +
                                    " bytes, expected at most " + std::to_string(max_bytes));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes);
  return bytes;
}

}  // namespace lanepack::inline LANEPACK_ABI
