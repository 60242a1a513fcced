#pragma once

/// @file
/// Everything in `core/`.

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/available_threads.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/file_access.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/core/progress.hpp>
#include <lanepack/core/random.hpp>
#include <lanepack/core/types.hpp>
