#pragma once

/// @file
/// Benchmarks of everything that touches no tokens: permutation, partitioner, policies,
/// micro-batcher, planner; and of the layout of a micro-batch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/lanepack.hpp>

#include "bench/harness.hpp"
#include "bench/lengths.hpp"
#include "bench/reference.hpp"

namespace lanepack_bench {

inline std::uint64_t mixed(std::uint64_t sum, std::uint64_t value) {
  return (sum ^ value) * 0x9e3779b97f4a7c15;
}

/// Positions are permuted in batches as the sampler asks for them.
inline comparison permutation_case(std::uint64_t n, bool block, const settings& how) {
  constexpr std::size_t batch = 256;
  const std::uint64_t positions = how.quick ? std::uint64_t{1} << 14 : std::uint64_t{1} << 20;
  const auto shuffle = std::make_shared<const lanepack::epoch_shuffle>(
      n,
      lanepack::shuffle_options{.kind = block ? lanepack::shuffle_kind::block
                                              : lanepack::shuffle_kind::full},
      1, 0);
  comparison out;
  out.item = "positions";
  out.items_per_run = static_cast<double>(positions);
  if (!block) out.wanted = {goal::kind::items_per_second_at_least, 40e6};
  out.variants.push_back({"permutation", [=] {
                            std::array<std::uint64_t, batch> ids;
                            std::uint64_t sum = 0;
                            for (std::uint64_t first = 0; first < positions; first += batch) {
                              // Spread over the whole range, so that every place of a large n is
                              // met.
                              const std::uint64_t from =
                                  first * (n / positions == 0 ? 1 : n / positions);
                              for (std::size_t i = 0; i < batch; ++i) ids[i] = (from + i) % n;
                              shuffle->apply(ids, ids);
                              for (const std::uint64_t id : ids) sum += id;
                            }
                            return sum;
                          }});
  out.variants.push_back({"philox4x64", [=] {
                            std::uint64_t sum = 0;
                            for (std::uint64_t i = 0; i < positions; ++i) {
                              sum += lanepack::random_below(
                                  lanepack::counter_random({.seed = 1}, i), n);
                            }
                            return sum;
                          }});
  out.note = "bound: one block of Philox a position";
  return out;
}

/// Parts of 10'000 records each and some more, with weights of up to three digits.
inline std::shared_ptr<const lanepack::mixed_records> mixture_of(std::uint64_t parts) {
  std::vector<lanepack::mixed_part> mixed;
  std::vector<lanepack::mixed_records::part> members;
  lanepack::mixture_weights weights{0, {}};
  lanepack::record_id first = 0;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const std::uint64_t records = 10'000 + i;
    mixed.push_back({.records = records});
    members.push_back({first, lanepack::epoch_order(lanepack::record_domain(records), {},
                                                    lanepack::seed_of_part(1, std::to_string(i)))});
    weights.weights.push_back(1 + i * 7 % 997);
    first += records;
  }
  return std::make_shared<const lanepack::mixed_records>(
      lanepack::mixture_order(std::move(mixed), {&weights, 1}), std::move(members));
}

/// Positions of a mixture in batches as the planner of one rank asks for them, or every 64th as a
/// lane does.
inline comparison mixture_case(std::uint64_t parts, std::uint64_t stride, const settings& how) {
  constexpr std::size_t batch = 4096;
  const std::uint64_t positions = how.quick ? std::uint64_t{1} << 14 : std::uint64_t{1} << 20;
  const std::shared_ptr<const lanepack::mixed_records> mixture = mixture_of(parts);
  comparison out;
  out.item = "positions";
  out.items_per_run = static_cast<double>(positions);
  const auto records = std::make_shared<std::vector<lanepack::record_ref>>(batch);
  out.variants.push_back({"mixture", [=] {
                            std::uint64_t sum = 0;
                            for (std::uint64_t first = 0; first < positions; first += batch) {
                              mixture->records(first * stride, stride, *records);
                              for (const lanepack::record_ref& each : *records) {
                                sum += mixed(each.epoch, each.id);
                              }
                            }
                            return sum;
                          }});
  const auto places = std::make_shared<std::vector<lanepack::mixed_place>>(batch);
  out.variants.push_back({"parts alone", [=] {
                            std::uint64_t sum = 0;
                            for (std::uint64_t first = 0; first < positions; first += batch) {
                              mixture->mixture().places(first * stride, stride, *places);
                              for (const lanepack::mixed_place& each : *places) {
                                sum += mixed(each.part, each.index);
                              }
                            }
                            return sum;
                          }});
  const auto one = std::make_shared<const lanepack::ordered_epoch>(
      lanepack::epoch_order(lanepack::record_domain(mixture->records()), {}, 1).epoch(0));
  out.variants.push_back({"one corpus", [=] {
                            std::uint64_t sum = 0;
                            std::vector<std::uint64_t> ids(batch);
                            for (std::uint64_t first = 0; first < positions; first += batch) {
                              for (std::size_t i = 0; i < batch; ++i) {
                                ids[i] = (first + i) * stride % one->size();
                              }
                              one->records(ids, ids);
                              for (const std::uint64_t id : ids) sum += mixed(0, id);
                            }
                            return sum;
                          }});
  out.note = "bound: one permuted position of the whole";
  if (how.references && stride == 1) {
    add_reference(out, {"blending", std::to_string(parts), std::to_string(positions)});
  }
  return out;
}

