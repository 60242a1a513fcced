#pragma once

/// @file
/// Stages without a memory: `map_samples`, `tokenize`, `filter`, `split` and `group`.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Changes each sample by a function of the user's.
class map_samples {
 public:
  /// @param name  Names the function and its version: change it whenever the function does
  ///              something else, as it stands for it in saved states and indexes.
  /// @param call  A pure function that any number of threads may call.
  map_samples(std::string name, std::function<void(sample&)> call)
      : name_(std::move(name)), call_(std::move(call)) {
    if (name_.empty() || !call_) {
      detail::throw_invalid_option("map_samples", "no name or no function", "both");
    }
  }

  void apply(std::vector<sample>& samples) const {
    for (sample& each : samples) call_(each);
  }
  [[nodiscard]] std::string describe() const { return "map(" + name_ + ")"; }

 private:
  std::string name_;
  std::function<void(sample&)> call_;
};

/// Drops the samples that a function of the user's does not keep.
class filter {
 public:
  /// @param name   As for `map_samples`.
  /// @param keeps  True for what stays; a pure function that any number of threads may call.
  filter(std::string name, std::function<bool(const sample&)> keeps)
      : name_(std::move(name)), keeps_(std::move(keeps)) {
    if (name_.empty() || !keeps_) {
      detail::throw_invalid_option("filter", "no name or no function", "both");
    }
  }

  void apply(std::vector<sample>& samples) const {
    std::erase_if(samples, [this](const sample& each) { return !keeps_(each); });
  }
  [[nodiscard]] std::string describe() const { return "filter(" + name_ + ")"; }

 private:
  std::string name_;
  std::function<bool(const sample&)> keeps_;
};

/// What `tokenize` puts around a text.
struct tokenize_options {
  /// Put before and behind each text.
  std::optional<std::int32_t> begin = std::nullopt;
  std::optional<std::int32_t> end = std::nullopt;
};

/// Turns text into tokens, all of them to be predicted; samples that have tokens stay as they are.
///
/// It describes itself by what its tokenizer makes of a text in several scripts, so that another
/// vocabulary is another stage.
class tokenize {
 public:
  /// @throws invalid_option  An id is negative.
  explicit tokenize(any_tokenizer tokenizer, const tokenize_options& options = {})
      : tokenizer_(std::move(tokenizer)), options_(options) {
    for (const std::optional<std::int32_t>& id : {options.begin, options.end}) {
      if (id && *id < 0) {
        detail::throw_invalid_option("tokenize", std::to_string(*id), "an id of at least 0");
      }
    }
    constexpr std::string_view probe =
        "The quick brown fox's 1234567 jumps -- over\n\n\tthe \"lazy\" dog, isn't it? "
        "Falsches \xc3\x9c"
        "ben qu\xc3\xa4lt \xd1\x81\xd1\x8a\xd0\xb5\xd1\x88\xd1\x8c "
        "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x99\x82 while (i++ < 0x7f) { return; }";
    std::vector<std::int32_t> ids;
    tokenizer_.encode(probe, ids);
    digest_builder digest;
    digest.number(tokenizer_.vocabulary_size());
    for (const std::int32_t id : ids) digest.number(static_cast<std::uint64_t>(id));
    probe_ = digest.value();
  }

  void apply(std::vector<sample>& samples) const {
    for (sample& each : samples) {
      if (!each.tokens.empty()) continue;
      if (options_.begin) each.tokens.push_back(*options_.begin);
      tokenizer_.encode(each.text, each.tokens);
      if (options_.end) each.tokens.push_back(*options_.end);
      each.text = {};
    }
  }

  [[nodiscard]] std::string describe() const {
    const auto text_of = [](const std::optional<std::int32_t>& id) {
      return id ? std::to_string(*id) : std::string("none");
    };
    return "tokenize(" + std::to_string(tokenizer_.vocabulary_size()) + " tokens " + probe_.hex() +
           ", begin " + text_of(options_.begin) + ", end " + text_of(options_.end) + ")";
  }

 private:
  any_tokenizer tokenizer_;
  tokenize_options options_;
  digest128 probe_;
};

/// How `split` cuts.
struct split_options {
  /// Tokens of a part, at least 1; the last part of a sample has what is left.
  std::uint64_t tokens = 0;
  /// Tokens at the start of a part that the part before ends with, below `tokens`: context, with
  /// loss mask 0.
  std::uint64_t overlap = 0;
};

