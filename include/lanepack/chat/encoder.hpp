#pragma once

/// @file
/// `chat_encoder`: conversations to tokens and a loss mask.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/chat/conversation.hpp>
#include <lanepack/chat/options.hpp>
#include <lanepack/chat/rendering.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Turns conversations into tokens and a loss mask.
///
/// Special tokens of the template are placed by their ids; what looks like one in a message is
/// text, so nobody can end a turn by writing how its end is spelled. Text between special tokens is
/// tokenized in one piece, but for the borders of an assistant's turn: its tokens are those that
/// the model would have to produce, none of them half a target. The ids do not depend on `loss`.
/// @thread_safety  Const members may be called by any number of threads.
class chat_encoder {
 public:
  /// @throws invalid_option  The tokenizer lacks a special token of the template.
  chat_encoder(any_tokenizer tokenizer, chat_options options)
      : tokenizer_(std::move(tokenizer)), options_(std::move(options)) {
    for (std::string& token : special_tokens_of(options_)) {
      const std::optional<std::int32_t> id = tokenizer_.special_token(token);
      if (!id) {
        detail::throw_invalid_option("chat template " + std::string(to_string(options_.format)),
                                     "a tokenizer without the token " + detail::quoted(token),
                                     "one that has it, or another template");
      }
      specials_.emplace_back(std::move(token), *id);
    }
  }

  [[nodiscard]] const chat_options& options() const noexcept { return options_; }
  [[nodiscard]] const any_tokenizer& tokenizer() const noexcept { return tokenizer_; }

  /// Appends the tokens of a conversation, and for each of them 1 where it is to be predicted.
  /// @throws data_error  As `render_chat`; what was appended is then unspecified.
  /// @complexity  As the tokenizer's, for all texts.
  void encode(const conversation& from, std::vector<std::int32_t>& tokens,
              std::vector<std::uint8_t>& loss_mask) const {
    sink out{*this, tokens, loss_mask, {}, false};
    render_chat(from, options_, out);
    out.cut();
  }

 private:
  /// Gathers text until something else comes.
  struct sink {
    const chat_encoder& encoder;
    std::vector<std::int32_t>& tokens;
    std::vector<std::uint8_t>& loss_mask;
    std::string waiting;
    bool is_target;

    void special(std::string_view token, bool target) {
      cut();
      tokens.push_back(encoder.id_of(token));
      loss_mask.push_back(target ? 1 : 0);
    }
    void text(std::string_view part, bool target) {
      if (target != is_target) cut();
      is_target = target;
      waiting += part;
    }
    void cut() {
      if (waiting.empty()) return;
      encoder.tokenizer_.encode(waiting, tokens);
      loss_mask.resize(tokens.size(), is_target ? 1 : 0);
      waiting.clear();
    }
  };

  [[nodiscard]] std::int32_t id_of(std::string_view token) const noexcept {
    std::size_t i = 0;
    while (specials_[i].first != token) ++i;
    return specials_[i].second;
  }

  any_tokenizer tokenizer_;
  chat_options options_;
  std::vector<std::pair<std::string, std::int32_t>> specials_;
};

}  // namespace lanepack::inline LANEPACK_ABI
