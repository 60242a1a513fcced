#pragma once

/// @file
/// `any_tokenizer`: a tokenizer whose type was chosen when the program ran.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/tokenizer/concept.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Shared ownership of any `tokenizer`; itself one. Copies share the tokenizer.
///
/// One virtual call per text.
/// @thread_safety  As the tokenizer's: const members may be called by any number of threads.
class any_tokenizer {
 public:
  /// Takes a tokenizer by value.
  template <class Tokenizer>
  requires(!std::same_as<std::remove_cvref_t<Tokenizer>, any_tokenizer> &&
           tokenizer<std::remove_cvref_t<Tokenizer>>)
      any_tokenizer(Tokenizer&& value)  // NOLINT(google-explicit-constructor): it is one
      : self_(std::make_shared<model<std::remove_cvref_t<Tokenizer>>>(
            std::forward<Tokenizer>(value))) {}

  void encode(std::string_view text, std::vector<std::int32_t>& out) const {
    self_->encode(text, out);
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const {
    return self_->decode(ids);
  }
  [[nodiscard]] std::uint64_t vocabulary_size() const { return self_->vocabulary_size(); }
  [[nodiscard]] std::optional<std::int32_t> special_token(std::string_view text) const {
    return self_->special_token(text);
  }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    virtual void encode(std::string_view text, std::vector<std::int32_t>& out) const = 0;
    [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
    [[nodiscard]] virtual std::uint64_t vocabulary_size() const = 0;
    [[nodiscard]] virtual std::optional<std::int32_t> special_token(
        std::string_view text) const = 0;
  };

  template <class Tokenizer>
  struct model final : interface {
    explicit model(Tokenizer tokenizer) : value(std::move(tokenizer)) {}
    void encode(std::string_view text, std::vector<std::int32_t>& out) const override {
      value.encode(text, out);
    }
    [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
      return value.decode(ids);
    }
    [[nodiscard]] std::uint64_t vocabulary_size() const override { return value.vocabulary_size(); }
    [[nodiscard]] std::optional<std::int32_t> special_token(std::string_view text) const override {
      return value.special_token(text);
    }
    Tokenizer value;
  };

  std::shared_ptr<const interface> self_;
};

static_assert(tokenizer<any_tokenizer>);

}  // namespace lanepack::inline LANEPACK_ABI
