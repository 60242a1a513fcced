#pragma once

/// @file
/// Everything in `chat/`.

#include <lanepack/chat/conversation.hpp>
#include <lanepack/chat/encoder.hpp>
#include <lanepack/chat/options.hpp>
#include <lanepack/chat/rendering.hpp>
