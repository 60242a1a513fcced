#pragma once

/// @file
/// All of lanepack that needs the C++ standard library only: from a corpus to batches in host
/// memory. JSON, fmt, CUDA and NCCL have headers of their own.

#include <lanepack/batch.hpp>
#include <lanepack/chat.hpp>
#include <lanepack/core.hpp>
#include <lanepack/corpus.hpp>
#include <lanepack/cost.hpp>
#include <lanepack/device.hpp>
#include <lanepack/loader.hpp>
#include <lanepack/packer.hpp>
#include <lanepack/pipeline.hpp>
#include <lanepack/sampler.hpp>
#include <lanepack/tokenizer.hpp>
#include <lanepack/topology.hpp>
