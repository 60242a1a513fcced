#pragma once

/// @file
/// `count_index`: how many records each input of a pipeline becomes, and their shapes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/stage.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How many records each input of a pipeline becomes, and their shapes: what turns a pipeline into
/// a corpus of known size, in which any record can be read without those before it.
///
/// 8 bytes an input and 8 a record in memory, 16 more and 4 a segment for a record of several, for
/// a pipeline with a memory 4 bytes and 8 a word of its state more an input; in a file one to four
/// bytes each.
/// @thread_safety  Const members may be called by any number of threads.
class count_index {
 public:
  /// Inputs of the corpus. Records that come of what was held back behind the last one belong to
  /// input number `inputs()`.
  [[nodiscard]] std::uint64_t inputs() const noexcept { return first_.size() - 2; }
  [[nodiscard]] std::uint64_t records() const noexcept { return first_.back(); }

  /// The first record that comes of an input, `input` at most `inputs() + 1`.
  [[nodiscard]] record_id first_record(record_id input) const noexcept {
    return first_[static_cast<std::size_t>(input)];
  }
  /// The input that a record below `records()` comes of.
  /// @complexity  O(log inputs).
  [[nodiscard]] record_id input_of(record_id record) const noexcept {
    const auto after = std::upper_bound(first_.begin(), first_.end(), record);
    return static_cast<record_id>(after - first_.begin()) - 1;
  }
  /// The shape of a record below `records()`.
  [[nodiscard]] record_shape shape(record_id record) const noexcept {
    const packed_shape& packed = shapes_[static_cast<std::size_t>(record)];
    return {.tokens = packed.tokens, .loss_tokens = packed.loss_tokens, .patches = 0};
  }
  /// The most segments of a record, at least 1.
  [[nodiscard]] std::uint64_t most_segments() const noexcept { return most_segments_; }
  /// Adds the segments of a record below `records()`.
  /// @complexity  O(segments + log records).
  void segments(record_id record, segment_lists& out) const;
  /// The state of the stage with a memory before an input, at most `inputs()`; empty for a pipeline
  /// without one.
  [[nodiscard]] stage_state state_before(record_id input) const {
    stage_state state;
    if (replay_.empty()) return state;
    state.replay = replay_[static_cast<std::size_t>(input)];
    const auto from = words_.begin() + static_cast<std::ptrdiff_t>(input * words_a_state_);
    state.words.assign(from, from + static_cast<std::ptrdiff_t>(words_a_state_));
    return state;
  }
  /// Whether some record has tokens beside its first that are not to be predicted.
  [[nodiscard]] bool has_loss_mask() const noexcept { return has_loss_mask_; }

  [[nodiscard]] const digest128& input_fingerprint() const noexcept { return input_; }
  [[nodiscard]] const digest128& pipeline_fingerprint() const noexcept { return pipeline_; }
  /// Of both and of all shapes.
  [[nodiscard]] const digest128& fingerprint() const noexcept { return fingerprint_; }

  /// Writes it to a file, atomically; false where that is not possible.
  [[nodiscard]] bool save(const std::string& path) const;
  /// Reads it back; nullopt where the file is missing, damaged or of another version.
  [[nodiscard]] static std::optional<count_index> load(const std::string& path);

  friend bool operator==(const count_index&, const count_index&) = default;

 private:
  struct packed_shape {
    std::uint32_t tokens = 0;
    std::uint32_t loss_tokens = 0;

    friend bool operator==(const packed_shape&, const packed_shape&) = default;
  };

  friend class count_index_builder;

  count_index() = default;

  std::vector<record_id> first_;
  std::vector<packed_shape> shapes_;
  /// Records of several segments, ascending, where the segments of each begin, and their tokens.
  std::vector<record_id> segmented_;
  std::vector<std::uint64_t> first_segment_;
  std::vector<std::uint32_t> segment_tokens_;
  std::uint64_t most_segments_ = 1;
  std::vector<std::uint32_t> replay_;
  std::vector<std::uint64_t> words_;
  std::uint64_t words_a_state_ = 0;
  bool has_loss_mask_ = false;
  digest128 input_;
  digest128 pipeline_;
  digest128 fingerprint_;
};

/// Makes an index out of what the inputs become, one after the other.
class count_index_builder {
 public:
  /// @param input, pipeline  The fingerprints of both.
  count_index_builder(const digest128& input, const digest128& pipeline);
  /// @param before   The state of the stage with a memory before the input; empty without one.
  /// @param shapes   Of what the input became, fewer than 2^32 tokens each.
  /// @throws state_error  The state has another number of words than those before, more than 16,
  ///                      or reaches back further than 2^32 inputs.
  void add(const stage_state& before, std::span<const record_shape> shapes);
  /// As above, with the segments of each record, together as many tokens as its shape has.
  void add(const stage_state& before, std::span<const record_shape> shapes,
           const segment_lists& segments);
  /// @pre  It was given every input, and what is behind the last.
  [[nodiscard]] count_index build();

 private:
  count_index index_;
};

/// How an index is made.
struct count_index_options {
  /// What the stages run on. The index does not depend on it.
  any_executor executor = {};
  /// Bytes of inputs and records in flight, nearly; one input at least is.
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;
  /// Told the number of inputs done.
  progress_callback progress = {};
};

/// Runs a pipeline over a whole corpus and keeps the shapes of what comes out.
///
/// Stages before one with a memory, or all, run out of order on the executor; the one with a memory
/// and those behind it on the calling thread.
/// @throws      data_error naming input and stage where a stage fails; as the input's reads.
/// @determinism The same whatever the executor and the memory.
[[nodiscard]] count_index make_count_index(const pipeline_input& input, const pipeline& stages,
                                           const count_index_options& options = {});

/// The index in a file, where it is of this input and this pipeline; else it is made and written
/// there, atomically, if that is possible.
///
/// Run it once before the ranks start, with as many threads as there are: ranks that find no index
/// each make their own.
/// @throws  as `make_count_index`.
[[nodiscard]] count_index open_count_index(const std::string& path, const pipeline_input& input,
                                           const pipeline& stages,
                                           const count_index_options& options = {});

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/pipeline/count_index.ipp>
#endif
