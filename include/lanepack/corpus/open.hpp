#pragma once

/// @file
/// `open_corpus`: finds out what a path holds and opens it, with its cached summary.

#include <optional>
#include <string>

#include <lanepack/core/config.hpp>
#include <lanepack/corpus/open_options.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The format of what is at `path`, or nullopt where it is none that `open_corpus` knows.
///
/// A prefix or a `.bin` beside an `.idx` is Megatron-LM's; otherwise the magic of the first bytes
/// decides, and then the extension. A file without a header can be recognised only where
/// `options.tokens.type` is given.
/// @throws data_error  There is no file at `path`, or it cannot be read.
[[nodiscard]] LANEPACK_FUNCTION std::optional<corpus_format> find_corpus_format(
    const std::string& path, const open_options& options = {});

/// Opens the corpus at `path`, whatever its format.
/// @param path  A file, or the prefix of a Megatron-LM corpus.
/// @throws data_error      There is no such file, no known format, or the format's own complaints.
/// @throws invalid_option  As the format's source.
/// @complexity  O(1) for a Megatron-LM corpus, the summary's size aside; see each source for the
///              other formats. With `summary_use::always` and none saved, O(records).
[[nodiscard]] LANEPACK_FUNCTION opened_corpus open_corpus(const std::string& path,
                                                          const open_options& options = {});

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/corpus/open.ipp>
#endif
