#pragma once

/// @file
/// Reads digest logs and says where two runs differ first.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/json/object.hpp>
#include <lanepack/loader/plan_digest.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A line of a digest log, read whole.
struct logged_line {
  step_index step = 0;
  lane_index lane = 0;
  digest128 digest;
  std::vector<record_ref> records;
  /// By record; empty where the log does not have them, as that of a plan.
  std::vector<std::uint64_t> tokens;
  std::vector<std::string> record_digests;
};

/// The digests of a run, out of the files of its ranks.
///
/// It holds 48 bytes a pack; records are read again where two runs differ. Lines that say the same
/// of a pack are one, so the files of a run that was stopped and went on are a log too.
class run_digests {
 public:
  /// One pack, and where its line is.
  struct pack {
    step_index step = 0;
    lane_index lane = 0;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    digest128 digest;
  };

  /// Reads files of JSON Lines as `digest_log` and `lanepack-plan` write them. A last line that has
  /// no end, which a killed process leaves, is passed over and counted.
  /// @throws data_error  A file cannot be read, a line is not one of a digest log, or two lines say
  ///                     different things of a pack; with file and line.
  /// @complexity  O(bytes + packs log packs).
  [[nodiscard]] static run_digests read(std::vector<std::string> files) {
    run_digests run;
    run.files_ = std::move(files);
    for (std::uint32_t i = 0; i < run.files_.size(); ++i) run.read_file(i);
    run.sort();
    return run;
  }

  /// By step, then lane.
  [[nodiscard]] std::span<const pack> packs() const noexcept { return packs_; }
  /// Lines that were cut off.
  [[nodiscard]] std::uint64_t unfinished_lines() const noexcept { return unfinished_lines_; }
  /// Lines that say again what another said.
  [[nodiscard]] std::uint64_t repeated_lines() const noexcept { return repeated_lines_; }

