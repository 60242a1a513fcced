#include <lanepack/tokenizer/byte_pair_encoding.hpp>

#include <lanepack/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::added_token;
using lanepack::byte_pair_encoding;
using lanepack::byte_pair_vocabulary;
using lanepack::split_pattern;
using ids = std::vector<std::int32_t>;

byte_pair_vocabulary bytes_alone() {
  byte_pair_vocabulary out;
  for (int i = 0; i < 256; ++i) {
    out.tokens.emplace_back(1, static_cast<char>(static_cast<unsigned char>(i)));
  }
  return out;
}

/// The id of `text`, which is made a token if it is none.
std::int32_t token_of(byte_pair_vocabulary& vocabulary, const std::string& text) {
  const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text);
  const auto id = static_cast<std::int32_t>(found - vocabulary.tokens.begin());
  if (found == vocabulary.tokens.end()) vocabulary.tokens.push_back(text);
  return id;
}

void merge(byte_pair_vocabulary& vocabulary, const std::string& left, const std::string& right) {
  const std::int32_t a = token_of(vocabulary, left);
  const std::int32_t b = token_of(vocabulary, right);
  vocabulary.merges.push_back({a, b, token_of(vocabulary, left + right)});
}

ids encoded(const byte_pair_encoding& tokenizer, std::string_view text) {
  ids out;
  tokenizer.encode(text, out);
  return out;
}

/// A piece by the definition: the best merge of all pairs, the leftmost first, one at a time.
ids encoded_naively(const byte_pair_vocabulary& vocabulary, std::string_view text) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::size_t, std::int32_t>> ranks;
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto& each = vocabulary.merges[rank];
    ranks[{each.left, each.right}] = {rank, each.merged};
  }
  ids out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  for (;;) {
    std::size_t best = out.size();
    std::size_t best_rank = vocabulary.merges.size();
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
      const auto found = ranks.find({out[i], out[i + 1]});
      if (found == ranks.end() || found->second.first >= best_rank) continue;
      best = i;
      best_rank = found->second.first;
    }
    if (best == out.size()) return out;
    out[best] = vocabulary.merges[best_rank].merged;
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

byte_pair_vocabulary random_vocabulary(lanepack_test::gen& random, std::string_view letters) {
  byte_pair_vocabulary out = bytes_alone();
  std::vector<std::string> known;
  for (const char c : letters) known.emplace_back(1, c);
  for (std::uint64_t i = random.between(0, 60); i > 0; --i) {
    const std::string left = random.pick(known);
    const std::string right = random.pick(known);
    if (left.size() + right.size() > 12) continue;
    merge(out, left, right);
    known.push_back(left + right);
  }
  return out;
}

void require_refused(byte_pair_vocabulary vocabulary, const std::string& option) {
  try {
    byte_pair_encoding tokenizer(std::move(vocabulary));
    FAIL("accepted");
  } catch (const lanepack::invalid_option& e) {
    CHECK(e.option() == option);
  }
}

}  // namespace

TEST_CASE("tokenizer: merges go by rank, the leftmost first", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  merge(vocabulary, "b", "c");   // 256
  merge(vocabulary, "a", "b");   // 257
  merge(vocabulary, "a", "a");   // 258
  merge(vocabulary, "a", "bc");  // 259
  const byte_pair_encoding tokenizer(vocabulary, {.split = split_pattern::none});
  CHECK(encoded(tokenizer, "abc") == ids{259});
  CHECK(encoded(tokenizer, "ab") == ids{257});
  CHECK(encoded(tokenizer, "aaa") == ids{258, 'a'});
  CHECK(encoded(tokenizer, "aabc") == ids{258, 256});
  CHECK(encoded(tokenizer, "").empty());
  CHECK(tokenizer.decode(ids{258, 256, 'x'}) == "aabcx");
  CHECK(tokenizer.vocabulary_size() == 260);
  CHECK_THROWS_AS(tokenizer.decode(ids{260}), lanepack::state_error);
  CHECK_THROWS_AS(tokenizer.decode(ids{-1}), lanepack::state_error);
}

TEST_CASE("tokenizer: ignore_merges takes a piece that is a token as it is", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  vocabulary.tokens.emplace_back("xyz");
  vocabulary.tokens.emplace_back("a word that is longer than sixteen bytes");
  const lanepack::byte_pair_options options{.split = split_pattern::none, .ignore_merges = true};
  CHECK(encoded(byte_pair_encoding(vocabulary, options), "xyz") == ids{256});
  CHECK(encoded(byte_pair_encoding(vocabulary, options), vocabulary.tokens[257]) == ids{257});
  CHECK(encoded(byte_pair_encoding(vocabulary, {.split = split_pattern::none}), "xyz") ==
        ids{'x', 'y', 'z'});
}

