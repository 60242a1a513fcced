#include <lanepack/corpus/concatenated.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/memory.hpp>
#include <lanepack/corpus/summarize.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"

using namespace lanepack;
using lanepack_test::corpus_of;

namespace {

/// Ids 0, 1 | none | 2 to 4, the last part with a loss mask.
concatenated_source three_parts() {
  return concatenated_source(
      {{"a", corpus_of({3, 1})}, {"empty", corpus_of({})}, {"b", corpus_of({2, 0, 5}, true)}});
}

/// As if the corpus had no parts.
class without_parts {
 public:
  explicit without_parts(any_source whole) : whole_(std::move(whole)) {}
  [[nodiscard]] std::uint64_t size() const { return whole_.size(); }
  [[nodiscard]] source_traits traits() const { return whole_.traits(); }
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    whole_.shapes(ids, out);
  }
  void read(std::span<const record_read> reads) const { whole_.read(reads); }
  [[nodiscard]] digest128 fingerprint() const { return whole_.fingerprint(); }
  [[nodiscard]] std::string describe() const { return whole_.describe(); }

 private:
  any_source whole_;
};

}  // namespace

TEST_CASE("concatenated: ids run through the parts", "[corpus]") {
  const any_source source = three_parts();
  REQUIRE(source.size() == 5);
  REQUIRE(source.traits().has_loss_mask);
  REQUIRE(source.parts().size() == 3);
  REQUIRE(source.parts()[1].records == 0);
  REQUIRE(source.parts()[2].name == "b");
  REQUIRE(source.parts()[2].first == 2);
  REQUIRE(source.parts()[2].fingerprint == corpus_of({2, 0, 5}, true).fingerprint());
  const std::vector<record_id> ids{4, 0, 2, 4, 1, 3};
  std::vector<record_shape> shapes(ids.size());
  source.shapes(ids, shapes);
  const std::vector<std::uint64_t> tokens{5, 3, 2, 5, 1, 0};
  for (std::size_t i = 0; i < ids.size(); ++i) REQUIRE(shapes[i].tokens == tokens[i]);

  std::vector<std::int32_t> last(4);
  std::vector<std::int32_t> first(3);
  std::vector<std::uint8_t> mask(3);
  const std::vector<record_read> reads{
      {.id = 4, .first_token = 1, .tokens = last, .loss_mask = {}},
      {.id = 0, .first_token = 0, .tokens = first, .loss_mask = mask}};
  source.read(reads);
  // Tokens are those of record 2 of its part.
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE(last[i] == lanepack_test::expected_token(2, i + 1));
  }
  REQUIRE(first[2] == lanepack_test::expected_token(0, 2));
  REQUIRE(mask == std::vector<std::uint8_t>{1, 1, 1});
  const record_id beyond = 5;
  REQUIRE_THROWS_AS(source.shapes({&beyond, 1}, {shapes.data(), 1}), state_error);
}

TEST_CASE("concatenated: what is known of it is known of all parts", "[corpus]") {
  const any_source lengths = length_source(std::vector<std::uint32_t>{4, 5});
  const any_source source = concatenated_source({{"a", corpus_of({3})}, {"l", lengths}});
  REQUIRE_FALSE(source.traits().has_payload);
  REQUIRE(source.traits().has_all_shapes);
  REQUIRE(corpus_of({3}).size() == 1);
  REQUIRE(any_source(corpus_of({3})).parts().empty());
}

TEST_CASE("concatenated: the fingerprint is of the parts in their order, not of their names",
          "[corpus]") {
  const auto of = [](std::vector<named_source> parts) {
    return concatenated_source(std::move(parts)).fingerprint();
  };
  const any_source a = corpus_of({3, 1});
  const any_source b = corpus_of({2});
  REQUIRE(of({{"a", a}, {"b", b}}) == of({{"x", a}, {"y", b}}));
  REQUIRE(of({{"a", a}, {"b", b}}) != of({{"b", b}, {"a", a}}));
  REQUIRE(of({{"a", a}}) != a.fingerprint());
}

TEST_CASE("concatenated: names are needed and differ", "[corpus]") {
  const any_source a = corpus_of({3, 1});
  REQUIRE_THROWS_AS(concatenated_source({}), invalid_option);
  REQUIRE_THROWS_AS(concatenated_source({{"", a}}), invalid_option);
  REQUIRE_THROWS_AS(concatenated_source({{"a", a}, {"b", a}, {"a", a}}), invalid_option);
}

TEST_CASE("summary: that of the parts is that of the whole", "[corpus]") {
  const any_source source = three_parts();
  corpus_summary of_parts = summarize(source, {.threads = 1});
  REQUIRE(of_parts.parts.size() == 3);
  REQUIRE(of_parts.parts[2] == summarize(corpus_of({2, 0, 5}, true), {.threads = 1}));
  of_parts.parts.clear();
  REQUIRE(of_parts == summarize(without_parts(source), {.threads = 1}));
  REQUIRE(of_parts.empty_ids == std::vector<record_id>{3});
}

TEST_CASE("summary: lists of parts reach as far down as the shortest", "[corpus]") {
  const any_source source = concatenated_source(
      {{"a", corpus_of({9, 7, 5, 3, 0, 0})}, {"b", corpus_of({8, 6, 4, 2, 0})}});
  const auto of = [](const any_source& part, std::size_t longest, std::size_t empty) {
    return summarize(part, {.threads = 1, .listed_longest = longest, .listed_empty = empty});
  };
  const corpus_summary a = of(corpus_of({9, 7, 5, 3, 0, 0}), 2, 1);
  const corpus_summary b = of(corpus_of({8, 6, 4, 2, 0}), 3, 1);
  const corpus_summary whole = summary_of_parts(source, {a, b});
  // Below 7 nothing is known of a.
  REQUIRE(whole.longest == std::vector<listed_record>{{0, 9}, {6, 8}, {1, 7}});
  // Of a's two empty records one is listed, so nothing may follow it.
  REQUIRE(whole.empty_ids == std::vector<record_id>{4});
  REQUIRE(whole.empty_records == 3);
  REQUIRE(whole.ids_above(7) == std::vector<record_id>{0, 6});
  REQUIRE_FALSE(whole.ids_above(6).has_value());
  REQUIRE_THROWS_AS(summary_of_parts(source, {a}), state_error);
  REQUIRE_THROWS_AS(summary_of_parts(source, {b, a}), state_error);
}
