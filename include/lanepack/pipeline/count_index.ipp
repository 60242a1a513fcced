#pragma once

/// @file
/// The bodies of the functions in count_index.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/input_runner.hpp>
#include <lanepack/pipeline/sample.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

inline constexpr std::string_view count_index_kind = "lanepack pipeline index 2";

/// The most words of a stage's state.
inline constexpr std::uint64_t most_state_words = 16;

}  // namespace detail

LANEPACK_FUNCTION count_index_builder::count_index_builder(const digest128& input,
                                                           const digest128& pipeline) {
  index_.input_ = input;
  index_.pipeline_ = pipeline;
  index_.first_.push_back(0);
}

LANEPACK_FUNCTION void count_index_builder::add(const stage_state& before,
                                                std::span<const record_shape> shapes) {
  const bool first = index_.first_.size() == 1;
  const bool stateful = before.replay != 0 || !before.words.empty();
  if (first) index_.words_a_state_ = before.words.size();
  if (before.words.size() != index_.words_a_state_ ||
      before.words.size() > detail::most_state_words) {
    detail::throw_state_error(
        "the state of a stage: found " + std::to_string(before.words.size()) +
        " words, expected the same number of them before every input, at most " +
        std::to_string(detail::most_state_words));
  }
  if (before.replay > std::numeric_limits<std::uint32_t>::max()) {
    detail::throw_state_error("the state of a stage: found one that reaches back " +
                              std::to_string(before.replay) +
                              " inputs, expected at most 4294967295");
  }
  if (stateful || !index_.replay_.empty()) {
    index_.replay_.resize(index_.first_.size() - 1, 0);
    index_.replay_.push_back(static_cast<std::uint32_t>(before.replay));
  }
  index_.words_.insert(index_.words_.end(), before.words.begin(), before.words.end());
  for (const record_shape& shape : shapes) {
    index_.shapes_.push_back({.tokens = static_cast<std::uint32_t>(shape.tokens),
                              .loss_tokens = static_cast<std::uint32_t>(shape.loss_tokens)});
  }
  index_.first_.push_back(index_.shapes_.size());
}

LANEPACK_FUNCTION void count_index_builder::add(const stage_state& before,
                                                std::span<const record_shape> shapes,
                                                const segment_lists& segments) {
  LANEPACK_ASSERT(segments.size() == shapes.size());
  const record_id first = index_.records();
  add(before, shapes);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].size() < 2) continue;
    index_.segmented_.push_back(first + i);
    index_.first_segment_.push_back(index_.segment_tokens_.size());
    for (const std::uint64_t tokens : segments[i]) {
      index_.segment_tokens_.push_back(static_cast<std::uint32_t>(tokens));
    }
    index_.most_segments_ = std::max<std::uint64_t>(index_.most_segments_, segments[i].size());
  }
}

LANEPACK_FUNCTION count_index count_index_builder::build() {
  digest_builder digest;
  digest.text("pipeline index 1");
  digest.digest(index_.input_);
  digest.digest(index_.pipeline_);
  for (const record_id first : index_.first_) digest.number(first);
  for (const auto& shape : index_.shapes_) {
    digest.number(std::uint64_t{shape.tokens} << 32 | shape.loss_tokens);
    if (shape.tokens != 0 && shape.loss_tokens + 1 < shape.tokens) index_.has_loss_mask_ = true;
  }
  for (const record_id record : index_.segmented_) digest.number(record);
  for (const std::uint64_t first : index_.first_segment_) digest.number(first);
  for (const std::uint32_t tokens : index_.segment_tokens_) digest.number(tokens);
  index_.fingerprint_ = digest.value();
  index_.first_.shrink_to_fit();
  index_.shapes_.shrink_to_fit();
  return std::move(index_);
}

LANEPACK_FUNCTION void count_index::segments(record_id record, segment_lists& out) const {
  const auto found = std::lower_bound(segmented_.begin(), segmented_.end(), record);
  if (found == segmented_.end() || *found != record) {
    const std::uint64_t tokens = shape(record).tokens;
    out.add({&tokens, tokens == 0 ? std::size_t{0} : std::size_t{1}});
    return;
  }
  const auto place = static_cast<std::size_t>(found - segmented_.begin());
  const auto first = static_cast<std::size_t>(first_segment_[place]);
  const std::size_t end = place + 1 == segmented_.size()
                              ? segment_tokens_.size()
                              : static_cast<std::size_t>(first_segment_[place + 1]);
  const std::vector<std::uint64_t> tokens(
      segment_tokens_.begin() + static_cast<std::ptrdiff_t>(first),
      segment_tokens_.begin() + static_cast<std::ptrdiff_t>(end));
  out.add(tokens);
}

LANEPACK_FUNCTION bool count_index::save(const std::string& path) const {
  detail::cache_writer out;
  for (const digest128& digest : {input_, pipeline_}) {
    out.number(digest.low);
    out.number(digest.high);
  }
  out.number(inputs());
  out.number(words_a_state_);
  out.number(replay_.empty() ? 0 : 1);
  out.number(segmented_.empty() ? 0 : 1);
  segment_lists lists;
  for (record_id input = 0; input <= inputs(); ++input) {
    const record_id first = first_record(input);
    const record_id last = first_record(input + 1);
    out.small_number(last - first);
    for (record_id record = first; record < last; ++record) {
      const packed_shape& shape = shapes_[static_cast<std::size_t>(record)];
      out.small_number(shape.tokens);
      out.small_number(shape.tokens - shape.loss_tokens);
      if (segmented_.empty()) continue;
      lists.clear();
      segments(record, lists);
      out.small_number(lists.segments());
      for (const std::uint64_t tokens : lists.tokens()) out.small_number(tokens);
    }
    if (replay_.empty()) continue;
    const stage_state state = state_before(input);
    out.small_number(state.replay);
    for (const std::uint64_t word : state.words) out.small_number(word);
  }
  return out.save(path, detail::count_index_kind);
}

