#pragma once

/// @file
/// Everything in `pipeline/`: from text to records by stages.

#include <lanepack/pipeline/carrying_stages.hpp>
#include <lanepack/pipeline/count_index.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/input.hpp>
#include <lanepack/pipeline/input_runner.hpp>
#include <lanepack/pipeline/made_records.hpp>
#include <lanepack/pipeline/pipeline.hpp>
#include <lanepack/pipeline/pipeline_source.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/sample_cache.hpp>
#include <lanepack/pipeline/stage.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/pipeline/text_stages.hpp>
#include <lanepack/pipeline/thread_pool.hpp>
#include <lanepack/pipeline/unindexed_pipeline.hpp>
