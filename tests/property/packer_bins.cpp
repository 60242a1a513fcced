// Bin packing and micro-batches against references that look at everything.

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <lanepack/packer/micro_batcher.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

namespace {

using lanepack::micro_batch_list;
using lanepack::micro_batch_options;
using lanepack::micro_batch_rule;
using lengths = std::vector<std::uint64_t>;
using groups = std::vector<std::vector<std::uint32_t>>;
using item = std::pair<std::uint64_t, std::uint32_t>;

groups to_groups(const micro_batch_list& bins) {
  groups found;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    found.emplace_back(bins[bin].begin(), bins[bin].end());
  }
  return found;
}

std::uint64_t load(const std::vector<std::uint32_t>& bin, const lengths& tokens) {
  std::uint64_t sum = 0;
  for (const std::uint32_t record : bin) sum += tokens[record];
  return sum;
}

std::vector<item> descending(const lengths& tokens) {
  std::vector<item> items;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) items.emplace_back(tokens[i], i);
  std::stable_sort(items.begin(), items.end(),
                   [](const item& a, const item& b) { return a.first > b.first; });
  return items;
}

void first_fit(const std::vector<item>& items, std::uint64_t capacity, const lengths& tokens,
               groups& bins, std::size_t first) {
  for (const item& next : items) {
    std::size_t bin = first;
    while (bin < bins.size() && load(bins[bin], tokens) + next.first > capacity) ++bin;
    if (bin == bins.size()) bins.emplace_back();
    bins[bin].push_back(next.second);
  }
}

groups reference_first_fit(const lengths& tokens, std::uint64_t capacity) {
  groups bins;
  first_fit(descending(tokens), capacity, tokens, bins, 0);
  return bins;
}

groups reference_best_fit(const lengths& tokens, std::uint64_t capacity) {
  groups bins;
  std::vector<std::uint64_t> touched;
  std::uint64_t now = 0;
  for (const item& next : descending(tokens)) {
    std::size_t best = bins.size();
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
      const std::uint64_t filled = load(bins[bin], tokens);
      if (filled + next.first > capacity) continue;
      if (best == bins.size() || filled > load(bins[best], tokens) ||
          (filled == load(bins[best], tokens) && touched[bin] > touched[best])) {
        best = bin;
      }
    }
    if (best == bins.size()) {
      bins.emplace_back();
      touched.push_back(0);
    }
    bins[best].push_back(next.second);
    touched[best] = ++now;
  }
  return bins;
}

/// The five phases as peers describe them, on lists that are searched from end to end.
groups reference_mffd(const lengths& tokens, std::uint64_t capacity, bool nemo) {
  std::vector<item> large, medium, small, tiny;
  for (const item& next : descending(tokens)) {
    (2 * next.first > capacity   ? large
     : 3 * next.first > capacity ? medium
     : 6 * next.first > capacity ? small
                                 : tiny)
        .push_back(next);
  }
  std::stable_sort(small.begin(), small.end(), [](const item& a, const item& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  });
  groups bins;
  std::vector<bool> has_medium(large.size(), false);
  for (const item& next : large) bins.push_back({next.second});
  for (std::size_t bin = 0; bin < large.size(); ++bin) {
    for (std::size_t i = 0; i < medium.size(); ++i) {
      if (load(bins[bin], tokens) + medium[i].first > capacity) continue;
      bins[bin].push_back(medium[i].second);
      medium.erase(medium.begin() + static_cast<std::ptrdiff_t>(i));
      has_medium[bin] = true;
      break;
    }
  }
  for (std::size_t bin = large.size(); bin > 0;) {
    --bin;
    const std::uint64_t room = capacity - load(bins[bin], tokens);
    if (has_medium[bin] || small.size() < 2 || small[0].first + small[1].first > room) continue;
    const item first = small.front();
    small.erase(small.begin());
    for (std::size_t i = small.size(); i > 0; --i) {
      if (small[i - 1].first > room - first.first) continue;
      bins[bin].push_back(first.second);
      bins[bin].push_back(small[i - 1].second);
      small.erase(small.begin() + static_cast<std::ptrdiff_t>(i - 1));
      break;
    }
  }
  std::vector<item> rest = medium;
  rest.insert(rest.end(), small.begin(), small.end());
  rest.insert(rest.end(), tiny.begin(), tiny.end());
  std::stable_sort(rest.begin(), rest.end(),
                   [](const item& a, const item& b) { return a.first > b.first; });
  for (auto& bin : bins) {
    for (;;) {
      const auto fits = std::find_if(rest.begin(), rest.end(), [&](const item& next) {
        return load(bin, tokens) + next.first <= capacity;
      });
      if (fits == rest.end()) break;
      bin.push_back(fits->second);
      rest.erase(fits);
    }
  }
  if (!nemo) {
    first_fit(rest, capacity, tokens, bins, bins.size());
    return bins;
  }
  // Worst fit: the list of new bins stays sorted by load, equal ones in the order of insertion.
  groups opened;
  for (const item& next : rest) {
    std::vector<std::uint32_t> bin;
    if (!opened.empty() && load(opened[0], tokens) + next.first <= capacity) {
      bin = opened[0];
      opened.erase(opened.begin());
    }
    bin.push_back(next.second);
    auto at = opened.begin();
    while (at != opened.end() && load(*at, tokens) <= load(bin, tokens)) ++at;
    opened.insert(at, bin);
  }
  bins.insert(bins.end(), opened.begin(), opened.end());
  return bins;
}