/// Costs of arrivals as a lane of a run sees them.
inline std::vector<lanepack::candidate> candidates(const std::string& lengths,
                                                   std::size_t records) {
  const std::vector<std::uint32_t> tokens = record_lengths(lengths, records);
  std::vector<lanepack::record_shape> shapes(records);
  std::vector<std::uint64_t> costs(records);
  for (std::size_t i = 0; i < records; ++i) shapes[i].tokens = tokens[i];
  lanepack::default_cost().costs(shapes, costs);
  std::vector<lanepack::candidate> out(records);
  for (std::size_t i = 0; i < records; ++i) {
    out[i].record.id = i;
    out[i].cost = costs[i];
    out[i].tokens = tokens[i];
    out[i].arrival = i;
  }
  return out;
}

/// `std::sort` of the costs of each window.
inline variant sort_of_windows(std::shared_ptr<const std::vector<lanepack::candidate>> arrivals,
                               std::size_t window) {
  const auto costs = std::make_shared<std::vector<std::uint64_t>>();
  for (const lanepack::candidate& each : *arrivals) costs->push_back(each.cost);
  const auto scratch = std::make_shared<std::vector<std::uint64_t>>(window);
  return {"std::sort", [=] {
            std::uint64_t sum = 0;
            for (std::size_t first = 0; first < costs->size(); first += window) {
              std::copy_n(costs->data() + first, window, scratch->data());
              std::sort(scratch->begin(), scratch->end());
              sum = mixed(sum, (*scratch)[window / 2]);
            }
            return sum;
          }};
}

inline comparison window_case(std::uint32_t steps, std::uint32_t records_per_pack,
                              const std::string& lengths, const settings& how) {
  const std::size_t window = std::size_t{steps} * records_per_pack;
  // Many windows, so that a processor cannot learn the branches of one by heart.
  const std::size_t windows = std::max<std::size_t>(2, (how.quick ? 4096 : 131072) / window);
  const auto arrivals = std::make_shared<const std::vector<lanepack::candidate>>(
      candidates(lengths, window * windows));
  const auto policy =
      std::make_shared<lanepack::window_policy>(lanepack::window_options{.lookahead_steps = steps});
  const auto packs = std::make_shared<lanepack::pack_list>();
  comparison out;
  out.item = "records";
  out.items_per_run = static_cast<double>(arrivals->size());
  out.wanted = {goal::kind::time_ratio_at_most, 2.5};
  out.variants.push_back(
      {"window", [=] {
         std::uint64_t sum = 0;
         for (std::size_t first = 0; first < arrivals->size(); first += window) {
           packs->clear();
           policy->form({.first_step = 0, .steps = steps, .records_per_pack = records_per_pack},
                        std::span(*arrivals).subspan(first, window), *packs);
           sum = mixed(sum, (*packs)[0].front().record.id);
           sum = mixed(sum, packs->records().back().record.id);
         }
         return sum;
       }});
  out.variants.push_back(sort_of_windows(arrivals, window));
  return out;
}

