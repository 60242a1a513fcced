#pragma once

/// @file
/// The `tokenizer` concept: what turns text into token ids and back.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A fixed map from text to token ids.
///
/// Semantic requirements on a model:
/// - const members may be called by any number of threads at once, and their results depend on the
///   tokenizer and the arguments alone;
/// - `encode(text, out)` appends the ids of `text`, any bytes, to `out`, adds nothing of its own
///   (no begin or end of text), and takes what looks like a special token for ordinary text, so
///   that nobody can smuggle one in; where it throws, `out` may have grown;
/// - ids are at least 0 and below `vocabulary_size()`, which may count ids without a meaning;
/// - `special_token(text)` is the id of the special or added token that is spelled `text`, nullopt
///   where there is none;
/// - `decode(ids)` is the text of the ids together, special tokens as they are spelled where they
///   have a text; a state_error where an id has no meaning.
template <class Tokenizer>
concept tokenizer = requires(const Tokenizer& tokenizer, std::string_view text,
                             std::vector<std::int32_t>& out, std::span<const std::int32_t> ids) {
  tokenizer.encode(text, out);
  { tokenizer.decode(ids) } -> std::same_as<std::string>;
  { tokenizer.vocabulary_size() } -> std::same_as<std::uint64_t>;
  { tokenizer.special_token(text) } -> std::same_as<std::optional<std::int32_t>>;
};

namespace detail {

[[noreturn]] LANEPACK_COLD inline void throw_unknown_token(std::int32_t id, std::uint64_t size) {
  throw_state_error("token id: found " + std::to_string(id) +
                    ", expected the id of a token, below " + std::to_string(size));
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
