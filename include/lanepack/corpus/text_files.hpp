#pragma once

/// @file
/// The files below a folder, in an order that depends on their names alone.

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Files and folders of one folder.
struct folder_entries {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

inline folder_entries read_folder(const std::string& path) {
  const auto close = [](::DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<::DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  if (folder == nullptr) throw_file_error(path, "read the folder", errno);
  folder_entries found;
  for (;;) {
    errno = 0;
    // Each call has a stream of its own, so `readdir` may be used by many threads.
    const ::dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) {
      if (errno != 0) throw_file_error(path, "read the folder", errno);
      return found;
    }
    const std::string name = entry->d_name;
    // What lanepack keeps beside files is none of them.
    if (name.starts_with(".") || name.find(".lanepack-") != std::string::npos) continue;
    std::string full = path;
    if (!full.ends_with('/')) full += '/';
    full += name;
    struct ::stat status {};
    if (::lstat(full.c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      found.folders.push_back(std::move(full));
    } else if (identify_file(full)) {
      found.files.push_back(std::move(full));
    }
  }
}

}  // namespace detail

/// The regular files below a folder, or the file that `path` is, in the order of the bytes of their
/// paths.
///
/// Hidden files and folders (`.name`) are left out, as are links to folders and what is no regular
/// file.
/// @param endings  Only files whose names end with one of these, as `.txt`; all where empty. What
///                 `path` itself names is taken whatever its name.
/// @throws data_error  A folder cannot be read, or `path` is neither a file nor a folder; no file
///                     is found.
[[nodiscard]] inline std::vector<std::string> list_files(const std::string& path,
                                                         const std::vector<std::string>& endings) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) detail::throw_file_error(path, "open the file", errno);
  if (!S_ISDIR(status.st_mode)) return {path};
  std::vector<std::string> files;
  std::vector<std::string> waiting = {path};
  while (!waiting.empty()) {
    const std::string folder = std::move(waiting.back());
    waiting.pop_back();
    detail::folder_entries entries = detail::read_folder(folder);
    waiting.insert(waiting.end(), entries.folders.begin(), entries.folders.end());
    for (std::string& file : entries.files) {
      const auto fits = [&file](const std::string& ending) { return file.ends_with(ending); };
      if (endings.empty() || std::any_of(endings.begin(), endings.end(), fits)) {
        files.push_back(std::move(file));
      }
    }
  }
  if (files.empty()) {
    std::string expected;
    for (const std::string& ending : endings) expected += (expected.empty() ? "" : " or ") + ending;
    detail::throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}},
                             "found no file in the folder, expected at least one" +
                                 (expected.empty() ? "" : " whose name ends with " + expected));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace lanepack::inline LANEPACK_ABI
