#pragma once

/// @file
/// Hugging Face `tokenizer.json` with a byte-level byte pair encoding.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/json/object.hpp>
#include <lanepack/tokenizer/byte_pair_encoding.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a `tokenizer.json` describes.
struct tokenizer_json {
  byte_pair_encoding tokenizer;
  /// Ids that the file's post-processor puts before a single text, such as Llama 3's
  /// `<|begin_of_text|>`. `encode` leaves them to the caller.
  std::vector<std::int32_t> text_start;
  /// Ids that it puts after one.
  std::vector<std::int32_t> text_end;
};

namespace detail {

/// Bytes by the characters that stand for them in a byte-level vocabulary: what is printable in
/// Latin-1 is itself, the other bytes follow from U+0100 on.
class byte_alphabet {
 public:
  byte_alphabet() {
    bytes_.fill(-1);
    std::size_t next = 0x100;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const bool is_itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      bytes_[is_itself ? byte : next++] = static_cast<std::int16_t>(byte);
    }
  }

  /// The bytes that `text` stands for; nullopt where a character stands for none.
  [[nodiscard]] std::optional<std::string> decode(std::string_view text) const {
    std::string out;
    out.reserve(text.size());
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
      const code_point point = decode_utf8(p, end);
      if (point.value >= bytes_.size() || bytes_[point.value] < 0) return std::nullopt;
      out.push_back(static_cast<char>(static_cast<unsigned char>(bytes_[point.value])));
      p += point.bytes;
    }
    return out;
  }

 private:
  // 68 bytes are not themselves.
  std::array<std::int16_t, 0x100 + 68> bytes_{};
};

class tokenizer_json_reader {
 public:
  explicit tokenizer_json_reader(const json_object& top) : top_(top) {}

  [[nodiscard]] tokenizer_json read() {
    read_normalizer();
    read_pre_tokenizer();
    const std::optional<json_object> model = top_.object("model");
    if (!model) top_.fail("model", "a byte-level BPE model");
    read_model(*model);
    read_added_tokens();
    try {
      tokenizer_json out{byte_pair_encoding(std::move(vocabulary_), options_), {}, {}};
      read_post_processor(out);
      return out;
    } catch (const invalid_option& e) {
      throw_json_error(top_.path(), std::string("the vocabulary is broken: ") + e.what());
    }
  }

 private:
  using json = nlohmann::json;

  [[nodiscard]] json_object object_at(const json& value, const std::string& name) const {
    return json_object(value, top_.path(), name + ".");
  }

  /// The parts of a `Sequence`, or the one that is there alone.
  [[nodiscard]] std::vector<json_object> parts_of(const char* key, const char* list_key) const {
    std::vector<json_object> parts;
    const std::optional<json_object> whole = top_.object(key);
    if (!whole) return parts;
    if (whole->text("type") != "Sequence") {
      parts.push_back(*whole);
      return parts;
    }
    const json* list = whole->find(list_key);
    if (list == nullptr || !list->is_array()) whole->fail(list_key, "an array of objects");
    for (std::size_t i = 0; i < list->size(); ++i) {
      parts.push_back(
          object_at((*list)[i], std::string(key) + "." + list_key + "[" + std::to_string(i) + "]"));
    }
    return parts;
  }

  void read_normalizer() {
    for (const json_object& part : parts_of("normalizer", "normalizers")) {
      if (part.text("type") != "NFC") part.fail("type", "\"NFC\", or no normalizer");
      options_.normalization = text_normalization::nfc;
    }
  }

  void read_pre_tokenizer() {
    const std::vector<json_object> parts = parts_of("pre_tokenizer", "pretokenizers");
    constexpr auto wanted = "\"ByteLevel\", or a sequence of \"Split\" and \"ByteLevel\"";
    if (parts.empty() || parts.size() > 2) top_.fail("pre_tokenizer", wanted);
    const json_object& last = parts.back();
    if (last.text("type") != "ByteLevel") last.fail("type", wanted);
    const bool uses_regex = last.flag("use_regex").value_or(true);
    options_.add_prefix_space = last.flag("add_prefix_space").value_or(true);
    options_.split = uses_regex ? split_pattern::gpt2 : split_pattern::none;
    if (parts.size() == 1) return;
    if (uses_regex) last.fail("use_regex", "false after a \"Split\"");
    if (options_.add_prefix_space) last.fail("add_prefix_space", "false after a \"Split\"");
    if (parts[0].text("type") != "Split") parts[0].fail("type", wanted);
    options_.split = read_split(parts[0]);
  }

