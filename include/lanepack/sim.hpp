#pragma once

/// @file
/// Everything in sim/: the simulator of step times and its figures.

#include <lanepack/sim/metrics.hpp>
#include <lanepack/sim/simulator.hpp>
#include <lanepack/sim/step_assigner.hpp>
