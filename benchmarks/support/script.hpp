#pragma once

/// @file
/// Where a program finds the Python scripts that belong to it.

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace lanepack_programs {

/// A script that was looked for.
struct found_script {
  /// Empty where it is nowhere.
  std::string path;
  /// All places that it may be in, for an error.
  std::string places;
};

/// The script `name` beside the program, in the share folder of its prefix, or at `source`, where
/// the program was built from.
inline found_script find_script(const std::string& name, const std::string& source) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  std::error_code failed;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", failed); !failed) {
    places.push_back(program.parent_path() / name);
    places.push_back(program.parent_path().parent_path() / "share" / "lanepack" / name);
  }
  places.emplace_back(source);
  found_script out;
  for (const fs::path& place : places) {
    if (out.path.empty() && fs::exists(place, failed)) out.path = place.string();
    out.places += (out.places.empty() ? "" : " ") + place.string();
  }
  return out;
}

}  // namespace lanepack_programs
