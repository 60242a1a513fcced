// Plans of every policy and rule on 12 lanes, planned by 1, 2, 3, 4, 6 and 12 ranks, and the token
// digests that loaders compute for them.

#include <lanepack/lanepack.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace lanepack;

constexpr std::uint32_t lanes = 12;

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// 2000 records with a heavy tail: the number of bits of a length is uniform.
memory_source golden_corpus() {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> offsets{0};
  for (std::uint64_t id = 0; id < 2000; ++id) {
    const std::uint64_t draw = mixed(id + 1);
    const std::uint64_t length = 1 + (draw >> 8) % (std::uint64_t{1} << (1 + draw % 9));
    for (std::uint64_t i = 0; i < length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(mixed(id * 4096 + i) % 128256));
    }
    offsets.push_back(tokens.size());
  }
  return {std::move(tokens), std::move(offsets)};
}

/// The pack digests of all ranks, chained by step and lane.
template <class PacksOfRank>
digest128 chained(std::uint32_t ranks, PacksOfRank&& packs_of_rank) {
  std::vector<std::vector<digest128>> steps;
  for (rank_index rank = 0; rank < ranks; ++rank) {
    packs_of_rank(world{rank, ranks}, [&](step_index step, const digest128& pack) {
      if (steps.size() <= step) steps.resize(static_cast<std::size_t>(step) + 1);
      steps[static_cast<std::size_t>(step)].push_back(pack);
    });
  }
  digest_chain chain;
  for (std::size_t step = 0; step < steps.size(); ++step) chain.add(step, steps[step]);
  return chain.value();
}

void print(const std::string& name, std::uint32_t ranks, const digest128& value, digest128& first) {
  if (ranks == 1) {
    first = value;
    std::printf("%s %s\n", name.c_str(), value.hex().c_str());
  } else if (value != first) {
    std::printf("%s differs with %u ranks: %s\n", name.c_str(), ranks, value.hex().c_str());
    std::exit(1);
  }
}

/// Found with numbers that only integers can reproduce on every compiler.
void print_tuning(const calendar_tuning& tuning) {
  digest_builder builder;
  for (const std::uint32_t number :
       {tuning.spare_ppm, tuning.light_ppm, tuning.dither_ppm, tuning.reserve_ppm,
        tuning.slot_delay_steps, tuning.overdue_steps, tuning.step_cost_ppm,
        tuning.step_tokens_ppm}) {
    builder.number(number);
  }
  std::printf("plan/calendar/tuning %s\n", builder.value().hex().c_str());
}

/// The plan of all ranks, each planning its own lanes.
digest128 chained_plan(std::uint32_t ranks, const std::shared_ptr<const candidate_feed>& feed,
                       const any_policy& prototype) {
  return chained(ranks, [&](const world& where, auto&& add) {
    const lane_range range = lane_ownership(lanes, where).owned();
    std::vector<lane_index> own;
    for (lane_index lane = range.first; lane < range.last; ++lane) own.push_back(lane);
    planner plan(feed, prototype, own);
    while (const auto step = plan.next()) {
      for (const pack_plan& pack : step->packs) add(step->step, plan_digest(pack.records));
    }
  });
}

/// Three parts with a part that ends, weights that change, and a unit.
void print_mixtures(const any_source& source) {
  const any_source parts = concatenated_source(
      {{"whole", source},
       {"short", length_source(std::vector<std::uint32_t>(70, 40))},
       {"long", length_source(std::vector<std::uint32_t>{900, 800, 700, 900, 1000})}});
  const corpus_summary summary = summarize(parts, {.threads = 2});
  for (const mixture_unit unit : {mixture_unit::records, mixture_unit::tokens}) {
    for (const std::string policy : {"sequential", "window", "calendar", "replicated"}) {
      plan_options options;
      options.seed = 42;
      options.lanes = lanes;
      options.records_per_pack = 8;
      options.lookahead_steps = 6;
      options.rule = epoch_end::continue_epochs;
      options.steps = 50;
      options.policy = policy;
      options.tuning = calendar_tuning{};
      options.mixture = mixture_options{
          .phases = {{0, {{"whole", 7}, {"short", 2}}}, {20, {{"long", 1}, {"whole", 5}}}},
          .unit = unit,
          .ends = {{"short", part_end::drop, 9}}};
      const auto feed = make_candidate_feed(parts, summary, default_cost(), options);
      const any_policy prototype = make_policy(options, *feed);
      digest128 first;
      for (const std::uint32_t ranks : {1u, 3u, 12u}) {
        print("plan/mixture/" + std::string(to_string(unit)) + "/" + policy, ranks,
              chained_plan(ranks, feed, prototype), first);
      }
    }
  }
}

}  // namespace

int main() {
  const any_source source = golden_corpus();
  const corpus_summary summary = summarize(source, {.threads = 2});
  print_mixtures(source);
  std::optional<calendar_tuning> tuning;
  for (const named_policy& policy : policies()) {
    for (const epoch_end rule :
         {epoch_end::drop_last, epoch_end::pad, epoch_end::continue_epochs, epoch_end::finite}) {
      for (const shuffle_kind shuffle : {shuffle_kind::full, shuffle_kind::block}) {
        plan_options options;
        options.seed = 42;
        options.lanes = lanes;
        options.records_per_pack = 8;
        options.rule = rule;
        options.shuffle.kind = shuffle;
        options.shuffle.block_records = 50;
        options.shuffle.group_blocks = 4;
        options.policy = std::string(policy.name);
        options.lookahead_steps = 6;
        if (rule == epoch_end::continue_epochs) options.steps = 50;
        if (rule == epoch_end::pad) options.pack_size_changes = {{5, 10}, {9, 3}};
        const std::string name = options.policy + "/" + to_string(rule) + "/" + to_string(shuffle);
        const auto feed = make_candidate_feed(source, summary, default_cost(), options);
        options.tuning = tuning;
        const any_policy prototype = make_policy(options, *feed);
        if (options.policy == "calendar" && !tuning) {
          tuning = calendar_policy::tuning_of(prototype.save());
          options.tuning = tuning;
          print_tuning(*tuning);
        }
        digest128 first;
        for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 6u, 12u}) {
          print("plan/" + name, ranks, chained_plan(ranks, feed, prototype), first);
        }
        if (shuffle != shuffle_kind::full) continue;
        loader_options loading;
        loading.plan = options;
        loading.plan.limits.capacity_tokens = 1024;
        loading.digests = true;
        for (const std::uint32_t ranks : {1u, 3u, 12u}) {
          print("loader/" + name, ranks,
                chained(ranks,
                        [&](const world& where, auto&& add) {
                          loader loader(source, where, loading, default_cost(), summary);
                          for (auto&& step : loader) {
                            while (step.next()) {
                            }
                            for (const digest128& pack : step.pack_digests())
                              add(step.number(), pack);
                          }
                        }),
                first);
        }
      }
    }
  }
}
