// lanepack-inspect: what a corpus file holds, how long its records are, and what is wrong with it.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/parallel.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/json/jsonl.hpp>
#include <lanepack/json/open_corpus.hpp>
#include <lanepack/json/summary.hpp>

#include "support/chart.hpp"
#include "support/corpus_options.hpp"
#include "support/program.hpp"
#include "support/progress.hpp"
#include "support/table.hpp"
#include "support/terminal.hpp"

namespace {

using namespace lanepack_programs;
using lanepack::record_id;

struct inspect_options {
  std::vector<std::string> paths;
  lanepack::any_corpus_options corpus;
  std::optional<std::uint64_t> capacity_tokens;
  std::optional<std::uint64_t> vocabulary;
  bool read_tokens = false;
  bool refresh = false;
  bool no_cache = false;
  std::uint64_t max_problems = 20;
  bool json = false;
  progress_mode progress = progress_mode::automatic;
};

/// What is wrong, and where: a thrown error as it was thrown.
struct problem_list {
  std::uint64_t count = 0;
  std::vector<lanepack::data_error> first;
};

struct capacity_report {
  std::uint64_t tokens = 0;
  std::uint64_t records_above = 0;
  /// All tokens of these records.
  std::uint64_t tokens_of_records_above = 0;
  /// Those beyond the capacity, which truncating would drop.
  std::uint64_t tokens_cut = 0;
};

struct token_report {
  std::optional<std::int32_t> lowest;
  std::int32_t highest = 0;
  /// Tokens that are not in the vocabulary that was given.
  std::uint64_t outside = 0;
};

struct report {
  std::string path;
  std::string format;
  std::string description;
  bool has_payload = false;
  std::optional<lanepack::corpus_summary> summary;
  bool summary_was_saved = false;
  std::string summary_path;
  std::optional<capacity_report> capacity;
  std::optional<token_report> tokens;
  problem_list problems;
};

/// The problems of the lowest records, whatever the order in which threads find them.
class problem_collector {
 public:
  explicit problem_collector(std::size_t limit) : limit_(limit) {}

  void add(const lanepack::data_error& error) {
    const std::lock_guard lock(mutex_);
    ++list_.count;
    list_.first.push_back(error);
    if (list_.first.size() >= 4 * limit_) cut();
  }

  [[nodiscard]] problem_list take() {
    cut();
    return std::move(list_);
  }

 private:
  void cut() {
    std::stable_sort(list_.first.begin(), list_.first.end(),
                     [](const lanepack::data_error& a, const lanepack::data_error& b) {
                       constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
                       return a.where().record.value_or(none) < b.where().record.value_or(none);
                     });
    if (list_.first.size() > limit_) {
      list_.first.erase(list_.first.begin() + static_cast<std::ptrdiff_t>(limit_),
                        list_.first.end());
    }
  }

  std::size_t limit_;
  problem_list list_;
  std::mutex mutex_;
};

/// Looks for every record whose index entry is wrong.
problem_list find_index_problems(const lanepack::any_source& source,
                                 const inspect_options& options) {
  constexpr std::uint64_t batch = 1024;
  problem_collector problems(options.max_problems);
  progress_bar bar("index", progress_unit::count, options.progress);
  const std::uint64_t size = source.size();
  std::atomic<std::uint64_t> done{0};
  lanepack::parallel_for(
      lanepack::ceil_div(size, batch), options.corpus.corpus.threads, [&](std::uint64_t chunk) {
        std::vector<record_id> ids;
        for (record_id id = chunk * batch; id < std::min(size, (chunk + 1) * batch); ++id) {
          ids.push_back(id);
        }
        std::vector<lanepack::record_shape> shapes(ids.size());
        try {
          source.shapes(ids, shapes);
        } catch (const lanepack::data_error&) {
          // Neighbours may share the entry that is wrong.
          std::string last;
          for (std::size_t i = 0; i < ids.size(); ++i) {
            try {
              source.shapes(std::span(ids).subspan(i, 1), std::span(shapes).subspan(i, 1));
            } catch (const lanepack::data_error& e) {
              if (e.what() != last) problems.add(e);
              last = e.what();
            }
          }
        }
        bar.report(done.fetch_add(ids.size()) + ids.size(), size);
      });
  return problems.take();
}

/// Reads all tokens of a corpus.
class token_reader {
 public:
  token_reader(const lanepack::any_source& source, std::string path, const inspect_options& options)
      : source_(source),
        path_(std::move(path)),
        options_(options),
        problems_(options.max_problems) {}

