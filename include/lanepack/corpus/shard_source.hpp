#pragma once

/// @file
/// `shard_source`: records with payloads in many files, read through an index.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/file_pool.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/record_table.hpp>
#include <lanepack/corpus/token_reads.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What shards are made a corpus from.
struct shard_corpus {
  /// Name of the format, for people.
  std::string format;
  /// Where the corpus is, for people.
  std::string path;
  /// Shards in order.
  std::vector<std::string> files;
  /// What every record carries.
  std::vector<std::string> payload_names;
  /// Format and the options that change what a record is, for the index and for summaries.
  std::string variant;
  /// The records of one shard; `number` is the number of the file.
  std::function<record_table(const input_file& file, std::uint32_t number)> scan;
};

/// How shards are opened.
struct shard_options {
  /// File that keeps the index. Empty: beside the corpus, named after it and its options, with the
  /// extension `.lanepack-index`.
  std::string index_path = {};
  /// The index is read from and written to a file; otherwise it is made at every opening.
  bool cache_index = true;
  /// Threads that make the index, at least 1.
  unsigned threads = available_threads();
  /// Told how many shards are indexed.
  progress_callback progress = {};
  /// Shards that stay open, at least 1.
  std::size_t most_open_files = 128;
};

/// Records with payloads in many files; a `payload_source`.
///
/// The first opening goes through all shards and keeps what it finds in an index, which is used
/// again where names, sizes and times of the shards and the options are the same.
/// @thread_safety  Const members may be called by any number of threads.
class shard_source {
 public:
  /// @throws invalid_option  An option cannot work.
  /// @throws data_error      A shard cannot be read or is not what its format says.
  /// @complexity  O(records) for reading the index; what `scan` reads where there is none.
  explicit shard_source(const shard_corpus& corpus, const shard_options& options = {})
      : format_(corpus.format),
        path_(corpus.path),
        names_(corpus.payload_names),
        files_(corpus.files, options.most_open_files),
        key_{.files = files_.identities(), .variant = corpus.variant} {
    if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
    check_names();
    std::string index_path = options.index_path;
    if (index_path.empty()) index_path = default_index_path(corpus);
    if (options.cache_index && load(index_path)) return;
    scan(corpus, options);
    fingerprint_ = make_fingerprint();
    if (!options.cache_index) return;
    detail::cache_writer out;
    detail::write_key(out, key_);
    out.number(fingerprint_.low);
    out.number(fingerprint_.high);
    table_.save(out);
    // The index only saves time, so a folder that cannot be written to is no error.
    static_cast<void>(out.save(index_path, index_kind));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return table_.size(); }
  [[nodiscard]] source_traits traits() const noexcept {
    return {.has_payload = true, .has_all_shapes = true, .has_loss_mask = table_.has_loss_mask()};
  }

