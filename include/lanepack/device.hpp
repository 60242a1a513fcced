#pragma once

/// @file
/// Moving data to a device: the backend concept, its model on the host, staging memory.

#include <lanepack/device/buffer.hpp>
#include <lanepack/device/concept.hpp>
#include <lanepack/device/fork_guard.hpp>
#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/ring_lease.hpp>
#include <lanepack/device/ring_options.hpp>
#include <lanepack/device/staging_ring.hpp>
