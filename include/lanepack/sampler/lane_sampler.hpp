#pragma once

/// @file
/// `lane_sampler`: the records that arrive at every lane, in order, over a whole run.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/random.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/sampler/epoch_order.hpp>
#include <lanepack/sampler/mixed_records.hpp>
#include <lanepack/sampler/schedule.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A record that arrives at a lane.
struct arrival {
  record_ref record;
  record_role role = record_role::regular;

  friend bool operator==(const arrival&, const arrival&) = default;
};

/// Deals the orders of all epochs to lanes: position p of epoch e goes to lane (e x n + p) mod L.
/// Of a mixture, positions i x L to i x L + L - 1 go to the lanes in turn from one that is drawn
/// for i: its parts come back with a period that may divide L, and every lane shall see all of
/// them.
///
/// Under `continue_epochs` a lane's arrivals run through all epochs without a seam, for as long as
/// anyone asks. Under draining rules an epoch's steps take as many positions as they need, the
/// positions past n being those from 0 on again, and the next epoch begins anew. Arrivals are also
/// defined between the last step of a run that `steps` cuts and the end of the epoch it is in.
/// @complexity     Memory O(1) beside the order and the schedule. One permuted position an arrival,
///                 and about 0.3 us a call and an epoch touched.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    A pure function of order and schedule; which rank owns a lane, and how the
///                 arrivals are split over calls, does not matter.
class lane_sampler {
 public:
  /// @throws invalid_option  where the two do not have the same number of records.
  lane_sampler(epoch_order order, step_schedule schedule)
      : order_(std::move(order)), schedule_(std::move(schedule)) {
    check_records(this->order().size());
  }

  /// Deals a mixture.
  /// @throws invalid_option  where the schedule drains epochs, or counts other records.
  lane_sampler(std::shared_ptr<const mixed_records> mixture, step_schedule schedule)
      : order_(std::move(mixture)), schedule_(std::move(schedule)) {
    check_records(this->mixture()->records());
    if (schedule_.drains()) {
      detail::throw_invalid_option("rule", to_string(schedule_.rule()),
                                   "continue for a mixture, whose parts end at different steps");
    }
  }

