#pragma once

/// @file
/// What a conversion writes: files that grow until they are complete, and a record of how far they
/// are that outlives the process.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/corpus/megatron_index.hpp>
#include <lanepack/corpus/megatron_loss_mask.hpp>
#include <lanepack/corpus/token_type.hpp>

#include "convert/encode.hpp"
#include "support/output.hpp"

namespace lanepack_programs {

/// A file of the output cannot be written: the device is full or fails.
class write_error : public std::runtime_error {
 public:
  write_error(const std::string& path, const std::string& action, int code)
      : std::runtime_error(path + ": cannot " + action + ": " +
                           lanepack::detail::system_message(code)) {}
};

/// A file that only grows.
/// @thread_safety  None: one thread at a time.
class growing_file {
 public:
  /// Opens or creates the file and cuts it to `bytes`.
  /// @throws write_error           It cannot be opened.
  /// @throws lanepack::data_error  It is shorter.
  growing_file(std::string path, std::uint64_t bytes)
      : path_(std::move(path)),
        fd_(lanepack::detail::open_file(path_, O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
        size_(bytes) {
    if (!fd_.is_open()) throw write_error(path_, "open the file", errno);
    struct ::stat status {};
    if (::fstat(fd_.value(), &status) != 0) throw write_error(path_, "open the file", errno);
    if (static_cast<std::uint64_t>(status.st_size) < bytes) {
      lanepack::detail::throw_file_error_at(
          path_, static_cast<std::uint64_t>(status.st_size),
          "found a file of " + std::to_string(status.st_size) + " bytes, expected at least " +
              std::to_string(bytes) +
              " from the conversion that was broken off: --restart begins "
              "anew");
    }
    if (::ftruncate(fd_.value(), static_cast<::off_t>(bytes)) != 0) {
      throw write_error(path_, "cut the file", errno);
    }
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t put =
          ::pwrite(fd_.value(), bytes.data(), bytes.size(), static_cast<::off_t>(size_));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) {
        throw write_error(path_, "write the file at byte " + std::to_string(size_),
                          put < 0 ? errno : ENOSPC);
      }
      size_ += static_cast<std::uint64_t>(put);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }

  /// Makes what was written durable.
  void sync() {
    if (::fsync(fd_.value()) != 0 && errno != EINVAL && errno != ENOTSUP) {
      throw write_error(path_, "write the file", errno);
    }
  }

 private:
  std::string path_;
  lanepack::detail::unique_fd fd_;
  std::uint64_t size_;
};

/// What was found in one part of the input, ready to be written.
struct converted_part {
  std::vector<std::byte> tokens;
  std::vector<std::uint8_t> loss_mask;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> loss_tokens;
  convert_counts counts;
};

/// How far a conversion is.
struct convert_progress {
  /// Parts of the input that are done.
  std::uint64_t parts = 0;
  std::uint64_t input_bytes = 0;
  /// The file that the last of them was of, and the lines of it that are done.
  std::uint64_t file = 0;
  std::uint64_t lines = 0;
  convert_counts counts;
  /// The first bad lines, as messages.
  std::vector<std::string> problems;
  /// All is converted; what is left is to give the files their names.
  bool complete = false;
};

/// The files of a conversion, in a folder of their own beside the output until they are complete.
///
/// Appended parts count once `save` has returned: a process that is killed at any moment leaves
/// what the next one goes on from. The output appears under its names in `publish`, its index last.
class convert_output {
 public:
  /// Takes hold of the folder of an output.
  /// @param plan  All that the bytes of the output depend on.
  /// @throws write_error               The folder cannot be made or is in use.
  /// @throws lanepack::invalid_option  A conversion of another plan was broken off here.
  convert_output(const std::string& output, const nlohmann::ordered_json& plan,
                 lanepack::token_type type, bool writes_mask, bool restart)
      : prefix_(lanepack::detail::megatron_prefix(output)),
        folder_(prefix_ + ".partial"),
        type_(type),
        writes_mask_(writes_mask) {
    if (::mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) {
      throw write_error(folder_, "make the folder", errno);
    }
    lock();
    if (restart) remove_files();
    if (lanepack::identify_file(path_of("progress.json"))) {
      check_plan(path_of("plan.json"), plan);
      load();
    } else {
      // Nothing was saved, so nothing is lost.
      remove_files();
      write(path_of("plan.json"), plan);
    }
    if (progress_.complete) return;
    tokens_.emplace(path_of("tokens.bin"), saved_[0]);
    lengths_.emplace(path_of("lengths.u32"), saved_[1]);
    if (!writes_mask_) return;
    mask_.emplace(path_of("loss_mask.bin"), saved_[2]);
    loss_tokens_.emplace(path_of("loss_tokens.u32"), saved_[3]);
  }

