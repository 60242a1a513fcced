// lanepack-verify: compares the digest logs of two runs and names the first place where they
// differ.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/json/digest_log.hpp>

#include "support/program.hpp"

namespace {

using lanepack_programs::command_line;
using lanepack_programs::exit_code;
using lanepack_programs::json_text;
using lanepack_programs::print;

/// The files of a log: itself, or the *.jsonl of a folder.
std::vector<std::string> files_of(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    lanepack::detail::throw_data_error({.path = path, .byte_offset = {}, .record = {}, .line = {}},
                                       "found no *.jsonl, expected the digest log of a run");
  }
  return files;
}

struct log_summary {
  std::uint64_t steps = 0;
  std::uint64_t packs = 0;
  std::string chain;
  std::uint64_t repeated = 0;
  std::uint64_t unfinished = 0;
};

log_summary summarize(const lanepack::run_digests& run) {
  return {.steps = run.steps(),
          .packs = run.packs().size(),
          .chain = run.chain().hex(),
          .repeated = run.repeated_lines(),
          .unfinished = run.unfinished_lines()};
}

/// Steps that a comparison looks at: those of both runs, or those of either.
std::uint64_t shared_steps(const lanepack::run_digests& first, const lanepack::run_digests& second,
                           bool common) {
  if (!common) return std::max(first.steps(), second.steps());
  std::vector<lanepack::step_index> own;
  for (const auto& pack : first.packs()) own.push_back(pack.step);
  std::sort(own.begin(), own.end());
  return static_cast<std::uint64_t>(std::count_if(
      second.packs().begin(), second.packs().end(),
      [&](const auto& pack) { return std::binary_search(own.begin(), own.end(), pack.step); }));
}

nlohmann::ordered_json json_of(const log_summary& log, const std::string& path) {
  nlohmann::ordered_json object;
  object["path"] = path;
  object["steps"] = log.steps;
  object["packs"] = log.packs;
  object["chain"] = log.chain;
  object["repeated_lines"] = log.repeated;
  object["unfinished_lines"] = log.unfinished;
  return object;
}

void print_log(const log_summary& log, const std::string& path) {
  std::string text = path + ": " + std::to_string(log.steps) + " steps, " +
                     std::to_string(log.packs) + " packs, chain " + log.chain;
  if (log.repeated != 0) text += ", " + std::to_string(log.repeated) + " lines repeated";
  if (log.unfinished != 0) text += ", " + std::to_string(log.unfinished) + " lines cut off";
  print(text + "\n");
}

exit_code run(command_line& line) {
  line.describe(
      "Compares the digest logs of two runs, each a file or a folder of *.jsonl as "
      "lanepack::digest_log or lanepack-plan write them, and names the first step, pack and record "
      "at which they differ. The number of ranks does not matter, nor how often a run was stopped: "
      "lines that say the same count once. Exits with 0 if the runs are the same, else with 1.",
      "lanepack-verify uninterrupted/ resumed/");
  std::vector<std::string> paths;
  bool common = false;
  bool json = false;
  line.app().add_option("LOG", paths, "The two logs")->required()->expected(2);
  line.app().add_flag("--common-steps", common,
                      "Compare the steps that both have, as where one run is longer");
  line.app().add_flag("--json", json, "Print a JSON object");
  line.parse();

  const auto first = lanepack::run_digests::read(files_of(paths[0]));
  const auto second = lanepack::run_digests::read(files_of(paths[1]));
  const log_summary logs[] = {summarize(first), summarize(second)};
  if (shared_steps(first, second, common) == 0) {
    throw std::runtime_error("found no step in " + paths[common ? 1 : 0] +
                             (common ? " that is in " + paths[0] + " too" : std::string()) +
                             ", expected at least one to compare");
  }
  const auto difference = lanepack::first_difference(first, second, common);
  if (json) {
    nlohmann::ordered_json object;
    object["same"] = !difference.has_value();
    if (difference) {
      object["step"] = difference->step;
      object["pack"] = difference->lane;
      object["record"] = difference->record ? nlohmann::ordered_json(*difference->record)
                                            : nlohmann::ordered_json();
      object["what"] = difference->what;
    }
    object["logs"] = {json_of(logs[0], paths[0]), json_of(logs[1], paths[1])};
    print(json_text(object, 2) + "\n");
  } else {
    for (int i = 0; i < 2; ++i) print_log(logs[i], paths[static_cast<std::size_t>(i)]);
    if (difference) {
      std::string place =
          "step " + std::to_string(difference->step) + ", pack " + std::to_string(difference->lane);
      if (difference->record) place += ", record " + std::to_string(*difference->record);
      print("the runs differ first at " + place + ": " + difference->what + "\n");
    } else {
      print(std::string("the runs are the same") + (common ? " in the steps that both have" : "") +
            "\n");
    }
  }
  return difference ? exit_code::failure : exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return lanepack_programs::run_program(argc, argv, run);
}
