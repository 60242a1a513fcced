#pragma once

/// @file
/// The policy `calendar`: every rank fills its packs up to caps that all ranks know beforehand.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/packer/calendar_caps.hpp>
#include <lanepack/packer/calendar_filler.hpp>
#include <lanepack/packer/calendar_tuning.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/cost_distribution.hpp>
#include <lanepack/packer/lookahead_buffer.hpp>
#include <lanepack/packer/partitioner.hpp>
#include <lanepack/packer/policy.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Fills every step up to a cap that is common knowledge, and never beyond it unless a record has
/// to leave.
///
/// The step's maximum over ranks is free up to the cap, so the time lost is the caps' spare
/// capacity and what rare packs above a cap cost. A lane is a queue: what it cannot fill under
/// today's cap waits in the lookahead buffer, heavy records wait for one of the slots laid out for
/// them, which fall on the same steps on every lane. The idea of buffering a bounded window is that
/// of Batch Cost Lookahead ("Coordination-Free Workload Regularization for Variable-Cost
/// Distributed Training").
///
/// - Displacement is at most `max_displacement_steps`: see `detail::calendar_filler` for the proof.
/// - At the end of the data, when no more arrivals come, what is held is split into packs of
///   balanced cost and the heaviest leaves first, on every lane alike.
/// - A distribution that is wrong costs efficiency and nothing else: a lane whose arrivals have
///   cost more than chance explains raises its caps in proportion, one whose arrivals have cost
///   less lowers the ordinary ones, which lanes of the same stream do nearly alike; packs above the
///   common cap are counted.
/// - The limits on a step hold in expectation: the mean tokens and the mean cost of each slot of
///   the calendar, over lanes that are fed as the distribution says, keep them in the trials of
///   `tune_calendar`. A lane does not see the packs of others, so no lane-local policy can promise
///   more for a single step; with L lanes of b records a step strays from its mean by about
///   cv / sqrt(L b).
///
/// @thread_safety  None: one thread per object; copies share the immutable calendar.
/// @determinism    Integers only; a pack depends on the options and the lane's arrivals.
class calendar_policy {
 public:
  /// Finds the tuning, unless it is given, which takes about a second.
  /// @throws invalid_option if an option is outside its range or no distribution is given.
  explicit calendar_policy(const calendar_options& options)
      : setup_(std::make_shared<const shared_setup>(options)),
        caps_(setup_->caps),
        records_per_pack_(options.records_per_pack),
        buffer_(capacity_for(options.records_per_pack)) {}

  [[nodiscard]] std::string name() const { return "calendar"; }
  [[nodiscard]] policy_scope scope() const noexcept { return policy_scope::lane; }
  [[nodiscard]] std::uint32_t window_steps() const noexcept { return 1; }
  [[nodiscard]] std::uint32_t buffered_steps() const noexcept {
    return setup_->options.lookahead_steps - 1;
  }

  /// Appends the pack of the window's step.
  /// @param arrivals  In arrival order, later than those held, with their `admitted` steps.
  /// @throws state_error if the window has more than one step or pack, too few or too many records
  ///         are held for its count, or the count is below `min_records_per_pack`.
  /// @complexity  O(lookahead x b), without a sort of the buffer.
  void form(const step_window& window, std::span<const candidate> arrivals, pack_list& out) {
    check_window(window);
    use_count(window.records_per_pack);
    insert(arrivals);
    const std::uint32_t count = window.records_per_pack;
    if (buffer_.size() < count) {
      detail::throw_state_error("calendar: found " + std::to_string(buffer_.size()) +
                                " records at step " + std::to_string(window.first_step) +
                                ", expected at least " + std::to_string(count));
    }
    if (window.steps_to_drain && *window.steps_to_drain * count == buffer_.size()) {
      drain(window, count);
    } else {
      const calendar_slot& slot = caps_->at(window.first_step);
      filler_.fill(buffer_, adapted(slot), *caps_, setup_->tuning, rule(), window.first_step, count,
                   caps_->reserve(setup_->tuning));
      ++packs_;
      if (buffer_.picked_cost() > slot.cap) {
        ++packs_above_cap_;
        due_records_ += filler_.due_records();
      }
    }
    buffer_.take_picked(out);
  }

