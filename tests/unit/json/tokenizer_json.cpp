#include <lanepack/json/tokenizer_json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace {

using json = nlohmann::json;
using ids = std::vector<std::int32_t>;

const std::string folder = LANEPACK_GOLDEN_TOKENIZERS "/";

json document(const std::string& name) {
  return json::parse(lanepack_test::read_file(folder + name + ".json"));
}

void require_refused(const json& changed, const std::string& part) {
  try {
    static_cast<void>(lanepack::parse_tokenizer_json(changed.dump(), "t.json"));
    FAIL("accepted, expected: " + part);
  } catch (const lanepack::data_error& e) {
    CHECK_THAT(e.what(),
               Catch::Matchers::StartsWith("t.json: ") && Catch::Matchers::ContainsSubstring(part));
  }
}

}  // namespace

// The expected ids come from the package `tokenizers`: see make.py beside them.
TEST_CASE("json: tokenizer.json gives the ids of the reference implementation", "[json]") {
  const json texts = document("texts");
  for (const char* name : {"gpt2", "prefixed", "llama3", "cl100k", "qwen2", "o200k"}) {
    CAPTURE(name);
    const lanepack::tokenizer_json read = lanepack::read_tokenizer_json(folder + name + ".json");
    const std::string lines = lanepack_test::read_file(folder + name + ".ids");
    const char* next = lines.c_str();
    std::size_t compared = 0;
    for (const json& text : texts) {
      CAPTURE(text.dump(-1, ' ', true));
      ids expected;
      for (; *next != '\n' && *next != '\0'; next += *next == ' ' ? 1 : 0) {
        char* end = nullptr;
        expected.push_back(static_cast<std::int32_t>(std::strtol(next, &end, 10)));
        next = end;
      }
      REQUIRE(*next++ == '\n');
      ids found;
      read.tokenizer.encode(text.get<std::string>(), found);
      REQUIRE(found == expected);
      ++compared;
    }
    CHECK(compared >= 90);
  }
}

TEST_CASE("json: tokenizer.json tells the special tokens and what goes before a text", "[json]") {
  const auto llama3 = lanepack::read_tokenizer_json(folder + "llama3.json");
  const auto start = llama3.tokenizer.special_token("<|begin_of_text|>");
  REQUIRE(start);
  CHECK(llama3.text_start == ids{*start});
  CHECK(llama3.text_end.empty());
  CHECK(llama3.tokenizer.options().ignore_merges);
  CHECK(llama3.tokenizer.options().split == lanepack::split_pattern::llama3);
  CHECK(llama3.tokenizer.vocabulary_size() == 903);
  const auto qwen2 = lanepack::read_tokenizer_json(folder + "qwen2.json");
  CHECK(qwen2.tokenizer.options().normalization == lanepack::text_normalization::nfc);
  CHECK(qwen2.tokenizer.special_token("<tool_call>"));
  CHECK(qwen2.text_start.empty());
}

TEST_CASE("json: merges are read in both spellings", "[json]") {
  json changed = document("gpt2");
  for (json& merge : changed["model"]["merges"]) {
    const std::string text = merge.get<std::string>();
    const std::size_t space = text.find(' ');
    merge = json::array({text.substr(0, space), text.substr(space + 1)});
  }
  const auto plain = lanepack::read_tokenizer_json(folder + "gpt2.json");
  const auto pairs = lanepack::parse_tokenizer_json(changed.dump());
  ids a;
  ids b;
  plain.tokenizer.encode("The reader reads the records in order.", a);
  pairs.tokenizer.encode("The reader reads the records in order.", b);
  CHECK(a == b);
}

TEST_CASE("json: a token of the vocabulary that no bytes are written as is only decoded",
          "[json]") {
  json changed = document("gpt2");
  changed["model"]["vocab"]["\xe2\x96\x81x"] = 2000;
  const auto read = lanepack::parse_tokenizer_json(changed.dump());
  CHECK(read.tokenizer.decode(ids{2000}) == "\xe2\x96\x81x");
  ids found;
  read.tokenizer.encode("\xe2\x96\x81x", found);
  CHECK(read.tokenizer.decode(found) == "\xe2\x96\x81x");
  CHECK(found != ids{2000});
}

TEST_CASE("json: what is no byte-level BPE is refused by key", "[json]") {
  const json good = document("llama3");
  struct fault {
    const char* pointer;
    const char* value;
    const char* part;
  };
  const fault faults[] = {
      {"/model/type", R"("WordPiece")", "\"BPE\""},
      {"/model/dropout", "0.1", "model.dropout"},
      {"/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix"},
      {"/model/vocab", "[]", "model.vocab"},
      {"/model/vocab/a", "-1", "'a': -1, expected a token and an id below 2097152"},
      {"/model/vocab/a", "4000000000", "id below"},
      {"/model/vocab/a", "0", "the id 0 twice"},
      {"/model/merges/3", R"("a")", "merge 3: found \"a\", expected two tokens"},
      {"/model/merges/3", R"("a b c")", "expected two tokens"},
      {"/model/merges/3", R"(["a", "\u0120zzz"])", "expected tokens of the vocabulary"},
      {"/model/merges", "1", "model.merges"},
      {"/normalizer", R"({"type": "Lowercase"})", "normalizer.type"},
      {"/pre_tokenizer", "null", "pre_tokenizer"},
      {"/pre_tokenizer", R"({"type": "Metaspace"})", "pre_tokenizer.type"},
      {"/pre_tokenizer/pretokenizers/0/behavior", R"("Removed")", "behavior"},
      {"/pre_tokenizer/pretokenizers/0/pattern", R"({"String": " "})", "pattern"},
      {"/pre_tokenizer/pretokenizers/1/add_prefix_space", "true", "add_prefix_space"},
      {"/pre_tokenizer/pretokenizers/1/use_regex", "true", "use_regex"},
      {"/added_tokens/0/id", "5", "an id that no other token has"},
      {"/added_tokens/0/content", R"("Q")", "added_tokens[0].id"},
      {"/added_tokens", "1", "added_tokens"},
      {"/post_processor/processors/1/single/0/SpecialToken/id", R"("<none>")", "SpecialToken.id"},
      {"/model", "1", "model"},
  };
  for (const fault& each : faults) {
    CAPTURE(each.pointer);
    json changed = good;
    changed[json::json_pointer(each.pointer)] = json::parse(each.value);
    require_refused(changed, each.part);
  }

  json changed = good;
  changed["model"]["vocab"].erase("a");
  require_refused(changed, "merge");
  changed["model"]["merges"] = json::array();
  require_refused(changed, "none for the byte 97");
  require_refused(json::array(), "expected an object");
  CHECK_THROWS_AS(lanepack::parse_tokenizer_json("{"), lanepack::data_error);
  CHECK_THROWS_AS(lanepack::parse_tokenizer_json(std::string(1 << 20, '[')), lanepack::data_error);
}

TEST_CASE("json: an unknown split pattern is quoted beside the known ones", "[json]") {
  json changed = document("llama3");
  changed["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\w+|\s)";
  require_refused(changed, R"('\w+|\s', expected that of gpt2, llama3, cl100k, qwen2, o200k)");
}
