#pragma once

/// @file
/// MosaicML MDS datasets: samples with typed columns, documents, and records with payloads.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/corpus/file_pool.hpp>
#include <lanepack/corpus/mds.hpp>
#include <lanepack/corpus/mds_records.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/shard_source.hpp>
#include <lanepack/json/object.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// One shard of an index.
struct mds_shard {
  std::string path;
  std::uint64_t samples = 0;
  /// Bytes of the shard.
  std::uint64_t bytes = 0;
  /// Number of its columns in `mds_index::columns`.
  std::size_t columns = 0;
};

/// What an `index.json` says.
struct mds_index {
  std::string path;
  /// The different sets of columns that shards have.
  std::vector<detail::mds_columns> columns;
  std::vector<mds_shard> shards;
  /// Over the text of the index.
  digest128 digest;
};

namespace detail {

[[nodiscard]] inline std::string mds_index_path(const std::string& path) {
  return path.ends_with(".json") ? path : path + "/index.json";
}

/// A shard of an index.
class mds_shard_parser {
 public:
  mds_shard_parser(const json_object& shard, std::string directory)
      : shard_(shard), directory_(std::move(directory)) {}

  [[nodiscard]] std::vector<mds_column> columns() const {
    require_version();
    const auto names = required(shard_.texts("column_names"), "column_names", "an array of names");
    const auto encodings =
        required(shard_.texts("column_encodings"), "column_encodings", "an array of encodings");
    const nlohmann::json* sizes = shard_.find("column_sizes");
    if (encodings.size() != names.size() || sizes == nullptr || !sizes->is_array() ||
        sizes->size() != names.size()) {
      throw_json_error(shard_.path(), "found " + std::to_string(names.size()) +
                                          " names of columns, expected as many encodings and "
                                          "sizes in column_encodings and column_sizes");
    }
    std::vector<mds_column> columns;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::optional<mds_encoding> encoding = parse_mds_encoding(encodings[i]);
      if (!encoding) {
        throw_json_error(shard_.path(), "column " + detail::quoted(names[i]) + ": found encoding " +
                                            detail::quoted(encodings[i]) + ", expected one of MDS");
      }
      check_size((*sizes)[i], names[i], *encoding);
      for (const mds_column& other : columns) {
        if (other.name != names[i]) continue;
        throw_json_error(shard_.path(), "found two columns called " + detail::quoted(names[i]) +
                                            ", expected names that differ");
      }
      columns.push_back({.name = names[i], .encoding = std::move(*encoding)});
    }
    return columns;
  }

  /// @throws data_error  Only a compressed form of the shard is there, among others.
  [[nodiscard]] mds_shard shard() const {
    const std::optional<json_object> raw = shard_.object("raw_data");
    if (!raw) shard_.fail("raw_data", "an object");
    mds_shard made;
    made.samples = shard_.required({"samples"});
    made.bytes = raw->required({"bytes"});
    made.path = path_of(*raw);
    const std::optional<json_object> zip = shard_.object("zip_data");
    if (zip && !identify_file(made.path)) {
      throw_data_error({.path = path_of(*zip), .byte_offset = 0, .record = {}, .line = {}},
                       "found a compressed shard (" + shard_.text("compression").value_or("?") +
                           "), expected " + made.path +
                           " beside it: decompress it once, as samples are read at random places");
    }
    if (made.samples >> 31 != 0) shard_.fail("samples", "fewer than 2^31 samples");
    return made;
  }

 private:
  template <class T>
  [[nodiscard]] T required(std::optional<T> value, const char* key,
                           const std::string& expected) const {
    if (!value) shard_.fail(key, expected);
    return std::move(*value);
  }

  void require_version() const {
    const std::optional<std::string> format = shard_.text("format");
    if (format != "mds") shard_.fail("format", "\"mds\"");
    if (shard_.number("version") != std::uint64_t{2}) shard_.fail("version", "2");
  }

