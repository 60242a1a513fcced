#pragma once

/// @file
/// All of `batch/`: how the records of a micro-batch lie in memory.

#include <lanepack/batch/fill.hpp>
#include <lanepack/batch/layout_options.hpp>
#include <lanepack/batch/padded.hpp>
#include <lanepack/batch/payloads.hpp>
#include <lanepack/batch/thd.hpp>
