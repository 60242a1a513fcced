#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <lanepack/device/fork_guard.hpp>

#include "support/catch.hpp"

TEST_CASE("device: a fork guard tells the child from its maker", "[device]") {
  const lanepack::detail::fork_guard guard;
  CHECK_FALSE(guard.in_child());
  CHECK_NOTHROW(guard.check("thing"));
  const pid_t maker = ::getpid();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int status = 1;
    try {
      guard.check("thing");
    } catch (const lanepack::state_error& refused) {
      const std::string expected = "thing: made by process " + std::to_string(maker) +
                                   " and used in process " + std::to_string(::getpid()) +
                                   ", expected one made after the fork";
      status = guard.in_child() && refused.what() == expected ? 0 : 2;
    }
    ::_exit(status);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
