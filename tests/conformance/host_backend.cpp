#include <lanepack/device/host_backend.hpp>

#include "conformance/device_backend.hpp"

namespace {

using lanepack::host_backend;
using lanepack::host_backend_options;
using lanepack::host_call;
using lanepack_test::device_fault;

struct host_harness {
  using backend = host_backend;

  host_backend_options options;

  backend make() const { return host_backend(options); }

  void call_async(const backend& device, backend::stream_view stream,
                  std::function<void()> work) const {
    device.call_async(stream, std::move(work));
  }

  std::optional<backend> make_failing(device_fault fault, std::uint64_t number) const {
    host_backend_options failing = options;
    failing.before_call = lanepack::fail_call(call_of(fault), number);
    return host_backend(failing);
  }

  static host_call call_of(device_fault fault) {
    switch (fault) {
      case device_fault::make_stream:
        return host_call::make_stream;
      case device_fault::make_event:
        return host_call::make_event;
      case device_fault::allocate:
        return host_call::allocate;
      case device_fault::copy_given:
        return host_call::copy;
      case device_fault::copy_run:
        return host_call::run_copy;
      case device_fault::record:
        return host_call::record;
      case device_fault::wait:
        return host_call::wait;
      case device_fault::query:
        return host_call::query;
      case device_fault::synchronize:
        break;
    }
    return host_call::synchronize;
  }
};

}  // namespace

TEST_CASE("conformance: host backend", "[conformance]") {
  host_harness harness;
  lanepack_test::check_device_backend(harness);
}

TEST_CASE("conformance: host backend with slow copies", "[conformance]") {
  host_harness harness{{.copy_delay = std::chrono::microseconds(100), .before_call = {}}};
  lanepack_test::check_device_backend(harness);
}
