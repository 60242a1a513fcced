#include <type_traits>
#include <utility>

#include <lanepack/device/buffer.hpp>
#include <lanepack/device/host_backend.hpp>

#include "support/catch.hpp"

TEST_CASE("device: a buffer frees what it allocated, once", "[device]") {
  using buffer = lanepack::device_buffer<lanepack::host_backend>;
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<buffer>);
  const lanepack::host_backend backend;
  {
    buffer first(backend, lanepack::memory_kind::staging, 100);
    CHECK(first.size() == 100);
    CHECK(first.bytes().size() == 100);
    CHECK(first.bytes().data() == first.data());
    CHECK(first.kind() == lanepack::memory_kind::staging);
    CHECK(backend.counters().live_bytes == 100);
    const void* memory = first.data();
    const buffer second = std::move(first);
    CHECK(second.data() == memory);
    CHECK(second.size() == 100);
    CHECK(first.data() == nullptr);  // NOLINT(bugprone-use-after-move)
    CHECK(first.bytes().empty());
    const buffer third(backend, lanepack::memory_kind::device, 20);
    CHECK(backend.counters().live_bytes == 120);
  }
  CHECK(backend.counters().live_bytes == 0);
  CHECK(backend.counters().allocations == 2);
  CHECK(backend.counters().deallocations == 2);
}

TEST_CASE("device: a buffer that could not be allocated frees nothing", "[device]") {
  const lanepack::host_backend backend(
      {.copy_delay = {}, .before_call = lanepack::fail_call(lanepack::host_call::allocate, 0)});
  CHECK_THROWS_AS(
      lanepack::device_buffer<lanepack::host_backend>(backend, lanepack::memory_kind::staging, 100),
      lanepack::device_error);
  CHECK(backend.counters().deallocations == 0);
}
