#pragma once

/// @file
/// `jsonl_source`: a JSON Lines file of token arrays, read through an index of its lines.

#include <algorithm>
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
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/corpus/text_scan.hpp>
#include <lanepack/json/token_line.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How a JSON Lines file is opened.
struct jsonl_options {
  /// Which keys of a line are read.
  token_line_options keys;
  /// File that keeps the index. Empty: the corpus's path and `.lanepack-index`, with a suffix where
  /// `keys` is not the default.
  std::string index_path;
  /// The index is read from and written to a file; otherwise it is made at every opening.
  bool cache_index = true;
  /// Threads that make the index, at least 1; all processors where absent.
  std::optional<unsigned> threads;
  /// Most bytes of a line, 1 to 2^32 - 1, where the file is indexed. A longer one is a fault, and
  /// no more of it is held in memory.
  std::uint64_t max_line_bytes = std::uint64_t{1} << 30;
  /// Bytes that a thread takes at a time, at least 1.
  std::uint64_t chunk_bytes = std::uint64_t{1} << 22;
  /// Told how many bytes of the file are indexed.
  progress_callback progress;
};

/// One record of a JSON Lines file.
struct jsonl_line {
  /// First byte of the line in the file.
  std::uint64_t offset = 0;
  /// Bytes of the line without its end.
  std::uint32_t bytes = 0;
  std::uint32_t tokens = 0;
  std::uint32_t loss_tokens = 0;
  /// Blank lines before it in the file, at most 2^32 - 1: line number = record + 1 + this.
  std::uint32_t blank_lines = 0;

  friend bool operator==(const jsonl_line&, const jsonl_line&) = default;
};

/// The lines of a JSON Lines file that are records.
struct jsonl_index {
  std::vector<jsonl_line> lines;
  std::uint64_t tokens = 0;
  std::uint64_t loss_tokens = 0;

  friend bool operator==(const jsonl_index&, const jsonl_index&) = default;
};

namespace detail {

inline void validate(const jsonl_options& options) {
  if (options.threads && *options.threads == 0) {
    throw_invalid_option("jsonl.threads", "0", "at least 1");
  }
  if (options.chunk_bytes == 0) throw_invalid_option("jsonl.chunk_bytes", "0", "at least 1");
  if (options.max_line_bytes == 0 ||
      options.max_line_bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw_invalid_option("jsonl.max_line_bytes", std::to_string(options.max_line_bytes),
                         "1 to 4294967295");
  }
}

[[nodiscard]] inline digest128 digest_of(const token_line_options& keys) {
  digest_builder digest;
  digest.text(keys.token_key);
  digest.number(static_cast<std::uint64_t>(keys.targets));
  return digest.value();
}

[[nodiscard]] inline std::string default_jsonl_index_path(const std::string& path,
                                                          const token_line_options& keys) {
  std::string name = path + ".lanepack-index";
  if (keys != token_line_options{}) name += "-" + digest_of(keys).hex().substr(0, 8);
  return name;
}

/// The fault of a line whose number is known within its chunk only.
struct jsonl_line_fault {
  /// Number in the chunk, from 1.
  std::uint64_t line = 0;
  /// Byte of the file.
  std::uint64_t offset = 0;
  std::string what;
};

/// The lines that begin in one range of a file.
struct jsonl_chunk {
  /// Records; `blank_lines` counts from the start of the range.
  std::vector<jsonl_line> lines;
  /// Lines, blank ones included; up to the first fault where that ends the scan.
  std::uint64_t line_count = 0;
  std::uint64_t blank_count = 0;
  /// The first faults.
  std::vector<jsonl_line_fault> faults;
  std::uint64_t fault_count = 0;
};

/// Reads the lines of one chunk.
class jsonl_chunk_scan {
 public:
  /// @param fault_limit  Faults that are kept, at least 1; with 1 the scan ends at the first.
  jsonl_chunk_scan(const input_file& file, const jsonl_options& options, std::size_t fault_limit)
      : file_(file),
        parser_(options.keys),
        max_line_bytes_(options.max_line_bytes),
        fault_limit_(fault_limit) {}