  void run(std::uint64_t total_tokens) {
    progress_bar bar("tokens", progress_unit::count, options_.progress);
    std::atomic<std::uint64_t> done{0};
    const std::uint64_t size = source_.size();
    lanepack::parallel_for(lanepack::ceil_div(size, batch_records), options_.corpus.corpus.threads,
                           [&](std::uint64_t chunk) {
                             const record_id first = chunk * batch_records;
                             const record_id last = std::min(size, first + batch_records);
                             const std::uint64_t tokens = read_records(first, last);
                             bar.report(done.fetch_add(tokens) + tokens, total_tokens);
                           });
  }

  [[nodiscard]] const token_report& tokens() const { return report_; }
  [[nodiscard]] problem_list problems() { return problems_.take(); }

 private:
  static constexpr std::uint64_t batch_records = 256;
  static constexpr std::uint64_t batch_tokens = std::uint64_t{1} << 20;

  struct part {
    record_id id = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  std::uint64_t read_records(record_id first, record_id last) {
    std::vector<part> parts;
    std::uint64_t waiting = 0;
    std::uint64_t total = 0;
    for (record_id id = first; id < last; ++id) {
      lanepack::record_shape shape;
      source_.shapes({&id, 1}, {&shape, 1});
      for (std::uint64_t at = 0; at < shape.tokens; at += batch_tokens) {
        const std::uint64_t count = std::min(batch_tokens, shape.tokens - at);
        if (waiting + count > batch_tokens) {
          read_parts(parts);
          parts.clear();
          waiting = 0;
        }
        parts.push_back({id, at, count});
        waiting += count;
      }
      total += shape.tokens;
    }
    read_parts(parts);
    return total;
  }

  void read_parts(const std::vector<part>& parts) {
    std::uint64_t count = 0;
    for (const part& one : parts) count += one.count;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
    std::vector<lanepack::record_read> reads;
    std::span<std::int32_t> free(tokens);
    for (const part& one : parts) {
      const auto size = static_cast<std::size_t>(one.count);
      reads.push_back(
          {.id = one.id, .first_token = one.first, .tokens = free.first(size), .loss_mask = {}});
      free = free.subspan(size);
    }
    try {
      source_.read(reads);
      for (const lanepack::record_read& read : reads) look_at(read);
      return;
    } catch (const lanepack::data_error&) {
      // Which of them it was is found out below.
    }
    for (const lanepack::record_read& read : reads) {
      try {
        source_.read({&read, 1});
        look_at(read);
      } catch (const lanepack::data_error& e) {
        problems_.add(e);
      }
    }
  }

  void look_at(const lanepack::record_read& read) {
    if (read.tokens.empty()) return;
    const auto [low, high] = std::minmax_element(read.tokens.begin(), read.tokens.end());
    std::uint64_t outside = 0;
    const bool bad =
        options_.vocabulary && static_cast<std::uint64_t>(*high) >= *options_.vocabulary;
    if (bad) {
      const auto is_outside = [&](std::int32_t id) {
        return static_cast<std::uint64_t>(id) >= *options_.vocabulary;
      };
      outside = static_cast<std::uint64_t>(
          std::count_if(read.tokens.begin(), read.tokens.end(), is_outside));
      const auto first = std::find_if(read.tokens.begin(), read.tokens.end(), is_outside);
      const auto position =
          read.first_token + static_cast<std::uint64_t>(first - read.tokens.begin());
      problems_.add(lanepack::data_error(
          {.path = path_, .byte_offset = {}, .record = read.id, .line = {}},
          "token " + std::to_string(position) + ": found id " + std::to_string(*first) +
              ", expected below the vocabulary of " + std::to_string(*options_.vocabulary)));
    }
    const std::lock_guard lock(mutex_);
    report_.lowest = std::min(report_.lowest.value_or(*low), *low);
    report_.highest = std::max(report_.highest, *high);
    report_.outside += outside;
  }

