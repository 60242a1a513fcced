#pragma once

/// @file
/// MosaicML MDS datasets as the input of a conversion.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/shard_source.hpp>
#include <lanepack/json/mds.hpp>

#include "convert/input.hpp"
#include "convert/options.hpp"

namespace lanepack_programs {

/// Whether a folder, or a file called index.json, is an MDS dataset.
inline bool is_mds_dataset(const std::string& path) {
  const std::string index = lanepack::detail::mds_index_path(path);
  if (!index.ends_with("index.json") || !lanepack::identify_file(index)) return false;
  const nlohmann::json top =
      nlohmann::json::parse(lanepack::detail::read_json_text(index), nullptr, false);
  return top.is_object() && top.contains("shards");
}

/// What the samples of a dataset are, by their columns or as the options say.
/// @throws lanepack::data_error  The columns are of no known kind, or of more than one.
inline document_kind judge_columns(const lanepack::mds_index& index,
                                   const convert_options& options) {
  std::string there;
  bool has_text = !index.columns.empty();
  bool has_tokens = has_text;
  bool has_chat = has_text;
  for (const lanepack::detail::mds_columns& columns : index.columns) {
    const auto has = [&](std::string_view name) { return columns.find(name).has_value(); };
    has_text = has_text && has(options.text_field);
    has_tokens = has_tokens && (options.token_key.empty() ? has("tokens") || has("input_ids")
                                                          : has(options.token_key));
    has_chat = has_chat && (has("messages") || has("conversations") || has("instruction"));
    for (const lanepack::mds_column& column : columns.columns()) {
      there += (there.empty() ? "" : ", ") + column.name + " (" + column.encoding.name + ")";
    }
  }
  switch (options.content) {
    case line_content::text:
      return document_kind::text;
    case line_content::tokens:
      return document_kind::token_bytes;
    case line_content::chat:
      return document_kind::chat_line;
    case line_content::automatic:
      break;
  }
  if (has_text + has_tokens + has_chat == 1) {
    return has_text     ? document_kind::text
           : has_tokens ? document_kind::token_bytes
                        : document_kind::chat_line;
  }
  throw lanepack::data_error(
      {.path = index.path},
      "found the columns " + there + ", expected one of " + options.text_field +
          " (text), tokens or input_ids, and messages, conversations or instruction (chat); "
          "--content says which it is, --text-field and --token-key name others");
}

/// Size and time of the files of a dataset, for `convert_input::identity`.
inline nlohmann::ordered_json mds_identity(const lanepack::mds_index& index) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  all.push_back(file_entry(index.path, lanepack::input_file(index.path).identity()));
  for (const lanepack::mds_shard& shard : index.shards) {
    all.push_back(file_entry(shard.path, lanepack::input_file(shard.path).identity()));
  }
  return all;
}

/// The samples of a dataset as lines of JSON, out of their columns of text, numbers as text and
/// JSON; a `document_source`.
/// @thread_safety  Const members may be called by any number of threads.
class mds_lines {
 public:
  explicit mds_lines(const std::string& path) : dataset_(path) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return dataset_.size(); }
  void read(std::span<const lanepack::record_id> ids, std::span<std::string> out) const {
    std::vector<lanepack::mds_sample> samples(ids.size());
    dataset_.read(ids, samples);
    for (std::size_t i = 0; i < ids.size(); ++i) out[i] = line_of(samples[i], ids[i]);
  }
  void sizes(std::span<const lanepack::record_id> ids, std::span<std::uint64_t> out) const {
    dataset_.sizes(ids, out);
  }
  [[nodiscard]] lanepack::digest128 fingerprint() const { return dataset_.fingerprint(); }
  [[nodiscard]] std::string describe() const { return dataset_.describe(); }

 private:
  [[nodiscard]] std::string quoted_json(const std::string& column, std::string_view text,
                                        lanepack::record_id id) const {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
      throw lanepack::data_error({.path = dataset_.index().path, .record = id},
                                 "column " + lanepack::detail::quoted(column) +
                                     ": found bytes that are no UTF-8, expected UTF-8");
    }
  }

  [[nodiscard]] std::string line_of(const lanepack::mds_sample& sample,
                                    lanepack::record_id id) const {
    std::string line = "{";
    for (const lanepack::mds_column& column : sample.columns()) {
      const lanepack::mds_kind kind = column.encoding.kind;
      const bool is_text = kind == lanepack::mds_kind::text;
      if (!is_text && kind != lanepack::mds_kind::json) continue;
      const std::string_view value = sample.text(column.name);
      // Turns are often kept as a text of JSON.
      const bool is_turns = column.name == "messages" || column.name == "conversations";
      const bool raw = !is_text || (is_turns && value.starts_with("["));
      line += (line.size() == 1 ? "" : ",") + nlohmann::json(column.name).dump() + ":";
      line += raw ? std::string(value) : quoted_json(column.name, value, id);
    }
    return line + "}";
  }

  lanepack::mds_dataset dataset_;
};

