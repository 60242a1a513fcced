#include <lanepack/corpus/any_source.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/corpus/memory.hpp>

#include "support/catch.hpp"

using namespace lanepack;

namespace {

/// The least that a source is.
struct minimal_source {
  [[nodiscard]] std::uint64_t size() const { return 1; }
  [[nodiscard]] source_traits traits() const { return {}; }
  void shapes(std::span<const record_id>, std::span<record_shape> out) const {
    for (record_shape& shape : out) shape = {1, 0, 0};
  }
  void read(std::span<const record_read> reads) const {
    for (const record_read& read : reads) {
      for (std::int32_t& token : read.tokens) token = 7;
    }
  }
  [[nodiscard]] digest128 fingerprint() const { return {1, 2}; }
  [[nodiscard]] std::string describe() const { return "minimal"; }
};

struct no_fingerprint : minimal_source {
  void fingerprint() const = delete;
};
struct writes_when_read : minimal_source {
  void read(std::span<const record_read>) {}
};
struct narrow_size : minimal_source {
  [[nodiscard]] std::uint32_t size() const { return 1; }
};

}  // namespace

TEST_CASE("corpus: the concept accepts the least and refuses near misses", "[corpus]") {
  STATIC_REQUIRE(record_source<minimal_source>);
  STATIC_REQUIRE(record_source<any_source>);
  STATIC_REQUIRE_FALSE(record_source<no_fingerprint>);
  STATIC_REQUIRE_FALSE(record_source<writes_when_read>);
  STATIC_REQUIRE_FALSE(record_source<narrow_size>);
  STATIC_REQUIRE_FALSE(record_source<int>);
  STATIC_REQUIRE(std::is_convertible_v<minimal_source, any_source>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<any_source, no_fingerprint>);
}

TEST_CASE("corpus: any_source passes every call on and shares its source", "[corpus]") {
  const any_source first = minimal_source{};
  const any_source second = first;
  for (const any_source& source : {first, second}) {
    REQUIRE(source.size() == 1);
    REQUIRE(source.traits().has_payload);
    REQUIRE(source.fingerprint() == digest128{1, 2});
    REQUIRE(source.describe() == "minimal");
    std::array<record_shape, 1> shape;
    source.shapes(std::array<record_id, 1>{0}, shape);
    REQUIRE(shape[0].tokens == 1);
    std::array<std::int32_t, 2> tokens{};
    const std::vector<record_read> reads = {{0, 0, tokens, {}}};
    source.read(reads);
    REQUIRE(tokens == std::array<std::int32_t, 2>{7, 7});
  }
  // A copy of any_source is not wrapped again.
  const any_source third = any_source(second);
  REQUIRE(third.describe() == "minimal");
}

TEST_CASE("corpus: any_source takes a source that cannot be copied", "[corpus]") {
  struct unique_source : minimal_source {
    unique_source() = default;
    unique_source(unique_source&&) = default;
    unique_source& operator=(unique_source&&) = default;
  };
  REQUIRE(any_source(unique_source{}).size() == 1);
}

TEST_CASE("corpus: any_source keeps payloads, and has none where its source has none", "[corpus]") {
  const any_source plain = minimal_source{};
  REQUIRE(plain.payload_names().empty());
  REQUIRE(plain.largest_payload() == record_payload_bytes{});
  REQUIRE_THROWS_AS(plain.payload_shapes(0, {}, {}), state_error);
  REQUIRE_NOTHROW(plain.read_payloads({}));

  const any_source source = memory_source({1, 2}, {0, 1, 2}, {}, {},
                                          {{"image",
                                            {{payload_type::u8, {2}}, {payload_type::u8, {1}}},
                                            {std::byte{7}, std::byte{8}, std::byte{9}}}});
  REQUIRE(source.payload_names()[0] == "image");
  REQUIRE(source.largest_payload() == record_payload_bytes{0, 2});
  std::array<payload_shape, 1> shape;
  source.payload_shapes(0, std::array<record_id, 1>{1}, shape);
  REQUIRE(shape[0] == payload_shape(payload_type::u8, {1}));
  std::array<std::byte, 1> bytes{};
  const payload_read read{1, 0, bytes};
  source.read_payloads({&read, 1});
  REQUIRE(bytes[0] == std::byte{9});
}
