#pragma once

// The part of Catch2 that is the same in its second and third major version.

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#else
#include <catch2/catch.hpp>

#include <string>

namespace Catch::Matchers {

inline auto ContainsSubstring(const std::string& text) {
  return Contains(text);
}

}  // namespace Catch::Matchers
#endif
