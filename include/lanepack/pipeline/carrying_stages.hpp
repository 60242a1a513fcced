#pragma once

/// @file
/// Stages that carry something over from input to input: `concatenate_and_cut` and
/// `group_consecutive`.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/stage.hpp>
#include <lanepack/pipeline/stages.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Throws unless a stage is given as many words as it saves.
inline void check_words(const std::string& stage, std::span<const std::uint64_t> words,
                        std::size_t expected) {
  if (words.size() == expected) return;
  throw_state_error("stage " + stage + ": found a state of " + std::to_string(words.size()) +
                    " words, expected " + std::to_string(expected));
}

}  // namespace detail

/// How `concatenate_and_cut` cuts.
struct concatenate_options {
  /// Tokens of every record, at least 1.
  std::uint64_t tokens = 0;
  /// Put behind every sample; none by default.
  std::optional<std::int32_t> separator = std::nullopt;
  /// Whether what is left behind the last input is a record too, shorter than the others.
  bool keep_rest = false;
};

/// Puts all samples one behind the other and cuts the stream into records of equal length; what
/// does not fill one is carried over to the next input.
///
/// A token is also predicted from the sample before its own, as usual for such records; a loss mask
/// and the borders that `group` made in it stay. Its state is the number of inputs that the
/// carried tokens come from and how many tokens of the first have left.
/// @complexity  O(tokens); holds fewer than `tokens` tokens between calls.
class concatenate_and_cut {
 public:
  /// @throws invalid_option  Records have no token, or the separator is negative.
  explicit concatenate_and_cut(const concatenate_options& options) : options_(options) {
    if (options.tokens == 0 || options.tokens >> 31 != 0) {
      detail::throw_invalid_option("concatenate_and_cut.tokens", std::to_string(options.tokens),
                                   "1 to 2147483647");
    }
    if (options.separator && *options.separator < 0) {
      detail::throw_invalid_option("concatenate_and_cut.separator",
                                   std::to_string(*options.separator), "an id of at least 0");
    }
  }

  void apply(std::vector<sample>& samples) {
    const std::size_t before = tokens_.size();
    for (const sample& each : samples) append(each);
    samples.clear();
    const std::size_t arrived = tokens_.size() - before;
    if (inputs_ == 0 && arrived != 0) {
      // What has left of the first input before the state was saved.
      const std::size_t left = std::min<std::size_t>(static_cast<std::size_t>(skip_), arrived);
      drop(left);
    }
    const auto size = static_cast<std::size_t>(options_.tokens);
    std::size_t first = 0;
    for (; tokens_.size() - first >= size; first += size) emit(first, size, samples);
    drop(first);
    if (tokens_.empty()) {
      inputs_ = skip_ = 0;
    } else if (first != 0) {
      // Fewer tokens than a record were carried, so all that is left came just now.
      inputs_ = 1;
      skip_ = arrived - tokens_.size();
    } else {
      ++inputs_;
    }
  }

  void finish(std::vector<sample>& samples) {
    if (options_.keep_rest && !tokens_.empty()) emit(0, tokens_.size(), samples);
    drop(tokens_.size());
    inputs_ = skip_ = 0;
  }

  [[nodiscard]] stage_state save() const { return {.replay = inputs_, .words = {skip_}}; }

  void restore(std::span<const std::uint64_t> words) {
    detail::check_words(describe(), words, 1);
    skip_ = words[0];
  }

  [[nodiscard]] std::string describe() const {
    return "concatenate_and_cut(" + std::to_string(options_.tokens) + " tokens, separator " +
           (options_.separator ? std::to_string(*options_.separator) : std::string("none")) +
           (options_.keep_rest ? ", keep rest)" : ", drop rest)");
  }

 private:
  void append(const sample& from) {
    if (!from.text.empty() && from.tokens.empty()) {
      detail::throw_state_error(
          "found text without tokens, expected tokenize before concatenate_and_cut");
    }
    if (from.tokens.empty()) return;
    tokens_.insert(tokens_.end(), from.tokens.begin(), from.tokens.end());
    if (from.loss_mask.empty()) {
      mask_.resize(tokens_.size(), 1);
    } else {
      mask_.insert(mask_.end(), from.loss_mask.begin(), from.loss_mask.end());
    }
    if (options_.separator) {
      tokens_.push_back(*options_.separator);
      mask_.push_back(1);
    }
  }