TEST_CASE("tokenizer: encoding equals the definition of byte pair encoding", "[tokenizer]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    constexpr std::string_view letters = "abc";
    const byte_pair_vocabulary vocabulary = random_vocabulary(random, letters);
    const byte_pair_encoding tokenizer(vocabulary, {.split = split_pattern::none});
    for (int round = 0; round < 12; ++round) {
      // On both sides of the length from which on the heap is used.
      std::string text;
      for (std::uint64_t i = random.between(0, 150); i > 0; --i) text += random.pick(letters);
      CAPTURE(text);
      REQUIRE(encoded(tokenizer, text) == encoded_naively(vocabulary, text));
    }
  });
}

TEST_CASE("tokenizer: decoding gives any bytes back", "[tokenizer]") {
  lanepack_test::for_each_seed(60, [](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    byte_pair_vocabulary vocabulary = random_vocabulary(random, "ab \n'\xc3\xa9");
    vocabulary.added.push_back({.text = "<x>", .id = 5000});
    vocabulary.added.push_back({.text = "<s>", .id = 5001, .special = true});
    for (const auto split : {split_pattern::none, split_pattern::gpt2, split_pattern::llama3,
                             split_pattern::qwen2, split_pattern::o200k}) {
      const byte_pair_encoding tokenizer(vocabulary, {.split = split});
      std::string text;
      for (std::uint64_t i = random.between(0, 200); i > 0; --i) {
        text.push_back(static_cast<char>(static_cast<unsigned char>(random.bits())));
        if (random.one_in(9)) text += random.one_in(2) ? "<x>" : "<s>";
        if (random.one_in(3)) text += random.one_in(2) ? "\xc3\xa9" : " ab";
      }
      REQUIRE(tokenizer.decode(encoded(tokenizer, text)) == text);
    }
  });
}

TEST_CASE("tokenizer: a word of a million letters takes no quadratic time", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  std::string part = "a";
  for (int i = 0; i < 5; ++i) {
    merge(vocabulary, part, part);
    part += part;
  }
  const byte_pair_encoding tokenizer(vocabulary);
  const auto start = std::chrono::steady_clock::now();
  const ids found = encoded(tokenizer, std::string(std::size_t{1} << 20, 'a'));
  // A quadratic loop would take minutes even on a fast machine.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(found == ids(std::size_t{1} << 15, 260));
}

TEST_CASE("tokenizer: added tokens are found in text, special ones are not", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  vocabulary.added = {{.text = "<a>", .id = 300},
                      {.text = "<a><b>", .id = 301},
                      {.text = "<|end|>", .id = 302, .special = true},
                      {.text = "<|e", .id = 303},
                      {.text = "[L]", .id = 304, .strip_left = true},
                      {.text = "[R]", .id = 305, .strip_right = true},
                      {.text = "one", .id = 306, .single_word = true}};
  const byte_pair_encoding tokenizer(vocabulary, {.split = split_pattern::none});
  CHECK(encoded(tokenizer, "x<a>y") == ids{'x', 300, 'y'});
  CHECK(encoded(tokenizer, "<a><b><a>") == ids{301, 300});
  CHECK(encoded(tokenizer, "<a><") == ids{300, '<'});
  // What a special token covers holds no other token either.
  CHECK(encoded(tokenizer, "<|end|>") == ids{'<', '|', 'e', 'n', 'd', '|', '>'});
  CHECK(encoded(tokenizer, "<|en") == ids{303, 'n'});
  CHECK(encoded(tokenizer, "a \t[L] b") == ids{'a', 304, ' ', 'b'});
  CHECK(encoded(tokenizer,
                "a [R] \xc2\xa0"
                "b") == ids{'a', ' ', 305, 'b'});
  CHECK(encoded(tokenizer, "a [R] [L]") == ids{'a', ' ', 305, 304});
  CHECK(encoded(tokenizer, "one") == ids{306});
  CHECK(encoded(tokenizer, "(one)") == ids{'(', 306, ')'});
  CHECK(encoded(tokenizer, "one_") == ids{'o', 'n', 'e', '_'});
  CHECK(encoded(tokenizer, "\xc3\xa9one") == ids{0xc3, 0xa9, 'o', 'n', 'e'});
  CHECK(tokenizer.special_token("<|end|>") == 302);
  CHECK(tokenizer.special_token("<a>") == 300);
  CHECK_FALSE(tokenizer.special_token("a"));
  CHECK(tokenizer.vocabulary_size() == 307);
  CHECK(tokenizer.decode(ids{302, 'a', 300}) == "<|end|>a<a>");
  CHECK_THROWS_AS(tokenizer.decode(ids{299}), lanepack::state_error);
}

