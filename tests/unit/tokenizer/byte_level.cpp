#include <lanepack/tokenizer/byte_level.hpp>

#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace {

using ids = std::vector<std::int32_t>;

struct minimal {
  void encode(std::string_view, std::vector<std::int32_t>& out) const { out.push_back(7); }
  [[nodiscard]] std::string decode(std::span<const std::int32_t>) const { return "seven"; }
  [[nodiscard]] std::uint64_t vocabulary_size() const { return 8; }
  [[nodiscard]] std::optional<std::int32_t> special_token(std::string_view) const { return {}; }
};
static_assert(lanepack::tokenizer<minimal>);

struct changes_itself : minimal {
  void encode(std::string_view, std::vector<std::int32_t>&) {}
};
static_assert(!lanepack::tokenizer<changes_itself>);
static_assert(!lanepack::tokenizer<std::string>);

}  // namespace

TEST_CASE("tokenizer: bytes are their own ids", "[tokenizer]") {
  const lanepack::byte_level_tokenizer bytes;
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(static_cast<unsigned char>(i)));
  ids out = {-5};
  bytes.encode(all, out);
  REQUIRE(out.size() == 257);
  CHECK(out[0] == -5);
  CHECK(out[1] == 0);
  CHECK(out[256] == 255);
  CHECK(bytes.decode(std::span(out).subspan(1)) == all);
  CHECK(bytes.vocabulary_size() == 256);
  CHECK_FALSE(bytes.special_token("<|endoftext|>"));
  CHECK_THROWS_AS(bytes.decode(ids{256}), lanepack::state_error);
  CHECK_THROWS_AS(bytes.decode(ids{-1}), lanepack::state_error);
}

TEST_CASE("tokenizer: the end of a text has an id where one is given", "[tokenizer]") {
  const lanepack::byte_level_tokenizer bytes({.end_of_text = 300});
  CHECK(bytes.vocabulary_size() == 301);
  CHECK(bytes.special_token("<|endoftext|>") == 300);
  CHECK_FALSE(bytes.special_token("x"));
  CHECK(bytes.decode(ids{65, 300}) == "A<|endoftext|>");
  CHECK_THROWS_AS(bytes.decode(ids{299}), lanepack::state_error);
  ids out;
  bytes.encode("<|endoftext|>", out);
  CHECK(out.size() == 13);
  CHECK_THROWS_AS(lanepack::byte_level_tokenizer({.end_of_text = 255}), lanepack::invalid_option);
  CHECK_THROWS_AS(lanepack::byte_level_tokenizer({.end_of_text = 256, .end_of_text_spelling = ""}),
                  lanepack::invalid_option);
}

TEST_CASE("tokenizer: any_tokenizer does what the tokenizer in it does", "[tokenizer]") {
  const lanepack::any_tokenizer bytes(lanepack::byte_level_tokenizer({.end_of_text = 256}));
  const lanepack::any_tokenizer copy = bytes;
  ids out;
  copy.encode("hi", out);
  CHECK(out == ids{104, 105});
  CHECK(copy.decode(out) == "hi");
  CHECK(copy.vocabulary_size() == 257);
  CHECK(copy.special_token("<|endoftext|>") == 256);
  CHECK(lanepack::any_tokenizer(minimal()).decode(out) == "seven");
}
