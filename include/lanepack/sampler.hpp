#pragma once

/// @file
/// Umbrella of `sampler/`: who gets which record, in what order.

#include <lanepack/sampler/domain.hpp>
#include <lanepack/sampler/epoch_order.hpp>
#include <lanepack/sampler/lane_sampler.hpp>
#include <lanepack/sampler/mixed_records.hpp>
#include <lanepack/sampler/mixture.hpp>
#include <lanepack/sampler/mixture_options.hpp>
#include <lanepack/sampler/permutation.hpp>
#include <lanepack/sampler/schedule.hpp>
#include <lanepack/sampler/schedule_options.hpp>
#include <lanepack/sampler/shuffle.hpp>
#include <lanepack/sampler/shuffle_options.hpp>