lengths random_lengths(lanepack_test::gen& gen, std::size_t n, std::uint64_t capacity) {
  lengths tokens(n);
  const std::uint64_t parts = gen.between(1, 8);
  const std::uint64_t most = std::max<std::uint64_t>(1, capacity / parts);
  const std::uint64_t step = gen.one_in(3) ? std::max<std::uint64_t>(1, most / 8) : 1;
  for (std::uint64_t& length : tokens) {
    length = gen.one_in(10) ? gen.between(1, capacity) : gen.between(1, most);
    length = std::max<std::uint64_t>(1, length / step * step);
  }
  return tokens;
}

/// True if the records fit into `bins` bins, by trying everything.
bool feasible(const lengths& tokens, std::uint64_t capacity, std::size_t bins) {
  if (tokens.size() < bins) return false;
  lengths loads(bins, 0);
  const auto place = [&](const auto& self, std::size_t i) -> bool {
    if (i == tokens.size()) return true;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      if (loads[bin] + tokens[i] > capacity) continue;
      loads[bin] += tokens[i];
      if (self(self, i + 1)) return true;
      loads[bin] -= tokens[i];
      if (loads[bin] == 0) break;
    }
    return false;
  };
  return place(place, 0);
}

/// Padded tokens of a bin, as the rule counts them.
std::uint64_t weight(micro_batch_rule rule, const std::vector<std::uint32_t>& bin,
                     const lengths& tokens) {
  if (rule != micro_batch_rule::padded_rows) return load(bin, tokens);
  std::uint64_t longest = 0;
  for (const std::uint32_t record : bin) longest = std::max(longest, tokens[record]);
  return longest * bin.size();
}

void check(const micro_batch_options& options, const lengths& tokens, const groups& bins) {
  std::vector<int> seen(tokens.size(), 0);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    REQUIRE_FALSE(bins[i].empty());
    REQUIRE(weight(options.rule, bins[i], tokens) <= options.capacity_tokens);
    REQUIRE(std::is_sorted(bins[i].begin(), bins[i].end()));
    for (const std::uint32_t record : bins[i]) ++seen[record];
    if (i == 0) continue;
    const std::uint64_t before = weight(options.rule, bins[i - 1], tokens);
    const std::uint64_t here = weight(options.rule, bins[i], tokens);
    REQUIRE((before > here || (before == here && bins[i - 1][0] < bins[i][0])));
  }
  REQUIRE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  if (options.micro_batches) REQUIRE(bins.size() == *options.micro_batches);
  REQUIRE(bins.size() % options.multiple_of == 0);
}

}  // namespace

TEST_CASE("packer: every rule gives the bins of its reference, record by record", "[packer]") {
  lanepack::bin_packer packer;
  micro_batch_list out;
  lanepack_test::for_each_seed(400, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const std::uint64_t capacity =
        gen.one_in(5) ? (std::uint64_t{1} << gen.between(0, 40)) : gen.between(1, 3000);
    const lengths tokens = random_lengths(gen, gen.between(0, 80), capacity);
    CAPTURE(capacity, tokens);
    packer.first_fit_decreasing(tokens, capacity, out);
    REQUIRE(to_groups(out) == reference_first_fit(tokens, capacity));
    packer.best_fit_decreasing(tokens, capacity, out);
    REQUIRE(to_groups(out) == reference_best_fit(tokens, capacity));
    packer.mffd_johnson_garey(tokens, capacity, out);
    REQUIRE(to_groups(out) == reference_mffd(tokens, capacity, false));
    packer.mffd_nemo(tokens, capacity, out);
    REQUIRE(to_groups(out) == reference_mffd(tokens, capacity, true));
  });
}

