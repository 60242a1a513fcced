#pragma once

/// @file
/// Who this process is and what it owns: discovery, the grid of parallelism, lanes.

#include <lanepack/topology/grid.hpp>
#include <lanepack/topology/lane_ownership.hpp>
#include <lanepack/topology/world.hpp>
