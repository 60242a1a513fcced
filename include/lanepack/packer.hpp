#pragma once

/// @file
/// Umbrella of `packer/`.

#include <lanepack/packer/bin_packing.hpp>
#include <lanepack/packer/calendar.hpp>
#include <lanepack/packer/calendar_caps.hpp>
#include <lanepack/packer/calendar_filler.hpp>
#include <lanepack/packer/calendar_parameters.hpp>
#include <lanepack/packer/calendar_tuning.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/chunking.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/cost_order.hpp>
#include <lanepack/packer/formed_packs.hpp>
#include <lanepack/packer/levelled_packs.hpp>
#include <lanepack/packer/lookahead_buffer.hpp>
#include <lanepack/packer/make_policy.hpp>
#include <lanepack/packer/micro_batch_rule.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/packer/outlier_reserve.hpp>
#include <lanepack/packer/outlier_steps.hpp>
#include <lanepack/packer/partitioner.hpp>
#include <lanepack/packer/policy.hpp>
#include <lanepack/packer/record_chunk.hpp>
#include <lanepack/packer/replicated.hpp>
#include <lanepack/packer/sequential.hpp>
#include <lanepack/packer/step_limits.hpp>
#include <lanepack/packer/window.hpp>
#include <lanepack/packer/window_stagger.hpp>