  /// Reads the lines that begin in [begin, end). A line begins at `begin` if it is the first of the
  /// file or the byte in front ends one.
  [[nodiscard]] jsonl_chunk run(bool is_first, std::uint64_t begin, std::uint64_t end) && {
    first_ = is_first ? begin : begin - 1;
    buffer_.resize(static_cast<std::size_t>(end - first_));
    file_.read_at(first_, std::as_writable_bytes(std::span(buffer_)));
    std::size_t at = 0;
    if (!is_first) {
      const std::size_t newline = find_newline(0);
      at = newline == npos ? buffer_.size() : newline + 1;
    }
    while (first_ + at < end) {
      std::size_t newline = find_newline(at);
      while (newline == npos && first_ + buffer_.size() < file_.size()) {
        // The rest of the range belongs to this line.
        if (is_hopeless(first_ + at, std::string_view(buffer_).substr(at))) {
          return std::move(found_);
        }
        newline = extend(at);
      }
      const std::size_t stop = newline == npos ? buffer_.size() : newline;
      take(first_ + at, std::string_view(buffer_).substr(at, stop - at));
      if (fault_limit_ == 1 && found_.fault_count != 0) break;
      at = stop + 1;
    }
    return std::move(found_);
  }

 private:
  static constexpr std::size_t npos = std::string_view::npos;

  [[nodiscard]] std::size_t find_newline(std::size_t from) const noexcept {
    return std::string_view(buffer_).find('\n', from);
  }

  /// Reads on, as the line at `at` does not end in the buffer; returns where it ends now.
  std::size_t extend(std::size_t at) {
    const std::size_t old = buffer_.size();
    const std::uint64_t left = file_.size() - first_ - old;
    const std::uint64_t wanted = std::max<std::uint64_t>(old - at, 4096);
    // One byte more tells a line that is too long.
    const std::uint64_t most = max_line_bytes_ + 1 - (old - at);
    buffer_.resize(old + static_cast<std::size_t>(std::min({left, wanted, most})));
    file_.read_at(first_ + old, std::as_writable_bytes(std::span(buffer_)).subspan(old));
    return find_newline(old);
  }

  /// Whether the first bytes of a line tell that it is no record, however it goes on; counts it
  /// and notes its fault then. Lines up to a fixed length are left to the parser, which says more.
  bool is_hopeless(std::uint64_t offset, std::string_view line) {
    constexpr std::size_t judged_whole = std::size_t{1} << 16;
    if (line.size() <= std::min<std::uint64_t>(judged_whole, max_line_bytes_)) return false;
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start < judged_whole && line[start] != '{') {
      ++found_.line_count;
      add_fault(offset + start,
                "found " + describe_json_byte(line[start]) + ", expected an object");
      return true;
    }
    if (line.size() <= max_line_bytes_) return false;
    ++found_.line_count;
    add_fault(offset, "found a line of more than " + std::to_string(max_line_bytes_) +
                          " bytes, expected at most so many");
    return true;
  }

  void take(std::uint64_t offset, std::string_view line) {
    if (is_hopeless(offset, line)) return;
    ++found_.line_count;
    if (line.find_first_not_of(" \t\r") == npos) {
      ++found_.blank_count;
      return;
    }
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (!parser_.parse(line)) {
      add_fault(offset + parser_.fault().offset, parser_.fault().what);
      return;
    }
    found_.lines.push_back({offset, static_cast<std::uint32_t>(line.size()),
                            static_cast<std::uint32_t>(parser_.tokens().size()),
                            static_cast<std::uint32_t>(parser_.loss_tokens()),
                            static_cast<std::uint32_t>(std::min(found_.blank_count, most))});
  }

  LANEPACK_COLD void add_fault(std::uint64_t offset, const std::string& what) {
    ++found_.fault_count;
    if (found_.faults.size() < fault_limit_) {
      found_.faults.push_back({found_.line_count, offset, what});
    }
  }

  const input_file& file_;
  token_line_parser parser_;
  std::uint64_t max_line_bytes_;
  std::size_t fault_limit_;
  std::uint64_t first_ = 0;
  std::string buffer_;
  jsonl_chunk found_;
};

