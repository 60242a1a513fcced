#pragma once

/// @file
/// The bodies of the functions in open.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/megatron.hpp>
#include <lanepack/corpus/npy.hpp>
#include <lanepack/corpus/open.hpp>
#include <lanepack/corpus/opened.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/token_file.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// First bytes of a file as text for a message.
inline std::string first_bytes_text(const input_file& file) {
  if (file.size() == 0) return "an empty file";
  std::array<std::byte, 8> raw{};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(raw.size(), file.size()));
  file.read_at(0, std::span(raw).first(count));
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "a file that starts with the bytes";
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = std::to_integer<unsigned>(raw[i]);
    text += ' ';
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

inline bool starts_with(const input_file& file, std::string_view wanted) {
  if (file.size() < wanted.size()) return false;
  std::string raw(wanted.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(raw.data(), raw.size())));
  return raw == wanted;
}

inline bool has_llm_c_magic(const input_file& file) {
  std::array<std::byte, sizeof(std::int32_t)> raw{};
  if (file.size() < raw.size()) return false;
  file.read_at(0, raw);
  return is_llm_c_magic(load_number<std::int32_t>(raw.data()));
}

}  // namespace detail

LANEPACK_FUNCTION std::optional<corpus_format> find_corpus_format(const std::string& path,
                                                                  const open_options& options) {
  if (options.format) return options.format;
  const bool is_index = path.ends_with(".idx");
  const bool is_bin = path.ends_with(".bin");
  if (!is_index && !is_bin && !identify_file(path) && identify_file(path + ".idx")) {
    return corpus_format::megatron;
  }
  const input_file file(path);
  if (is_index) return corpus_format::megatron;
  if (detail::starts_with(file, npy_magic)) return corpus_format::npy_lengths;
  if (detail::has_llm_c_magic(file)) return corpus_format::token_file;
  if (is_bin && identify_file(detail::megatron_prefix(path) + ".idx")) {
    return corpus_format::megatron;
  }
  if (path.ends_with(".u32")) return corpus_format::u32_lengths;
  // A prefix may also be the name of a file of another kind.
  if (!is_bin && identify_file(path + ".idx") && identify_file(path + ".bin")) {
    return corpus_format::megatron;
  }
  if (options.tokens.type) return corpus_format::token_file;
  return std::nullopt;
}

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_unknown_format(const std::string& path) {
  const input_file file(path);
  std::string expected =
      ", expected a Megatron-LM .bin/.idx, a token file of llm.c, lengths as .npy or .u32";
  if (path.ends_with(".bin")) {
    expected = ", expected " + megatron_prefix(path) +
               ".idx beside it (Megatron-LM), the header of llm.c, or for tokens without a header "
               "(nanoGPT) their type: token_file_options::type = token_type::u16, --dtype u16 of "
               "the programs";
  } else if (starts_with(file, "{")) {
    expected +=
        "; this looks like JSON Lines, which open_any_corpus of lanepack/json.hpp (component json) "
        "reads";
  }
  throw_file_error_at(path, 0, "found " + first_bytes_text(file) + expected);
}

inline opened_corpus open_megatron(const std::string& path, const open_options& options) {
  const std::string prefix = megatron_prefix(path);
  megatron_options chosen = options.megatron;
  chosen.threads = options.threads;
  chosen.known_fingerprint.reset();
  // The fingerprint is the one thing that costs time on a large corpus, so it is taken from the
  // summary where the files are those that the summary was made from.
  const auto index = identify_file(prefix + ".idx");
  const auto bin = identify_file(prefix + ".bin");
  if (options.summary != summary_use::none && !options.verify_summary && index && bin) {
    const bool has_mask = has_loss_mask(prefix, chosen);
    cache_key key{.files = {*index, *bin}, .variant = megatron_variant(chosen, has_mask)};
    if (has_mask) {
      const std::vector<file_identity> more = loss_mask_identities(prefix);
      key.files.insert(key.files.end(), more.begin(), more.end());
    }
    if (auto saved = load_summary(summary_path_of(prefix, key.variant, options), key)) {
      chosen.known_fingerprint = saved->fingerprint;
      megatron_source source(prefix, chosen);
      if (source.identity() == key) {
        return opened(std::move(source), prefix, corpus_format::megatron, options,
                      std::move(saved));
      }
      chosen.known_fingerprint.reset();
    }
  }
  return opened(megatron_source(prefix, chosen), prefix, corpus_format::megatron, options);
}

}  // namespace detail

LANEPACK_FUNCTION opened_corpus open_corpus(const std::string& path, const open_options& options) {
  if (options.threads == 0) detail::throw_invalid_option("threads", "0", "at least 1");
  const std::optional<corpus_format> format = find_corpus_format(path, options);
  if (!format) detail::throw_unknown_format(path);
  switch (*format) {
    case corpus_format::megatron:
      return detail::open_megatron(path, options);
    case corpus_format::token_file: {
      token_file_options chosen = options.tokens;
      chosen.threads = options.threads;
      chosen.progress = options.progress;
      return detail::opened(token_file_source(path, chosen), path, *format, options);
    }
    case corpus_format::npy_lengths:
      return detail::opened(length_source::from_npy(path, options.lengths_access), path, *format,
                            options);
    case corpus_format::u32_lengths:
      break;
  }
  return detail::opened(length_source::from_u32(path, options.lengths_access), path, *format,
                        options);
}

}  // namespace lanepack::inline LANEPACK_ABI
