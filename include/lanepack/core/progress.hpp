#pragma once

/// @file
/// How long work tells its caller how far it is.

#include <cstdint>
#include <functional>

#include <lanepack/core/config.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Called now and then with the work done and the work in all, in a unit that the caller of the
/// long function knows (bytes, records); the last call has `done == total`. It may be called from a
/// worker thread, but never from two at a time. An empty function means that nobody listens.
using progress_callback = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace lanepack::inline LANEPACK_ABI