  const lanepack::any_source& source_;
  std::string path_;
  const inspect_options& options_;
  problem_collector problems_;
  std::mutex mutex_;
  token_report report_;
};

capacity_report measure_capacity(const lanepack::any_source& source,
                                 const lanepack::corpus_summary& summary,
                                 const inspect_options& options) {
  capacity_report report;
  report.tokens = *options.capacity_tokens;
  progress_bar bar("lengths", progress_unit::count, options.progress);
  const std::vector<record_id> ids =
      lanepack::ids_above(summary, source, report.tokens,
                          {.threads = options.corpus.corpus.threads, .progress = bar.callback()});
  std::vector<lanepack::record_shape> shapes(ids.size());
  source.shapes(ids, shapes);
  report.records_above = ids.size();
  for (const lanepack::record_shape& shape : shapes) {
    report.tokens_of_records_above += shape.tokens;
    report.tokens_cut += shape.tokens - report.tokens;
  }
  return report;
}

/// Opens a corpus, with its summary where nothing is wrong with the index.
std::optional<lanepack::any_corpus> open_for_report(const inspect_options& options, report& out) {
  lanepack::any_corpus_options chosen = options.corpus;
  const bool is_jsonl = lanepack::is_jsonl_corpus(out.path, chosen);
  const std::string label = is_jsonl ? "lines" : "index";
  const progress_unit unit = is_jsonl ? progress_unit::bytes : progress_unit::count;
  chosen.jsonl.cache_index = !options.no_cache;
  chosen.corpus.summary = options.refresh || options.no_cache ? lanepack::summary_use::none
                                                              : lanepack::summary_use::if_saved;
  std::optional<lanepack::any_corpus> corpus;
  try {
    progress_bar bar(label, unit, options.progress);
    chosen.corpus.progress = bar.callback();
    corpus = lanepack::open_any_corpus(out.path, chosen);
  } catch (const lanepack::data_error& e) {
    out.problems = {1, {e}};
    if (is_jsonl && e.where().line) {
      progress_bar bar("problems", unit, options.progress);
      lanepack::jsonl_options jsonl = chosen.jsonl;
      jsonl.threads = chosen.corpus.threads;
      jsonl.progress = bar.callback();
      lanepack::jsonl_problems found = lanepack::find_jsonl_problems(
          lanepack::input_file(out.path), jsonl, static_cast<std::size_t>(options.max_problems));
      out.problems = {found.count, std::move(found.first)};
    }
    return std::nullopt;
  }
  out.format = corpus->format;
  out.description = corpus->source.describe();
  out.has_payload = corpus->source.traits().has_payload;
  out.summary_was_saved = corpus->summary.has_value();
  if (corpus->summary) return corpus;
  try {
    progress_bar bar("summary", progress_unit::count, options.progress);
    corpus->summary = lanepack::summarize(
        corpus->source, {.threads = chosen.corpus.threads, .progress = bar.callback()});
    if (!options.no_cache &&
        lanepack::save_summary(corpus->summary_path, corpus->key, *corpus->summary)) {
      out.summary_path = corpus->summary_path;
    }
  } catch (const lanepack::data_error& e) {
    // With a cache a wrong entry would be reported by all that are read with it.
    chosen.corpus.megatron.index_cache_bytes = 0;
    chosen.corpus.summary = lanepack::summary_use::none;
    chosen.corpus.progress = {};
    out.problems = find_index_problems(lanepack::open_any_corpus(out.path, chosen).source, options);
  }
  return corpus;
}

report inspect(const std::string& path, const inspect_options& options) {
  report out;
  out.path = path;
  try {
    std::optional<lanepack::any_corpus> corpus = open_for_report(options, out);
    if (!corpus || !corpus->summary) return out;
    if (out.summary_was_saved) out.summary_path = corpus->summary_path;
    out.summary = std::move(corpus->summary);
    if (options.capacity_tokens) {
      out.capacity = measure_capacity(corpus->source, *out.summary, options);
    }
    if (options.read_tokens && out.has_payload) {
      token_reader reader(corpus->source, path, options);
      reader.run(out.summary->tokens);
      out.tokens = reader.tokens();
      out.problems = reader.problems();
    }
  } catch (const lanepack::data_error& e) {
    out.problems = {1, {e}};
  }
  return out;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "0.0%";
  return fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + "%";
}

/// Ranges of lengths for a chart: each length apart where there are few, else parts of octaves, as
/// fine as fits the number of lines.
std::vector<lanepack::length_bucket> chart_ranges(const lanepack::length_histogram& histogram) {
  constexpr std::size_t most = 24;
  std::vector<lanepack::length_bucket> buckets = histogram.buckets();
  if (buckets.size() <= most) return buckets;
  for (std::uint64_t parts = 8;; parts /= 2) {
    std::vector<lanepack::length_bucket> ranges;
    for (const lanepack::length_bucket& bucket : buckets) {
      std::uint64_t first = bucket.first;
      std::uint64_t last = bucket.last;
      if (bucket.first >= parts) {
        const std::uint64_t octave = std::bit_floor(bucket.first);
        const std::uint64_t width = octave / parts;
        first = octave + (bucket.first - octave) / width * width;
        last = first + width - 1;
      }
      if (ranges.empty() || ranges.back().first != first) {
        ranges.push_back({first, std::max(last, bucket.last), 0, 0});
      }
      ranges.back().records += bucket.records;
      ranges.back().tokens += bucket.tokens;
    }
    if (ranges.size() <= most || parts == 1) return ranges;
  }
}

void print_lengths(const lanepack::corpus_summary& summary, const text_style& style) {
  std::string text = "\n  length of a record in tokens\n";
  text_table quantiles({"quantile", "tokens"});
  for (const auto& wanted : lanepack::detail::reported_quantiles) {
    const bool longest = wanted.numerator == wanted.denominator;
    quantiles.add_row(
        {wanted.numerator == 0 ? "shortest"
         : longest             ? "longest"
                               : wanted.name,
         with_commas(longest ? summary.max_tokens
                             : summary.histogram.quantile(wanted.numerator, wanted.denominator))});
  }
  const auto indent = [&text](const std::string& block) {
    std::size_t at = 0;
    while (at < block.size()) {
      const std::size_t end = block.find('\n', at) + 1;
      text += "  " + block.substr(at, end - at);
      at = end;
    }
  };
  indent(quantiles.text(style));
  std::vector<chart_bar> bars;
  for (const lanepack::length_bucket& range : chart_ranges(summary.histogram)) {
    std::string label = with_commas(range.first);
    if (range.last != range.first) {
      label += "-" + with_commas(std::min(range.last, summary.max_tokens));
    }
    bars.push_back({std::move(label), static_cast<double>(range.records),
                    with_commas(range.records) + " (" + percent(range.records, summary.records) +
                        ", " + percent(range.tokens, summary.tokens) + " of tokens)"});
  }
  text += "\n  records by length\n";
  text_style narrower = style;
  narrower.width = std::min<std::size_t>(style.width, 120) - 2;
  indent(bar_chart(bars, narrower));
  print(text);
}

/// Prints the problems to stderr, so that they show where the report goes to a file.
void print_problems(const report& out, const std::string& program) {
  const problem_list& problems = out.problems;
  if (problems.count == 1) {
    print_error(program, problems.first.front().what());
    return;
  }
  std::string text = out.path + ": " + with_commas(problems.count) + " problems";
  for (const lanepack::data_error& error : problems.first) {
    std::string message = error.what();
    if (error.where().path == out.path && message.starts_with(out.path)) {
      message = message.substr(out.path.size());
      message.erase(0, message.find_first_not_of(",: "));
    }
    text += "\n" + message;
  }
  if (problems.count > problems.first.size()) {
    text += "\nand " + with_commas(problems.count - problems.first.size()) + " more";
  }
  print_error(program, text);
}

void print_report(const report& out, const text_style& style) {
  std::string text = out.path + "\n";
  const auto line = [&text](const std::string& name, const std::string& value) {
    text +=
        "  " + name + std::string(14 - std::min<std::size_t>(name.size(), 13), ' ') + value + "\n";
  };
  if (!out.format.empty()) line("format", out.format);
  if (!out.description.empty()) line("holds", out.description);
  if (out.summary) {
    const lanepack::corpus_summary& summary = *out.summary;
    line("records", with_commas(summary.records));
    if (summary.empty_records != 0) line("empty", with_commas(summary.empty_records) + " records");
    line("tokens", with_commas(summary.tokens));
    if (summary.records != 0) {
      line("mean length",
           fixed(static_cast<double>(summary.tokens) / static_cast<double>(summary.records), 1));
    }
    line("loss tokens", with_commas(summary.loss_tokens) + " (" +
                            percent(summary.loss_tokens, summary.tokens) + ")");
    if (summary.patches != 0) line("patches", with_commas(summary.patches));
    line("fingerprint", summary.fingerprint.hex());
    line("summary", out.summary_path.empty() ? "not saved"
                    : out.summary_was_saved  ? "found in " + out.summary_path
                                             : "written to " + out.summary_path);
    if (out.capacity) {
      line("capacity", with_commas(out.capacity->tokens) + " tokens");
      line("longer", with_commas(out.capacity->records_above) + " records (" +
                         percent(out.capacity->records_above, summary.records) + ") with " +
                         with_commas(out.capacity->tokens_of_records_above) + " tokens (" +
                         percent(out.capacity->tokens_of_records_above, summary.tokens) + ")");
      line("beyond", with_commas(out.capacity->tokens_cut) + " tokens (" +
                         percent(out.capacity->tokens_cut, summary.tokens) +
                         ") would be cut by truncating");
    }
  }
  if (out.tokens && out.tokens->lowest) {
    line("token ids",
         std::to_string(*out.tokens->lowest) + " to " + std::to_string(out.tokens->highest));
    if (out.tokens->outside != 0) {
      line("outside", with_commas(out.tokens->outside) + " tokens are not in the vocabulary");
    }
  }
  print(text);
  if (out.summary && out.summary->records != 0) print_lengths(*out.summary, style);
}

nlohmann::ordered_json to_json(const report& out) {
  using json = nlohmann::ordered_json;
  const auto optional = [](const std::optional<std::uint64_t>& value) {
    return value ? json(*value) : json(nullptr);
  };
  json result = json::object();
  result["path"] = out.path;
  result["format"] = out.format.empty() ? json(nullptr) : json(out.format);
  result["description"] = out.description.empty() ? json(nullptr) : json(out.description);
  result["has_payload"] = out.has_payload;
  result["summary"] = out.summary ? json(*out.summary) : json(nullptr);
  result["summary_path"] = out.summary_path.empty() ? json(nullptr) : json(out.summary_path);
  result["summary_was_saved"] = out.summary_was_saved;
  if (out.capacity) {
    result["capacity"] = {{"tokens", out.capacity->tokens},
                          {"records_above", out.capacity->records_above},
                          {"tokens_of_records_above", out.capacity->tokens_of_records_above},
                          {"tokens_cut", out.capacity->tokens_cut}};
  }
  if (out.tokens) {
    result["token_ids"] = {
        {"lowest", out.tokens->lowest ? json(*out.tokens->lowest) : json(nullptr)},
        {"highest", out.tokens->lowest ? json(out.tokens->highest) : json(nullptr)},
        {"outside_vocabulary", out.tokens->outside}};
  }
  result["problem_count"] = out.problems.count;
  result["problems"] = json::array();
  for (const lanepack::data_error& error : out.problems.first) {
    result["problems"].push_back({{"path", error.where().path},
                                  {"byte_offset", optional(error.where().byte_offset)},
                                  {"record", optional(error.where().record)},
                                  {"line", optional(error.where().line)},
                                  {"message", error.what()}});
  }
  return result;
}

void add_options(command_line& line, inspect_options& options) {
  line.describe(
      "Says what corpus files hold, how long their records are and what is wrong with them, and "
      "saves the summary that other programs open them with. Exit status 3 if something is wrong.",
      line.name() + " --capacity-tokens 32768 data/train.jsonl data/pretrain.bin");
  CLI::App& app = line.app();
  app.add_option("PATH", options.paths, "Files, or the prefix of a Megatron-LM .bin and .idx")
      ->required()
      ->type_name("")
      ->default_str("");
  add_number(app, "--capacity-tokens", options.capacity_tokens,
             "Say how many records and tokens lie above this length", {.least = 1})
      ->type_name("N");
  app.add_flag("--tokens", options.read_tokens,
               "Read all tokens: range of ids, unreadable records");
  add_number(app, "--vocabulary", options.vocabulary,
             "Read all tokens and report ids that are not below this", {.least = 1})
      ->type_name("N");
  app.add_flag("--refresh", options.refresh, "Make the summary again, even if a saved one fits");
  app.add_flag("--no-cache", options.no_cache, "Neither read nor write summaries and line indices");
  add_number(app, "--max-problems", options.max_problems, "Problems that are listed", {.least = 1})
      ->type_name("N");
  app.add_flag("--json", options.json, "Print a JSON array with an object for each PATH");
  app.add_flag_callback(
      "--progress", [&options] { options.progress = progress_mode::always; },
      "Show progress even where stderr is no terminal");
  app.add_flag_callback(
      "--quiet", [&options] { options.progress = progress_mode::never; }, "Show no progress");
  add_corpus_options(app, options.corpus);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, [](command_line& line) {
    inspect_options options;
    add_options(line, options);
    line.parse();
    if (options.vocabulary) options.read_tokens = true;

    const text_style style = style_of(1);
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    bool has_problems = false;
    std::size_t printed = 0;
    for (std::size_t i = 0; i < options.paths.size(); ++i) {
      const report out = inspect(options.paths[i], options);
      has_problems = has_problems || out.problems.count != 0;
      if (options.json) {
        all.push_back(to_json(out));
      } else if (out.problems.count == 0 || !out.format.empty()) {
        if (printed++ != 0) print("\n");
        print_report(out, style);
        lanepack_programs::flush_output();
      }
      if (out.problems.count != 0) print_problems(out, line.name());
    }
    if (options.json) print(json_text(all, 2) + "\n");
    return has_problems ? exit_code::bad_data : exit_code::ok;
  });
}