/// The token ids of a dataset's samples, 4 bytes each, with a byte of loss mask for each behind
/// them where there is one; a `document_source`.
/// @thread_safety  Const members may be called by any number of threads.
class mds_token_bytes {
 public:
  mds_token_bytes(const std::string& path, const lanepack::mds_record_options& options)
      : records_(lanepack::open_mds(path, options, {.cache_index = false})),
        has_mask_(!options.loss_mask.empty()) {}

  [[nodiscard]] std::uint64_t size() const { return records_.size(); }
  void read(std::span<const lanepack::record_id> ids, std::span<std::string> out) const {
    std::vector<lanepack::record_shape> shapes(ids.size());
    records_.shapes(ids, shapes);
    std::vector<std::vector<std::int32_t>> tokens(ids.size());
    std::vector<std::vector<std::uint8_t>> masks(ids.size());
    std::vector<lanepack::record_read> reads(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      tokens[i].resize(static_cast<std::size_t>(shapes[i].tokens));
      if (has_mask_) masks[i].resize(tokens[i].size());
      reads[i] = {.id = ids[i], .first_token = 0, .tokens = tokens[i], .loss_mask = masks[i]};
    }
    records_.read(reads);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto bytes = std::as_bytes(std::span(tokens[i]));
      out[i].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      out[i].append(reinterpret_cast<const char*>(masks[i].data()), masks[i].size());
    }
  }
  void sizes(std::span<const lanepack::record_id> ids, std::span<std::uint64_t> out) const {
    std::vector<lanepack::record_shape> shapes(ids.size());
    records_.shapes(ids, shapes);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out[i] = shapes[i].tokens * (sizeof(std::int32_t) + (has_mask_ ? 1 : 0));
    }
  }
  [[nodiscard]] lanepack::digest128 fingerprint() const { return records_.fingerprint(); }
  [[nodiscard]] std::string describe() const { return records_.describe(); }

 private:
  lanepack::shard_source records_;
  bool has_mask_;
};

/// Opens a dataset whose samples are of a kind.
inline std::unique_ptr<convert_input> open_mds_input(const std::string& path, document_kind kind,
                                                     const convert_options& options) {
  nlohmann::ordered_json identity = mds_identity(lanepack::read_mds_index(path));
  if (kind == document_kind::text) {
    return std::make_unique<source_input<lanepack::mds_documents>>(
        lanepack::mds_documents(path, options.text_field), std::move(identity), options.part_bytes);
  }
  if (kind == document_kind::chat_line) {
    return std::make_unique<source_input<mds_lines>>(mds_lines(path), std::move(identity),
                                                     options.part_bytes);
  }
  return std::make_unique<source_input<mds_token_bytes>>(
      mds_token_bytes(path, {.tokens = options.token_key,
                             .bytes_type = options.bytes_type,
                             .loss_mask = options.mask_column}),
      std::move(identity), options.part_bytes);
}

}  // namespace lanepack_programs