  void check_size(const nlohmann::json& found, const std::string& name,
                  const mds_encoding& encoding) const {
    const std::optional<std::uint64_t> size = encoding.size();
    const bool same =
        size ? found.is_number_unsigned() && found.get<std::uint64_t>() == *size : found.is_null();
    if (same) return;
    throw_json_error(shard_.path(), "column " + detail::quoted(name) + ": found size " +
                                        found.dump() + ", expected " +
                                        (size ? std::to_string(*size) : "null") + " for encoding " +
                                        detail::quoted(encoding.name));
  }

  /// A shard lies in the index's folder or below.
  [[nodiscard]] std::string path_of(const json_object& file) const {
    const std::string name = file.text("basename").value_or("");
    const bool leaves = name.empty() || name.front() == '/' || name == ".." ||
                        name.starts_with("../") || name.ends_with("/..") ||
                        name.find("/../") != std::string::npos ||
                        name.find('\0') != std::string::npos;
    if (leaves) file.fail("basename", "the name of a file in the index's folder");
    return directory_ + name;
  }

  const json_object& shard_;
  std::string directory_;
};

}  // namespace detail

/// Reads the index of an MDS dataset.
/// @param path  The dataset's folder or its `index.json`.
/// @throws data_error  It is not an index of MDS shards of version 2, names an encoding that there
///                     is not, or a shard of which only a compressed form is there.
[[nodiscard]] inline mds_index read_mds_index(const std::string& path) {
  mds_index index;
  index.path = detail::mds_index_path(path);
  const std::string text = detail::read_json_text(index.path);
  digest_builder digest;
  digest.text(text);
  index.digest = digest.value();
  const nlohmann::json document = detail::parse_json(text, index.path);
  const detail::json_object top(document, index.path);
  if (top.number("version") != std::uint64_t{2}) top.fail("version", "2");
  const nlohmann::json* shards = top.find("shards");
  if (shards == nullptr || !shards->is_array()) top.fail("shards", "an array");
  const std::string directory = index.path.substr(0, index.path.rfind('/') + 1);
  std::vector<std::vector<std::string>> known;
  for (std::size_t i = 0; i < shards->size(); ++i) {
    const detail::json_object object((*shards)[i], index.path,
                                     "shards[" + std::to_string(i) + "].");
    const detail::mds_shard_parser parser(object, directory);
    std::vector<mds_column> columns = parser.columns();
    std::vector<std::string> names;
    for (const mds_column& column : columns) {
      names.push_back(column.name);
      names.push_back(column.encoding.name);
    }
    const auto at = std::find(known.begin(), known.end(), names);
    mds_shard shard = parser.shard();
    shard.columns = static_cast<std::size_t>(at - known.begin());
    if (at == known.end()) {
      known.push_back(std::move(names));
      index.columns.emplace_back(std::move(columns), index.path);
    }
    index.shards.push_back(std::move(shard));
  }
  return index;
}

/// One sample of an MDS dataset, in memory.
class mds_sample {
 public:
  mds_sample() = default;