  convert_output(const convert_output&) = delete;
  convert_output& operator=(const convert_output&) = delete;
  /// Leaves nothing behind where nothing was saved.
  ~convert_output() {
    if (is_published_ || lanepack::identify_file(path_of("progress.json"))) return;
    remove_folder();
  }

  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] convert_progress& progress() noexcept { return progress_; }

  /// Appends what a part has become; the caller says in `progress` that it is done.
  void append(const converted_part& part) {
    tokens_->append(part.tokens);
    lengths_->append(std::as_bytes(std::span(part.lengths)));
    if (!writes_mask_) return;
    mask_->append(std::as_bytes(std::span(part.loss_mask)));
    loss_tokens_->append(std::as_bytes(std::span(part.loss_tokens)));
  }

  /// Makes everything durable up to here.
  void save() {
    for (auto* file : {&tokens_, &lengths_, &mask_, &loss_tokens_}) {
      if (*file) (*file)->sync();
    }
    save_progress();
  }

  /// Completes the output and gives it its names.
  void publish() {
    if (!progress_.complete) {
      save();
      make_index("tokens.idx", type_);
      if (writes_mask_) make_index("loss_mask.idx", lanepack::token_type::u8);
      // No old part of an output may be seen beside a new one.
      ::unlink((prefix_ + ".idx").c_str());
      lanepack::detail::remove_loss_mask(prefix_);
      progress_.complete = true;
      save_progress();
    }
    const std::string mask = lanepack::detail::loss_mask_prefix(prefix_);
    rename("loss_tokens.u32", lanepack::detail::loss_tokens_path(prefix_));
    rename("loss_mask.bin", mask + ".bin");
    rename("loss_mask.idx", mask + ".idx");
    rename("tokens.bin", prefix_ + ".bin");
    rename("tokens.idx", prefix_ + ".idx");
    sync_folder();
    is_published_ = true;
    remove_folder();
  }

 private:
  [[nodiscard]] std::string path_of(const char* name) const { return folder_ + "/" + name; }