  /// Lists what is held; valid until the next call on this object.
  [[nodiscard]] std::span<const candidate> held() const {
    buffer_.list(listed_);
    return listed_;
  }

  /// The tuning, what it belongs to, and what the lane has counted.
  [[nodiscard]] policy_state save() const {
    policy_state state;
    state.words.reserve(state_words);
    state.words.push_back(state_version);
    const auto tuning = words_of(setup_->tuning);
    state.words.insert(state.words.end(), tuning.begin(), tuning.end());
    for (const std::uint64_t word :
         {setup_->identity.high, setup_->identity.low, packs_, packs_above_cap_, due_records_,
          arrived_, static_cast<std::uint64_t>(arrived_cost_ >> 64),
          static_cast<std::uint64_t>(arrived_cost_)}) {
      state.words.push_back(word);
    }
    return state;
  }

  /// The tuning in a saved state: given as `calendar_options::tuning` it makes a policy that the
  /// state can be restored to, without tuning again.
  /// @throws state_error if the state is not one of a calendar.
  [[nodiscard]] static calendar_tuning tuning_of(const policy_state& state) {
    check_words(state);
    calendar_tuning tuning;
    const std::array<std::uint32_t*, tuning_words> fields = fields_of(tuning);
    for (std::size_t i = 0; i < tuning_words; ++i) {
      const std::uint64_t word = state.words[1 + i];
      if (word > std::numeric_limits<std::uint32_t>::max()) {
        detail::throw_state_error("calendar: found " + std::to_string(word) +
                                  " in the tuning of a state, expected at most 4294967295");
      }
      *fields[i] = static_cast<std::uint32_t>(word);
    }
    return tuning;
  }

  /// @param held  What `held()` was, with the `admitted` steps of then.
  /// @throws state_error if the state is not one of a calendar, belongs to another tuning,
  ///         distribution or other options, or the records are not in arrival order or more than a
  ///         lane may hold.
  void restore(const policy_state& state, std::span<const candidate> held) {
    const calendar_tuning tuning = tuning_of(state);
    if (tuning != setup_->tuning) {
      detail::throw_state_error("calendar: found a state of the tuning " + text_of(tuning) +
                                ", expected " + text_of(setup_->tuning) +
                                "; calendar_policy::tuning_of(state) gives the one to construct "
                                "with");
    }
    const std::uint64_t* const words = state.words.data() + 1 + tuning_words;
    if (words[0] != setup_->identity.high || words[1] != setup_->identity.low) {
      detail::throw_state_error(
          "calendar: found a state of other costs, records a pack, lookahead or displacement bound "
          "(" +
          digest128{.low = words[1], .high = words[0]}.hex() + "), expected those of " +
          setup_->identity.hex());
    }
    lookahead_buffer restored(std::max(buffer_.capacity(), held.size()));
    restored.insert(held);
    buffer_ = std::move(restored);
    packs_ = words[2];
    packs_above_cap_ = words[3];
    due_records_ = words[4];
    arrived_ = words[5];
    arrived_cost_ = (static_cast<uint128>(words[6]) << 64) | words[7];
  }

  /// What this lane has done so far.
  [[nodiscard]] policy_statistics statistics() const noexcept {
    return {.packs = packs_,
            .packs_above_cap = packs_above_cap_,
            .due_records = due_records_,
            .expected_cost = setup_->options.costs->mean_cost(arrived_)};
  }
  /// The numbers in use, found or given.
  [[nodiscard]] const calendar_tuning& tuning() const noexcept { return setup_->tuning; }
  /// The caps in use.
  [[nodiscard]] const calendar_caps& caps() const noexcept { return *caps_; }
  /// No record leaves later than this many steps after its admission.
  [[nodiscard]] std::uint64_t max_displacement_steps() const noexcept {
    return setup_->max_displacement;
  }

 private:
  static constexpr std::uint64_t state_version = 2;
  static constexpr std::size_t tuning_words = 8;
  static constexpr std::size_t state_words = 1 + tuning_words + 8;

  [[nodiscard]] static constexpr std::array<std::uint32_t*, tuning_words> fields_of(
      calendar_tuning& tuning) noexcept {
    static_assert(sizeof(calendar_tuning) == tuning_words * sizeof(std::uint32_t));
    return {&tuning.spare_ppm,     &tuning.light_ppm,        &tuning.dither_ppm,
            &tuning.reserve_ppm,   &tuning.slot_delay_steps, &tuning.overdue_steps,
            &tuning.step_cost_ppm, &tuning.step_tokens_ppm};
  }

