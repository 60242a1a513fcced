#pragma once

/// @file
/// What a conversion reads: documents in numbered parts, each read by one thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/corpus/text_documents.hpp>
#include <lanepack/corpus/text_files.hpp>
#include <lanepack/corpus/text_scan.hpp>

namespace lanepack_programs {

/// Receives the documents of a part, each with where it lies; a line number counts from the start
/// of the part.
struct document_sink {
  std::function<void(std::string_view document, const lanepack::data_location& where)> take;
  /// What is there, but is no document.
  std::function<void(const lanepack::data_location& where, const std::string& what)> refuse;
};

/// What one part was.
struct part_read {
  std::uint64_t bytes = 0;
  std::uint64_t line_ends = 0;
};

/// Documents in numbered parts. What a part holds depends on the input and on the bytes of a part
/// alone.
/// @thread_safety  Const members may be called by any number of threads.
class convert_input {
 public:
  convert_input() = default;
  convert_input(const convert_input&) = delete;
  convert_input& operator=(const convert_input&) = delete;
  virtual ~convert_input() = default;

  [[nodiscard]] virtual std::uint64_t parts() const = 0;
  /// Bytes of all parts.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  /// What the input was made from: an array of objects with a `path`, for a conversion that goes on
  /// later to see that it is the same.
  [[nodiscard]] virtual nlohmann::ordered_json identity() const = 0;
  /// Hands over the documents of a part, in order.
  /// @throws lanepack::data_error
  virtual part_read read(std::uint64_t part, const document_sink& sink) const = 0;
  /// The file that a part is of, where line numbers go on from part to part; else 0.
  [[nodiscard]] virtual std::uint64_t file_of(std::uint64_t) const { return 0; }
  /// Says more of where a document lies, for messages.
  [[nodiscard]] virtual lanepack::data_location locate(const lanepack::data_location& where) const {
    return where;
  }
};

/// Size and time of a file, for `convert_input::identity`.
inline nlohmann::ordered_json file_entry(const std::string& path,
                                         const lanepack::file_identity& identity) {
  return {{"path", path}, {"bytes", identity.size}, {"mtime_ns", identity.mtime_ns}};
}

/// Lines or paragraphs of files, found while they are converted: no index is made or held.
class ranges_input final : public convert_input {
 public:
  /// @param part_bytes  At least 1.
  ranges_input(const std::vector<std::string>& paths, lanepack::text_unit unit,
               std::uint64_t part_bytes, std::uint64_t max_document_bytes)
      : unit_(unit), part_bytes_(part_bytes), max_document_bytes_(max_document_bytes) {
    for (const std::string& path : paths) {
      const lanepack::input_file file(path);
      files_.push_back({path, file.identity(), parts_});
      parts_ += (file.size() + part_bytes - 1) / part_bytes;
      bytes_ += file.size();
    }
  }

  [[nodiscard]] std::uint64_t parts() const override { return parts_; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

  [[nodiscard]] nlohmann::ordered_json identity() const override {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const file_part& file : files_) all.push_back(file_entry(file.path, file.identity));
    return all;
  }

  [[nodiscard]] std::uint64_t file_of(std::uint64_t part) const override {
    // Of files without parts the last of those that begin at the same number has some.
    const auto next = std::upper_bound(
        files_.begin(), files_.end(), part,
        [](std::uint64_t wanted, const file_part& file) { return wanted < file.first_part; });
    return static_cast<std::uint64_t>(next - files_.begin()) - 1;
  }

  part_read read(std::uint64_t part, const document_sink& sink) const override {
    const file_part& from = files_[file_of(part)];
    const lanepack::input_file file(from.path);
    if (file.identity() != from.identity) {
      throw lanepack::file_changed({.path = from.path, .byte_offset = {}, .record = {}, .line = {}},
                                   "the file changed while it was converted");
    }
    const std::uint64_t begin = (part - from.first_part) * part_bytes_;
    const std::uint64_t end = std::min(file.size(), begin + part_bytes_);
    part_read done{.bytes = end - begin, .line_ends = 0};
    lanepack::data_location where{
        .path = from.path, .byte_offset = std::uint64_t{0}, .record = {}, .line = std::uint64_t{1}};
    const auto place = [&where](const lanepack::text_extent& found) {
      where.byte_offset = found.offset;
      where.line = 1 + found.lines_before;
    };
    done.line_ends = lanepack::text_scan(file, unit_, max_document_bytes_)
                         .run(
                             begin, end,
                             [&](const lanepack::text_extent& found, std::string_view text) {
                               place(found);
                               sink.take(text, where);
                             },
                             [&](const lanepack::text_extent& found) {
                               place(found);
                               sink.refuse(where, too_long());
                             });
    file.check_unchanged();
    return done;
  }

 private:
  struct file_part {
    std::string path;
    lanepack::file_identity identity;
    std::uint64_t first_part = 0;
  };

