#include <lanepack/sampler/domain.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::record_domain;

void require_same(std::uint64_t size, const std::vector<lanepack::record_id>& excluded) {
  std::vector<bool> left_out(size);
  for (const lanepack::record_id id : excluded) left_out[id] = true;
  std::vector<lanepack::record_id> feasible;
  for (lanepack::record_id id = 0; id < size; ++id) {
    if (!left_out[id]) feasible.push_back(id);
  }

  const record_domain domain(size, excluded);
  REQUIRE(domain.size() == feasible.size());
  REQUIRE(domain.corpus_size() == size);
  REQUIRE(domain.excluded_count() == excluded.size());
  std::vector<std::uint64_t> all(feasible.size());
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  domain.to_ids(all);
  REQUIRE(all == feasible);
  for (std::uint64_t i = 0; i < feasible.size(); ++i) {
    REQUIRE(domain.id(i) == feasible[i]);
    REQUIRE(domain.index(feasible[i]) == i);
  }
  for (lanepack::record_id id = 0; id < size; ++id) REQUIRE(domain.contains(id) != left_out[id]);
  REQUIRE_FALSE(domain.contains(size));
}

TEST_CASE("domain: nothing excluded numbers a record by its id", "[domain]") {
  const record_domain domain(1000);
  CHECK(domain.size() == 1000);
  CHECK(domain.id(999) == 999);
  CHECK(domain.index(999) == 999u);
  CHECK_FALSE(domain.index(1000).has_value());
  CHECK(domain.excluded_count() == 0);
  CHECK(record_domain(0).size() == 0);
  CHECK(record_domain(7, {}).id(6) == 6);
}

TEST_CASE("domain: numbers are dense and ascending by id", "[domain]") {
  const record_domain domain(10, {0, 3, 4, 9});
  const std::uint64_t ids[] = {1, 2, 5, 6, 7, 8};
  CHECK(domain.size() == 6);
  for (std::uint64_t i = 0; i < 6; ++i) CHECK(domain.id(i) == ids[i]);
  CHECK_FALSE(domain.contains(0));
  CHECK_FALSE(domain.contains(4));
  CHECK_FALSE(domain.contains(10));
  CHECK(domain.index(5) == 2u);
}

TEST_CASE("domain: agrees with a list of the feasible records", "[domain]") {
  require_same(5, {0, 1, 2, 3, 4});
  require_same(1, {0});
  require_same(6, {5});
  require_same(6, {0});
  std::vector<lanepack::record_id> contiguous(300);
  std::iota(contiguous.begin(), contiguous.end(), std::uint64_t{100});
  require_same(1000, contiguous);
  require_same(400, contiguous);
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const std::uint64_t size = gen.between(1, 600);
    const std::uint64_t one_in = gen.between(1, 40);
    std::vector<lanepack::record_id> excluded;
    for (lanepack::record_id id = 0; id < size; ++id) {
      if (gen.one_in(one_in)) excluded.push_back(id);
    }
    require_same(size, excluded);
  });
}

TEST_CASE("domain: works up to 2^63 records", "[domain]") {
  const std::uint64_t size = std::uint64_t{1} << 63;
  const record_domain domain(size, {0, size / 2, size - 1});
  CHECK(domain.size() == size - 3);
  CHECK(domain.id(0) == 1);
  CHECK(domain.id(size / 2 - 2) == size / 2 - 1);
  CHECK(domain.id(size / 2 - 1) == size / 2 + 1);
  CHECK(domain.id(size - 4) == size - 2);
  CHECK(domain.index(size - 2) == size - 4);
}

TEST_CASE("domain: copies share the table", "[domain]") {
  const record_domain domain(100, {7});
  const record_domain copy = domain;
  CHECK(copy.id(7) == 8);
  CHECK(sizeof(record_domain) <= 32);
}

TEST_CASE("domain: a table that is not ascending is refused", "[domain]") {
  CHECK_THROWS_WITH(record_domain(10, {1, 1}),
                    "excluded[1]: found 1, expected ids in ascending order, each once, below 10");
  CHECK_THROWS_AS(record_domain(10, {2, 1}), lanepack::invalid_option);
  CHECK_THROWS_WITH(record_domain(10, {10}),
                    "excluded[0]: found 10, expected ids in ascending order, each once, below 10");
  CHECK_THROWS_AS(record_domain((std::uint64_t{1} << 63) + 1), lanepack::invalid_option);
}

}  // namespace