  [[nodiscard]] static std::array<std::uint64_t, tuning_words> words_of(
      calendar_tuning tuning) noexcept {
    std::array<std::uint64_t, tuning_words> words{};
    const std::array<std::uint32_t*, tuning_words> fields = fields_of(tuning);
    for (std::size_t i = 0; i < tuning_words; ++i) words[i] = *fields[i];
    return words;
  }

  [[nodiscard]] static std::string text_of(const calendar_tuning& tuning) {
    std::string text = "(";
    for (const std::uint64_t word : words_of(tuning)) {
      if (text.size() > 1) text += ", ";
      text += std::to_string(word);
    }
    return text + ")";
  }

  static void check_words(const policy_state& state) {
    if (state.words.size() != state_words || state.words[0] != state_version) {
      detail::throw_state_error("calendar: found a state of " + std::to_string(state.words.size()) +
                                " words, expected " + std::to_string(state_words) +
                                ", the first of them " + std::to_string(state_version));
    }
  }

  /// What copies share.
  struct shared_setup {
    explicit shared_setup(const calendar_options& given)
        : options(given),
          max_displacement(detail::checked_displacement(given)),
          tuning(given.tuning ? *given.tuning : tune_calendar(given)),
          variation_ppm(detail::cost_variation_ppm(*given.costs)),
          mean_cost(given.costs->total_cost() / given.costs->records()),
          mean_cost_rest(given.costs->total_cost() % given.costs->records()),
          caps(std::make_shared<const calendar_caps>(*given.costs, given.records_per_pack, tuning)),
          identity(identity_of(options, max_displacement, tuning)) {}
    calendar_options options;
    std::uint64_t max_displacement;
    calendar_tuning tuning;
    std::uint64_t variation_ppm;
    /// Of a record, and what the division leaves.
    uint128 mean_cost;
    uint128 mean_cost_rest;
    std::shared_ptr<const calendar_caps> caps;
    /// Of everything that decides a pack, arrivals aside.
    digest128 identity;
  };

  [[nodiscard]] static digest128 identity_of(const calendar_options& options,
                                             std::uint64_t max_displacement,
                                             const calendar_tuning& tuning) {
    digest_builder builder;
    for (const std::uint64_t word : words_of(tuning)) builder.number(word);
    builder.number(options.records_per_pack);
    builder.number(options.min_records_per_pack.value_or(options.records_per_pack));
    builder.number(options.lookahead_steps);
    builder.number(max_displacement);
    for (const cost_bucket& bucket : options.costs->buckets()) {
      builder.number(bucket.cost);
      builder.number(bucket.records);
    }
    return builder.value();
  }

  [[nodiscard]] std::size_t capacity_for(std::uint32_t count) const noexcept {
    return std::size_t{setup_->options.lookahead_steps} * count;
  }

  [[nodiscard]] std::uint32_t least_count() const noexcept {
    return setup_->options.min_records_per_pack.value_or(setup_->options.records_per_pack);
  }

  [[nodiscard]] displacement_rule rule() const noexcept {
    return {.max_steps = setup_->max_displacement, .min_records_per_pack = least_count()};
  }

  void check_window(const step_window& window) const {
    if (window.steps != 1 || window.packs_per_step != 1) {
      detail::throw_state_error("calendar: found a window of " + std::to_string(window.steps) +
                                " steps with " + std::to_string(window.packs_per_step) +
                                " packs, expected one step with one pack");
    }
    if (window.records_per_pack < least_count() || window.records_per_pack == 0) {
      detail::throw_state_error("calendar: found " + std::to_string(window.records_per_pack) +
                                " records a pack, expected at least " +
                                std::to_string(least_count()) + " (min_records_per_pack)");
    }
  }

  /// Switches to caps for another number of records a pack.
  void use_count(std::uint32_t count) {
    if (count == records_per_pack_) return;
    caps_ =
        count == setup_->options.records_per_pack
            ? setup_->caps
            : std::make_shared<const calendar_caps>(*setup_->options.costs, count, setup_->tuning);
    records_per_pack_ = count;
  }