  [[nodiscard]] std::string too_long() const {
    return std::string("found a ") + (unit_ == lanepack::text_unit::line ? "line" : "paragraph") +
           " of more than " + std::to_string(max_document_bytes_) +
           " bytes, expected at most so many";
  }

  lanepack::text_unit unit_;
  std::uint64_t part_bytes_;
  std::uint64_t max_document_bytes_;
  std::vector<file_part> files_;
  std::uint64_t parts_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Several inputs, one after the other.
class joined_input final : public convert_input {
 public:
  /// @param inputs  At least one.
  explicit joined_input(std::vector<std::unique_ptr<convert_input>> inputs)
      : inputs_(std::move(inputs)) {
    for (const std::unique_ptr<convert_input>& input : inputs_) {
      firsts_.push_back(parts_);
      parts_ += input->parts();
      bytes_ += input->bytes();
    }
  }

  [[nodiscard]] std::uint64_t parts() const override { return parts_; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] nlohmann::ordered_json identity() const override {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const std::unique_ptr<convert_input>& input : inputs_) {
      for (const nlohmann::ordered_json& entry : input->identity()) all.push_back(entry);
    }
    return all;
  }
  part_read read(std::uint64_t part, const document_sink& sink) const override {
    // Of inputs without parts the last of those that begin at the same number has some.
    const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), part);
    const auto input = static_cast<std::size_t>(next - firsts_.begin()) - 1;
    return inputs_[input]->read(part - firsts_[input], sink);
  }

 private:
  std::vector<std::unique_ptr<convert_input>> inputs_;
  std::vector<std::uint64_t> firsts_;
  std::uint64_t parts_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Documents of any `document_source`.
template <lanepack::document_source Source>
class source_input final : public convert_input {
 public:
  /// @param identity    As `convert_input::identity` returns it.
  /// @param part_bytes  At least 1.
  source_input(Source source, nlohmann::ordered_json identity, std::uint64_t part_bytes)
      : source_(std::move(source)), name_(source_.describe()), identity_(std::move(identity)) {
    constexpr std::uint64_t batch = 4096;
    std::vector<lanepack::record_id> ids;
    std::vector<std::uint64_t> sizes;
    std::uint64_t in_part = 0;
    for (std::uint64_t first = 0; first < source_.size(); first += batch) {
      ids.clear();
      for (std::uint64_t id = first; id < std::min(source_.size(), first + batch); ++id) {
        ids.push_back(id);
      }
      sizes.resize(ids.size());
      source_.sizes(ids, sizes);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (firsts_.empty() || (in_part != 0 && in_part + sizes[i] > part_bytes) ||
            ids[i] - firsts_.back() == batch) {
          firsts_.push_back(ids[i]);
          in_part = 0;
        }
        in_part += sizes[i];
        bytes_ += sizes[i];
      }
    }
  }

  [[nodiscard]] std::uint64_t parts() const override { return firsts_.size(); }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] nlohmann::ordered_json identity() const override { return identity_; }

  part_read read(std::uint64_t part, const document_sink& sink) const override {
    const std::uint64_t last = part + 1 < parts() ? firsts_[part + 1] : source_.size();
    std::vector<lanepack::record_id> ids;
    for (std::uint64_t id = firsts_[part]; id < last; ++id) ids.push_back(id);
    std::vector<std::string> documents(ids.size());
    bool together = true;
    try {
      source_.read(ids, documents);
    } catch (const lanepack::file_changed&) {
      throw;
    } catch (const lanepack::data_error&) {
      together = false;
    }
    part_read done;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!together && !read_alone(ids[i], documents[i], sink)) continue;
      done.bytes += documents[i].size();
      sink.take(documents[i], {.path = name_, .byte_offset = {}, .record = ids[i], .line = {}});
      documents[i] = {};
    }
    return done;
  }

  [[nodiscard]] lanepack::data_location locate(
      const lanepack::data_location& where) const override {
    if constexpr (requires { source_.where(*where.record); }) {
      if (where.record) return source_.where(*where.record);
    }
    return where;
  }

 private:
  /// Reads one document; false where it is bad.
  bool read_alone(lanepack::record_id id, std::string& document, const document_sink& sink) const {
    try {
      source_.read({&id, 1}, {&document, 1});
      return true;
    } catch (const lanepack::file_changed&) {
      throw;
    } catch (const lanepack::data_error& fault) {
      // Its location leads the message of an error.
      const std::string before = lanepack::data_error(fault.where(), "").what();
      sink.refuse(fault.where(), std::string(fault.what()).substr(before.size()));
      return false;
    }
  }

  Source source_;
  std::string name_;
  nlohmann::ordered_json identity_;
  std::uint64_t bytes_ = 0;
  /// First document of each part.
  std::vector<lanepack::record_id> firsts_;
};

}  // namespace lanepack_programs
