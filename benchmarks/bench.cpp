// lanepack-bench: how fast lanepack's parts are, each beside its bound in the same run.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/lanepack.hpp>

#include "bench/checkpoints.hpp"
#include "bench/harness.hpp"
#include "bench/loading.hpp"
#include "bench/planning.hpp"
#include "bench/report.hpp"
#include "bench/tokenizing.hpp"
#include "support/program.hpp"
#include "support/progress.hpp"
#include "support/table.hpp"

namespace {

using lanepack_programs::command_line;
using lanepack_programs::exit_code;

std::string default_folder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

/// True where every part of `filter` between commas that starts with '-' is not in `name`, and one
/// of the others is, if there are others.
bool selected(std::string_view name, const std::vector<std::string>& filters) {
  bool any = false;
  bool found = false;
  for (const std::string& filter : filters) {
    const bool excludes = filter.starts_with("-");
    const bool contained =
        name.find(std::string_view(filter).substr(excludes ? 1 : 0)) != std::string_view::npos;
    if (excludes && contained) return false;
    any = any || !excludes;
    found = found || (!excludes && contained);
  }
  return found || !any;
}

exit_code run(command_line& line) {
  line.describe(
      "Measures lanepack's parts, each beside a bound that is measured in turn with it: planning "
      "against std::sort of each window's costs, the loader against memcpy of the same tokens out "
      "of the page cache. 'speed' is that of the subject over that of the bound. Corpora are made "
      "on the spot and removed.",
      "taskset -c 0,1 lanepack-bench --filter packer/window,sampler");
  std::vector<std::string> filters;
  bool list = false;
  bool json = false;
  bool check = false;
  std::uint64_t corpus_mib = 512;
  lanepack_bench::settings how;
  how.folder = default_folder();
  CLI::App& app = line.app();
  app.add_option("--filter", filters,
                 "Only benchmarks with one of these texts in their name; -TEXT leaves out")
      ->delimiter(',')
      ->type_name("TEXT,...");
  app.add_flag("--list", list, "Print the names and measure nothing");
  auto* epochs = lanepack_programs::add_number(app, "--epochs", how.epochs,
                                               "Times that everything is measured", {.least = 1});
  const std::map<std::string, lanepack_bench::clock_kind> clocks = {
      {"wall", lanepack_bench::clock_kind::wall},
      {"cpu", lanepack_bench::clock_kind::cpu},
      {"thread", lanepack_bench::clock_kind::busiest_thread}};
  std::string clock_name = "wall";
  app.add_option("--clock", clock_name,
                 "Time that the table is of: wall, cpu (of all threads), or thread (processor time "
                 "of the busiest thread), which holds on a machine that is shared")
      ->check(lanepack_programs::one_of(clocks));
  auto* corpus = lanepack_programs::add_number(app, "--corpus-mib", corpus_mib,
                                               "MiB of a corpus; more than the caches hold",
                                               {.least = 1, .most = std::uint64_t{1} << 40});
  app.add_option("--folder", how.folder, "Folder for corpora, on the device to be measured")
      ->type_name("PATH");
  std::string tokenizer;
  std::string text;
  app.add_option("--tokenizer", tokenizer,
                 "A tokenizer.json to measure in place of those of lanepack's tests")
      ->type_name("PATH");
  app.add_option("--text", text, "UTF-8 text for tokenizers")->type_name("PATH");
  app.add_flag("--references", how.references,
               "Also measure the packages tokenizers and megatron-core, where python3 has them");
  app.add_flag("--quick", how.quick, "Seconds instead of minutes, to see that everything works")
      ->excludes(epochs)
      ->excludes(corpus);
  app.add_flag("--check", check, "Fail where a goal is missed");
  app.add_flag("--json", json, "Print JSON with the field names of Google Benchmark");
  line.parse();
  const lanepack_bench::clock_kind clock = clocks.at(clock_name);
  how.corpus_bytes = corpus_mib << 20;
  if (how.quick) {
    how.epochs = 3;
    how.epoch_seconds = 1e-4;
    how.corpus_bytes = std::uint64_t{2} << 20;
  }

  std::vector<lanepack_bench::benchmark> all;
  lanepack_bench::add_planning_benchmarks(all);
  lanepack_bench::add_loading_benchmarks(all);
  lanepack_bench::add_checkpoint_benchmarks(all);
  lanepack_bench::add_tokenizing_benchmarks(all, tokenizer, text);
  std::vector<lanepack_bench::benchmark> chosen;
  for (lanepack_bench::benchmark& each : all) {
    if (selected(each.name, filters)) chosen.push_back(std::move(each));
  }
  if (list) {
    for (const lanepack_bench::benchmark& each : chosen) lanepack_programs::print(each.name + "\n");
    return exit_code::ok;
  }
  if (!lanepack_bench::is_release_build) {
    throw std::runtime_error(
        "built without NDEBUG, so its figures would mean nothing: build with "
        "-DCMAKE_BUILD_TYPE=Release");
  }
  if (chosen.empty()) {
    lanepack::detail::throw_invalid_option("--filter", "texts that no benchmark has in its name",
                                           "parts of names that --list prints");
  }

  bool all_kept = true;
  nlohmann::ordered_json entries = nlohmann::json::array();
  lanepack_programs::text_table table = lanepack_bench::result_table();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    lanepack_programs::progress_bar bar(std::to_string(i + 1) + "/" +
                                        std::to_string(chosen.size()) + " " + chosen[i].name);
    const lanepack_bench::outcome result = lanepack_bench::measure(chosen[i], how, bar.callback());
    all_kept = all_kept && lanepack_bench::keeps_goal(result, clock).value_or(true);
    if (json) {
      lanepack_bench::append_json(entries, result, clock);
    } else {
      lanepack_bench::append_rows(table, result, clock);
    }
  }
  if (json) {
    nlohmann::ordered_json document;
    document["context"] = lanepack_bench::context_json(line.name(), how);
    document["benchmarks"] = std::move(entries);
    lanepack_programs::print(lanepack_programs::json_text(document, 2) + "\n");
  } else {
    lanepack_programs::print(lanepack_bench::processor_name() + ", " +
                             lanepack_bench::compiler_name() + " " + LANEPACK_BENCH_FLAGS +
                             ", clock " + clock_name + ", median of " + std::to_string(how.epochs) +
                             "\n\n");
    lanepack_programs::print(table.text(lanepack_programs::style_of(STDOUT_FILENO)));
  }
  return check && !all_kept ? exit_code::failure : exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
  return lanepack_programs::run_program(argc, argv, run);
}
