#pragma once

/// @file
/// `file_pool`: the files of a corpus of many shards, of which few are open at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Files by number, opened when they are read; those that were opened first are closed first.
/// @thread_safety  Const members may be called by any number of threads.
class file_pool {
 public:
  /// Looks at the size and time of every file and opens none.
  /// @param most_open  Files that stay open, at least 1; those in use count beside it.
  /// @throws data_error      A file is not there, or not a regular one.
  /// @throws invalid_option  `most_open` is 0.
  /// @complexity  One system call a file.
  explicit file_pool(std::vector<std::string> paths, std::size_t most_open = 128)
      : paths_(std::move(paths)), state_(std::make_unique<state>()), most_open_(most_open) {
    if (most_open == 0) detail::throw_invalid_option("most_open", "0", "at least 1");
    identities_.reserve(paths_.size());
    for (const std::string& path : paths_) {
      std::optional<file_identity> identity = identify_file(path);
      // Opening says what is wrong.
      if (!identity) identity = input_file(path).identity();
      identities_.push_back(*identity);
    }
    state_->files.resize(paths_.size());
  }

  [[nodiscard]] std::size_t size() const noexcept { return paths_.size(); }
  [[nodiscard]] const std::string& path(std::size_t file) const noexcept { return paths_[file]; }
  /// Sizes and times when the pool was made.
  [[nodiscard]] const std::vector<file_identity>& identities() const noexcept {
    return identities_;
  }

  /// The file of that number, open for as long as the result lives.
  /// @throws data_error    It cannot be opened.
  /// @throws file_changed  It is not what it was when the pool was made.
  [[nodiscard]] std::shared_ptr<const input_file> open(std::size_t file) const {
    LANEPACK_ASSERT(file < size());
    {
      const std::scoped_lock lock(state_->mutex);
      if (state_->files[file]) return state_->files[file];
    }
    // Not under the lock: a file system may take its time.
    auto opened = std::make_shared<const input_file>(paths_[file]);
    if (opened->identity() != identities_[file]) {
      throw file_changed({.path = paths_[file], .byte_offset = 0, .record = {}, .line = {}},
                         "found a file of " + std::to_string(opened->size()) +
                             " bytes, expected one of " + std::to_string(identities_[file].size) +
                             " bytes that nobody has written since the corpus was opened");
    }
    const std::scoped_lock lock(state_->mutex);
    if (state_->files[file]) return state_->files[file];
    if (state_->open.size() >= most_open_) {
      state_->files[state_->open.front()].reset();
      state_->open.pop_front();
    }
    state_->open.push_back(file);
    state_->files[file] = opened;
    return opened;
  }

 private:
  struct state {
    std::mutex mutex;
    std::vector<std::shared_ptr<const input_file>> files;
    /// Numbers of the files that are open, in the order of their opening.
    std::deque<std::size_t> open;
  };

  std::vector<std::string> paths_;
  std::vector<file_identity> identities_;
  std::unique_ptr<state> state_;
  std::size_t most_open_;
};

}  // namespace lanepack::inline LANEPACK_ABI