TEST_CASE("packer: rules stay within their proven distance from the optimum", "[packer]") {
  lanepack::bin_packer packer;
  micro_batch_list out;
  lanepack_test::for_each_seed(200, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const std::uint64_t capacity = gen.between(10, 60);
    const lengths tokens = random_lengths(gen, gen.between(1, 9), capacity);
    CAPTURE(capacity, tokens);
    std::size_t best = 1;
    while (!feasible(tokens, capacity, best)) ++best;
    // 11/9 x optimum + 6/9 for first and best fit, 71/60 x optimum + 1 for MFFD.
    packer.first_fit_decreasing(tokens, capacity, out);
    REQUIRE(out.size() >= best);
    REQUIRE(9 * out.size() <= 11 * best + 6);
    packer.best_fit_decreasing(tokens, capacity, out);
    REQUIRE(out.size() >= best);
    REQUIRE(9 * out.size() <= 11 * best + 6);
    packer.mffd_johnson_garey(tokens, capacity, out);
    REQUIRE(out.size() >= best);
    REQUIRE(60 * out.size() <= 71 * best + 60);
  });
}

TEST_CASE("packer: micro-batches keep capacity, count and order under any options", "[packer]") {
  lanepack_test::for_each_seed(600, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    micro_batch_options options;
    options.capacity_tokens = gen.between(1, 2000);
    options.rule = lanepack::micro_batch_rules()[gen.between(0, 5)].rule;
    options.multiple_of = static_cast<std::uint32_t>(gen.between(1, 4));
    const lengths tokens =
        random_lengths(gen, gen.between(0, gen.one_in(10) ? 600 : 60), options.capacity_tokens);
    CAPTURE(options.capacity_tokens, lanepack::to_string(options.rule), options.multiple_of);

    lanepack::micro_batcher free(
        {.capacity_tokens = options.capacity_tokens, .rule = options.rule});
    micro_batch_list out;
    free.form(tokens, out);
    check(free.options(), tokens, to_groups(out));
    const std::size_t made = out.size();

    const std::uint64_t wanted = lanepack::round_up(made, options.multiple_of);
    lanepack::micro_batcher multiple(options);
    if (wanted > tokens.size()) {
      REQUIRE_THROWS_AS(multiple.form(tokens, out), lanepack::data_error);
    } else {
      multiple.form(tokens, out);
      REQUIRE(out.size() == wanted);
      check(options, tokens, to_groups(out));
    }

    // Any number from what the rule makes to one record each can be kept.
    if (tokens.empty()) return;
    options.multiple_of = 1;
    options.micro_batches = static_cast<std::uint32_t>(gen.between(made, tokens.size()));
    lanepack::micro_batcher fixed(options);
    fixed.form(tokens, out);
    check(options, tokens, to_groups(out));

    const micro_batch_list before = out;
    lanepack::micro_batcher again(options);
    again.form(tokens, out);
    REQUIRE(out == before);
  });
}

TEST_CASE("packer: a fixed number of micro-batches is found for small steps if there is a way",
          "[packer]") {
  lanepack_test::for_each_seed(1500, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    micro_batch_options options;
    options.capacity_tokens = gen.between(5, 40);
    options.rule = gen.one_in(2) ? micro_batch_rule::level
                                 : lanepack::micro_batch_rules()[gen.between(0, 3)].rule;
    const lengths tokens = random_lengths(gen, gen.between(1, 9), options.capacity_tokens);
    options.micro_batches = static_cast<std::uint32_t>(gen.between(1, 4));
    CAPTURE(options.capacity_tokens, *options.micro_batches, tokens);
    lanepack::micro_batcher batcher(options);
    micro_batch_list out;
    if (feasible(tokens, options.capacity_tokens, *options.micro_batches)) {
      batcher.form(tokens, out);
      check(options, tokens, to_groups(out));
    } else {
      REQUIRE_THROWS_AS(batcher.form(tokens, out), lanepack::data_error);
    }
  });
}