  [[nodiscard]] split_pattern read_split(const json_object& split) const {
    // All of a text matches these patterns, so both ways to ask for the matches are the same.
    const bool is_inverted = split.flag("invert").value_or(false);
    if (split.text("behavior") != (is_inverted ? "Removed" : "Isolated")) {
      split.fail("behavior", "\"Isolated\", or \"Removed\" with \"invert\"");
    }
    const std::optional<json_object> pattern = split.object("pattern");
    const std::optional<std::string> regex =
        pattern ? pattern->text("Regex") : std::optional<std::string>();
    if (!regex) split.fail("pattern", "{\"Regex\": \"...\"}");
    const std::optional<split_pattern> known = find_split_pattern(*regex);
    if (known) return *known;
    std::string names;
    for (const named_split_pattern& each : split_patterns()) {
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
    constexpr std::size_t most = 1000;
    throw_json_error(top_.path(), "key \"pre_tokenizer\": found the split pattern " +
                                      detail::quoted(std::string_view(*regex).substr(0, most)) +
                                      ", expected that of " + names);
  }

  void read_model(const json_object& model) {
    if (model.has("type") && model.text("type") != "BPE") model.fail("type", "\"BPE\"");
    const json* dropout = model.find("dropout");
    if (dropout != nullptr && !(dropout->is_number() && dropout->get<double>() == 0)) {
      model.fail("dropout", "none: a corpus is encoded the same way every time");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.text(key).value_or("").empty()) model.fail(key, "none");
    }
    options_.ignore_merges = model.flag("ignore_merges").value_or(false);
    read_vocabulary(model);
    read_merges(model);
  }

  void read_vocabulary(const json_object& model) {
    const json* vocabulary = model.find("vocab");
    if (vocabulary == nullptr || !vocabulary->is_object()) {
      model.fail("vocab", "an object of tokens and their ids");
    }
    vocab_ = vocabulary;
    std::vector<std::string>& tokens = vocabulary_.tokens;
    std::vector<bool> taken;
    for (const auto& [text, value] : vocabulary->items()) {
      const bool is_id = value.is_number_unsigned() &&
                         value.template get<std::uint64_t>() < byte_pair_encoding::max_tokens;
      if (!is_id || text.empty()) {
        throw_json_error(top_.path(),
                         "key \"model.vocab\": found " + detail::quoted(shortened(text)) + ": " +
                             value.dump().substr(0, 60) + ", expected a token and an id below " +
                             std::to_string(byte_pair_encoding::max_tokens));
      }
      const auto id = value.template get<std::size_t>();
      if (id >= taken.size()) taken.resize(id + 1);
      if (taken[id]) {
        throw_json_error(top_.path(), "key \"model.vocab\": found the id " + std::to_string(id) +
                                          " twice, the second time for " +
                                          detail::quoted(shortened(text)) +
                                          ", expected different ids");
      }
      taken[id] = true;
      std::optional<std::string> bytes = alphabet_.decode(text);
      if (bytes) {
        if (id >= tokens.size()) tokens.resize(id + 1);
        tokens[id] = std::move(*bytes);
      } else {
        vocabulary_.decoded_only.emplace_back(static_cast<std::int32_t>(id), text);
      }
    }
  }

  void read_merges(const json_object& model) {
    const json* merges = model.find("merges");
    if (merges == nullptr || !merges->is_array()) model.fail("merges", "an array of merges");
    token_table ids;
    std::vector<bool> listed;
    for (const std::string& token : vocabulary_.tokens) listed.push_back(!token.empty());
    ids.build(vocabulary_.tokens, listed);
    vocabulary_.merges.reserve(merges->size());
    std::string both;
    for (const json& merge : *merges) {
      const auto [left, right] = parts_of_merge(merge);
      const std::optional<std::string> first = alphabet_.decode(left);
      const std::optional<std::string> second = alphabet_.decode(right);
      const auto id_of = [&](std::string_view bytes) {
        return bytes.empty() ? -1 : ids.find(bytes, vocabulary_.tokens);
      };
      byte_pair_merge found{-1, -1, -1};
      if (first && second) {
        found.left = id_of(*first);
        found.right = id_of(*second);
        both.assign(*first).append(*second);
        found.merged = id_of(both);
      }
      if (found.left < 0 || found.right < 0 || found.merged < 0) {
        refuse_merge(merge, "tokens of the vocabulary that make up another one");
      }
      vocabulary_.merges.push_back(found);
    }
  }

