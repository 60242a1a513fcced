#pragma once

/// @file
/// Everything in sim/: the simulator of step times, its figures, and the baselines to compare with.

#include <lanepack/sim/baseline_options.hpp>
#include <lanepack/sim/baselines.hpp>
#include <lanepack/sim/bounds.hpp>
#include <lanepack/sim/capacity_tuning.hpp>
#include <lanepack/sim/karmarkar_karp.hpp>
#include <lanepack/sim/length_grouped.hpp>
#include <lanepack/sim/metrics.hpp>
#include <lanepack/sim/pooled_balanced.hpp>
#include <lanepack/sim/pooled_packing.hpp>
#include <lanepack/sim/pooled_records.hpp>
#include <lanepack/sim/simulator.hpp>
#include <lanepack/sim/step_assigner.hpp>
#include <lanepack/sim/step_assignment.hpp>
#include <lanepack/sim/step_time.hpp>