  void lock() {
    lock_ = lanepack::detail::unique_fd(
        lanepack::detail::open_file(path_of("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!lock_.is_open()) throw write_error(path_of("lock"), "open the file", errno);
    if (::flock(lock_.value(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) return;  // Not every file system has locks.
    throw std::runtime_error(folder_ + ": another process is converting to " + prefix_);
  }

  void remove_files() {
    // The progress goes first: without it nothing else counts.
    for (const char* name : {"progress.json", "plan.json", "tokens.bin", "tokens.idx",
                             "lengths.u32", "loss_mask.bin", "loss_mask.idx", "loss_tokens.u32"}) {
      ::unlink(path_of(name).c_str());
    }
    remove_temporaries();
  }

  /// Removes what a process that was killed was about to rename; under the lock nobody else writes.
  void remove_temporaries() {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, failed)) {
      if (entry.path().filename().string().find(".json.tmp-") != std::string::npos) {
        std::filesystem::remove(entry.path(), failed);
      }
    }
  }

  void remove_folder() {
    remove_files();
    ::unlink(path_of("lock").c_str());
    ::rmdir(folder_.c_str());
  }

  static void write(const std::string& path, const nlohmann::ordered_json& value) {
    const std::string text = json_text(value, 1) + "\n";
    try {
      lanepack::write_file_atomically(path, std::as_bytes(std::span(text)));
    } catch (const lanepack::data_error& failure) {
      throw std::runtime_error(failure.what());
    }
  }

  static nlohmann::ordered_json read(const std::string& path) {
    const std::vector<std::byte> bytes = lanepack::read_whole_file(path);
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    return nlohmann::ordered_json::parse(text, text + bytes.size(), nullptr, false);
  }

  [[noreturn]] void refuse(const std::string& what, const nlohmann::ordered_json& found,
                           const nlohmann::ordered_json& before) const {
    lanepack::detail::throw_invalid_option(
        what, found.is_null() ? "nothing" : json_text(found),
        (before.is_null() ? "nothing" : json_text(before)) + " as in the conversion to " + prefix_ +
            " that was broken off: go on with what it was, or begin anew with --restart");
  }

  void check_plan(const std::string& path, const nlohmann::ordered_json& wanted) const {
    const nlohmann::ordered_json before = read(path);
    // As it comes back from a file: names of files need not be UTF-8.
    const nlohmann::ordered_json plan = nlohmann::ordered_json::parse(json_text(wanted));
    if (before == plan) return;
    if (!before.is_object() || !before.contains("options") || !before.contains("inputs") ||
        before["version"] != plan["version"]) {
      lanepack::detail::throw_file_error_at(
          path, 0,
          "found no plan of this version of lanepack-convert, expected one: --restart begins anew");
    }
    for (const auto& [name, value] : plan["options"].items()) {
      const auto& old = before["options"];
      const auto found = old.find(name);
      if (found == old.end() || *found != value) {
        refuse(name, value, found == old.end() ? nlohmann::ordered_json() : *found);
      }
    }
    const auto& now = plan["inputs"];
    const auto& then = before["inputs"];
    for (std::size_t i = 0; i < std::max(now.size(), then.size()); ++i) {
      const auto entry = [i](const nlohmann::ordered_json& list) {
        return i < list.size() ? list[i] : nlohmann::ordered_json();
      };
      if (entry(now) != entry(then)) refuse("input", entry(now), entry(then));
    }
    refuse("plan", plan, before);
  }

  void load() {
    const std::string path = path_of("progress.json");
    const nlohmann::ordered_json value = read(path);
    try {
      progress_.parts = value.at("parts").get<std::uint64_t>();
      progress_.input_bytes = value.at("input_bytes").get<std::uint64_t>();
      progress_.file = value.at("file").get<std::uint64_t>();
      progress_.lines = value.at("lines").get<std::uint64_t>();
      progress_.complete = value.at("complete").get<bool>();
      progress_.problems = value.at("problems").get<std::vector<std::string>>();
      value.at("bytes").get_to(saved_);
      const auto& counts = value.at("counts");
      convert_counts& to = progress_.counts;
      to.documents = counts.at("documents").get<std::uint64_t>();
      to.tokens = counts.at("tokens").get<std::uint64_t>();
      to.loss_tokens = counts.at("loss_tokens").get<std::uint64_t>();
      to.bad_lines = counts.at("bad_lines").get<std::uint64_t>();
      to.short_documents = counts.at("short").get<std::uint64_t>();
      to.long_documents = counts.at("long").get<std::uint64_t>();
      to.cut_documents = counts.at("cut").get<std::uint64_t>();
    } catch (const nlohmann::json::exception&) {
      lanepack::detail::throw_file_error_at(
          path, 0,
          "found no record of how far the conversion was, expected one: --restart begins anew");
    }
  }

  void save_progress() {
    const convert_counts& counts = progress_.counts;
    const auto size_of = [](const std::optional<growing_file>& file) {
      return file ? file->size() : 0;
    };
    write(path_of("progress.json"),
          {{"parts", progress_.parts},
           {"input_bytes", progress_.input_bytes},
           {"file", progress_.file},
           {"lines", progress_.lines},
           {"complete", progress_.complete},
           {"bytes", {size_of(tokens_), size_of(lengths_), size_of(mask_), size_of(loss_tokens_)}},
           {"counts",
            {{"documents", counts.documents},
             {"tokens", counts.tokens},
             {"loss_tokens", counts.loss_tokens},
             {"bad_lines", counts.bad_lines},
             {"short", counts.short_documents},
             {"long", counts.long_documents},
             {"cut", counts.cut_documents}}},
           {"problems", progress_.problems}});
  }

  /// Writes an index of all sequences, each a document.
  void make_index(const char* name, lanepack::token_type type) const {
    const std::uint64_t sequences = lengths_->size() / 4;
    growing_file index(path_of(name), 0);
    index.append(lanepack::detail::megatron_header_text(type, sequences, sequences + 1));
    const lanepack::input_file lengths(lengths_->path());
    for_each_length(lengths, [&](std::span<const std::byte> part) { index.append(part); });
    std::uint64_t at = 0;
    std::vector<std::byte> out;
    const auto put = [&](std::uint64_t value) {
      lanepack::detail::append_number(out, value);
      if (out.size() < std::size_t{1} << 18) return;
      index.append(out);
      out.clear();
    };
    for_each_length(lengths, [&](std::span<const std::byte> part) {
      for (std::size_t i = 0; i < part.size(); i += 4) {
        put(at);
        at += lanepack::detail::load_number<std::uint32_t>(part.data() + i) *
              lanepack::token_bytes(type);
      }
    });
    for (std::uint64_t i = 0; i <= sequences; ++i) put(i);
    index.append(out);
    index.sync();
    const std::uint64_t tokens = at / lanepack::token_bytes(type);
    if (tokens != progress_.counts.tokens) {
      throw std::runtime_error(lengths_->path() + ": found lengths of " + std::to_string(tokens) +
                               " tokens, expected " + std::to_string(progress_.counts.tokens) +
                               ": the file was changed; --restart begins anew");
    }
  }

  template <class Take>
  static void for_each_length(const lanepack::input_file& lengths, Take&& take) {
    std::vector<std::byte> part;
    for (std::uint64_t at = 0; at < lengths.size(); at += part.size()) {
      part.resize(static_cast<std::size_t>(std::min<std::uint64_t>(lengths.size() - at, 1 << 18)));
      lengths.read_at(at, part);
      take(std::span<const std::byte>(part));
    }
  }

  /// Gives a file of the folder its name, unless that was done before.
  void rename(const char* from, const std::string& to) const {
    try {
      lanepack::detail::check_replaceable(to);
    } catch (const lanepack::data_error& failure) {
      throw std::runtime_error(failure.what());
    }
    if (::rename(path_of(from).c_str(), to.c_str()) == 0 || errno == ENOENT) return;
    throw write_error(to, "rename the file", errno);
  }

  /// Best effort: not every file system lets a folder be synced.
  void sync_folder() const {
    const std::size_t slash = prefix_.rfind('/');
    const std::string parent = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : prefix_.substr(0, slash);
    const lanepack::detail::unique_fd fd(
        lanepack::detail::open_file(parent, O_RDONLY | O_CLOEXEC, 0));
    if (fd.is_open()) static_cast<void>(::fsync(fd.value()));
  }

  std::string prefix_;
  std::string folder_;
  lanepack::token_type type_;
  bool writes_mask_;
  bool is_published_ = false;
  lanepack::detail::unique_fd lock_;
  convert_progress progress_;
  /// Bytes of tokens, lengths, mask and loss tokens that count.
  std::array<std::uint64_t, 4> saved_{};
  std::optional<growing_file> tokens_;
  std::optional<growing_file> lengths_;
  std::optional<growing_file> mask_;
  std::optional<growing_file> loss_tokens_;
};

}  // namespace lanepack_programs