/// Reads all lines of a file. With a `fault_limit` of 1 chunks after one with a fault may be
/// missing.
[[nodiscard]] inline std::vector<jsonl_chunk> scan_jsonl_chunks(const input_file& file,
                                                                const jsonl_options& options,
                                                                std::size_t fault_limit) {
  struct stop {};
  validate(options);
  const std::uint64_t start = byte_order_mark(file);
  const std::uint64_t count = ceil_div(file.size() - start, options.chunk_bytes);
  std::vector<jsonl_chunk> chunks(static_cast<std::size_t>(count));
  chunk_progress progress(options.progress, file.size() - start);
  try {
    parallel_for(count, options.threads.value_or(available_threads()), [&](std::uint64_t i) {
      const std::uint64_t begin = start + i * options.chunk_bytes;
      const std::uint64_t bytes = std::min(options.chunk_bytes, file.size() - begin);
      jsonl_chunk& chunk = chunks[static_cast<std::size_t>(i)];
      chunk = jsonl_chunk_scan(file, options, fault_limit).run(i == 0, begin, begin + bytes);
      if (fault_limit == 1 && chunk.fault_count != 0) throw stop{};
      progress.advance(bytes);
    });
  } catch (const stop&) {
    return chunks;
  }
  file.check_unchanged();
  progress.finish();
  return chunks;
}

/// The first faults of a file, at most `limit`, with their line numbers.
[[nodiscard]] inline std::vector<data_error> locate_faults(const input_file& file,
                                                           std::span<const jsonl_chunk> chunks,
                                                           std::size_t limit) {
  std::vector<data_error> errors;
  std::uint64_t lines = 0;
  for (const jsonl_chunk& chunk : chunks) {
    for (const jsonl_line_fault& fault : chunk.faults) {
      if (errors.size() == limit) return errors;
      errors.emplace_back(data_location{.path = file.path(),
                                        .byte_offset = fault.offset,
                                        .record = {},
                                        .line = lines + fault.line},
                          fault.what);
    }
    lines += chunk.line_count;
  }
  return errors;
}

}  // namespace detail

/// Reads all of a JSON Lines file and returns where its records are and how long they are.
///
/// A line ends with byte 0x0A or with the file; a carriage return before it, blank lines and a byte
/// order mark at the start of the file are skipped.
/// @throws data_error  The first line of the file that is not a record, with path, line and byte
///         offset; also where the file cannot be read or changes meanwhile.
/// @complexity  O(bytes of the file) over all threads; memory for 24 bytes a record, and for each
///              thread a chunk and its longest line, at most `max_line_bytes`.
/// @determinism  The result and the error do not depend on the number of threads or on
///               `chunk_bytes`.
[[nodiscard]] inline jsonl_index scan_jsonl(const input_file& file,
                                            const jsonl_options& options = {}) {
  std::vector<detail::jsonl_chunk> chunks = detail::scan_jsonl_chunks(file, options, 1);
  const std::vector<data_error> errors = detail::locate_faults(file, chunks, 1);
  if (!errors.empty()) throw data_error(errors.front());

  jsonl_index index;
  std::size_t records = 0;
  for (const detail::jsonl_chunk& chunk : chunks) records += chunk.lines.size();
  index.lines.reserve(records);
  std::uint64_t blank_lines = 0;
  for (detail::jsonl_chunk& chunk : chunks) {
    for (jsonl_line line : chunk.lines) {
      constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
      line.blank_lines = static_cast<std::uint32_t>(std::min(blank_lines + line.blank_lines, most));
      index.tokens += line.tokens;
      index.loss_tokens += line.loss_tokens;
      index.lines.push_back(line);
    }
    blank_lines += chunk.blank_count;
    chunk.lines = {};
  }
  return index;
}

/// What is wrong with a JSON Lines file.
struct jsonl_problems {
  /// Lines that are not records.
  std::uint64_t count = 0;
  /// The first of them, in the order of the file.
  std::vector<data_error> first;
};

