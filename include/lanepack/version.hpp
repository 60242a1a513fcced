#pragma once

/// @file
/// The library version; the build reads it from here.

#define LANEPACK_VERSION_MAJOR 0
#define LANEPACK_VERSION_MINOR 1
#define LANEPACK_VERSION_PATCH 0
#define LANEPACK_VERSION_STRING "0.1.0"