  void insert(std::span<const candidate> arrivals) {
    const std::size_t needed = buffer_.size() + arrivals.size();
    if (needed > buffer_.capacity()) {
      // Steps ahead of a change may already have the other count.
      lookahead_buffer larger(needed);
      larger.insert(held());
      buffer_ = std::move(larger);
    }
    buffer_.insert(arrivals);
    arrived_ += arrivals.size();
    for (const candidate& record : arrivals) arrived_cost_ += record.cost;
    const std::uint64_t most = (setup_->max_displacement + 1) * least_count();
    if (buffer_.size() > most) {
      detail::throw_state_error("calendar: found " + std::to_string(buffer_.size()) +
                                " records, expected at most " + std::to_string(most) +
                                ", which is what can leave within max_displacement_steps");
    }
  }

  /// The slot for a lane whose records cost more or less on average than the distribution says,
  /// once that is four standard deviations of the average: nearly the same on every lane of such a
  /// stream, and next to impossible by chance. Slots for heavy records are not lowered, because
  /// records may be fewer and as heavy as declared.
  [[nodiscard]] calendar_slot adapted(const calendar_slot& slot) const noexcept {
    if (arrived_ == 0) return slot;
    const std::uint64_t n = setup_->options.costs->records();
    const uint128 expected =
        std::max<uint128>(1, setup_->mean_cost * arrived_ + setup_->mean_cost_rest * arrived_ / n);
    constexpr std::uint64_t million = 1'000'000;
    const std::uint64_t chance =
        detail::integer_root(static_cast<uint128>(setup_->variation_ppm) * million / arrived_);
    // Beyond this factor caps would no longer mean anything.
    constexpr std::uint64_t most = 4 * million;
    const auto found =
        static_cast<std::uint64_t>(std::min<uint128>(most, arrived_cost_ * million / expected));
    const bool dearer = found > million + 4 * chance;
    if (!dearer && found + 4 * chance >= million) return slot;
    // A standard deviation more, or a lane that is too low would exceed its caps all the time.
    const std::uint64_t factor = found + chance;
    const auto scaled = [](std::uint64_t cost, std::uint64_t by) {
      return static_cast<std::uint64_t>(std::min<uint128>(
          static_cast<uint128>(cost) * by / million, std::numeric_limits<std::int64_t>::max()));
    };
    calendar_slot result = slot;
    result.light_fill = scaled(slot.light_fill, factor);
    if (dearer || slot.cap <= caps_->base() / 4 * 5) {
      result.cap = scaled(slot.cap, factor);
      result.share = scaled(slot.share, factor);
    }
    if (!dearer) result.counted_mean = scaled(slot.counted_mean, found);
    return result;
  }

  /// Forms the next pack of the last ones, which hold all that is left.
  void drain(const step_window& window, std::uint32_t count) {
    filler_.start(count);
    if (filler_.pick_due(buffer_, rule(), window.first_step) > 0) {
      const std::uint64_t all =
          buffer_.picked_cost() + buffer_.cheapest_sum(buffer_.size() - buffer_.picked_records());
      filler_.complete(buffer_, all / *window.steps_to_drain, *caps_);
      return;
    }
    costs_.clear();
    for (std::size_t q = 0; q < buffer_.size(); ++q) costs_.push_back(buffer_.at(q).cost);
    const partition_view packs = partitioner_.partition(costs_, count);
    for (const std::uint32_t position : packs[0]) buffer_.pick(buffer_.place(position));
  }

  std::shared_ptr<const shared_setup> setup_;
  std::shared_ptr<const calendar_caps> caps_;
  std::uint32_t records_per_pack_;
  lookahead_buffer buffer_;
  /// What `held` shows.
  mutable std::vector<candidate> listed_;
  detail::calendar_filler filler_;
  balanced_partitioner partitioner_;
  std::vector<std::uint64_t> costs_;
  std::uint64_t packs_ = 0;
  std::uint64_t packs_above_cap_ = 0;
  std::uint64_t due_records_ = 0;
  /// All arrivals of the lane and what they cost.
  std::uint64_t arrived_ = 0;
  uint128 arrived_cost_ = 0;
};

static_assert(lookahead_policy<calendar_policy>);

}  // namespace lanepack::inline LANEPACK_ABI
