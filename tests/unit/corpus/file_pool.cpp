#include <lanepack/corpus/file_pool.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::scratch_dir;

TEST_CASE("file_pool: files are opened when they are read, and few stay open", "[corpus]") {
  const scratch_dir scratch;
  std::vector<std::string> paths;
  for (const char* name : {"a", "b", "c"}) {
    paths.push_back(scratch.path(name));
    lanepack_test::write_file(paths.back(), name);
  }
  const file_pool pool(paths, 2);
  REQUIRE(pool.size() == 3);
  REQUIRE(pool.path(1) == paths[1]);
  REQUIRE(pool.identities()[2].size == 1);
  const std::shared_ptr<const input_file> held = pool.open(0);
  REQUIRE(pool.open(0) == held);
  const std::weak_ptr<const input_file> second = pool.open(1);
  REQUIRE_FALSE(second.expired());
  // The first that was opened makes room, and lives on where it is held.
  REQUIRE(pool.open(2)->path() == paths[2]);
  REQUIRE(pool.open(1) == second.lock());
  std::array<std::byte, 1> byte{};
  held->read_at(0, byte);
  REQUIRE(byte[0] == std::byte{'a'});
  REQUIRE(pool.open(0) != held);
  REQUIRE(second.expired());
}

TEST_CASE("file_pool: a file that is missing or has changed is an error that names it",
          "[corpus]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("a");
  REQUIRE_THROWS_WITH(file_pool({path}), ContainsSubstring(path));
  REQUIRE_THROWS_WITH(file_pool({scratch.path()}), ContainsSubstring("found a directory"));
  lanepack_test::write_file(path, "abc");
  const file_pool pool({path});
  lanepack_test::write_file(path, "abcd");
  REQUIRE_THROWS_AS(pool.open(0), file_changed);
  REQUIRE_THROWS_WITH(pool.open(0),
                      ContainsSubstring("found a file of 4 bytes, expected one of 3"));
  REQUIRE_THROWS_AS(file_pool({path}, 0), invalid_option);
}
