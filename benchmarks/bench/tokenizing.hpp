#pragma once

/// @file
/// Benchmarks of tokenizers: text of a file in documents, on one thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/file.hpp>
#include <lanepack/json/tokenizer_json.hpp>
#include <lanepack/tokenizer.hpp>

#include "bench/harness.hpp"
#include "bench/planning.hpp"
#include "bench/reference.hpp"

namespace lanepack_bench {

/// A file's bytes as documents of whole lines, each of 4096 bytes or more but the last.
/// `reference.py` cuts in the same way.
struct documents {
  explicit documents(const std::string& path) {
    const lanepack::input_file file(path);
    bytes.resize(static_cast<std::size_t>(file.size()));
    file.read_at(0, std::as_writable_bytes(std::span(bytes)));
    const std::string_view all = bytes;
    for (std::size_t first = 0; first < all.size();) {
      const std::size_t line = all.find('\n', std::min(first + 4095, all.size() - 1));
      const std::size_t last = line == std::string_view::npos ? all.size() : line + 1;
      parts.push_back(all.substr(first, last - first));
      first = last;
    }
  }
  documents(const documents&) = delete;
  documents& operator=(const documents&) = delete;

  std::string bytes;
  std::vector<std::string_view> parts;
};

template <class Tokenizer>
std::uint64_t encode_all(const documents& text, const Tokenizer& tokenizer,
                         std::vector<std::int32_t>& ids) {
  std::uint64_t sum = 0;
  for (const std::string_view document : text.parts) {
    ids.clear();
    tokenizer.encode(document, ids);
    for (const std::int32_t id : ids) sum = mixed(sum, static_cast<std::uint64_t>(id));
  }
  return sum;
}

inline comparison tokenizer_case(const std::string& tokenizer_path, const std::string& text_path,
                                 const settings& how) {
  const auto text = std::make_shared<const documents>(text_path);
  const auto tokenizer = std::make_shared<const lanepack::byte_pair_encoding>(
      lanepack::read_tokenizer_json(tokenizer_path).tokenizer);
  const auto ids = std::make_shared<std::vector<std::int32_t>>();
  comparison out;
  out.item = "bytes";
  out.items_per_run = static_cast<double>(text->bytes.size());
  out.bytes_per_run = out.items_per_run;
  out.variants.push_back(
      {"byte_pair_encoding", [=] { return encode_all(*text, *tokenizer, *ids); }});
  const lanepack::split_pattern split = tokenizer->options().split;
  out.variants.push_back({"pieces", [=] {
                            std::uint64_t sum = 0;
                            for (const std::string_view document : text->parts) {
                              lanepack::for_each_piece(
                                  split, document,
                                  [&](std::string_view piece) { sum = mixed(sum, piece.size()); });
                            }
                            return sum;
                          }});
  const auto bytes = std::make_shared<const lanepack::byte_level_tokenizer>();
  out.variants.push_back({"byte_level", [=] { return encode_all(*text, *bytes, *ids); }});
  if (how.references) {
    const std::size_t lanepack_alone = out.variants.size();
    add_reference(out, {"tokenizers", tokenizer_path, text_path});
    if (out.variants.size() > lanepack_alone &&
        out.variants.back().run() != out.variants.front().run()) {
      throw std::runtime_error(tokenizer_path + ": " + out.variants.back().name +
                               " has other ids for " + text_path);
    }
  }
  return out;
}

/// Adds the tokenizers of the tests, or the one at `tokenizer` where it is not empty.
inline void add_tokenizing_benchmarks(std::vector<benchmark>& out, const std::string& tokenizer,
                                      const std::string& text) {
  const std::string folder = LANEPACK_BENCH_TOKENIZERS;
  std::vector<std::string> files = {tokenizer};
  if (tokenizer.empty()) {
    files.clear();
    for (const char* name : {"gpt2", "llama3", "qwen2", "o200k"}) {
      files.push_back(folder + "/" + name + ".json");
    }
  }
  const std::string text_path = text.empty() ? folder + "/texts.json" : text;
  for (const std::string& file : files) {
    // An installed program may be far from lanepack's sources.
    if (tokenizer.empty() && !lanepack::identify_file(file)) continue;
    const std::size_t slash = file.rfind('/');
    out.push_back({"tokenizer/file=" + (slash == std::string::npos ? file : file.substr(slash + 1)),
                   [=](const settings& how) { return tokenizer_case(file, text_path, how); }});
  }
}

}  // namespace lanepack_bench
