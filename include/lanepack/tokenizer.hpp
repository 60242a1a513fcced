#pragma once

/// @file
/// All of `tokenizer/`: text to token ids and back.

#include <lanepack/tokenizer/added_tokens.hpp>
#include <lanepack/tokenizer/any_tokenizer.hpp>
#include <lanepack/tokenizer/byte_level.hpp>
#include <lanepack/tokenizer/byte_pair_encoding.hpp>
#include <lanepack/tokenizer/concept.hpp>
#include <lanepack/tokenizer/normalization.hpp>
#include <lanepack/tokenizer/normalization_tables.hpp>
#include <lanepack/tokenizer/pre_tokenizer.hpp>
#include <lanepack/tokenizer/unicode.hpp>
#include <lanepack/tokenizer/unicode_tables.hpp>