LANEPACK_FUNCTION std::optional<count_index> count_index::load(const std::string& path) {
  detail::cache_reader in(path, detail::count_index_kind);
  if (!in.good()) return std::nullopt;
  digest128 digests[2];
  for (digest128& digest : digests) {
    digest.low = in.number();
    digest.high = in.number();
  }
  const std::uint64_t inputs = in.number();
  const std::uint64_t words = in.number();
  const bool stateful = in.number() != 0;
  const bool segmented = in.number() != 0;
  if (words > detail::most_state_words || (words != 0 && !stateful)) return std::nullopt;
  count_index_builder builder(digests[0], digests[1]);
  std::vector<record_shape> shapes;
  segment_lists segments;
  std::vector<std::uint64_t> lengths;
  stage_state state;
  // Every number takes a byte of the file, so a count that is too high ends at the file's end.
  for (std::uint64_t input = 0; input <= inputs && in.good(); ++input) {
    shapes.clear();
    segments.clear();
    for (std::uint64_t count = in.small_number(); count > 0 && in.good(); --count) {
      const std::uint64_t tokens = in.small_number();
      const std::uint64_t unpredicted = in.small_number();
      if (tokens >> 32 != 0 || unpredicted > tokens || (tokens != 0 && unpredicted == 0)) {
        return std::nullopt;
      }
      shapes.push_back({.tokens = tokens, .loss_tokens = tokens - unpredicted, .patches = 0});
      if (!segmented) continue;
      lengths.clear();
      std::uint64_t left = tokens;
      for (std::uint64_t k = in.small_number(); k > 0 && in.good(); --k) {
        lengths.push_back(in.small_number());
        if (lengths.back() == 0 || lengths.back() > left) return std::nullopt;
        left -= lengths.back();
      }
      if (left != 0) return std::nullopt;
      segments.add(lengths);
    }
    if (stateful) {
      state.replay = in.small_number();
      if (state.replay > input) return std::nullopt;
      state.words.resize(static_cast<std::size_t>(words));
      for (std::uint64_t& word : state.words) word = in.small_number();
    }
    if (!in.good() || state.replay >> 32 != 0) return std::nullopt;
    if (segmented) {
      builder.add(state, shapes, segments);
    } else {
      builder.add(state, shapes);
    }
  }
  if (!in.good() || !in.at_end() || inputs == std::numeric_limits<std::uint64_t>::max()) {
    return std::nullopt;
  }
  count_index index = builder.build();
  if (stateful) index.replay_.resize(index.first_.size() - 1, 0);
  return index;
}

LANEPACK_FUNCTION count_index make_count_index(const pipeline_input& input, const pipeline& stages,
                                               const count_index_options& options) {
  constexpr std::uint64_t at_a_time = std::uint64_t{1} << 16;
  const detail::input_runner runner(input, stages, options.executor, options.memory_bytes);
  const std::uint64_t size = input.size();
  count_index_builder builder(input.fingerprint(), stages.fingerprint());
  std::optional<any_stage> memory = stages.new_memory();
  std::vector<record_id> ids;
  std::vector<record_shape> shapes;
  segment_lists segments;
  const auto add = [&](const stage_state& before, const std::vector<sample>& samples) {
    shapes.clear();
    segments.clear();
    for (const sample& each : samples) {
      shapes.push_back(shape_of(each));
      detail::add_segments(each, segments);
    }
    builder.add(before, shapes, segments);
  };
  for (record_id first = 0; first < size; first += ids.size()) {
    ids.resize(static_cast<std::size_t>(std::min(at_a_time, size - first)));
    std::iota(ids.begin(), ids.end(), first);
    std::uint64_t told = 0;
    runner.run(ids, [&](std::size_t i, std::vector<sample>& samples) {
      stage_state before;
      if (memory) {
        before = memory->save();
        stages.run_carrying(*memory, samples, runner.corpus, ids[i]);
      }
      add(before, samples);
      if (options.progress && i + 1 - told >= 1024) {
        told = i + 1;
        options.progress(first + told, size);
      }
    });
  }
  std::vector<sample> rest;
  stage_state before;
  if (memory) {
    before = memory->save();
    stages.run_finish(*memory, rest, runner.corpus, size);
  }
  add(before, rest);
  if (options.progress) options.progress(size, size);
  return builder.build();
}

LANEPACK_FUNCTION count_index open_count_index(const std::string& path, const pipeline_input& input,
                                               const pipeline& stages,
                                               const count_index_options& options) {
  std::optional<count_index> found = count_index::load(path);
  if (found && found->input_fingerprint() == input.fingerprint() &&
      found->pipeline_fingerprint() == stages.fingerprint() && found->inputs() == input.size()) {
    return std::move(*found);
  }
  count_index made = make_count_index(input, stages, options);
  static_cast<void>(made.save(path));
  return made;
}

}  // namespace lanepack::inline LANEPACK_ABI
