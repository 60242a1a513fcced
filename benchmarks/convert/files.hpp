#pragma once

/// @file
/// Which files a conversion reads, and of what format they are.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/error.hpp>
#include <lanepack/corpus/megatron_loss_mask.hpp>
#include <lanepack/corpus/text_files.hpp>

#include "convert/mds_input.hpp"
#include "convert/options.hpp"

namespace lanepack_programs {

/// The files of the input in order, or its MDS datasets, and which of them they are. What the
/// conversion itself writes is no part of a folder.
class input_files {
 public:
  explicit input_files(const convert_options& options) {
    if (options.output.ends_with('/')) {
      lanepack::detail::throw_invalid_option("--output", lanepack::detail::quoted(options.output),
                                             "a folder and a name, as folder/name");
    }
    const std::vector<std::string> outputs = outputs_of(options);
    for (const std::string& input : options.inputs) {
      const input_format found = format_of(input, options);
      if (!paths_.empty() && found != format_) {
        lanepack::detail::throw_invalid_option(
            "INPUT",
            lanepack::detail::quoted(input) + " beside " +
                lanepack::detail::quoted(options.inputs[0]),
            "JSON Lines, text or MDS, but not two of them: --format says which");
      }
      format_ = found;
      endings_ = options.endings;
      // A folder that was judged by its names has no others.
      if (endings_.empty() && options.format == input_format::jsonl) {
        endings_.assign(std::begin(json_endings), std::end(json_endings));
      }
      if (found == input_format::mds) {
        paths_.push_back(input);
        continue;
      }
      check_place_of_index(input, options);
      for (std::string& path : lanepack::list_files(input, endings_)) {
        check_unpacked(path);
        const std::string whole = absolute(path);
        const bool is_output =
            std::any_of(outputs.begin(), outputs.end(), [&](const std::string& output) {
              return output.ends_with('/') ? whole.starts_with(output) : whole == output;
            });
        if (!is_output) {
          paths_.push_back(std::move(path));
        } else if (path == input || !options.count_index.empty()) {
          lanepack::detail::throw_invalid_option(
              options.count_index.empty() ? "--output" : "--count-index",
              lanepack::detail::quoted(path) + ", which is input", "a place outside the input");
        }
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>& paths() const noexcept { return paths_; }
  /// Of the files below folders; empty: any.
  [[nodiscard]] const std::vector<std::string>& endings() const noexcept { return endings_; }
  [[nodiscard]] input_format format() const noexcept { return format_; }
  [[nodiscard]] bool is_jsonl() const noexcept { return format_ == input_format::jsonl; }

 private:
  static constexpr const char* json_endings[] = {".jsonl", ".ndjson", ".json"};

  static bool is_json_name(const std::string& name) {
    std::string lower = name;
    for (char& letter : lower) {
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return std::any_of(std::begin(json_endings), std::end(json_endings),
                       [&](const char* ending) { return lower.ends_with(ending); });
  }

  /// Of a folder by the names of all files in it.
  static input_format format_of(const std::string& input, const convert_options& options) {
    if (options.format != input_format::automatic) return options.format;
    if (is_mds_dataset(input)) return input_format::mds;
    std::error_code failed;
    if (!std::filesystem::is_directory(input, failed)) {
      return is_json_name(input) ? input_format::jsonl : input_format::text;
    }
    const std::vector<std::string> files = lanepack::list_files(input, options.endings);
    const auto json =
        static_cast<std::size_t>(std::count_if(files.begin(), files.end(), is_json_name));
    if (json == 0) return input_format::text;
    if (json == files.size()) return input_format::jsonl;
    lanepack::detail::throw_invalid_option(
        "INPUT",
        std::to_string(json) + " files of JSON Lines and " + std::to_string(files.size() - json) +
            " others in " + lanepack::detail::quoted(input),
        "--format jsonl or text, or --ending with the names of those that are wanted");
  }

  static void check_unpacked(const std::string& path) {
    for (const char* packed : {".gz", ".zst", ".xz", ".bz2"}) {
      if (path.ends_with(packed)) {
        lanepack::detail::throw_invalid_option("INPUT", lanepack::detail::quoted(path),
                                               "a file that is not compressed");
      }
    }
  }

  /// An index in a folder of the input would be input the next time.
  void check_place_of_index(const std::string& input, const convert_options& options) const {
    std::error_code failed;
    if (options.count_index.empty() || !std::filesystem::is_directory(input, failed)) return;
    const std::string index = absolute(options.count_index);
    const std::string name = index.substr(index.rfind('/') + 1);
    const auto has_ending = [&](const std::string& ending) { return name.ends_with(ending); };
    if (!index.starts_with(absolute(input + "/")) || name.starts_with('.') ||
        (!endings_.empty() && std::none_of(endings_.begin(), endings_.end(), has_ending))) {
      return;
    }
    lanepack::detail::throw_invalid_option(
        "--count-index", lanepack::detail::quoted(options.count_index) + ", in the input",
        "a place outside the input, or a name that begins with a dot");
  }

  static std::string absolute(const std::string& path) {
    std::error_code failed;
    return std::filesystem::absolute(path, failed).lexically_normal().string();
  }

  /// All that may be written; folders end with a slash.
  static std::vector<std::string> outputs_of(const convert_options& options) {
    if (!options.count_index.empty()) return {absolute(options.count_index)};
    const std::string prefix = absolute(lanepack::detail::megatron_prefix(options.output));
    const std::string mask = lanepack::detail::loss_mask_prefix(prefix);
    return {prefix + ".bin",
            prefix + ".idx",
            mask + ".bin",
            mask + ".idx",
            lanepack::detail::loss_tokens_path(prefix),
            prefix + ".partial/"};
  }

  std::vector<std::string> paths_;
  std::vector<std::string> endings_;
  input_format format_ = input_format::text;
};

}  // namespace lanepack_programs
