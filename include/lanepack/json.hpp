#pragma once

/// @file
/// Everything that needs nlohmann/json: JSON Lines of tokens, text and conversations, MDS datasets,
/// model configurations, cost model files, saved states of runs, digest logs.

#include <lanepack/json/chat_line.hpp>
#include <lanepack/json/cost_model.hpp>
#include <lanepack/json/digest_log.hpp>
#include <lanepack/json/jsonl.hpp>
#include <lanepack/json/length_histogram.hpp>
#include <lanepack/json/mds.hpp>
#include <lanepack/json/model_config.hpp>
#include <lanepack/json/object.hpp>
#include <lanepack/json/open_corpus.hpp>
#include <lanepack/json/run_state.hpp>
#include <lanepack/json/stages.hpp>
#include <lanepack/json/summary.hpp>
#include <lanepack/json/text_line.hpp>
#include <lanepack/json/token_line.hpp>
#include <lanepack/json/tokenizer_json.hpp>
