#pragma once

/// @file
/// How a Megatron-LM corpus is opened.

#include <cstdint>
#include <optional>

#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/file_access.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a record is in a Megatron-LM corpus.
enum class megatron_record : std::uint8_t {
  /// A sequence, as Megatron-LM's own datasets count.
  sequence,
  /// A document: its sequences joined. Sequences after the last document's end are one more.
  document,
};

/// How sequences are found in the `.bin`.
enum class megatron_pointers : std::uint8_t {
  /// By the pointers of the index, each checked when it is used.
  checked,
  /// By the sum of the lengths before, for indices whose pointers overflowed when they were
  /// written. Opening reads all lengths.
  recomputed,
};

/// Whether the loss mask that lies beside a corpus is read.
enum class megatron_loss_mask : std::uint8_t {
  /// Where it is there.
  if_present,
  /// Always: a corpus without one is refused.
  required,
  /// Never: all tokens are targets.
  none,
};

/// How a Megatron-LM corpus is opened.
struct megatron_options {
  megatron_record record = megatron_record::sequence;
  megatron_pointers pointers = megatron_pointers::checked;
  megatron_loss_mask loss_mask = megatron_loss_mask::if_present;
  /// How the `.bin` is read.
  file_access access = file_access::positioned;
  /// How the `.idx` is read. `positioned` keeps what it has read in memory of this process;
  /// `mapped` keeps nothing and shares the pages with all processes of a node.
  file_access index_access = file_access::positioned;
  /// Memory for the parts of the index that have been read: 4.5 bytes a sequence, for documents 8
  /// bytes each besides. What does not fit is read anew each time, about 1 us a record.
  std::uint64_t index_cache_bytes = std::uint64_t{1} << 30;
  /// Accepts a `.bin` with bytes after the last sequence; they are not part of any record.
  bool allow_longer_bin = false;
  /// Threads that read the whole index, where that is needed (fingerprint, recomputed pointers).
  unsigned threads = available_threads();
  /// The fingerprint, where a cached summary has it: it is then not computed from the index.
  std::optional<digest128> known_fingerprint = std::nullopt;
};

}  // namespace lanepack::inline LANEPACK_ABI
