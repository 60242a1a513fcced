#pragma once

/// @file
/// `text_documents`: text files as documents, one a file, a paragraph or a line.

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/corpus/text_files.hpp>
#include <lanepack/corpus/text_scan.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How text files are made documents of.
struct text_documents_options {
  /// What a document is. JSON Lines are read by line.
  text_unit unit = text_unit::file;
  /// Below a folder, only files whose names end with one of these, as `.txt`; all where empty.
  std::vector<std::string> endings = {};
  /// Most bytes of a document, 1 to 2^32 - 1.
  std::uint64_t max_document_bytes = std::uint64_t{1} << 30;
  /// Threads that look for paragraphs or lines, at least 1.
  unsigned threads = available_threads();
  /// Bytes that a thread takes at a time, at least 1.
  std::uint64_t chunk_bytes = std::uint64_t{1} << 22;
  /// Told how many bytes have been looked at.
  progress_callback progress = {};
  /// File that keeps where paragraphs or lines are. Empty: beside the first file, or in the first
  /// folder with a dot in front of its name, named after paths and options, with the extension
  /// `.lanepack-index`.
  std::string index_path = {};
  /// The index is read from and written to a file, if that is possible; otherwise it is made at
  /// every opening.
  bool cache_index = true;
};

/// Text files as documents, in the order of their paths and places; models `document_source`.
///
/// Bytes are delivered as they are, without a byte order mark at the start of a file. See
/// `text_scan` for what a paragraph and a line are; JSON Lines are lines. A file is a document even
/// if it is empty. Files that are cut short, written or replaced later on are an error.
///
/// @complexity  The first opening by paragraph or line reads all files once, with all threads, and
///              keeps what it found for the next; by file it asks for their sizes. Memory 12 bytes
///              a document, and the path of each file.
/// @thread_safety  Const members may be called by any number of threads.
class text_documents {
 public:
  /// @param path  A file, or a folder: then all files below it, see `list_files`.
  /// @throws invalid_option  An option cannot work.
  /// @throws data_error  There is no such file, it is no regular file, or a document is longer than
  ///                     it may be; names path, line and byte.
  explicit text_documents(const std::string& path, const text_documents_options& options = {})
      : text_documents(std::vector<std::string>{path}, options) {}

  /// The same for several files and folders, in the order given.
  explicit text_documents(const std::vector<std::string>& paths,
                          const text_documents_options& options = {})
      : unit_(options.unit) {
    check(options);
    if (!paths.empty()) name_ = paths.front();
    if (paths.size() > 1) name_ += " and " + std::to_string(paths.size() - 1) + " more";
    for (const std::string& path : paths) {
      for (std::string& file : list_files(path, options.endings)) {
        files_.push_back({std::move(file), {}, 0});
      }
    }
    open_all(options);
    if (unit_ != text_unit::file) find_documents(paths, options);
    digest_builder digest;
    digest.text("text");
    digest.number(static_cast<std::uint64_t>(unit_));
    digest.number(files_.size());
    for (const text_file& file : files_) {
      digest.number(file.identity.size);
      digest.number(file.first);
    }
    digest.bytes(std::as_bytes(std::span(starts_)));
    digest.bytes(std::as_bytes(std::span(bytes_)));
    fingerprint_ = digest.value();
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return starts_.size(); }