/// One lane of `calendar` in its steady state, against a sort of each lookahead buffer.
inline comparison calendar_case(const std::string& lengths, const settings& how) {
  constexpr std::uint32_t steps = 16;
  constexpr std::uint32_t records_per_pack = 16;
  constexpr std::size_t window = std::size_t{steps} * records_per_pack;
  const std::size_t windows = how.quick ? 16 : 512;
  const auto arrivals =
      std::make_shared<std::vector<lanepack::candidate>>(candidates(lengths, window * windows));
  for (lanepack::candidate& each : *arrivals) each.admitted = each.arrival / records_per_pack;
  const lanepack::any_source source = lanepack::length_source(record_lengths(lengths, 100'000));
  lanepack::plan_options options;
  options.lanes = 64;
  options.records_per_pack = records_per_pack;
  options.rule = lanepack::epoch_end::continue_epochs;
  options.lookahead_steps = steps;
  options.policy = "calendar";
  options.limits.infeasible = lanepack::infeasible_policy::truncate;
  const auto feed = lanepack::make_candidate_feed(source, lanepack::summarize(source),
                                                  lanepack::default_cost(), options);
  // Tuning is not part of what is measured.
  const auto tuned =
      std::make_shared<const lanepack::any_policy>(lanepack::make_policy(options, *feed));
  const auto policy = std::make_shared<std::optional<lanepack::any_policy>>();
  const auto packs = std::make_shared<lanepack::pack_list>();
  comparison out;
  out.item = "records";
  out.items_per_run = static_cast<double>(arrivals->size());
  out.wanted = {goal::kind::time_ratio_at_most, 6};
  out.variants.push_back(
      {"calendar",
       [=] {
         const std::uint32_t together = (*policy)->window_steps();
         const std::uint64_t ahead = std::uint64_t{together} + (*policy)->buffered_steps();
         std::uint64_t sum = 0;
         std::size_t given = 0;
         for (std::uint64_t step = 0; (step + ahead) * records_per_pack <= arrivals->size();
              step += together) {
           const auto wanted = static_cast<std::size_t>((step + ahead) * records_per_pack);
           packs->clear();
           (*policy)->form(
               {.first_step = step, .steps = together, .records_per_pack = records_per_pack},
               std::span(*arrivals).subspan(given, wanted - given), *packs);
           given = wanted;
           sum = mixed(sum, (*packs)[0].front().record.id);
         }
         return sum;
       },
       [=] { policy->emplace(*tuned); }});
  out.variants.push_back(sort_of_windows(arrivals, window));
  return out;
}

/// One rank's plan of a window of all lanes, against a sort of all costs of the window together.
inline comparison replicated_case(std::uint32_t lanes, const std::string& lengths,
                                  const settings& how) {
  constexpr std::uint32_t steps = 16;
  constexpr std::uint32_t records_per_pack = 16;
  const std::uint32_t packs = how.quick ? 64 : lanes;
  const std::size_t window = std::size_t{steps} * packs * records_per_pack;
  const auto arrivals =
      std::make_shared<const std::vector<lanepack::candidate>>(candidates(lengths, window));
  const auto policy = std::make_shared<lanepack::replicated_policy>();
  const auto out_packs = std::make_shared<lanepack::pack_list>();
  comparison out;
  out.item = "records";
  out.items_per_run = static_cast<double>(window);
  if (lanes <= 4096) out.wanted = {goal::kind::time_ratio_at_most, 2.5};
  out.variants.push_back({"replicated", [=] {
                            out_packs->clear();
                            policy->form({.first_step = 0,
                                          .steps = steps,
                                          .records_per_pack = records_per_pack,
                                          .packs_per_step = packs},
                                         *arrivals, *out_packs);
                            return mixed((*out_packs)[0].front().record.id,
                                         out_packs->records().back().record.id);
                          }});
  out.variants.push_back(sort_of_windows(arrivals, window));
  return out;
}

inline comparison partitioner_case(std::size_t records, std::uint32_t records_per_pack,
                                   const std::string& lengths) {
  const auto arrivals =
      std::make_shared<const std::vector<lanepack::candidate>>(candidates(lengths, records));
  const auto costs = std::make_shared<std::vector<std::uint64_t>>();
  for (const lanepack::candidate& each : *arrivals) costs->push_back(each.cost);
  const auto partitioner = std::make_shared<lanepack::balanced_partitioner>();
  comparison out;
  out.item = "records";
  out.items_per_run = static_cast<double>(records);
  out.variants.push_back({"partitioner", [=] {
                            const lanepack::partition_view packs =
                                partitioner->partition(*costs, records_per_pack);
                            return mixed(packs.costs.front(), packs.members.back());
                          }});
  out.variants.push_back(sort_of_windows(arrivals, records));
  return out;
}

inline comparison micro_batcher_case(lanepack::micro_batch_rule rule, std::size_t records,
                                     const std::string& lengths) {
  const auto tokens = std::make_shared<std::vector<std::uint64_t>>();
  for (const std::uint32_t length : record_lengths(lengths, records)) tokens->push_back(length);
  const auto batcher = std::make_shared<lanepack::micro_batcher>(
      lanepack::micro_batch_options{.capacity_tokens = 32768, .rule = rule});
  const auto bins = std::make_shared<lanepack::micro_batch_list>();
  const auto scratch = std::make_shared<std::vector<std::uint64_t>>();
  comparison out;
  out.item = "records";
  out.items_per_run = static_cast<double>(records);
  if (rule != lanepack::micro_batch_rule::level) {
    out.wanted = {goal::kind::seconds_at_most, 0.030};
  }
  out.variants.push_back({"micro_batcher", [=] {
                            batcher->form(*tokens, *bins, {});
                            return mixed(bins->size(), (*bins)[bins->size() - 1].front());
                          }});
  out.variants.push_back({"std::sort", [=] {
                            *scratch = *tokens;
                            std::sort(scratch->begin(), scratch->end());
                            return (*scratch)[scratch->size() / 2];
                          }});
  return out;
}

/// Everything that a rank plans with a length index in memory: permutation, shapes, costs, policy.
inline comparison planner_case(const std::string& policy, lanepack::shuffle_kind shuffle,
                               const settings& how) {
  constexpr std::uint32_t lanes = 8;
  constexpr std::uint32_t records_per_pack = 16;
  constexpr std::uint32_t lookahead = 16;
  const std::uint64_t records = how.quick ? 20'000 : 4'000'000;
  const std::uint64_t steps = (how.quick ? 1 : 32) * std::uint64_t{lookahead};
  const lanepack::any_source source = lanepack::length_source(record_lengths("dialogues", records));
  lanepack::plan_options options;
  options.seed = 1;
  options.lanes = lanes;
  options.records_per_pack = records_per_pack;
  options.rule = lanepack::epoch_end::continue_epochs;
  options.lookahead_steps = lookahead;
  options.policy = policy;
  options.shuffle.kind = shuffle;
  options.limits.infeasible = lanepack::infeasible_policy::truncate;
  const std::shared_ptr<const lanepack::candidate_feed> feed = lanepack::make_candidate_feed(
      source, lanepack::summarize(source), lanepack::default_cost(), options);
  std::vector<lanepack::lane_index> own(lanes);
  for (lanepack::lane_index lane = 0; lane < lanes; ++lane) own[lane] = lane;
  const auto planner =
      std::make_shared<lanepack::planner>(feed, lanepack::make_policy(options, *feed), own);
  comparison out;
  out.item = "records";
  out.items_per_run = static_cast<double>(steps) * lanes * records_per_pack;
  out.variants.push_back({"planner", [=] {
                            planner->start_at(0);
                            std::uint64_t sum = 0;
                            for (std::uint64_t step = 0; step < steps; ++step) {
                              const std::optional<lanepack::step_plan> plan = planner->next();
                              for (const lanepack::pack_plan& pack : plan->packs) {
                                sum = mixed(sum, pack.cost + pack.records.front().record.id);
                              }
                            }
                            return sum;
                          }});
  const auto arrivals = std::make_shared<const std::vector<lanepack::candidate>>(
      candidates("dialogues", static_cast<std::size_t>(out.items_per_run)));
  out.variants.push_back(sort_of_windows(arrivals, std::size_t{lookahead} * records_per_pack));
  return out;
}

inline comparison layout_case(const std::string& lengths, bool reads_loss_mask) {
  constexpr std::uint64_t capacity = 32768;
  std::vector<std::uint64_t> tokens;
  std::uint64_t total = 0;
  for (std::uint64_t id = 0;; ++id) {
    const std::uint64_t length = record_length(lengths, id);
    if (total + length > capacity) break;
    tokens.push_back(length);
    total += length;
  }
  const auto layout = std::make_shared<const lanepack::thd_layout>(
      lanepack::layout_options{.reads_loss_mask = reads_loss_mask}, tokens);
  const std::size_t bytes = layout->slab_bytes();
  // Aligned as staging memory is.
  using slab = std::vector<std::max_align_t>;
  const std::size_t words = bytes / sizeof(std::max_align_t) + 1;
  const auto from = std::make_shared<slab>(words);
  const auto to = std::make_shared<slab>(words);
  const auto bytes_of = [bytes](slab& of) {
    return std::as_writable_bytes(std::span(of)).first(bytes);
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::span<std::int32_t> out = layout->token_span(bytes_of(*to), i);
    for (std::size_t k = 0; k < out.size(); ++k) {
      out[k] = static_cast<std::int32_t>(lanepack::counter_random({}, k) >> 40);
    }
    // `complete` shifts a mask in place; ones and zeros in turn would be shifted out.
    const std::span<std::uint8_t> mask = layout->mask_span(bytes_of(*to), i);
    std::fill(mask.begin(), mask.end(), std::uint8_t{1});
  }
  *from = *to;
  comparison out;
  out.item = "tokens";
  out.items_per_run = static_cast<double>(total);
  out.bytes_per_run = static_cast<double>(bytes);
  out.variants.push_back({"complete", [=] {
                            // A loss mask is shifted in place and so has to be given anew.
                            if (reads_loss_mask) {
                              for (std::size_t i = 0; i < layout->records(); ++i) {
                                const auto mask = layout->mask_span(bytes_of(*to), i);
                                std::memset(mask.data(), 1, mask.size());
                              }
                            }
                            const lanepack::micro_batch_view view = layout->complete(bytes_of(*to));
                            return mixed(view.counts().loss_tokens,
                                         static_cast<std::uint64_t>(view.labels()[0]));
                          }});
  out.variants.push_back({"memcpy", [=] {
                            std::memcpy(to->data(), from->data(), bytes);
                            return static_cast<std::uint64_t>(
                                std::to_integer<unsigned>(bytes_of(*to)[bytes / 3]));
                          }});
  out.note = "bound: the same slab, in the processor's caches";
  return out;
}

inline void add_planning_benchmarks(std::vector<benchmark>& out) {
  using std::uint64_t;
  const auto add = [&out](std::string name, auto make) {
    out.push_back({std::move(name), std::move(make)});
  };
  const std::pair<const char*, uint64_t> sizes[] = {{"2^20-1", (uint64_t{1} << 20) - 1},
                                                    {"2^20+1", (uint64_t{1} << 20) + 1},
                                                    {"2^32+1", (uint64_t{1} << 32) + 1},
                                                    {"10^9+7", 1'000'000'007}};
  for (const auto& [name, n] : sizes) {
    const uint64_t size = n;
    add("sampler/permutation/n=" + std::string(name),
        [size](const settings& how) { return permutation_case(size, false, how); });
  }
  add("sampler/block_permutation/n=10^9+7",
      [](const settings& how) { return permutation_case(1'000'000'007, true, how); });

  for (const uint64_t parts : {uint64_t{4}, uint64_t{1000}}) {
    for (const uint64_t stride : {uint64_t{1}, uint64_t{64}}) {
      add("sampler/mixture/parts=" + std::to_string(parts) + "/stride=" + std::to_string(stride),
          [=](const settings& how) { return mixture_case(parts, stride, how); });
    }
  }

  const std::pair<std::uint32_t, std::uint32_t> windows[] = {{16, 16}, {4, 16},  {16, 4},   {32, 8},
                                                             {16, 64}, {64, 16}, {128, 128}};
  for (const auto& [k, b] : windows) {
    const std::uint32_t steps = k;
    const std::uint32_t records = b;
    const std::string size = "/K=" + std::to_string(k) + "/b=" + std::to_string(b);
    for (const std::string lengths : {"dialogues", "tasks"}) {
      add("packer/window" + size + "/lengths=" + lengths,
          [=](const settings& how) { return window_case(steps, records, lengths, how); });
    }
  }
  for (const std::string lengths : {"dialogues", "tasks"}) {
    add("packer/calendar/K=16/b=16/lengths=" + lengths,
        [=](const settings& how) { return calendar_case(lengths, how); });
  }
  for (const std::uint32_t lanes : {64U, 512U, 4096U, 32768U}) {
    for (const std::string lengths : {"dialogues", "tasks"}) {
      add("packer/replicated/L=" + std::to_string(lanes) + "/K=16/b=16/lengths=" + lengths,
          [=](const settings& how) { return replicated_case(lanes, lengths, how); });
    }
  }
  add("packer/partitioner/n=65536/b=16",
      [](const settings&) { return partitioner_case(65536, 16, "dialogues"); });
  for (const lanepack::named_micro_batch_rule& rule : lanepack::micro_batch_rules()) {
    for (const std::string lengths : {"dialogues", "tasks"}) {
      add("packer/micro_batcher/n=65536/rule=" + std::string(rule.name) + "/lengths=" + lengths,
          [=](const settings&) { return micro_batcher_case(rule.rule, 65536, lengths); });
    }
  }
  for (const std::string policy : {"sequential", "window", "replicated"}) {
    for (const lanepack::shuffle_kind shuffle :
         {lanepack::shuffle_kind::full, lanepack::shuffle_kind::block}) {
      add("loader/planner/policy=" + policy + "/shuffle=" + lanepack::to_string(shuffle),
          [=](const settings& how) { return planner_case(policy, shuffle, how); });
    }
  }
  for (const std::string lengths : {"500", "dialogues", "tasks"}) {
    add("batch/thd/lengths=" + lengths,
        [=](const settings&) { return layout_case(lengths, false); });
  }
  add("batch/thd/lengths=500/loss_mask=read",
      [](const settings&) { return layout_case("500", true); });
}

}  // namespace lanepack_bench
