#pragma once

// Files of tests: a directory of their own that removes itself, and whole-file reads and writes.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace lanepack_test {

/// A fresh directory under $TMPDIR or /tmp that is removed with its contents.
class scratch_dir {
 public:
  scratch_dir() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") +
            "/lanepack-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("cannot make the directory " + path_);
    }
  }
  scratch_dir(const scratch_dir&) = delete;
  scratch_dir& operator=(const scratch_dir&) = delete;
  ~scratch_dir() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Path of `name` inside the directory; nothing is created.
  [[nodiscard]] std::string path(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }
  /// Entries in the directory, not counting those of its subdirectories.
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                  std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// `value` as `sizeof(T)` little-endian bytes.
template <class T>
std::string little_endian(T value) {
  std::string bytes;
  const auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(bits >> (8 * i))));
  }
  return bytes;
}

/// All values of `values` as little-endian bytes, one after the other.
template <class T>
std::string little_endian(std::span<const T> values) {
  std::string bytes;
  for (const T& value : values) bytes += little_endian(value);
  return bytes;
}

}  // namespace lanepack_test