  void emit(std::size_t first, std::size_t count, std::vector<sample>& out) const {
    sample& record = out.emplace_back();
    const auto at = static_cast<std::ptrdiff_t>(first);
    const auto end = static_cast<std::ptrdiff_t>(first + count);
    record.tokens.assign(tokens_.begin() + at, tokens_.begin() + end);
    if (std::find(mask_.begin() + at, mask_.begin() + end, 0) != mask_.begin() + end) {
      record.loss_mask.assign(mask_.begin() + at, mask_.begin() + end);
    }
  }

  void drop(std::size_t count) {
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(count));
    mask_.erase(mask_.begin(), mask_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  concatenate_options options_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> mask_;
  /// Inputs from the one on that the first carried token comes from.
  std::uint64_t inputs_ = 0;
  /// Tokens of that input that have left.
  std::uint64_t skip_ = 0;
};

/// When `group_consecutive` closes a group.
struct group_options {
  /// Samples of a group at most; 0: no limit but `most_tokens`.
  std::uint64_t samples = 0;
  /// Tokens beyond which a group takes no further sample, at least 1; one sample alone may have
  /// more.
  std::uint64_t most_tokens = std::uint64_t{1} << 20;
};

/// Joins neighbouring samples that have the same `sample::key` into one of several segments: the
/// rollouts of a prompt that lie one behind the other in the corpus.
///
/// As `group`, across inputs. Without keys every `samples` samples are a group. It needs the order
/// of the corpus, so it belongs before the index, where inputs come in that order.
class group_consecutive {
 public:
  /// @throws invalid_option  A group has no token.
  explicit group_consecutive(const group_options& options = {}) : options_(options) {
    if (options.most_tokens == 0) {
      detail::throw_invalid_option("group_consecutive.most_tokens", "0", "at least 1");
    }
  }

  void apply(std::vector<sample>& samples) {
    std::vector<sample> out;
    std::uint64_t place = 0;
    const bool resumes = inputs_ == 0 && skip_ != 0;
    const std::uint64_t skipped = resumes ? skip_ : 0;
    bool starts_here = false;
    for (const sample& each : samples) {
      if (!each.text.empty() && each.tokens.empty()) {
        detail::throw_state_error(
            "found text without tokens, expected tokenize before group_consecutive");
      }
      const std::uint64_t at = place++;
      if (at < skipped || each.tokens.empty()) continue;
      if (count_ != 0 && !takes(each)) close(out);
      if (count_ == 0) {
        starts_here = true;
        skip_ = at;
        held_.key = each.key;
      }
      detail::join_segments(held_, each);
      ++count_;
    }
    samples = std::move(out);
    inputs_ = count_ == 0 ? 0 : (starts_here ? 1 : inputs_ + 1);
    if (count_ == 0) skip_ = 0;
  }

  void finish(std::vector<sample>& samples) {
    if (count_ != 0) close(samples);
    inputs_ = skip_ = 0;
  }

  [[nodiscard]] stage_state save() const { return {.replay = inputs_, .words = {skip_}}; }

  void restore(std::span<const std::uint64_t> words) {
    detail::check_words(describe(), words, 1);
    skip_ = words[0];
  }

  [[nodiscard]] std::string describe() const {
    return "group_consecutive(" + std::to_string(options_.samples) + " samples, at most " +
           std::to_string(options_.most_tokens) + " tokens)";
  }

 private:
  [[nodiscard]] bool takes(const sample& next) const {
    if (next.key != held_.key) return false;
    if (options_.samples != 0 && count_ >= options_.samples) return false;
    return next.tokens.size() <= options_.most_tokens &&
           held_.tokens.size() <= options_.most_tokens - next.tokens.size();
  }

  void close(std::vector<sample>& out) {
    out.push_back(std::move(held_));
    held_ = {};
    count_ = 0;
  }

  group_options options_;
  sample held_;
  std::uint64_t count_ = 0;
  /// Inputs from the one on that the group began in.
  std::uint64_t inputs_ = 0;
  /// Samples of that input before the group.
  std::uint64_t skip_ = 0;
};

static_assert(stateful_stage<concatenate_and_cut> && stateful_stage<group_consecutive>);

}  // namespace lanepack::inline LANEPACK_ABI