  /// Number of steps, and the digest that chains all packs of all steps in order.
  [[nodiscard]] std::uint64_t steps() const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      count += i == 0 || packs_[i].step != packs_[i - 1].step ? 1 : 0;
    }
    return count;
  }
  [[nodiscard]] digest128 chain() const {
    digest_chain chain;
    std::vector<digest128> of_step;
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      of_step.push_back(packs_[i].digest);
      if (i + 1 == packs_.size() || packs_[i + 1].step != packs_[i].step) {
        chain.add(packs_[i].step, of_step);
        of_step.clear();
      }
    }
    return chain.value();
  }

  /// The whole line of a pack.
  /// @throws data_error  The file changed since.
  [[nodiscard]] logged_line line(const pack& at) const {
    const std::string& path = files_[at.file];
    const input_file file(path);
    std::string text;
    std::size_t end = std::string::npos;
    while (end == std::string::npos) {
      const std::uint64_t from = at.offset + text.size();
      if (from >= file.size()) {
        detail::throw_data_error({.path = path, .byte_offset = from, .record = {}, .line = {}},
                                 "the file ended, expected the rest of a line");
      }
      const std::size_t before = text.size();
      text.resize(before +
                  static_cast<std::size_t>(std::min<std::uint64_t>(1 << 16, file.size() - from)));
      file.read_at(from, std::as_writable_bytes(std::span(text).subspan(before)));
      end = text.find('\n', before);
    }
    return parse(std::string_view(text).substr(0, end), path, std::nullopt);
  }

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
  static constexpr std::size_t most_line_bytes = std::size_t{1} << 28;

  [[noreturn]] LANEPACK_COLD static void fail(const std::string& path,
                                              std::optional<std::uint64_t> line,
                                              const std::string& what) {
    detail::throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = line}, what);
  }

  [[nodiscard]] static std::uint64_t number(const nlohmann::json& value, const std::string& path,
                                            std::optional<std::uint64_t> line) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    // Numbers above 2^53 may be text.
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      std::uint64_t result = 0;
      bool good = !text.empty() && text.size() <= 20;
      for (const char c : text) {
        const auto digit = static_cast<std::uint64_t>(c - '0');
        good = good && c >= '0' && c <= '9' &&
               result <= (std::numeric_limits<std::uint64_t>::max() - digit) / 10;
        if (!good) break;
        result = result * 10 + digit;
      }
      if (good) return result;
    }
    fail(path, line, "found " + shown(value) + ", expected an integer of at least 0");
  }

  [[nodiscard]] static std::string shown(const nlohmann::json& value) {
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 60);
  }

  [[nodiscard]] static digest128 digest_of(const nlohmann::json& value, const std::string& path,
                                           std::optional<std::uint64_t> line) {
    digest128 digest;
    bool good = value.is_string() && value.get_ref<const std::string&>().size() == 32;
    for (std::size_t i = 0; good && i < 32; ++i) {
      const char c = value.get_ref<const std::string&>()[i];
      const bool decimal = c >= '0' && c <= '9';
      good = decimal || (c >= 'a' && c <= 'f');
      const auto digit = static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
      std::uint64_t& half = i < 16 ? digest.high : digest.low;
      half = (half << 4) | digit;
    }
    if (!good) {
      fail(path, line, "\"digest\": found " + shown(value) + ", expected 32 hexadecimal digits");
    }
    return digest;
  }

  [[nodiscard]] static logged_line parse(std::string_view text, const std::string& path,
                                         std::optional<std::uint64_t> line) {
    nlohmann::json document;
    try {
      document = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& e) {
      fail(path, line, std::string("malformed JSON: ") + e.what());
    }
    for (const char* key : {"step", "lane", "digest"}) {
      if (!document.is_object() || !document.contains(key)) {
        fail(path, line,
             std::string("found no key \"") + key + "\", expected a line of a digest log");
      }
    }
    logged_line result;
    result.step = number(document["step"], path, line);
    const std::uint64_t lane = number(document["lane"], path, line);
    if (lane > std::numeric_limits<lane_index>::max()) {
      fail(path, line, "\"lane\": found " + std::to_string(lane) + ", expected at most 4294967295");
    }
    result.lane = static_cast<lane_index>(lane);
    result.digest = digest_of(document["digest"], path, line);
    const auto array = [&](const char* key) -> const nlohmann::json& {
      static const nlohmann::json none = nlohmann::json::array();
      const auto found = document.find(key);
      if (found == document.end()) return none;
      if (!found->is_array()) {
        fail(path, line,
             "\"" + std::string(key) + "\": found " + shown(*found) + ", expected an array");
      }
      return *found;
    };
    const nlohmann::json& ids = array("records");
    const nlohmann::json& epochs = array("epochs");
    const nlohmann::json& tokens = array("tokens");
    const nlohmann::json& digests = array("record_digests");
    for (const auto* of_record : {&epochs, &tokens, &digests}) {
      if (!of_record->empty() && of_record->size() != ids.size()) {
        fail(path, line,
             "found " + std::to_string(of_record->size()) + " values beside " +
                 std::to_string(ids.size()) + " \"records\"");
      }
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      result.records.push_back({.epoch = epochs.empty() ? 0 : number(epochs[i], path, line),
                                .id = number(ids[i], path, line)});
      if (!tokens.empty()) result.tokens.push_back(number(tokens[i], path, line));
      if (!digests.empty()) {
        if (!digests[i].is_string()) {
          fail(path, line,
               "\"record_digests\": found " + shown(digests[i]) + ", expected a string");
        }
        result.record_digests.push_back(digests[i].get<std::string>());
      }
    }
    return result;
  }

  void read_file(std::uint32_t index) {
    const std::string& path = files_[index];
    const input_file file(path);
    std::string text;
    std::uint64_t offset = 0;
    std::uint64_t line = 0;
    for (std::uint64_t at = 0; at < file.size();) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, file.size() - at));
      const std::size_t before = text.size();
      text.resize(before + count);
      file.read_at(at, std::as_writable_bytes(std::span(text).subspan(before)));
      at += count;
      std::size_t first = 0;
      for (std::size_t end = text.find('\n', before); end != std::string::npos;
           end = text.find('\n', first)) {
        ++line;
        const std::string_view content = std::string_view(text).substr(first, end - first);
        if (content.find_first_not_of(" \t\r") != std::string_view::npos) {
          const logged_line parsed = parse(content, path, line);
          packs_.push_back({.step = parsed.step,
                            .lane = parsed.lane,
                            .file = index,
                            .offset = offset + first,
                            .digest = parsed.digest});
        }
        first = end + 1;
      }
      text.erase(0, first);
      offset += first;
      if (text.size() > most_line_bytes) {
        fail(path, line + 1,
             "found a line of more than " + std::to_string(most_line_bytes) + " bytes");
      }
    }
    if (!text.empty()) ++unfinished_lines_;
  }

  void sort() {
    std::stable_sort(packs_.begin(), packs_.end(), [](const pack& a, const pack& b) {
      return a.step != b.step ? a.step < b.step : a.lane < b.lane;
    });
    std::size_t kept = 0;
    for (const pack& next : packs_) {
      if (kept != 0 && packs_[kept - 1].step == next.step && packs_[kept - 1].lane == next.lane) {
        if (packs_[kept - 1].digest != next.digest) throw_contradiction(packs_[kept - 1], next);
        ++repeated_lines_;
        continue;
      }
      packs_[kept++] = next;
    }
    packs_.resize(kept);
  }

  [[noreturn]] LANEPACK_COLD void throw_contradiction(const pack& a, const pack& b) const {
    detail::throw_data_error(
        {.path = files_[b.file], .byte_offset = b.offset, .record = {}, .line = {}},
        "step " + std::to_string(b.step) + ", pack " + std::to_string(b.lane) + ": found digest " +
            b.digest.hex() + ", expected " + a.digest.hex() + " as in " + files_[a.file] +
            " at byte " + std::to_string(a.offset));
  }

  std::vector<std::string> files_;
  std::vector<pack> packs_;
  std::uint64_t unfinished_lines_ = 0;
  std::uint64_t repeated_lines_ = 0;
};

