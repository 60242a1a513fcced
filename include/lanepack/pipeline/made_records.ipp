#pragma once

/// @file
/// The bodies of the functions in made_records.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/pipeline/executor.hpp>
#include <lanepack/pipeline/made_records.hpp>
#include <lanepack/pipeline/sample.hpp>
#include <lanepack/pipeline/sample_cache.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Copies the part of a record that is wanted.
inline void copy_record(const sample& from, const record_read& to) {
  check_read(to, from.tokens.size());
  const auto first = static_cast<std::ptrdiff_t>(to.first_token);
  std::copy_n(from.tokens.begin() + first, to.tokens.size(), to.tokens.begin());
  if (to.loss_mask.empty()) return;
  if (from.loss_mask.empty()) {
    std::fill(to.loss_mask.begin(), to.loss_mask.end(), std::uint8_t{1});
  } else {
    std::copy_n(from.loss_mask.begin() + first, to.loss_mask.size(), to.loss_mask.begin());
  }
}

LANEPACK_FUNCTION void made_records::visit(std::span<const record_id> inputs,
                                           const visitor& visit) {
  std::vector<record_id> missing;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const sample_cache::samples known = cache_.find(inputs[i])) {
      visit(i, *known);
    } else {
      missing.push_back(inputs[i]);
      places.push_back(i);
    }
  }
  const auto commit = [&](std::size_t i, std::vector<sample>& samples) {
    check(missing[i], samples);
    visit(places[i], samples);
    cache_.add(missing[i], std::make_shared<const std::vector<sample>>(std::move(samples)));
  };
  if (!runner_.stages.stateful()) {
    runner_.run(missing, commit);
    return;
  }
  any_executor on = runner_.executor;
  const std::size_t together = 2 * std::max<std::size_t>(1, on.threads());
  std::vector<std::vector<sample>> results;
  for (std::size_t first = 0; first < missing.size(); first += results.size()) {
    results.assign(std::min(together, missing.size() - first), {});
    run_tasks(on, results.size(), [&](std::uint64_t task) {
      const record_id input = missing[first + static_cast<std::size_t>(task)];
      results[static_cast<std::size_t>(task)] = runner_.run_one(input, state_before(input));
    });
    for (std::size_t i = 0; i < results.size(); ++i) commit(first + i, results[i]);
  }
}

LANEPACK_FUNCTION void made_records::read(std::span<const record_read> reads) {
  // A read and the input that its record comes of.
  struct wanted {
    record_id input;
    std::size_t read;
  };
  std::vector<wanted> order(reads.size());
  for (std::size_t i = 0; i < reads.size(); ++i) order[i] = {input_of(reads[i].id), i};
  std::sort(order.begin(), order.end(), [](const wanted& a, const wanted& b) {
    return a.input != b.input ? a.input < b.input : a.read < b.read;
  });
  std::vector<record_id> inputs;
  // Where the reads of each input begin in `order`.
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i != 0 && order[i].input == order[i - 1].input) continue;
    inputs.push_back(order[i].input);
    begins.push_back(i);
  }
  begins.push_back(order.size());
  visit(inputs, [&](std::size_t i, const std::vector<sample>& samples) {
    for (std::size_t at = begins[i]; at < begins[i + 1]; ++at) {
      const record_read& to = reads[order[at].read];
      const std::uint64_t place = place_of(to.id, inputs[i]);
      if (place >= samples.size()) {
        throw_data_error(
            {.path = runner_.corpus, .byte_offset = {}, .record = inputs[i], .line = {}},
            "the pipeline made " + std::to_string(samples.size()) +
                " records of it, expected one more than " + std::to_string(place) + " at least");
      }
      copy_record(samples[static_cast<std::size_t>(place)], to);
    }
  });
}

LANEPACK_FUNCTION void made_records::first_records(std::span<const record_id> ids,
                                                   std::vector<record_id>& inputs,
                                                   std::vector<std::size_t>& places) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const record_id input = input_of(ids[i]);
    if (place_of(ids[i], input) != 0) continue;
    inputs.push_back(input);
    places.push_back(i);
  }
}

LANEPACK_FUNCTION void made_records::payload_shapes(std::size_t payload,
                                                    std::span<const record_id> ids,
                                                    std::span<payload_shape> out) const {
  LANEPACK_ASSERT(ids.size() == out.size());
  check_payload(payload, payload_names().size());
  std::vector<record_id> inputs;
  std::vector<std::size_t> places;
  first_records(ids, inputs, places);
  std::vector<payload_shape> found(inputs.size());
  runner_.input.payload_shapes(payload, inputs, found);
  std::fill(out.begin(), out.end(), payload_shape());
  for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = found[i];
}

LANEPACK_FUNCTION void made_records::read_payloads(std::span<const payload_read> reads) const {
  std::vector<payload_read> of_inputs;
  for (const payload_read& each : reads) {
    check_payload(each.payload, payload_names().size());
    const record_id input = input_of(each.id);
    if (place_of(each.id, input) != 0) {
      check_payload_read(each, 0);
      continue;
    }
    of_inputs.push_back(each);
    of_inputs.back().id = input;
  }
  runner_.input.read_payloads(of_inputs);
}

LANEPACK_FUNCTION void made_records::add_patches(std::span<const record_id> ids,
                                                 std::span<record_shape> out) const {
  if (payload_names().empty()) return;
  std::vector<record_id> inputs;
  std::vector<std::size_t> places;
  first_records(ids, inputs, places);
  std::vector<std::uint64_t> patches(inputs.size());
  runner_.input.patches(inputs, patches);
  for (std::size_t i = 0; i < places.size(); ++i) out[places[i]].patches = patches[i];
}

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
