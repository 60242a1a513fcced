#pragma once

/// @file
/// Everything that needs the library SentencePiece.

#include <lanepack/sentencepiece/tokenizer.hpp>