/// Cuts samples into parts of at most so many tokens; what travels in several segments stays whole.
/// @complexity  O(tokens).
class split {
 public:
  /// @throws invalid_option  A part has no token, or none but the overlap.
  explicit split(const split_options& options) : options_(options) {
    if (options.tokens == 0) detail::throw_invalid_option("split.tokens", "0", "at least 1");
    if (options.overlap >= options.tokens) {
      detail::throw_invalid_option("split.overlap", std::to_string(options.overlap),
                                   "less than tokens, " + std::to_string(options.tokens));
    }
  }

  void apply(std::vector<sample>& samples) const {
    const auto is_long = [this](const sample& each) {
      return each.segments.empty() && each.tokens.size() > options_.tokens;
    };
    if (std::none_of(samples.begin(), samples.end(), is_long)) return;
    std::vector<sample> parts;
    for (sample& each : samples) {
      if (is_long(each)) {
        cut(each, parts);
      } else {
        parts.push_back(std::move(each));
      }
    }
    samples = std::move(parts);
  }

  [[nodiscard]] std::string describe() const {
    return "split(" + std::to_string(options_.tokens) + " tokens, overlap " +
           std::to_string(options_.overlap) + ")";
  }

 private:
  void cut(const sample& whole, std::vector<sample>& parts) const {
    const auto copy = [](const auto& from, std::size_t first, std::size_t count, auto& to) {
      const auto at = from.begin() + static_cast<std::ptrdiff_t>(first);
      to.assign(at, at + static_cast<std::ptrdiff_t>(count));
    };
    const auto size = static_cast<std::size_t>(options_.tokens);
    const auto overlap = static_cast<std::size_t>(options_.overlap);
    for (std::size_t first = 0;; first += size - overlap) {
      sample& part = parts.emplace_back();
      const std::size_t count = std::min(size, whole.tokens.size() - first);
      part.key = whole.key;
      copy(whole.tokens, first, count, part.tokens);
      if (!whole.loss_mask.empty()) copy(whole.loss_mask, first, count, part.loss_mask);
      if (first != 0 && overlap != 0) {
        detail::fill_loss_mask(part);
        std::fill_n(part.loss_mask.begin(), overlap, std::uint8_t{0});
      }
      if (first + count == whole.tokens.size()) return;
    }
  }

  split_options options_;
};

namespace detail {

/// Appends the tokens of `from` to `to` as segments of their own.
///
/// The first token of a segment has loss mask 0: it is not predicted from another segment.
inline void join_segments(sample& to, const sample& from) {
  if (from.tokens.empty()) return;
  if (to.tokens.empty()) {
    std::string key = std::move(to.key);
    to = from;
    if (to.key.empty()) to.key = std::move(key);
    if (to.segments.empty()) to.segments.push_back(to.tokens.size());
    return;
  }
  fill_loss_mask(to);
  const std::size_t first = to.tokens.size();
  to.tokens.insert(to.tokens.end(), from.tokens.begin(), from.tokens.end());
  if (from.loss_mask.empty()) {
    to.loss_mask.resize(to.tokens.size(), 1);
  } else {
    to.loss_mask.insert(to.loss_mask.end(), from.loss_mask.begin(), from.loss_mask.end());
  }
  to.loss_mask[first] = 0;
  if (from.segments.empty()) {
    to.segments.push_back(from.tokens.size());
  } else {
    to.segments.insert(to.segments.end(), from.segments.begin(), from.segments.end());
  }
}

}  // namespace detail

/// Joins all samples that an input has become into one of several segments, in their order: the
/// chosen and the rejected answer of a pair, the rollouts of a prompt in one line.
///
/// The record counts once, is never cut by `split` and is always in one pack and one micro-batch.
/// Each segment is a sequence of its own to attention, as `segmented_source` says. Samples without
/// tokens leave no segment.
class group {
 public:
  void apply(std::vector<sample>& samples) const {
    if (samples.empty()) return;
    sample joined;
    for (const sample& each : samples) {
      if (!each.text.empty() && each.tokens.empty()) {
        detail::throw_state_error("found text without tokens, expected tokenize before group");
      }
      detail::join_segments(joined, each);
    }
    samples.clear();
    samples.push_back(std::move(joined));
  }
  [[nodiscard]] std::string describe() const { return "group()"; }
};

static_assert(stateless_stage<map_samples> && stateless_stage<filter> &&
              stateless_stage<tokenize> && stateless_stage<split> && stateless_stage<group>);

}  // namespace lanepack::inline LANEPACK_ABI