TEST_CASE("tokenizer: text is normalized between the two kinds of added tokens", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  vocabulary.added = {{.text = "e\xcc\x81", .id = 300, .normalized = true},
                      {.text = "o\xcc\x81", .id = 301, .normalized = false}};
  const byte_pair_encoding tokenizer(
      vocabulary,
      {.split = split_pattern::none, .normalization = lanepack::text_normalization::nfc});
  CHECK(encoded(tokenizer, "\xc3\xa9") == ids{300});
  CHECK(encoded(tokenizer, "e\xcc\x81") == ids{300});
  CHECK(encoded(tokenizer, "o\xcc\x81") == ids{301});
  CHECK(encoded(tokenizer, "\xc3\xb3") == ids{0xc3, 0xb3});
  CHECK(encoded(tokenizer, "u\xcc\x81") == ids{0xc3, 0xba});
}

TEST_CASE("tokenizer: a space is put before text that has none", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  vocabulary.added = {{.text = "<a>", .id = 300}};
  const byte_pair_encoding tokenizer(vocabulary, {.add_prefix_space = true});
  CHECK(encoded(tokenizer, "x") == ids{' ', 'x'});
  CHECK(encoded(tokenizer, " x") == ids{' ', 'x'});
  CHECK(encoded(tokenizer, "<a>x") == ids{300, ' ', 'x'});
  CHECK(encoded(tokenizer, "").empty());
}

TEST_CASE("tokenizer: threads share a tokenizer", "[tokenizer]") {
  lanepack_test::gen random(1);
  const byte_pair_vocabulary vocabulary = random_vocabulary(random, "abcd ");
  const byte_pair_encoding tokenizer(vocabulary);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += random.pick(std::string_view("abcd "));
  const ids expected = encoded(tokenizer, text);
  std::vector<ids> found(3);
  std::vector<std::thread> threads;
  for (ids& each : found) threads.emplace_back([&] { each = encoded(tokenizer, text); });
  for (std::thread& each : threads) each.join();
  for (const ids& each : found) CHECK(each == expected);
}

TEST_CASE("tokenizer: broken vocabularies are refused by name", "[tokenizer]") {
  byte_pair_vocabulary vocabulary = bytes_alone();
  vocabulary.tokens[65].clear();
  require_refused(vocabulary, "tokens");

  vocabulary = bytes_alone();
  vocabulary.tokens.emplace_back("a");
  require_refused(vocabulary, "tokens");

  vocabulary = bytes_alone();
  vocabulary.tokens.resize(byte_pair_encoding::max_tokens + 1);
  require_refused(vocabulary, "tokens");

  for (const lanepack::byte_pair_merge bad : {lanepack::byte_pair_merge{'a', 'b', 'c'},
                                              {'a', -1, 256},
                                              {'a', 'b', 257},
                                              {'a', 'c', 256}}) {
    vocabulary = bytes_alone();
    vocabulary.tokens.emplace_back("ab");
    vocabulary.merges = {{'a', 'b', 256}, bad};
    require_refused(vocabulary, "merges");
  }
  const std::vector<std::vector<added_token>> bad_added = {
      {{.text = "", .id = 300}},
      {{.text = "x", .id = -1}},
      {{.text = "x", .id = 1 << 21}},
      {{.text = "x1", .id = 300}, {.text = "x1", .id = 301}},
      {{.text = "x1", .id = 300}, {.text = "x2", .id = 300}},
      {{.text = "x", .id = 65}}};
  for (const auto& bad : bad_added) {
    vocabulary = bytes_alone();
    vocabulary.added = bad;
    require_refused(vocabulary, "added");
  }
  vocabulary = bytes_alone();
  vocabulary.decoded_only = {{65, "x"}};
  require_refused(vocabulary, "decoded_only");
  vocabulary.decoded_only = {{300, "x"}};
  CHECK(byte_pair_encoding(vocabulary).decode(ids{300}) == "x");
}
