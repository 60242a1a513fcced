#include <cstddef>
#include <type_traits>

#include <lanepack/device/concept.hpp>

#include "support/catch.hpp"

namespace {

// The least that models the concept.
struct minimal {
  struct stream {};
  struct stream_view {
    stream_view(const stream&) {}
  };
  struct event {};
  struct event_view {
    event_view(const event&) {}
  };
  stream make_stream() const { return {}; }
  event make_event() const { return {}; }
  void* allocate(lanepack::memory_kind, std::size_t) const { return nullptr; }
  void deallocate(lanepack::memory_kind, void*, std::size_t) const noexcept {}
  void copy_async(stream_view, void*, const void*, std::size_t) const {}
  void record(event_view, stream_view) const {}
  void wait(stream_view, event_view) const {}
  bool query(event_view) const { return true; }
  void synchronize(event_view) const {}
  void synchronize(stream_view) const {}
};

struct deallocates_with_exceptions : minimal {
  void deallocate(lanepack::memory_kind, void*, std::size_t) const {}
};

struct queries_a_status : minimal {
  int query(event_view) const { return 0; }
};

struct changes_when_used : minimal {
  void record(event_view, stream_view) {}
};

struct one_kind_of_view : minimal {
  using event_view = stream_view;
  using event = stream;
  event make_event() const { return {}; }
};

struct owners_without_views : minimal {
  struct stream {};
  stream make_stream() const { return {}; }
};

}  // namespace

TEST_CASE("device: what the backend concept takes and refuses", "[device]") {
  STATIC_REQUIRE(lanepack::device_backend<minimal>);
  STATIC_REQUIRE_FALSE(lanepack::device_backend<deallocates_with_exceptions>);
  STATIC_REQUIRE_FALSE(lanepack::device_backend<queries_a_status>);
  STATIC_REQUIRE_FALSE(lanepack::device_backend<changes_when_used>);
  STATIC_REQUIRE_FALSE(lanepack::device_backend<one_kind_of_view>);
  STATIC_REQUIRE_FALSE(lanepack::device_backend<owners_without_views>);
  STATIC_REQUIRE_FALSE(lanepack::device_backend<int>);
  STATIC_REQUIRE(std::is_base_of_v<lanepack::error, lanepack::device_error>);
}