  /// @throws state_error  There is no such document.
  void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      out[i] = bytes_[static_cast<std::size_t>(ids[i])];
    }
  }

  /// Reads documents in the order of their places.
  /// @throws state_error  There is no such document.
  /// @throws data_error  A file changed after it was opened, or cannot be read.
  void read(std::span<const record_id> ids, std::span<std::string> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    std::vector<std::size_t> order(ids.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      detail::check_record(ids[i], size());
      order[i] = i;
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(ids[a], a) < std::pair(ids[b], b);
    });
    std::vector<file_range> ranges;
    for (std::size_t begin = 0; begin < order.size();) {
      const std::size_t file = file_of(ids[order[begin]]);
      const std::uint64_t last = file + 1 < files_.size() ? files_[file + 1].first : size();
      ranges.clear();
      std::size_t end = begin;
      for (; end < order.size() && ids[order[end]] < last; ++end) {
        const auto id = static_cast<std::size_t>(ids[order[end]]);
        std::string& text = out[order[end]];
        text.resize(bytes_[id]);
        ranges.push_back({starts_[id], std::as_writable_bytes(std::span(text))});
      }
      const input_file opened = open(file);
      opened.read_ranges(ranges, [](std::size_t, std::size_t) {});
      opened.check_unchanged();
      begin = end;
    }
  }

  /// Where a document lies, for messages.
  /// @complexity  Reads the file up to the document, to count its lines.
  /// @throws state_error  There is no such document.
  /// @throws data_error  The file changed or cannot be read.
  [[nodiscard]] data_location where(record_id id) const {
    detail::check_record(id, size());
    const std::size_t file = file_of(id);
    const std::uint64_t offset = starts_[static_cast<std::size_t>(id)];
    const input_file opened = open(file);
    std::uint64_t line = 1;
    std::vector<std::byte> part;
    for (std::uint64_t at = 0; at < offset; at += part.size()) {
      part.resize(static_cast<std::size_t>(std::min<std::uint64_t>(offset - at, 1 << 18)));
      opened.read_at(at, part);
      line += static_cast<std::uint64_t>(std::count(part.begin(), part.end(), std::byte{'\n'}));
    }
    return {.path = files_[file].path, .byte_offset = offset, .record = id, .line = line};
  }

  [[nodiscard]] digest128 fingerprint() const noexcept { return fingerprint_; }

  [[nodiscard]] std::string describe() const {
    return "text " + name_ + ": " + std::to_string(size()) + " documents in " +
           std::to_string(files_.size()) + (files_.size() == 1 ? " file" : " files");
  }

 private:
  struct text_file {
    std::string path;
    file_identity identity;
    /// First document.
    record_id first = 0;
  };

  struct chunk {
    std::size_t file = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::uint64_t> starts;
    std::vector<std::uint32_t> bytes;
  };

  static void check(const text_documents_options& options) {
    if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
    if (options.chunk_bytes == 0) detail::throw_invalid_option("chunk_bytes", "0", "at least 1");
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (options.max_document_bytes == 0 || options.max_document_bytes > most) {
      detail::throw_invalid_option("max_document_bytes", std::to_string(options.max_document_bytes),
                                   "1 to 4294967295");
    }
  }

  [[nodiscard]] input_file open(std::size_t file) const {
    input_file opened(files_[file].path);
    if (opened.identity() != files_[file].identity) {
      throw file_changed({.path = opened.path(), .byte_offset = {}, .record = {}, .line = {}},
                         "found a file of " + std::to_string(opened.size()) +
                             " bytes, changed at " + std::to_string(opened.identity().mtime_ns) +
                             " ns, expected " + std::to_string(files_[file].identity.size) +
                             " bytes and " + std::to_string(files_[file].identity.mtime_ns) +
                             " ns as when it was indexed");
    }
    return opened;
  }

  [[nodiscard]] std::size_t file_of(record_id id) const noexcept {
    // Of files without documents the last of those that begin at the same number has some.
    const auto next = std::upper_bound(
        files_.begin(), files_.end(), id,
        [](record_id wanted, const text_file& file) { return wanted < file.first; });
    return static_cast<std::size_t>(next - files_.begin()) - 1;
  }

  [[noreturn]] LANEPACK_COLD static void throw_too_long(const std::string& path,
                                                        std::uint64_t offset, std::uint64_t most) {
    detail::throw_file_error_at(path, offset,
                                "found a document of more than " + std::to_string(most) +
                                    " bytes, expected at most so many");
  }

  /// Asks for the files' sizes, which is all there is to know where a file is a document.
  void open_all(const text_documents_options& options) {
    for (text_file& each : files_) {
      const input_file file(each.path);
      each.identity = file.identity();
      if (unit_ != text_unit::file) continue;
      const std::uint64_t start = detail::byte_order_mark(file);
      const std::uint64_t bytes = file.size() - start;
      if (bytes > options.max_document_bytes) {
        throw_too_long(file.path(), start, options.max_document_bytes);
      }
      each.first = starts_.size();
      starts_.push_back(start);
      bytes_.push_back(static_cast<std::uint32_t>(bytes));
    }
  }

  static constexpr std::string_view index_kind = "lanepack text index 1";

  void find_documents(const std::vector<std::string>& paths,
                      const text_documents_options& options) {
    cache_key key;
    key.variant = "unit " + std::to_string(static_cast<unsigned>(unit_)) + ", most " +
                  std::to_string(options.max_document_bytes);
    for (const text_file& file : files_) key.files.push_back(file.identity);
    const bool cached = options.cache_index && !files_.empty();
    std::string path = options.index_path;
    if (cached && path.empty()) path = default_index_path(paths, options, key);
    if (cached && load(path, key)) return;
    scan(options);
    if (cached) save(path, key);
  }

  static std::string default_index_path(const std::vector<std::string>& paths,
                                        const text_documents_options& options,
                                        const cache_key& key) {
    digest_builder digest;
    digest.text(key.variant);
    digest.number(paths.size());
    for (const std::string& path : paths) digest.text(path);
    for (const std::string& ending : options.endings) digest.text(ending);
    const std::string name = digest.value().hex().substr(0, 8) + ".lanepack-index";
    // A folder's documents are all files in it but the hidden ones.
    struct ::stat status {};
    const bool is_folder = ::stat(paths.front().c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    return paths.front() + (is_folder ? "/." : ".") + name;
  }

  bool load(const std::string& path, const cache_key& key) {
    detail::cache_reader in(path, index_kind);
    if (!in.good() || !detail::read_key(in, key)) return false;
    std::vector<std::uint64_t> starts;
    std::vector<std::uint32_t> bytes;
    std::vector<record_id> firsts;
    for (const text_file& file : files_) {
      firsts.push_back(starts.size());
      std::uint64_t at = 0;
      // Every document takes two bytes of the index at least, so a count too high ends with it.
      for (std::uint64_t count = in.small_number(); count > 0; --count) {
        const std::uint64_t gap = in.small_number();
        const std::uint64_t size = in.small_number();
        if (!in.good() || gap > file.identity.size - at || size > file.identity.size - at - gap ||
            size > std::numeric_limits<std::uint32_t>::max()) {
          return false;
        }
        starts.push_back(at + gap);
        bytes.push_back(static_cast<std::uint32_t>(size));
        at += gap + size;
      }
    }
    if (!in.good() || !in.at_end()) return false;
    starts_ = std::move(starts);
    bytes_ = std::move(bytes);
    for (std::size_t i = 0; i < files_.size(); ++i) files_[i].first = firsts[i];
    return true;
  }

  void save(const std::string& path, const cache_key& key) const {
    detail::cache_writer out;
    detail::write_key(out, key);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const record_id end = i + 1 < files_.size() ? files_[i + 1].first : size();
      out.small_number(end - files_[i].first);
      std::uint64_t at = 0;
      for (auto id = static_cast<std::size_t>(files_[i].first); id < end; ++id) {
        out.small_number(starts_[id] - at);
        out.small_number(bytes_[id]);
        at = starts_[id] + bytes_[id];
      }
    }
    static_cast<void>(out.save(path, index_kind));
  }

  void scan(const text_documents_options& options) {
    std::vector<chunk> chunks;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const input_file file = open(i);
      const std::uint64_t start = detail::byte_order_mark(file);
      total += file.size() - start;
      for (std::uint64_t at = start; at < file.size(); at += options.chunk_bytes) {
        chunks.push_back({i, at, std::min(file.size(), at + options.chunk_bytes), {}, {}});
      }
    }
    detail::chunk_progress progress(options.progress, total);
    parallel_for(chunks.size(), options.threads, [&](std::uint64_t number) {
      chunk& part = chunks[static_cast<std::size_t>(number)];
      const input_file file = open(part.file);
      text_scan(file, unit_, options.max_document_bytes)
          .run(
              part.begin, part.end,
              [&part](const text_extent& found, std::string_view) {
                part.starts.push_back(found.offset);
                part.bytes.push_back(static_cast<std::uint32_t>(found.bytes));
              },
              [&](const text_extent& found) {
                throw_too_long(file.path(), found.offset, options.max_document_bytes);
              });
      file.check_unchanged();
      progress.advance(part.end - part.begin);
    });
    progress.finish();
    std::size_t next = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      files_[i].first = starts_.size();
      for (; next < chunks.size() && chunks[next].file == i; ++next) {
        starts_.insert(starts_.end(), chunks[next].starts.begin(), chunks[next].starts.end());
        bytes_.insert(bytes_.end(), chunks[next].bytes.begin(), chunks[next].bytes.end());
        chunks[next].starts = {};
        chunks[next].bytes = {};
      }
    }
  }

  text_unit unit_;
  std::string name_;
  std::vector<text_file> files_;
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint32_t> bytes_;
  digest128 fingerprint_;
};

static_assert(document_source<text_documents>);

}  // namespace lanepack::inline LANEPACK_ABI