/// Where two runs differ first.
struct run_difference {
  step_index step = 0;
  lane_index lane = 0;
  /// Number of the first record of the pack that differs; absent where only one run has the pack,
  /// or where the logs do not say which records differ.
  std::optional<std::size_t> record;
  /// What differs, in one sentence.
  std::string what;
};

namespace detail {

[[nodiscard]] inline std::string text_of(const record_ref& record) {
  return "record " + std::to_string(record.id) + " of epoch " + std::to_string(record.epoch);
}

/// What differs between two lines with different digests.
[[nodiscard]] inline run_difference difference_of(const logged_line& a, const logged_line& b) {
  run_difference result{.step = a.step, .lane = a.lane, .record = std::nullopt, .what = {}};
  const std::size_t common = std::min(a.records.size(), b.records.size());
  for (std::size_t i = 0; i < common; ++i) {
    result.record = i;
    if (a.records[i] != b.records[i]) {
      result.what =
          "the first run has " + text_of(a.records[i]) + ", the second " + text_of(b.records[i]);
      return result;
    }
    if (i < a.tokens.size() && i < b.tokens.size() && a.tokens[i] != b.tokens[i]) {
      result.what = text_of(a.records[i]) + " has " + std::to_string(a.tokens[i]) +
                    " tokens in the first run, " + std::to_string(b.tokens[i]) + " in the second";
      return result;
    }
    if (i < a.record_digests.size() && i < b.record_digests.size() &&
        a.record_digests[i] != b.record_digests[i]) {
      result.what = text_of(a.records[i]) + " has other tokens";
      return result;
    }
  }
  result.record.reset();
  if (a.records.size() != b.records.size()) {
    result.record = common;
    result.what = "the first run has " + std::to_string(a.records.size()) +
                  " records, the second " + std::to_string(b.records.size());
  } else {
    result.what = "the digests differ and the records do not: found " + b.digest.hex() +
                  ", expected " + a.digest.hex();
  }
  return result;
}

}  // namespace detail

/// The first step, pack and record at which two runs differ; nullopt where they are the same.
///
/// A pack that only one run has is a difference, unless `common_steps` is set: then steps that one
/// of them has no pack of are passed over, as where one run was longer.
/// @throws data_error  A file changed since it was read.
/// @complexity  O(packs).
[[nodiscard]] inline std::optional<run_difference> first_difference(const run_digests& a,
                                                                    const run_digests& b,
                                                                    bool common_steps = false) {
  const auto next_step = [](std::span<const run_digests::pack> packs, std::size_t at) {
    const step_index step = packs[at].step;
    while (at < packs.size() && packs[at].step == step) ++at;
    return at;
  };
  const std::span<const run_digests::pack> left = a.packs();
  const std::span<const run_digests::pack> right = b.packs();
  const auto only_in = [](const run_digests::pack& pack, const char* which) {
    return run_difference{.step = pack.step,
                          .lane = pack.lane,
                          .record = std::nullopt,
                          .what = std::string("only the ") + which + " run has this pack"};
  };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() || j < right.size()) {
    if (common_steps) {
      if (i == left.size() || j == right.size()) return std::nullopt;
      // Between steps, not inside one.
      const bool starts = (i == 0 || left[i - 1].step != left[i].step) &&
                          (j == 0 || right[j - 1].step != right[j].step);
      if (starts && left[i].step != right[j].step) {
        (left[i].step < right[j].step ? i : j) =
            left[i].step < right[j].step ? next_step(left, i) : next_step(right, j);
        continue;
      }
    }
    if (j == right.size()) return only_in(left[i], "first");
    if (i == left.size()) return only_in(right[j], "second");
    const run_digests::pack& x = left[i];
    const run_digests::pack& y = right[j];
    if (x.step != y.step || x.lane != y.lane) {
      const bool first = x.step != y.step ? x.step < y.step : x.lane < y.lane;
      return first ? only_in(x, "first") : only_in(y, "second");
    }
    if (x.digest != y.digest) return detail::difference_of(a.line(x), b.line(y));
    ++i;
    ++j;
  }
  return std::nullopt;
}

}  // namespace lanepack::inline LANEPACK_ABI
