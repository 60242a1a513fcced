#pragma once

/// @file
/// All of `cost/`: estimators, the memory model and feasibility.

#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/feasibility.hpp>
#include <lanepack/cost/memory.hpp>
#include <lanepack/cost/model_description.hpp>
#include <lanepack/cost/profile.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/cost/token.hpp>
#include <lanepack/cost/transformer.hpp>