  /// @throws state_error  There is no such column, as for all that take a column's name.
  [[nodiscard]] std::span<const std::byte> bytes(std::string_view column) const {
    return value(index(column));
  }
  /// A column of text, JSON, digits or bytes.
  /// @throws data_error  The column is of another kind.
  [[nodiscard]] std::string_view text(std::string_view column) const {
    const std::size_t at = index(column);
    const mds_kind kind = encoding(at).kind;
    if (kind != mds_kind::text && kind != mds_kind::json && kind != mds_kind::number_text &&
        kind != mds_kind::bytes) {
      fail(at, 0, "found encoding " + detail::quoted(encoding(at).name) + ", expected text");
    }
    const std::span<const std::byte> found = value(at);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }
  /// The numbers of an array, a scalar or raw pixels, or a column of bytes as such.
  /// @throws data_error  The value is not what its encoding says, or a pickle.
  [[nodiscard]] std::pair<payload_shape, std::span<const std::byte>> numbers(
      std::string_view column) const {
    const std::size_t at = index(column);
    const std::span<const std::byte> found = value(at);
    try {
      const mds_numbers header =
          detail::mds_header_reader(encoding(at), found, found.size()).read();
      return {header.shape, found.subspan(static_cast<std::size_t>(header.first_byte))};
    } catch (const detail::mds_fault& fault) {
      fail(at, fault.offset, fault.what);
    }
  }
  /// The number of a scalar column.
  /// @throws data_error  The column is of another kind, or the number does not fit.
  template <class T>
  [[nodiscard]] T scalar(std::string_view column) const {
    static_assert(std::is_arithmetic_v<T>);
    const std::pair<payload_shape, std::span<const std::byte>> value = numbers(column);
    const payload_shape& shape = value.first;
    const std::byte* const found = value.second.data();
    const std::size_t at = index(column);
    const bool real = shape.type >= payload_type::f16;
    if (encoding(at).kind != mds_kind::scalar || shape.type == payload_type::f16 ||
        real != std::is_floating_point_v<T>) {
      fail(at, 0,
           "found encoding " + detail::quoted(encoding(at).name) +
               ", expected a scalar of the wanted kind");
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (shape.type == payload_type::f32) return static_cast<T>(detail::load_number<float>(found));
      return static_cast<T>(detail::load_number<double>(found));
    } else {
      return detail::with_token_type(*detail::integer_type(shape.type), [&](auto zero) {
        const auto number = detail::load_number<decltype(zero)>(found);
        if (!std::in_range<T>(number)) {
          fail(at, 0, "found " + std::to_string(number) + ", expected a number that fits");
        }
        return static_cast<T>(number);
      });
    }
  }
  /// The encoded images, or images of raw pixels, of a column of one or of a list.
  /// @throws data_error  The value is not what its encoding says.
  [[nodiscard]] std::vector<std::span<const std::byte>> images(std::string_view column) const {
    const std::size_t at = index(column);
    const std::span<const std::byte> found = value(at);
    const auto part = [&](std::uint64_t offset, std::uint64_t bytes) {
      return found.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
    };
    std::vector<std::span<const std::byte>> images;
    try {
      detail::for_each_image(
          encoding(at), found.size(), part,
          [&](std::uint64_t first, std::uint64_t bytes) { images.push_back(part(first, bytes)); });
    } catch (const detail::mds_fault& fault) {
      fail(at, fault.offset, fault.what);
    }
    return images;
  }
  [[nodiscard]] std::span<const mds_column> columns() const noexcept { return columns_->columns(); }

 private:
  friend class mds_dataset;

  [[nodiscard]] std::size_t index(std::string_view column) const {
    const std::optional<std::size_t> at =
        columns_ == nullptr ? std::nullopt : columns_->find(column);
    if (!at) {
      detail::throw_state_error("found no column " + detail::quoted(column) +
                                " in an MDS sample, expected one of its columns");
    }
    return *at;
  }
  [[nodiscard]] const mds_encoding& encoding(std::size_t column) const noexcept {
    return columns_->columns()[column].encoding;
  }
  [[nodiscard]] std::span<const std::byte> value(std::size_t column) const noexcept {
    return std::span(bytes_).subspan(static_cast<std::size_t>(values_[column].offset - first_byte_),
                                     static_cast<std::size_t>(values_[column].bytes));
  }
  [[noreturn]] LANEPACK_COLD void fail(std::size_t column, std::uint64_t offset,
                                       const std::string& what) const {
    detail::throw_data_error(
        {.path = path_, .byte_offset = values_[column].offset + offset, .record = id_, .line = {}},
        "column " + detail::quoted(columns_->columns()[column].name) + ": " + what);
  }

  std::shared_ptr<const mds_index> owner_;
  const detail::mds_columns* columns_ = nullptr;
  std::string path_;
  record_id id_ = 0;
  std::uint64_t first_byte_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<mds_value> values_;
};

/// How an MDS dataset is opened.
struct mds_options {
  /// Threads that read the offsets of shards, at least 1.
  unsigned threads = available_threads();
  /// Shards that stay open, at least 1.
  std::size_t most_open_files = 128;
};