  /// `"a b"`, or `["a", "b"]`.
  [[nodiscard]] std::pair<std::string_view, std::string_view> parts_of_merge(
      const json& merge) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
    }
    if (merge.is_string()) {
      const std::string_view text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    refuse_merge(merge, "two tokens");
  }

  [[noreturn]] LANEPACK_COLD void refuse_merge(const json& merge,
                                               const std::string& expected) const {
    const std::string text = merge.dump(-1, ' ', true, json::error_handler_t::replace);
    throw_json_error(top_.path(), "key \"model.merges\", merge " +
                                      std::to_string(vocabulary_.merges.size()) + ": found " +
                                      shortened(text) + ", expected " + expected);
  }

  void read_added_tokens() {
    const json* list = top_.find("added_tokens");
    if (list == nullptr) return;
    if (!list->is_array()) top_.fail("added_tokens", "an array of objects");
    for (std::size_t i = 0; i < list->size(); ++i) {
      const json_object each = object_at((*list)[i], "added_tokens[" + std::to_string(i) + "]");
      const std::optional<std::string> text = each.text("content");
      if (!text) each.fail("content", "a string");
      const std::uint64_t id = each.required({"id"});
      if (id >= byte_pair_encoding::max_tokens) {
        each.fail("id", "an id below " + std::to_string(byte_pair_encoding::max_tokens));
      }
      // The reference passes over them too.
      if (text->empty()) continue;
      const auto own = vocab_->find(*text);
      if (own != vocab_->end() && own->get<std::uint64_t>() != id) {
        each.fail("id", "the token's id in \"model.vocab\", " + own->dump());
      }
      vocabulary_.added.push_back({.text = *text,
                                   .id = static_cast<std::int32_t>(id),
                                   .special = each.flag("special").value_or(false),
                                   .normalized = each.flag("normalized").value_or(false),
                                   .strip_left = each.flag("lstrip").value_or(false),
                                   .strip_right = each.flag("rstrip").value_or(false),
                                   .single_word = each.flag("single_word").value_or(false)});
    }
  }

  /// Special tokens around the text in a `TemplateProcessing`; other processors add none.
  void read_post_processor(tokenizer_json& out) const {
    for (const json_object& part : parts_of("post_processor", "processors")) {
      if (part.text("type") != "TemplateProcessing") continue;
      const json* single = part.find("single");
      if (single == nullptr || !single->is_array()) part.fail("single", "an array of objects");
      std::vector<std::int32_t>* ids = &out.text_start;
      for (const json& piece : *single) {
        const json_object named = object_at(piece, "post_processor.single");
        if (named.has("Sequence")) ids = &out.text_end;
        const std::optional<json_object> special = named.object("SpecialToken");
        if (!special) continue;
        const std::optional<std::string> text = special->text("id");
        const std::optional<std::int32_t> id =
            text ? out.tokenizer.special_token(*text) : std::optional<std::int32_t>();
        if (!id) special->fail("id", "the spelling of an added token");
        ids->push_back(*id);
      }
    }
  }

  static std::string shortened(std::string_view text) {
    constexpr std::size_t most = 60;
    return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
  }

  const json_object& top_;
  /// Every value is an id once the vocabulary is read.
  const json* vocab_ = nullptr;
  byte_alphabet alphabet_;
  byte_pair_vocabulary vocabulary_;
  byte_pair_options options_;
};

}  // namespace detail

/// Reads a tokenizer from the text of a Hugging Face `tokenizer.json`.
///
/// Known are BPE models over bytes: pre-tokenizer `ByteLevel`, alone or after a `Split` by one of
/// `split_patterns()`, normalizer `NFC` or none, added tokens with all their flags. Ids are those
/// of the package `tokenizers` with `encode_special_tokens`: what looks like a special token in a
/// text is text. Truncation and padding in the file do not count, nor does its decoder.
/// @param path  Named in errors.
/// @throws data_error  It is not JSON, or not such a tokenizer, or its vocabulary is broken; names
///         the key, what was found and what was expected.
/// @complexity  O(bytes log tokens).
[[nodiscard]] inline tokenizer_json parse_tokenizer_json(std::string_view text,
                                                         const std::string& path = {}) {
  const nlohmann::json document = detail::parse_json(text, path);
  const detail::json_object top(document, path);
  return detail::tokenizer_json_reader(top).read();
}

/// Reads a tokenizer from a Hugging Face `tokenizer.json` of at most 64 MiB.
/// @throws data_error  As `parse_tokenizer_json`; also where the file cannot be read.
[[nodiscard]] inline tokenizer_json read_tokenizer_json(const std::string& path) {
  return parse_tokenizer_json(detail::read_json_text(path), path);
}

}  // namespace lanepack::inline LANEPACK_ABI