/// Reads all of a JSON Lines file and returns which lines are not records, instead of stopping at
/// the first as `scan_jsonl` does.
/// @param limit  Problems that are listed, at least 1.
/// @throws data_error  The file cannot be read or changes meanwhile.
[[nodiscard]] inline jsonl_problems find_jsonl_problems(const input_file& file,
                                                        const jsonl_options& options,
                                                        std::size_t limit) {
  if (limit == 0) detail::throw_invalid_option("limit", "0", "at least 1");
  // A limit of 1 would end the scan early.
  const auto chunks = detail::scan_jsonl_chunks(file, options, std::max<std::size_t>(limit, 2));
  jsonl_problems problems;
  for (const detail::jsonl_chunk& chunk : chunks) problems.count += chunk.fault_count;
  problems.first = detail::locate_faults(file, chunks, limit);
  return problems;
}

namespace detail {

/// The file that keeps an index: a header of 96 bytes, then 24 bytes a record, all little-endian.
///
///      0  8 bytes  "LPJSONLX"
///      8  u64      version, 1
///     16  u64      size of the corpus
///     24  i64      time of its last change, nanoseconds since 1970
///     32  u64 x 2  digest of the keys read
///     48  u64      records
///     56  u64      tokens
///     64  u64      loss tokens
///     72  u64 x 2  digest of the lines, as written
///     88  u64      low half of the digest of bytes 0 to 87
///     96  u64 offset, u32 bytes, u32 tokens, u32 loss tokens, u32 blank lines; for each record
class jsonl_index_file {
 public:
  static constexpr std::size_t header_bytes = 96;
  static constexpr std::size_t line_bytes = 24;

  /// The index of a file of this identity, read with these keys, or nullopt where `path` holds no
  /// such index, for whatever reason.
  static std::optional<jsonl_index> load(const std::string& path, const file_identity& identity,
                                         const token_line_options& keys, digest128& digest) {
    if (!identify_file(path)) return std::nullopt;
    try {
      const input_file file(path);
      std::vector<std::byte> bytes(header_bytes);
      if (file.size() < header_bytes) return std::nullopt;
      file.read_at(0, bytes);
      jsonl_index index;
      const std::uint64_t records = number(bytes, 48, 8);
      index.tokens = number(bytes, 56, 8);
      index.loss_tokens = number(bytes, 64, 8);
      digest = {number(bytes, 72, 8), number(bytes, 80, 8)};
      // A record takes a byte of the corpus at least, so an index cannot be larger by much.
      if (records > identity.size || records > (file.size() - header_bytes) / line_bytes ||
          file.size() != header_bytes + records * line_bytes ||
          bytes != header(identity, keys, records, index, digest)) {
        return std::nullopt;
      }
      digest_builder builder;
      index.lines.reserve(static_cast<std::size_t>(records));
      for (std::uint64_t done = 0; done < records;) {
        const std::uint64_t now = std::min<std::uint64_t>(records - done, lines_at_once);
        bytes.resize(static_cast<std::size_t>(now) * line_bytes);
        file.read_at(header_bytes + done * line_bytes, bytes);
        builder.bytes(bytes);
        for (std::size_t at = 0; at < bytes.size(); at += line_bytes) {
          index.lines.push_back({number(bytes, at, 8), short_number(bytes, at + 8),
                                 short_number(bytes, at + 12), short_number(bytes, at + 16),
                                 short_number(bytes, at + 20)});
        }
        done += now;
      }
      if (builder.value() != digest) return std::nullopt;
      return index;
    } catch (const data_error&) {
      return std::nullopt;
    }
  }

  /// Writes an index; a folder that cannot be written to is no error.
  static void save(const std::string& path, const file_identity& identity,
                   const token_line_options& keys, const jsonl_index& index,
                   const digest128& digest) {
    try {
      output_file file(path);
      file.append(header(identity, keys, index.lines.size(), index, digest));
      for_each_part(index, [&](std::span<const std::byte> part) { file.append(part); });
      file.commit();
    } catch (const data_error&) {
      // The index only saves time.
    }
  }

  static digest128 digest_lines(const jsonl_index& index) {
    digest_builder builder;
    for_each_part(index, [&](std::span<const std::byte> part) { builder.bytes(part); });
    return builder.value();
  }

 private:
  static constexpr std::size_t lines_at_once = 8192;

  static std::uint64_t number(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
    }
    return value;
  }

  static std::uint32_t short_number(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint32_t>(number(bytes, at, 4));
  }

  static void append(std::vector<std::byte>& bytes, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
  }