/// The samples of an MDS dataset, at random; 4 bytes of memory each.
/// @thread_safety  Const members may be called by any number of threads.
class mds_dataset {
 public:
  /// @param path  The dataset's folder or its `index.json`.
  /// @throws data_error      As `read_mds_index`, or a shard's offsets are not what they should be.
  /// @throws invalid_option  An option cannot work.
  /// @complexity  O(samples): the offsets of all shards are read.
  explicit mds_dataset(const std::string& path, const mds_options& options = {})
      : index_(std::make_shared<const mds_index>(read_mds_index(path))),
        files_(paths_of(*index_), options.most_open_files) {
    if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
    offsets_.resize(index_->shards.size());
    parallel_for(offsets_.size(), options.threads, [&](std::uint64_t i) {
      const auto shard = static_cast<std::size_t>(i);
      offsets_[shard] =
          detail::read_mds_offsets(*files_.open(shard), index_->shards[shard].samples);
    });
    for (const mds_shard& shard : index_->shards) firsts_.push_back(firsts_.back() + shard.samples);
    digest_builder digest;
    digest.text("mds");
    digest.digest(index_->digest);
    for (const std::vector<std::uint32_t>& offsets : offsets_) {
      digest.bytes(std::as_bytes(std::span(offsets)));
    }
    fingerprint_ = digest.value();
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return firsts_.back(); }
  [[nodiscard]] const mds_index& index() const noexcept { return *index_; }
  [[nodiscard]] digest128 fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::string describe() const {
    return "MDS " + index_->path + ": " + std::to_string(size()) + " samples in " +
           std::to_string(index_->shards.size()) + " shards";
  }

  /// Replaces `out[i]` by sample `ids[i]`.
  /// @throws state_error  There is no such sample.
  /// @throws data_error   A sample cannot be read or its sizes do not add up.
  void read(std::span<const record_id> ids, std::span<mds_sample> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    std::vector<file_range> ranges;
    for_each_shard(ids, [&](std::size_t shard, std::span<const std::size_t> places) {
      const std::shared_ptr<const input_file> file = files_.open(shard);
      const detail::mds_columns& columns = columns_of(shard);
      ranges.clear();
      for (const std::size_t place : places) {
        mds_sample& sample = out[place];
        const auto [begin, end] = bounds(shard, ids[place], columns);
        sample.owner_ = index_;
        sample.columns_ = &columns;
        sample.path_ = file->path();
        sample.id_ = ids[place];
        sample.first_byte_ = begin;
        sample.bytes_.resize(static_cast<std::size_t>(end - begin));
        ranges.push_back({begin, sample.bytes_});
      }
      file->read_ranges(ranges, [](std::size_t, std::size_t) {});
      for (const std::size_t place : places) {
        mds_sample& sample = out[place];
        columns.locate(sample.path_, sample.id_, sample.first_byte_,
                       sample.first_byte_ + sample.bytes_.size(), sample.bytes_, sample.values_);
      }
      file->check_unchanged();
    });
  }

