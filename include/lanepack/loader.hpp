#pragma once

/// @file
/// Everything in loader/: the plan of a run and the loader that delivers it.

#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/choose_policy.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/compose_mixture.hpp>
#include <lanepack/loader/compose_unindexed.hpp>
#include <lanepack/loader/digest_log.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/loader/options.hpp>
#include <lanepack/loader/plan_digest.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/loader/record_costs.hpp>
#include <lanepack/loader/run_properties.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/loader/statistics.hpp>
#include <lanepack/loader/step.hpp>
#include <lanepack/loader/step_counts.hpp>
#include <lanepack/loader/stream_costs.hpp>