  static std::vector<std::byte> header(const file_identity& identity,
                                       const token_line_options& keys, std::uint64_t records,
                                       const jsonl_index& index, const digest128& digest) {
    const digest128 key_digest = digest_of(keys);
    std::vector<std::byte> bytes;
    for (const char c : std::string_view("LPJSONLX")) bytes.push_back(static_cast<std::byte>(c));
    for (const std::uint64_t value :
         {std::uint64_t{1}, identity.size, static_cast<std::uint64_t>(identity.mtime_ns),
          key_digest.low, key_digest.high, records, index.tokens, index.loss_tokens, digest.low,
          digest.high}) {
      append(bytes, value, 8);
    }
    digest_builder builder;
    builder.bytes(bytes);
    append(bytes, builder.value().low, 8);
    return bytes;
  }

  template <class Take>
  static void for_each_part(const jsonl_index& index, Take&& take) {
    std::vector<std::byte> bytes;
    bytes.reserve(lines_at_once * line_bytes);
    for (const jsonl_line& line : index.lines) {
      append(bytes, line.offset, 8);
      for (const std::uint32_t value :
           {line.bytes, line.tokens, line.loss_tokens, line.blank_lines}) {
        append(bytes, value, 4);
      }
      if (bytes.size() < lines_at_once * line_bytes) continue;
      take(std::span<const std::byte>(bytes));
      bytes.clear();
    }
    if (!bytes.empty()) take(std::span<const std::byte>(bytes));
  }
};

}  // namespace detail

/// A JSON Lines file of token arrays: one record a line, in the order of the file.
///
/// A line is an object with `input_ids` or `tokens`, and optionally `labels` or `loss_mask`; see
/// `token_line_parser`. The first opening reads the file once to index its lines and keeps the
/// index in a file beside it; an index that does not fit the corpus (size, time of change, keys) or
/// is damaged is made again, and where it cannot be written everything works without. The index is
/// held in memory, 24 bytes a record.
///
/// @thread_safety  Const members may be called by any number of threads.
class jsonl_source {
 public:
  /// @throws invalid_option  An option cannot work.
  /// @throws data_error  As `scan_jsonl`.
  explicit jsonl_source(const std::string& path, const jsonl_options& options = {})
      : file_(path), keys_(options.keys) {
    detail::validate(options);
    std::string index_path = options.index_path;
    if (index_path.empty()) index_path = detail::default_jsonl_index_path(path, keys_);
    std::optional<jsonl_index> kept;
    if (options.cache_index) {
      kept = detail::jsonl_index_file::load(index_path, file_.identity(), keys_, lines_digest_);
    }
    if (kept) {
      index_ = std::move(*kept);
    } else {
      index_ = scan_jsonl(file_, options);
      lines_digest_ = detail::jsonl_index_file::digest_lines(index_);
      if (options.cache_index) {
        detail::jsonl_index_file::save(index_path, file_.identity(), keys_, index_, lines_digest_);
      }
    }
    has_loss_mask_ = has_masked_tokens(index_);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return index_.lines.size(); }

  [[nodiscard]] source_traits traits() const noexcept {
    return {.has_payload = true, .has_all_shapes = true, .has_loss_mask = has_loss_mask_};
  }