  /// Replaces `out[i]` by the bytes of one column of sample `ids[i]`; no other column is read.
  /// @throws state_error  There is no such sample or column.
  /// @throws data_error   As `read`.
  void read_column(std::string_view column, std::span<const record_id> ids,
                   std::span<std::string> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    std::vector<std::byte> heads;
    std::vector<file_range> ranges;
    std::vector<mds_value> values;
    for_each_shard(ids, [&](std::size_t shard, std::span<const std::size_t> places) {
      const std::shared_ptr<const input_file> file = files_.open(shard);
      const detail::mds_columns& columns = columns_of(shard);
      const std::optional<std::size_t> number = columns.find(column);
      if (!number) {
        detail::throw_state_error("found no column " + detail::quoted(column) + " in " +
                                  file->path() + ", expected one of its columns");
      }
      const std::size_t head = columns.head_bytes();
      heads.resize(head * places.size());
      ranges.clear();
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::uint64_t begin = bounds(shard, ids[places[i]], columns).first;
        ranges.push_back({begin, std::span(heads).subspan(i * head, head)});
      }
      file->read_ranges(ranges, [](std::size_t, std::size_t) {});
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto [begin, end] = bounds(shard, ids[places[i]], columns);
        columns.locate(file->path(), ids[places[i]], begin, end, ranges[i].out, values);
        std::string& text = out[places[i]];
        text.resize(static_cast<std::size_t>(values[*number].bytes));
        ranges[i] = {values[*number].offset, std::as_writable_bytes(std::span(text))};
      }
      file->read_ranges(ranges, [](std::size_t, std::size_t) {});
      file->check_unchanged();
    });
  }

  /// Bytes of whole samples.
  /// @throws state_error  There is no such sample.
  void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      const std::size_t shard = shard_of(ids[i]);
      const auto sample = static_cast<std::size_t>(ids[i] - firsts_[shard]);
      out[i] = offsets_[shard][sample + 1] - offsets_[shard][sample];
    }
  }

 private:
  static std::vector<std::string> paths_of(const mds_index& index) {
    std::vector<std::string> paths;
    for (const mds_shard& shard : index.shards) paths.push_back(shard.path);
    return paths;
  }

  [[nodiscard]] const detail::mds_columns& columns_of(std::size_t shard) const noexcept {
    return index_->columns[index_->shards[shard].columns];
  }

  [[nodiscard]] std::size_t shard_of(record_id id) const noexcept {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), id);
    return static_cast<std::size_t>(after - firsts_.begin()) - 1;
  }

  /// The bytes of a sample, which hold its sizes at least.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> bounds(
      std::size_t shard, record_id id, const detail::mds_columns& columns) const {
    const auto sample = static_cast<std::size_t>(id - firsts_[shard]);
    const std::uint64_t begin = offsets_[shard][sample];
    const std::uint64_t end = offsets_[shard][sample + 1];
    if (end - begin < columns.head_bytes()) {
      detail::throw_data_error(
          {.path = files_.path(shard), .byte_offset = begin, .record = id, .line = {}},
          "found a sample of " + std::to_string(end - begin) + " bytes, expected at least " +
              std::to_string(columns.head_bytes()) + " for its sizes");
    }
    return {begin, end};
  }

  /// Calls `visit(shard, places)` for every shard that has one of the samples, with their places in
  /// `ids` by ascending id.
  template <class Visit>
  void for_each_shard(std::span<const record_id> ids, Visit&& visit) const {
    std::vector<std::size_t> order(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      order[i] = i;
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(ids[a], a) < std::pair(ids[b], b);
    });
    for (std::size_t first = 0; first < order.size();) {
      const std::size_t shard = shard_of(ids[order[first]]);
      std::size_t last = first + 1;
      while (last < order.size() && ids[order[last]] < firsts_[shard + 1]) ++last;
      visit(shard, std::span<const std::size_t>(order).subspan(first, last - first));
      first = last;
    }
  }

  std::shared_ptr<const mds_index> index_;
  file_pool files_;
  std::vector<std::vector<std::uint32_t>> offsets_;
  /// Number of the first sample of each shard, and of all samples.
  std::vector<std::uint64_t> firsts_{0};
  digest128 fingerprint_;
};