TEST_CASE("packer: a step within an accepted worst case never fails", "[packer]") {
  std::uint64_t accepted = 0;
  lanepack_test::for_each_seed(2000, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    micro_batch_options options;
    options.capacity_tokens = gen.between(1, 100);
    options.rule = lanepack::micro_batch_rules()[gen.between(0, 5)].rule;
    if (gen.one_in(2)) {
      options.micro_batches = static_cast<std::uint32_t>(gen.between(1, 8));
    } else {
      options.multiple_of = static_cast<std::uint32_t>(gen.between(1, 4));
    }
    const lengths tokens = random_lengths(gen, gen.between(1, 24), options.capacity_tokens);
    CAPTURE(options.capacity_tokens, lanepack::to_string(options.rule), tokens);
    lanepack::worst_case_step worst;
    worst.records = tokens.size();
    worst.total_tokens = std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0});
    worst.largest_record = *std::max_element(tokens.begin(), tokens.end());
    micro_batch_list out;

    micro_batch_options unbound = options;
    unbound.micro_batches = std::nullopt;
    unbound.multiple_of = 1;
    lanepack::micro_batcher(unbound).form(tokens, out);
    REQUIRE(out.size() <= lanepack::largest_micro_batch_count(options, worst).value());

    if (!lanepack::worst_case_fits_micro_batches(options, worst)) return;
    ++accepted;
    lanepack::micro_batcher(options).form(tokens, out);
    check(options, tokens, to_groups(out));
  });
  REQUIRE(accepted > 0);
}

TEST_CASE("packer: the worst case is the least total that can fail", "[packer]") {
  // Equal records of the size that the bound names overflow the bins at exactly its total, whether
  // they fill them with one record of s each or up to capacity - s + 1.
  constexpr std::uint64_t counts[] = {1, 2, 5};
  for (const std::uint64_t bins : counts) {
    const std::uint64_t capacity = 99;
    const std::uint64_t s = 50;
    const lengths tokens(bins + 1, s);
    micro_batch_list out;
    lanepack::bin_packer packer;
    packer.best_fit_decreasing(tokens, capacity, out);
    REQUIRE(out.size() == bins + 1);
    const micro_batch_options options{.capacity_tokens = capacity,
                                      .micro_batches = static_cast<std::uint32_t>(bins)};
    REQUIRE_FALSE(
        lanepack::worst_case_fits_micro_batches(options, {bins + 1, (bins + 1) * s, capacity}));
    REQUIRE(
        lanepack::worst_case_fits_micro_batches(options, {bins + 1, (bins + 1) * s - 1, capacity}));
  }
}

TEST_CASE("packer: level micro-batches keep the capacity and are flatter than tight ones",
          "[packer]") {
  std::uint64_t level_maxima = 0;
  std::uint64_t tight_maxima = 0;
  std::uint64_t ideal = 0;
  lanepack_test::for_each_seed(600, [&](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    const std::uint64_t capacity = gen.between(100, 4000);
    const lengths tokens = random_lengths(gen, gen.between(1, gen.one_in(20) ? 500 : 40), capacity);
    // Usually a cost that grows faster than the tokens, sometimes one that has nothing to do with
    // them.
    const bool unrelated = gen.one_in(4);
    lengths costs;
    for (const std::uint64_t count : tokens) {
      costs.push_back(unrelated ? gen.heavy_tailed(30) : 1000 * count + count * count);
    }
    lanepack::micro_batcher tight({.capacity_tokens = capacity});
    lanepack::micro_batcher level({.capacity_tokens = capacity, .rule = micro_batch_rule::level});
    micro_batch_list out;
    const auto cost_of = [&](std::size_t bin) { return load(to_groups(out)[bin], costs); };
    tight.form(tokens, out, costs);
    const std::size_t made = out.size();
    const std::uint64_t heaviest_tight = cost_of(0);

    level.form(tokens, out, costs);
    REQUIRE(out.size() <= made);
    const auto count = static_cast<std::uint32_t>(gen.between(out.size(), tokens.size()));
    const bool given = gen.one_in(2);
    if (given) level.form_exactly(count, tokens, out, costs);
    if (given) REQUIRE(out.size() == count);
    std::vector<int> seen(tokens.size(), 0);
    const groups bins = to_groups(out);
    for (std::size_t i = 0; i < bins.size(); ++i) {
      REQUIRE_FALSE(bins[i].empty());
      REQUIRE(load(bins[i], tokens) <= capacity);
      REQUIRE(std::is_sorted(bins[i].begin(), bins[i].end()));
      for (const std::uint32_t record : bins[i]) ++seen[record];
      if (i != 0) REQUIRE(load(bins[i - 1], costs) >= load(bins[i], costs));
    }
    REQUIRE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
    if (given || unrelated || out.size() != made) return;
    level_maxima += load(bins[0], costs);
    tight_maxima += heaviest_tight;
    const std::uint64_t total = std::accumulate(costs.begin(), costs.end(), std::uint64_t{0});
    ideal += std::max(total / made, *std::max_element(costs.begin(), costs.end()));
  });
  CAPTURE(level_maxima, tight_maxima, ideal);
  REQUIRE(level_maxima < tight_maxima);
  // Within 3 % of what no split passes, in the mean.
  REQUIRE(100 * level_maxima < 103 * ideal);
}