  /// @throws state_error  There is no such record.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      const jsonl_line& line = line_of(ids[i]);
      out[i] = {.tokens = line.tokens, .loss_tokens = line.loss_tokens, .patches = 0};
    }
  }

  /// Reads whole lines in order of offset and parses each once.
  /// @throws state_error  There is no such record or range.
  /// @throws data_error  A line is not what it was when it was indexed.
  /// @complexity  O(bytes of the lines), whatever part of them is wanted.
  void read(std::span<const record_read> reads) const {
    std::vector<std::size_t> order(reads.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      detail::check_record(reads[i].id, size());
      detail::check_read(reads[i], line_of(reads[i].id).tokens);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(reads[a].id, a) < std::pair(reads[b].id, b);
    });
    token_line_parser parser(keys_);
    std::string buffer;
    std::vector<file_range> ranges;
    std::vector<std::size_t> firsts;
    for (std::size_t begin = 0; begin < order.size();) {
      // Distinct lines up to a bounded number of bytes; `firsts` says which reads are of each.
      firsts.clear();
      std::uint64_t bytes = 0;
      std::size_t end = begin;
      while (end < order.size()) {
        const record_id id = reads[order[end]].id;
        if (end != begin && bytes + line_of(id).bytes > bytes_at_once) break;
        bytes += line_of(id).bytes;
        firsts.push_back(end);
        while (end < order.size() && reads[order[end]].id == id) ++end;
      }
      firsts.push_back(end);
      buffer.resize(static_cast<std::size_t>(bytes));
      ranges.clear();
      std::span<std::byte> free = std::as_writable_bytes(std::span(buffer));
      for (std::size_t i = 0; i + 1 < firsts.size(); ++i) {
        const jsonl_line& line = line_of(reads[order[firsts[i]]].id);
        ranges.push_back({line.offset, free.first(line.bytes)});
        free = free.subspan(line.bytes);
      }
      file_.read_ranges(ranges, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
          parse(parser, reads[order[firsts[i]]].id, ranges[i].out);
          for (std::size_t k = firsts[i]; k < firsts[i + 1]; ++k) {
            deliver(parser, reads[order[k]]);
          }
        }
      });
      begin = end;
    }
    if (!reads.empty()) file_.check_unchanged();
  }

  [[nodiscard]] digest128 fingerprint() const {
    digest_builder digest;
    digest.text("jsonl");
    digest.number(file_.size());
    digest.digest(lines_digest_);
    return digest.value();
  }

  [[nodiscard]] std::string describe() const {
    return "JSON Lines " + file_.path() + ": " + std::to_string(size()) + " records, " +
           std::to_string(index_.tokens) + " tokens";
  }

  /// What results made from this source have to be kept under.
  [[nodiscard]] cache_key identity() const {
    return {.files = {file_.identity()}, .variant = "jsonl " + detail::digest_of(keys_).hex()};
  }

  [[nodiscard]] const input_file& file() const noexcept { return file_; }
  [[nodiscard]] const jsonl_index& index() const noexcept { return index_; }

 private:
  static constexpr std::uint64_t bytes_at_once = std::uint64_t{1} << 23;

  [[nodiscard]] const jsonl_line& line_of(record_id id) const noexcept {
    return index_.lines[static_cast<std::size_t>(id)];
  }

  static bool has_masked_tokens(const jsonl_index& index) noexcept {
    std::uint64_t targets = 0;
    for (const jsonl_line& line : index.lines) {
      targets += detail::unmasked_loss_tokens(line.tokens);
    }
    return index.loss_tokens != targets;
  }

  [[noreturn]] LANEPACK_COLD void throw_bad_line(record_id id, std::uint64_t offset,
                                                 const std::string& what) const {
    detail::throw_data_error({.path = file_.path(),
                              .byte_offset = line_of(id).offset + offset,
                              .record = id,
                              .line = id + 1 + line_of(id).blank_lines},
                             what);
  }

  void parse(token_line_parser& parser, record_id id, std::span<const std::byte> bytes) const {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!parser.parse(text)) throw_bad_line(id, parser.fault().offset, parser.fault().what);
    const jsonl_line& line = line_of(id);
    if (parser.tokens().size() != line.tokens || parser.loss_tokens() != line.loss_tokens) {
      throw_bad_line(id, 0,
                     "found " + std::to_string(parser.tokens().size()) + " tokens, " +
                         std::to_string(parser.loss_tokens()) + " of them targets, expected " +
                         std::to_string(line.tokens) + " and " + std::to_string(line.loss_tokens) +
                         " as in the index");
    }
  }

  static void deliver(const token_line_parser& parser, const record_read& wanted) {
    const auto first = static_cast<std::size_t>(wanted.first_token);
    const auto part = parser.tokens().subspan(first, wanted.tokens.size());
    std::copy(part.begin(), part.end(), wanted.tokens.begin());
    parser.copy_loss_mask(first, wanted.loss_mask);
  }

  input_file file_;
  token_line_options keys_;
  jsonl_index index_;
  digest128 lines_digest_;
  bool has_loss_mask_ = false;
};

static_assert(record_source<jsonl_source>);

}  // namespace lanepack::inline LANEPACK_ABI