  /// The order of the corpus.
  /// @pre  It is not mixed.
  [[nodiscard]] const epoch_order& order() const noexcept {
    LANEPACK_ASSERT(std::holds_alternative<epoch_order>(order_));
    return *std::get_if<epoch_order>(&order_);
  }
  /// The mixture; null where the corpus is not mixed.
  [[nodiscard]] const mixed_records* mixture() const noexcept {
    const auto* mixture = std::get_if<std::shared_ptr<const mixed_records>>(&order_);
    return mixture == nullptr ? nullptr : mixture->get();
  }
  /// The fewest records that an epoch has: of the corpus, or of any part of a mixture that ever has
  /// a weight. No record comes again in fewer arrivals of its epochs.
  [[nodiscard]] std::uint64_t fewest_epoch_records() const noexcept {
    const mixed_records* mixed = mixture();
    if (mixed == nullptr) return order().size();
    std::uint64_t fewest = mixed->records();
    for (std::size_t section = 0; section < mixed->mixture().sections(); ++section) {
      const std::span<const std::uint64_t> weights = mixed->mixture().section_weights(section);
      for (std::size_t part = 0; part < weights.size(); ++part) {
        if (weights[part] != 0) fewest = std::min(fewest, mixed->mixture().part(part).records);
      }
    }
    return fewest;
  }
  [[nodiscard]] const step_schedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return schedule_.lanes(); }

  /// Writes the arrivals number `first` and following of `lane`.
  /// @pre     `lane < lanes()`.
  /// @throws  state_error where an arrival lies past the last epoch, or past position 2^64.
  void lane_arrivals(lane_index lane, std::uint64_t first, std::span<arrival> out) const {
    LANEPACK_ASSERT(lane < lanes());
    deal(lane, lanes(), first, out);
  }

  /// Writes the arrivals number `first` and following of all lanes together, by position: a step
  /// takes the next L x b of them, and arrival i of lane l is one of number L x i to L x i + L - 1.
  /// @throws  state_error where an arrival lies past the last epoch, or past position 2^64.
  void stream_arrivals(std::uint64_t first, std::span<arrival> out) const {
    deal(0, 1, first, out);
  }

 private:
  /// Arrivals of stream number `stream` of `streams`, whichever of 1 and L that is.
  void deal(std::uint32_t stream, std::uint32_t streams, std::uint64_t first,
            std::span<arrival> out) const {
    const std::uint64_t n = schedule_.feasible_records();
    if (!schedule_.drains()) {
      const uint128 last = (static_cast<uint128>(first) + out.size()) * streams + stream;
      if ((last >> 64) != 0) {
        detail::throw_state_error("arrival " + std::to_string(first) + " lies past position 2^64");
      }
      const std::uint64_t place = first * streams + stream;
      if (const mixed_records* mixed = mixture()) {
        emit_mixed(*mixed, stream, streams, first, out);
        return;
      }
      epoch_index epoch = place / n;
      std::uint64_t position = place % n;
      while (!out.empty()) {
        const std::uint64_t count =
            std::min<std::uint64_t>(ceil_div(n - position, streams), out.size());
        emit(epoch, position, streams, out.first(static_cast<std::size_t>(count)));
        out = out.subspan(static_cast<std::size_t>(count));
        position += count * streams;
        epoch += position / n;
        position %= n;
      }
      return;
    }
    // Arrivals of this stream for every arrival of one lane.
    const std::uint32_t width = schedule_.lanes() / streams;
    while (!out.empty()) {
      const epoch_extent extent =
          schedule_.epoch_of_step(schedule_.step_of_lane_record(first / width));
      const std::uint64_t done = first - extent.first_arrival * width;
      const std::uint64_t length = (extent.end_arrival - extent.first_arrival) * width;
      const std::uint64_t count = std::min<std::uint64_t>(length - done, out.size());
      // Position 0 of epoch e is position e x n of the run, which decides its lane.
      const std::uint64_t shift = (extent.epoch % streams) * (n % streams) % streams;
      const std::uint64_t offset = (std::uint64_t{stream} + streams - shift) % streams;
      emit(extent.epoch, offset + done * streams, streams,
           out.first(static_cast<std::size_t>(count)));
      out = out.subspan(static_cast<std::size_t>(count));
      first += count;
    }
  }

  /// Writes the records at every `stride`-th position from `position` on; positions past the
  /// epoch's end are those from 0 on again.
  void emit(epoch_index epoch, std::uint64_t position, std::uint32_t stride,
            std::span<arrival> out) const {
    const ordered_epoch order = this->order().epoch(epoch);
    const std::uint64_t n = order.size();
    std::array<std::uint64_t, 256> ids;
    while (!out.empty()) {
      const std::size_t count = std::min(out.size(), ids.size());
      for (std::size_t i = 0; i < count; ++i, position += stride) {
        ids[i] = position < n ? position : position % n;
        out[i].role = position < n ? record_role::regular : schedule_.filling_role();
      }
      const std::span<std::uint64_t> batch(ids.data(), count);
      order.records(batch, batch);
      for (std::size_t i = 0; i < count; ++i) out[i].record = {epoch, ids[i]};
      out = out.subspan(count);
    }
  }

  void emit_mixed(const mixed_records& mixed, std::uint32_t stream, std::uint32_t streams,
                  std::uint64_t first, std::span<arrival> out) const {
    std::vector<record_ref> records(out.size());
    if (streams == 1) {
      mixed.records(first, 1, records);
    } else {
      const random_key key{mixed.seed(), 0, random_stage::mixture_lanes, 0};
      std::vector<std::uint64_t> positions(out.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t turn = random_below(counter_random(key, first + i), streams);
        positions[i] = (first + i) * streams + (stream + turn) % streams;
      }
      mixed.records(positions, records);
    }
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {records[i], record_role::regular};
  }

  void check_records(std::uint64_t records) const {
    if (records == schedule_.feasible_records()) return;
    detail::throw_invalid_option("feasible_records", std::to_string(schedule_.feasible_records()),
                                 std::to_string(records) + " as in the epoch's order");
  }

  std::variant<epoch_order, std::shared_ptr<const mixed_records>> order_;
  step_schedule schedule_;
};

}  // namespace lanepack::inline LANEPACK_ABI
