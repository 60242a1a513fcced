#include <lanepack/corpus/memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;

namespace {

template <class Failure>
std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

std::vector<record_shape> shapes_of(const memory_source& source) {
  std::vector<record_id> ids(source.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<record_shape> shapes(ids.size());
  source.shapes(ids, shapes);
  return shapes;
}

const std::vector<std::vector<std::int32_t>> three = {{5, 6, 7}, {}, {8}};

}  // namespace

TEST_CASE("corpus: records in memory have shapes and contents", "[corpus]") {
  const memory_source source(three);
  REQUIRE(source.size() == 3);
  REQUIRE(source.traits().has_payload);
  REQUIRE(source.traits().has_all_shapes);
  REQUIRE_FALSE(source.traits().has_loss_mask);
  REQUIRE(shapes_of(source) == std::vector<record_shape>{{3, 2, 0}, {0, 0, 0}, {1, 0, 0}});
  REQUIRE(source.describe() == "memory: 3 records, 4 tokens");

  std::array<std::int32_t, 1> last;
  std::array<std::int32_t, 2> part;
  std::array<std::uint8_t, 2> mask{};
  const std::vector<record_read> reads = {{2, 0, last, {}}, {0, 1, part, mask}, {1, 0, {}, {}}};
  source.read(reads);
  REQUIRE(last[0] == 8);
  REQUIRE(part == std::array<std::int32_t, 2>{6, 7});
  REQUIRE(mask == std::array<std::uint8_t, 2>{1, 1});
}

TEST_CASE("corpus: a loss mask counts from a record's second token", "[corpus]") {
  const memory_source source({1, 2, 3, 4, 5}, {0, 3, 5}, {1, 0, 1, 1, 1});
  REQUIRE(source.traits().has_loss_mask);
  REQUIRE(shapes_of(source) == std::vector<record_shape>{{3, 1, 0}, {2, 1, 0}});
  std::array<std::int32_t, 2> tokens;
  std::array<std::uint8_t, 2> mask;
  const std::vector<record_read> reads = {{0, 1, tokens, mask}};
  source.read(reads);
  REQUIRE(mask == std::array<std::uint8_t, 2>{0, 1});
}

TEST_CASE("corpus: fingerprints of records in memory follow lengths and loss", "[corpus]") {
  const memory_source source({1, 2, 3, 4}, {0, 3, 4});
  REQUIRE(source.fingerprint() == memory_source({9, 9, 9, 9}, {0, 3, 4}).fingerprint());
  REQUIRE(source.fingerprint() != memory_source({1, 2, 3, 4}, {0, 1, 4}).fingerprint());
  REQUIRE(source.fingerprint() != memory_source({1, 2, 3, 4}, {0, 3, 4, 4}).fingerprint());
  REQUIRE(source.fingerprint() !=
          memory_source({1, 2, 3, 4}, {0, 3, 4}, {1, 1, 0, 1}).fingerprint());
}

TEST_CASE("corpus: contradicting arguments of a memory source are refused", "[corpus]") {
  REQUIRE_THAT(message_of<invalid_option>([] { memory_source({1}, {}); }),
               ContainsSubstring("offsets: found no offsets"));
  REQUIRE_THROWS_AS(memory_source({1}, {0}), invalid_option);
  REQUIRE_THROWS_AS(memory_source({1}, {1, 1}), invalid_option);
  REQUIRE_THROWS_AS(memory_source({1, 2, 3}, {0, 2, 1, 3}), invalid_option);
  REQUIRE_THROWS_AS(memory_source({1}, {0, 2}), invalid_option);
  REQUIRE_THAT(message_of<invalid_option>([] {
                 memory_source({1, 2}, {0, 2}, {1});
               }),
               ContainsSubstring("loss_mask: found 1 values, expected 2"));
  REQUIRE_THAT(message_of<data_error>([] {
                 memory_source({1, 2, -3}, {0, 2, 2, 3});
               }),
               ContainsSubstring("record 2: found token -3, expected an id in [0, 2147483647]"));
  REQUIRE_THAT(message_of<data_error>([] {
                 memory_source({1, 2}, {0, 2}, {1, 2});
               }),
               ContainsSubstring("record 0: found loss mask 2, expected 0 or 1"));
}

TEST_CASE("corpus: reads outside a record are refused", "[corpus]") {
  const memory_source source(three);
  std::array<std::int32_t, 2> tokens;
  std::array<std::uint8_t, 1> mask;
  const auto read = [&](const record_read& wanted) { source.read(std::span(&wanted, 1)); };
  REQUIRE_THAT(message_of<state_error>([&] {
                 read({3, 0, tokens, {}});
               }),
               ContainsSubstring("found record 3, expected one of the corpus's 3 records"));
  REQUIRE_THAT(message_of<state_error>([&] {
                 read({0, 2, tokens, {}});
               }),
               ContainsSubstring("record 0: found a read of tokens [2, 2 + 2)"));
  REQUIRE_THROWS_AS(read({0, 4, {}, {}}), state_error);
  REQUIRE_THROWS_AS(read({0, ~std::uint64_t{0}, tokens, {}}), state_error);
  REQUIRE_THROWS_AS(read({0, 0, tokens, mask}), state_error);
  std::array<record_shape, 1> shape;
  const std::array<record_id, 1> id = {3};
  REQUIRE_THROWS_AS(source.shapes(id, shape), state_error);
}

TEST_CASE("corpus: an empty corpus in memory has no records", "[corpus]") {
  const memory_source source(std::vector<std::int32_t>{}, {0});
  REQUIRE(source.size() == 0);
  REQUIRE(memory_source(std::vector<std::vector<std::int32_t>>{}).size() == 0);
}

TEST_CASE("corpus: records in memory may carry payloads and patches", "[corpus]") {
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
  };
  const auto make = [&](std::vector<memory_payload> payloads, std::vector<std::uint64_t> patches) {
    return memory_source({1, 2, 3}, {0, 2, 3}, {}, std::move(patches), std::move(payloads));
  };
  const std::vector<payload_shape> shapes = {{payload_type::u16, {1, 2}}, {payload_type::u16, {0}}};
  const memory_payload grid{"grid", shapes, bytes({1, 2, 3, 4})};
  const memory_source source = make({grid}, {6, 0});
  REQUIRE(shapes_of(source) == std::vector<record_shape>{{2, 1, 6}, {1, 0, 0}});
  REQUIRE(source.payload_names().size() == 1);
  REQUIRE(source.payload_names()[0] == "grid");
  REQUIRE(source.largest_payload() == record_payload_bytes{0, 4});
  std::array<payload_shape, 2> found;
  source.payload_shapes(0, std::array<record_id, 2>{1, 0}, found);
  REQUIRE(found[0] == shapes[1]);
  REQUIRE(found[1] == shapes[0]);
  REQUIRE(to_string(found[1]) == "u16 (1, 2)");
  std::array<std::byte, 4> out{};
  const std::vector<payload_read> reads = {{0, 0, out}, {1, 0, {}}};
  source.read_payloads(reads);
  REQUIRE(out[3] == std::byte{4});

  REQUIRE(source.fingerprint() == make({grid}, {6, 0}).fingerprint());
  REQUIRE(source.fingerprint() != make({grid}, {5, 0}).fingerprint());
  REQUIRE(source.fingerprint() != make({{"other", shapes, grid.bytes}}, {6, 0}).fingerprint());
  REQUIRE_THROWS_AS(make({grid}, {6}), invalid_option);
  REQUIRE_THROWS_AS(make({grid, grid}, {}), invalid_option);
  REQUIRE_THROWS_AS(make({{"", shapes, grid.bytes}}, {}), invalid_option);
  REQUIRE_THROWS_AS(make({{"grid", shapes, bytes({1})}}, {}), invalid_option);
  REQUIRE_THROWS_AS(source.payload_shapes(1, {}, {}), state_error);
  const payload_read small{0, 0, std::span(out).first(3)};
  REQUIRE_THROWS_AS(source.read_payloads({&small, 1}), state_error);
  const payload_read absent{2, 0, {}};
  REQUIRE_THROWS_AS(source.read_payloads({&absent, 1}), state_error);
}