/// One column of an MDS dataset as documents; a `document_source`.
/// @thread_safety  Const members may be called by any number of threads.
class mds_documents {
 public:
  /// @param path    The dataset's folder or its `index.json`.
  /// @param column  A column of text, JSON or bytes.
  /// @throws data_error, invalid_option  As `mds_dataset`; a shard has no such column.
  explicit mds_documents(const std::string& path, std::string column = "text",
                         const mds_options& options = {})
      : dataset_(path, options), column_(std::move(column)) {
    for (const detail::mds_columns& columns : dataset_.index().columns) {
      const std::optional<std::size_t> at = columns.find(column_);
      const mds_kind kind = at ? columns.columns()[*at].encoding.kind : mds_kind::pickle;
      if (kind == mds_kind::text || kind == mds_kind::json || kind == mds_kind::bytes) continue;
      const std::string found =
          at ? "encoding " + detail::quoted(columns.columns()[*at].encoding.name)
             : "no such column";
      detail::throw_json_error(dataset_.index().path, "column " + detail::quoted(column_) +
                                                          ": found " + found +
                                                          ", expected str, json or bytes");
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return dataset_.size(); }
  void read(std::span<const record_id> ids, std::span<std::string> out) const {
    dataset_.read_column(column_, ids, out);
  }
  /// Bytes of the whole samples, a bound from above.
  void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const {
    dataset_.sizes(ids, out);
  }
  [[nodiscard]] digest128 fingerprint() const {
    digest_builder digest;
    digest.text(column_);
    digest.digest(dataset_.fingerprint());
    return digest.value();
  }
  [[nodiscard]] std::string describe() const { return dataset_.describe() + ", column " + column_; }

 private:
  mds_dataset dataset_;
  std::string column_;
};

static_assert(document_source<mds_documents>);

namespace detail {

[[nodiscard]] inline mds_chosen_columns choose_mds_columns(const mds_columns& columns,
                                                           const mds_record_options& options,
                                                           const std::string& path) {
  const auto required = [&](const std::string& name) {
    const std::optional<std::size_t> at = columns.find(name);
    if (at) return *at;
    std::string there;
    for (const mds_column& column : columns.columns()) {
      there += (there.empty() ? "" : ", ") + column.name + " (" + column.encoding.name + ")";
    }
    throw_json_error(
        path, "found the columns " + there + ", expected one called " + detail::quoted(name));
  };
  mds_chosen_columns chosen;
  const bool has_tokens = columns.find("tokens") || !columns.find("input_ids");
  chosen.tokens = required(!options.tokens.empty() ? options.tokens
                           : has_tokens            ? "tokens"
                                                   : "input_ids");
  if (!options.loss_mask.empty()) chosen.loss_mask = required(options.loss_mask);
  for (const std::string& name : options.payloads) chosen.payloads.push_back(required(name));
  if (!options.patches.payload.empty()) chosen.patches = required(options.patches.payload);
  return chosen;
}

}  // namespace detail

/// Opens an MDS dataset as records of tokens with payloads.
///
/// The first opening reads the sizes of all samples, the headers of arrays and, where patches are
/// counted, of images, and loss masks; the index is kept beside `index.json`.
/// @param path  The dataset's folder or its `index.json`.
/// @throws data_error      As `read_mds_index`, a shard lacks a column, or a sample is not what
///                         index and encodings say.
/// @throws invalid_option  An option cannot work.
[[nodiscard]] inline shard_source open_mds(const std::string& path,
                                           const mds_record_options& options = {},
                                           const shard_options& shards = {}) {
  validate(options.patches);
  const mds_index index = read_mds_index(path);
  std::vector<detail::mds_chosen_columns> chosen;
  for (const detail::mds_columns& columns : index.columns) {
    chosen.push_back(detail::choose_mds_columns(columns, options, index.path));
  }
  digest_builder variant;
  variant.digest(index.digest);
  variant.text(options.tokens);
  variant.number(static_cast<std::uint64_t>(options.bytes_type));
  variant.text(options.loss_mask);
  for (const std::string& name : options.payloads) variant.text(name);
  variant.text(options.patches.payload);
  variant.number(static_cast<std::uint64_t>(options.patches.from));
  variant.number(std::uint64_t{options.patches.patch_pixels} << 32 | options.patches.merge);
  shard_corpus corpus{.format = "MDS",
                      .path = index.path,
                      .files = {},
                      .payload_names = options.payloads,
                      .variant = "mds " + variant.value().hex(),
                      .scan = [&](const input_file& file, std::uint32_t number) {
                        const mds_shard& shard = index.shards[number];
                        return detail::mds_record_scan(file, number, index.columns[shard.columns],
                                                       chosen[shard.columns], options)
                            .run(shard.samples);
                      }};
  for (const mds_shard& shard : index.shards) corpus.files.push_back(shard.path);
  return shard_source(corpus, shards);
}

}  // namespace lanepack::inline LANEPACK_ABI
