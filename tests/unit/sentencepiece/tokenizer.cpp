#include <lanepack/sentencepiece/tokenizer.hpp>

#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <sentencepiece_trainer.h>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace {

using ids = std::vector<std::int32_t>;

/// A model of a few words, trained on the spot.
std::string train(const lanepack_test::scratch_dir& scratch) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "the reader reads the records in order " + std::to_string(i) + "\n";
  }
  lanepack_test::write_file(scratch.path("text"), text);
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + scratch.path("text") + " --model_prefix=" + scratch.path("m") +
      " --model_type=bpe --vocab_size=60 --minloglevel=2 --num_threads=1 "
      "--control_symbols=<|end|> --byte_fallback=false --hard_vocab_limit=false");
  INFO(status.ToString());
  REQUIRE(status.ok());
  return scratch.path("m.model");
}

}  // namespace

TEST_CASE("sentencepiece: text goes to ids and back", "[sentencepiece]") {
  const lanepack_test::scratch_dir scratch;
  const lanepack::any_tokenizer pieces(lanepack::sentencepiece_tokenizer(train(scratch)));
  ids found = {-1};
  pieces.encode("the records in order", found);
  REQUIRE(found.size() > 1);
  CHECK(found.size() < 1 + std::string("the records in order").size());
  CHECK(found[0] == -1);
  found.erase(found.begin());
  CHECK(pieces.decode(found) == "the records in order");
  CHECK(pieces.vocabulary_size() <= 60);
  CHECK_THROWS_AS(pieces.decode(ids{1000}), lanepack::state_error);
  CHECK_THROWS_AS(pieces.decode(ids{-1}), lanepack::state_error);
}

TEST_CASE("sentencepiece: control pieces are found by name and not in text", "[sentencepiece]") {
  const lanepack_test::scratch_dir scratch;
  const lanepack::sentencepiece_tokenizer pieces(train(scratch));
  // The library numbers <unk>, <s> and </s> first.
  CHECK(pieces.special_token("<s>") == 1);
  CHECK(pieces.special_token("</s>") == 2);
  const auto end = pieces.special_token("<|end|>");
  REQUIRE(end);
  CHECK_FALSE(pieces.special_token("the"));
  CHECK_FALSE(pieces.special_token("no piece"));
  ids found;
  pieces.encode("the<|end|>", found);
  for (const std::int32_t id : found) CHECK(id != *end);
}

TEST_CASE("sentencepiece: a file that is no model is named", "[sentencepiece]") {
  const lanepack_test::scratch_dir scratch;
  lanepack_test::write_file(scratch.path("bad"), "no model");
  CHECK_THROWS_AS(lanepack::sentencepiece_tokenizer(scratch.path("bad")), lanepack::data_error);
  CHECK_THROWS_AS(lanepack::sentencepiece_tokenizer(scratch.path("none")), lanepack::data_error);
}
