#pragma once

// A fuzz target <name>.cpp includes this and defines
//
//   extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
//
// that returns 0, lets no exception out and stops the program (`fuzz_check`) where something is
// wrong. Built with LANEPACK_LIBFUZZER it is a libFuzzer program; otherwise the main function below
// replays the files and folders that are its arguments.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace lanepack_test {

/// Stops the program with a message unless `condition` holds, in every kind of build.
inline void fuzz_check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz target: broken: %s\n", what);
  std::abort();
}

}  // namespace lanepack_test

#if !defined(LANEPACK_LIBFUZZER)

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      inputs.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) inputs.push_back(entry.path());
    }
  }
  std::sort(inputs.begin(), inputs.end());

  for (const std::filesystem::path& path : inputs) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", path.c_str());
      return 1;
    }
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    // The name comes first, so that a crash is preceded by what caused it.
    std::fprintf(stderr, "%s (%zu bytes)\n", path.c_str(), text.size());
    const std::vector<std::uint8_t> data(text.begin(), text.end());
    try {
      LLVMFuzzerTestOneInput(data.data(), data.size());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "an exception got out: %s\n", error.what());
      return 1;
    }
  }
  std::printf("%zu inputs replayed\n", inputs.size());
  return inputs.empty() ? 1 : 0;
}

#endif