  /// @throws state_error  There is no such record.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      out[i] = table_.shape(ids[i]);
    }
  }

  /// Reads by file, sorted by offset.
  /// @throws state_error  There is no such record or range.
  /// @throws data_error   A record cannot be read or is not what the index says.
  void read(std::span<const record_read> reads) const {
    std::vector<wanted_numbers> wanted;
    std::vector<std::vector<std::int32_t>> masks;
    std::vector<std::size_t> masked;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const record_read& read = reads[i];
      detail::check_record(read.id, size());
      detail::check_read(read, table_.shape(read.id).tokens);
      if (!read.tokens.empty())
        wanted.push_back(numbers_of(read, table_.ids(read.id), read.tokens));
      if (read.loss_mask.empty()) continue;
      const std::optional<stored_numbers> mask = table_.mask(read.id);
      if (!mask) {
        std::fill(read.loss_mask.begin(), read.loss_mask.end(), std::uint8_t{1});
        continue;
      }
      masks.emplace_back(read.loss_mask.size());
      masked.push_back(i);
      wanted.push_back(numbers_of(read, *mask, masks.back()));
    }
    read_numbers(wanted);
    for (std::size_t i = 0; i < masked.size(); ++i) {
      const record_read& read = reads[masked[i]];
      for (std::size_t k = 0; k < masks[i].size(); ++k) {
        if (masks[i][k] > 1) throw_bad_mask(read, k, masks[i][k]);
        read.loss_mask[k] = static_cast<std::uint8_t>(masks[i][k]);
      }
    }
  }

  [[nodiscard]] std::span<const std::string> payload_names() const noexcept { return names_; }

  /// @throws state_error  There is no such record or payload.
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    detail::check_payload(payload, names_.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      out[i] = table_.payload(ids[i], payload).shape;
    }
  }

  /// Reads by file, sorted by offset.
  /// @throws state_error  There is no such record or payload, or memory is of another size.
  /// @throws data_error   A payload cannot be read.
  void read_payloads(std::span<const payload_read> reads) const {
    struct place {
      std::uint32_t file;
      std::uint64_t offset;
      std::size_t read;
    };
    std::vector<place> places;
    places.reserve(reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      detail::check_record(reads[i].id, size());
      detail::check_payload(reads[i].payload, names_.size());
      const stored_payload stored = table_.payload(reads[i].id, reads[i].payload);
      detail::check_payload_read(reads[i], stored.shape.bytes());
      if (!reads[i].bytes.empty()) places.push_back({table_.file(reads[i].id), stored.offset, i});
    }
    std::sort(places.begin(), places.end(), [](const place& a, const place& b) {
      return std::tuple(a.file, a.offset, a.read) < std::tuple(b.file, b.offset, b.read);
    });
    std::vector<file_range> ranges;
    for (std::size_t first = 0; first < places.size();) {
      std::size_t last = first;
      ranges.clear();
      while (last < places.size() && places[last].file == places[first].file) {
        ranges.push_back({places[last].offset, reads[places[last].read].bytes});
        ++last;
      }
      const std::shared_ptr<const input_file> file = files_.open(places[first].file);
      std::size_t at = first;
      try {
        file->read_ranges(ranges, [](std::size_t, std::size_t) {});
        file->check_unchanged();
      } catch (const data_error& failure) {
        if (!failure.where().byte_offset) throw;
        while (at + 1 < last && places[at + 1].offset <= *failure.where().byte_offset) ++at;
        rethrow_with_record(failure, reads[places[at].read].id);
      }
      first = last;
    }
  }

  [[nodiscard]] record_payload_bytes largest_payload() const noexcept {
    return table_.largest_payload();
  }

  [[nodiscard]] digest128 fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::string describe() const {
    return format_ + " " + path_ + ": " + std::to_string(size()) + " records, " +
           std::to_string(table_.tokens()) + " tokens, " + std::to_string(files_.size()) +
           " shards";
  }
  /// What results made from this source have to be kept under.
  [[nodiscard]] const cache_key& identity() const noexcept { return key_; }
  [[nodiscard]] const file_pool& files() const noexcept { return files_; }
  [[nodiscard]] const record_table& table() const noexcept { return table_; }

 private:
  static constexpr const char* index_kind = "lanepack shard index 1";

  struct wanted_numbers {
    std::uint32_t file = 0;
    token_type type = token_type::i32;
    token_read read;
  };

  static std::string default_index_path(const shard_corpus& corpus) {
    digest_builder digest;
    digest.text(corpus.variant);
    return corpus.path + "." + digest.value().hex().substr(0, 8) + ".lanepack-index";
  }

  void check_names() const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const bool again = std::find(names_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   names_.end(), names_[i]) != names_.end();
      if (!names_[i].empty() && !again) continue;
      detail::throw_invalid_option("payloads", detail::quoted(names_[i]),
                                   "names that differ and are not empty");
    }
  }

  bool load(const std::string& index_path) {
    detail::cache_reader in(index_path, index_kind);
    if (!in.good() || !detail::read_key(in, key_)) return false;
    const std::uint64_t low = in.number();
    fingerprint_ = {low, in.number()};
    std::optional<record_table> table = record_table::load(in, names_.size(), files_.size());
    if (!table || !in.at_end()) return false;
    table_ = std::move(*table);
    return true;
  }

  void scan(const shard_corpus& corpus, const shard_options& options) {
    std::vector<record_table> parts(files_.size());
    detail::chunk_progress progress(options.progress, files_.size());
    parallel_for(files_.size(), options.threads, [&](std::uint64_t i) {
      const auto number = static_cast<std::size_t>(i);
      const std::shared_ptr<const input_file> file = files_.open(number);
      parts[number] = corpus.scan(*file, static_cast<std::uint32_t>(number));
      file->check_unchanged();
      progress.advance(1);
    });
    table_ = record_table(names_.size());
    for (record_table& part : parts) table_.append(std::exchange(part, record_table()));
    progress.finish();
  }

  [[nodiscard]] digest128 make_fingerprint() const {
    digest_builder digest;
    digest.text(format_);
    digest.text(key_.variant);
    for (const std::string& name : names_) digest.text(name);
    for (const file_identity& file : key_.files) digest.number(file.size);
    digest.digest(table_.digest());
    return digest.value();
  }

  [[nodiscard]] wanted_numbers numbers_of(const record_read& read, const stored_numbers& stored,
                                          std::span<std::int32_t> out) const {
    return {.file = table_.file(read.id),
            .type = stored.type,
            .read = {.offset = stored.offset + read.first_token * token_bytes(stored.type),
                     .tokens = out,
                     .record = read.id}};
  }

  void read_numbers(std::span<wanted_numbers> wanted) const {
    std::sort(wanted.begin(), wanted.end(), [](const wanted_numbers& a, const wanted_numbers& b) {
      return std::tuple(a.file, a.type, a.read.offset) < std::tuple(b.file, b.type, b.read.offset);
    });
    std::vector<token_read> reads;
    for (std::size_t first = 0; first < wanted.size();) {
      std::size_t last = first;
      reads.clear();
      while (last < wanted.size() && wanted[last].file == wanted[first].file &&
             wanted[last].type == wanted[first].type) {
        reads.push_back(wanted[last++].read);
      }
      read_tokens(*files_.open(wanted[first].file), wanted[first].type, reads);
      first = last;
    }
  }

  [[noreturn]] LANEPACK_COLD void throw_bad_mask(const record_read& read, std::size_t position,
                                                 std::int32_t found) const {
    const stored_numbers mask = *table_.mask(read.id);
    detail::throw_data_error(
        {.path = files_.path(table_.file(read.id)),
         .byte_offset = mask.offset + (read.first_token + position) * token_bytes(mask.type),
         .record = read.id,
         .line = {}},
        "found loss mask " + std::to_string(found) + ", expected 0 or 1");
  }

  [[noreturn]] LANEPACK_COLD static void rethrow_with_record(const data_error& failure,
                                                             record_id id) {
    data_location where = failure.where();
    const std::string text =
        std::string(failure.what()).substr(std::strlen(data_error(where, "").what()));
    where.record = id;
    if (dynamic_cast<const file_changed*>(&failure) != nullptr) {
      throw file_changed(std::move(where), text);
    }
    detail::throw_data_error(std::move(where), text);
  }

  std::string format_;
  std::string path_;
  std::vector<std::string> names_;
  file_pool files_;
  cache_key key_;
  record_table table_;
  digest128 fingerprint_;
};

static_assert(payload_source<shard_source>);

}  // namespace lanepack::inline LANEPACK_ABI
