#pragma once

/// @file
/// The loader itself: its threads, and the bodies of the functions in loader.hpp.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lanepack/batch/payloads.hpp>
#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/device/fork_guard.hpp>
#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/staging_ring.hpp>
#include <lanepack/loader/candidate_feed.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/loader.hpp>
#include <lanepack/loader/options.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/loader/run_properties.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/loader/selection.hpp>
#include <lanepack/loader/statistics.hpp>
#include <lanepack/loader/step.hpp>
#include <lanepack/loader/step.ipp>
#include <lanepack/packer/calendar.hpp>
#include <lanepack/packer/chunking.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/topology/lane_ownership.hpp>
#include <lanepack/topology/world.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Everything that a loader, its steps and its threads share.
template <class Layout>
class loader_state : public std::enable_shared_from_this<loader_state<Layout>> {
 public:
  using micro_batch = leased_micro_batch<Layout>;
  using step_type = loaded_step<Layout>;
  using traits = layout_traits<Layout>;
  using ring_type = staging_ring<host_backend>;

  loader_state(any_source source, const lane_ownership& ownership, loader_options options,
               const any_estimator& estimator, const corpus_summary& summary)
      : options_(checked(std::move(options), source)),
        source_(std::move(source)),
        ownership_(ownership),
        feed_(make_candidate_feed(source_, summary, estimator, options_.plan)),
        planner_(feed_, make_policy(resumable(options_, *feed_), *feed_), lanes_of(ownership)),
        batcher_({.capacity_tokens = capacity(),
                  .rule = rule(options_),
                  .micro_batches = options_.micro_batches,
                  .multiple_of = options_.micro_batch_multiple},
                 alignment_multiple(
                     {options_.plan.limits.record_multiple, options_.plan.limits.total_multiple})),
        payloads_(payload_limits_for(options_, source_, records_per_rank(), capacity())),
        ring_(host_backend(),
              ring_options_for(options_, payloads_, segments_per_rank(), capacity())) {
    check_worst_case(summary);
    slots_.resize(ring_.depth());
    // The other half is with the trainer.
    read_together_ = std::clamp<std::size_t>(ring_.depth() / 2, 1, most_read_together);
    begin();
  }

  loader_state(const loader_state&) = delete;
  loader_state& operator=(const loader_state&) = delete;
  ~loader_state() { stop(); }

  [[nodiscard]] const fork_guard& guard() const noexcept { return guard_; }
  [[nodiscard]] const candidate_feed& feed() const noexcept { return *feed_; }
  [[nodiscard]] const lane_ownership& ownership() const noexcept { return ownership_; }

  [[nodiscard]] std::optional<step_type> next_step() {
    guard_.check("loader");
    if (failed_) {
      throw_state_error("the loader is closed: the error that ended the run was reported before");
    }
    if (!reading_thread_.joinable() && !finished_) start();
    pass_over_current();
    std::shared_ptr<step_state> state = pop_step();
    if (!state) {
      // At the end of the data the ring is empty and closed, or holds what ended the run.
      finished_ = true;
      static_cast<void>(take_slot());
      return std::nullopt;
    }
    current_ = state;
    stands_at_ = {state, &state->after};
    ++statistics_.steps;
    statistics_.planned += state->planned;
    statistics_.cost += state->cost;
    count_parts(*state);
    return step_type(this->shared_from_this(), std::move(state));
  }

  void count_parts(const step_state& step) {
    const mixed_records* mixture = feed_->sampler().mixture();
    if (mixture == nullptr) return;
    statistics_.parts.resize(mixture->mixture().parts());
    for (std::size_t i = 0; i < step.records.size(); ++i) {
      part_share& share = statistics_.parts[mixture->part_of(step.records[i].id)];
      ++share.records;
      share.tokens += step.tokens[i];
    }
  }

  [[nodiscard]] std::optional<micro_batch> next_micro_batch(step_state& step) {
    guard_.check("loader");
    if (step.remaining == 0) return std::nullopt;
    std::optional<typename ring_type::lease> lease = take_slot();
    if (!lease) throw_state_error("the loader was closed in the middle of a step");
    --step.remaining;
    ++statistics_.micro_batches;
    const filled_slot<Layout>& from = slots_[lease->index()];
    LANEPACK_ASSERT(from.step->step == step.step);
    return micro_batch(from, std::move(*lease));
  }

  /// Where the run stands after the last step that was handed out.
  [[nodiscard]] run_state state() const {
    if (stands_at_ == nullptr) {
      throw_state_error(
          "where the run stands is known after the first step: the policy has a memory, and the "
          "steps before start_step = " +
          std::to_string(options_.start_step) + " are planned only then");
    }
    return with_properties(*stands_at_);
  }

  [[nodiscard]] run_state with_properties(const run_state& from) const {
    run_state state = from;
    // Only the sections of a mixture begin to matter during a run.
    const std::size_t sections =
        options_.plan.mixture ? sections_until(*feed_, from.planned_until) : 1;
    if (sections != run_sections_) {
      run_ = properties_of_run(options_.plan, *feed_, from.planned_until);
      run_sections_ = sections;
    }
    state.run = run_;
    return state;
  }

  [[nodiscard]] loader_statistics statistics() const {
    loader_statistics result = statistics_;
    result.masked_records = masked_records_.load();
    result.bytes = bytes_.load();
    result.staging = ring_.statistics();
    result.micro_batches_ready = result.staging.submitted - result.staging.delivered;
    const std::scoped_lock lock(mutex_);
    result.micro_batches_to_read = jobs_.size();
    result.coming.reserve(steps_.size());
    for (const std::shared_ptr<step_state>& state : steps_) {
      result.coming.push_back(
          {.step = state->step, .cost = state->cost, .tokens = state->planned.tokens});
    }
    return result;
  }

  /// Ends both threads; what is being read is finished first.
  void stop() noexcept {
    if (guard_.in_child()) return;
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    job_ready_.notify_all();
    plan_wanted_.notify_all();
    ring_.close();
    if (planning_thread_.joinable()) planning_thread_.join();
    if (reading_thread_.joinable()) reading_thread_.join();
    finished_ = true;
  }

 private:
  /// A micro-batch that is to be read.
  struct job {
    std::shared_ptr<step_state> step;
    std::size_t micro_batch;
    Layout layout;
    payload_layout payloads;
    /// The token after a chunk that another one follows, and its byte of the loss mask.
    std::int32_t next_token = 0;
    std::uint8_t next_mask = 1;

    [[nodiscard]] std::optional<record_chunk> chunk() const noexcept {
      return step->chunk(micro_batch);
    }
  };
  /// A job and the slot that it is read into.
  struct filling {
    job work;
    typename ring_type::slot slot;
  };

  /// Micro-batches that are read together at most, sorted by their place in the file.
  static constexpr std::size_t most_read_together = 8;
  /// Planning pauses while so many micro-batches wait to be read, and goes on when only so few are
  /// left: the threads then wake each other seldom.
  static constexpr std::size_t most_planned_ahead = 4 * most_read_together;
  static constexpr std::size_t fewest_planned_ahead = 2 * most_read_together;

  /// Windows that are lived through without looking whether the loader was stopped.
  static constexpr std::uint64_t windows_between_looks = 256;

  static loader_options checked(loader_options options, const any_source& corpus) {
    const source_traits source = corpus.traits();
    if (!source.has_payload) {
      throw_invalid_option("source", "a table of lengths",
                           "a corpus with tokens; a planner accepts lengths");
    }
    if (corpus.unindexed() != nullptr) {
      if (options.micro_batches || options.micro_batch_multiple != 1) {
        throw_invalid_option(
            options.micro_batches ? "micro_batches" : "micro_batch_multiple",
            std::to_string(options.micro_batches.value_or(options.micro_batch_multiple)),
            "none without a count index, which says what the worst step is");
      }
    } else if (!source.has_all_shapes) {
      throw_invalid_option("source", "a corpus that does not know the shapes of all records",
                           "one with an index of lengths");
    }
    if (traits::rows && corpus.most_segments() != 1) {
      throw_invalid_option("source", "a corpus whose records may have several segments",
                           "loader, which lays segments out in one row; a row of padded_loader is "
                           "a record");
    }
    if (options.prefetch_micro_batches == 0) {
      throw_invalid_option("prefetch_micro_batches", "0", "at least 1");
    }
    if (traits::rows) {
      options.micro_batching = micro_batch_rule::padded_rows;
    } else if (options.micro_batching == micro_batch_rule::padded_rows) {
      throw_invalid_option("micro_batching", "padded_rows",
                           "another rule, or padded_loader, which has rows");
    }
    if (options.resume_from && options.start_step != 0) {
      throw_invalid_option("start_step", std::to_string(options.start_step),
                           "0 where resume_from says where to begin");
    }
    options.fields.record_multiple = options.plan.limits.record_multiple;
    options.fields.total_multiple = options.plan.limits.total_multiple;
    options.fields.reads_loss_mask = source.has_loss_mask;
    validate(options.fields);
    return options;
  }

  static micro_batch_rule rule(const loader_options& options) { return options.micro_batching; }

  /// Plan options with the tuning of the state that the run goes on from: finding it again would
  /// take seconds.
  static plan_options resumable(const loader_options& options, const candidate_feed& feed) {
    plan_options plan = options.plan;
    if (!options.resume_from) return plan;
    check_same_run(*options.resume_from,
                   properties_of_run(plan, feed, options.resume_from->planned_until));
    const std::vector<lane_fragment>& fragments = options.resume_from->fragments;
    if (!plan.tuning && !fragments.empty() && !fragments.front().policy.empty()) {
      plan.tuning = calendar_policy::tuning_of({fragments.front().policy});
    }
    return plan;
  }

  void begin() {
    if (options_.resume_from) {
      planner_.restore(*options_.resume_from);
    } else {
      planner_.start_at(options_.start_step);
    }
    run_state state = planner_.state();
    // Unless the steps before still have to be lived through.
    if (state.next_step == planner_.next_step()) {
      stands_at_ = std::make_shared<const run_state>(std::move(state));
    }
  }

  static std::vector<lane_index> lanes_of(const lane_ownership& ownership) {
    const lane_range range = ownership.owned();
    std::vector<lane_index> lanes(range.size());
    std::iota(lanes.begin(), lanes.end(), range.first);
    return lanes;
  }

  [[nodiscard]] std::uint64_t capacity() const noexcept {
    return feed_->selection().limits.largest_record();
  }

  /// The most records that any rank has in a step, the same number on every rank.
  [[nodiscard]] std::uint64_t records_per_rank() const noexcept {
    return pack_sizes(options_.plan).largest *
           ceil_div(ownership_.lanes(), ownership_.world().size);
  }

  /// The most segments that any rank has in a step.
  [[nodiscard]] std::uint64_t segments_per_rank() const noexcept {
    return saturating_mul(records_per_rank(), source_.most_segments());
  }

  /// Whether a record may be several segments.
  [[nodiscard]] bool segmented() const noexcept { return source_.most_segments() != 1; }

  /// What the loader knows of the source's payloads.
  struct payload_limits {
    std::shared_ptr<const std::vector<std::string>> names;
    /// Most bytes of a micro-batch, and what they and their offsets take in its slab.
    std::uint64_t bytes = 0;
    std::uint64_t slab_bytes = 0;
    /// The records of a step never have more, however they come together.
    bool always_fit = true;

    [[nodiscard]] bool none() const noexcept { return names->empty(); }
  };

  static payload_limits payload_limits_for(const loader_options& options, const any_source& source,
                                           std::uint64_t records, std::uint64_t capacity) {
    const std::span<const std::string> names = source.payload_names();
    payload_limits limits;
    limits.names = std::make_shared<const std::vector<std::string>>(names.begin(), names.end());
    if (limits.none()) return limits;
    const record_payload_bytes largest = source.largest_payload();
    const std::uint64_t most = saturating_mul(largest.bytes, records);
    const auto slab_bytes = [&](std::uint64_t bytes) {
      return payload_layout::slab_bytes_bound(names.size(), bytes, records);
    };
    const std::uint64_t segments = saturating_mul(records, source.most_segments());
    const std::uint64_t others =
        saturating_add(Layout::slab_bytes_bound(options.fields, capacity, segments), slab_bytes(0));
    if (options.payload_bytes) {
      if (*options.payload_bytes < largest.bytes)
        throw_too_large("payload_bytes", largest, *options.payload_bytes, largest.bytes);
      limits.bytes = *options.payload_bytes;
    } else {
      const std::uint64_t quarter = options.staging_bytes / 4;
      limits.bytes =
          std::max(largest.bytes, std::min(most, quarter > others ? quarter - others : 0));
    }
    limits.slab_bytes = slab_bytes(limits.bytes);
    limits.always_fit = limits.bytes >= most;
    const std::uint64_t needed = saturating_add(others, limits.bytes);
    if (needed > options.staging_bytes)
      throw_too_large("staging_bytes", largest, options.staging_bytes, needed);
    return limits;
  }

  [[noreturn]] LANEPACK_COLD static void throw_too_large(const char* option,
                                                         const record_payload_bytes& largest,
                                                         std::uint64_t found,
                                                         std::uint64_t needed) {
    throw_invalid_option(option, std::to_string(found),
                         "at least " + std::to_string(needed) + ": record " +
                             std::to_string(largest.id) + " has payloads of " +
                             std::to_string(largest.bytes) + " bytes");
  }

  static ring_options ring_options_for(const loader_options& options,
                                       const payload_limits& payloads, std::uint64_t segments,
                                       std::uint64_t capacity) {
    ring_options ring;
    ring.slot_bytes = Layout::slab_bytes_bound(options.fields, capacity, segments) +
                      static_cast<std::size_t>(payloads.slab_bytes);
    ring.bytes_limit = options.staging_bytes;
    ring.slots_limit = options.prefetch_micro_batches;
    if (ring.slot_bytes > ring.bytes_limit) {
      throw_invalid_option("staging_bytes", std::to_string(options.staging_bytes),
                           "at least " + std::to_string(ring.slot_bytes) +
                               ", the bytes of a micro-batch of " + std::to_string(capacity) +
                               " tokens");
    }
    return ring;
  }

  /// A fixed number of micro-batches must not fail on one rank alone in the middle of a run, be it
  /// where a rank has a lane less or a pack fewer records.
  void check_worst_case(const corpus_summary& summary) const {
    if (!options_.micro_batches && options_.micro_batch_multiple == 1) return;
    if (!payloads_.always_fit) {
      throw_invalid_option(
          options_.micro_batches ? "micro_batches" : "micro_batch_multiple",
          std::to_string(options_.micro_batches.value_or(options_.micro_batch_multiple)),
          "none where payload_bytes = " + std::to_string(payloads_.bytes) +
              " may be too few for all payloads of a step, as how many micro-batches they take is "
              "then known when a step is planned");
    }
    std::set<std::uint32_t> sizes{options_.plan.records_per_pack};
    for (const pack_size_change& change : options_.plan.pack_size_changes) {
      sizes.insert(change.records_per_pack);
    }
    const std::uint32_t ranks = ownership_.world().size;
    for (const std::uint64_t size : sizes) {
      check_worst_case(summary, size * (ownership_.lanes() / ranks));
      if (ownership_.lanes() % ranks != 0) {
        check_worst_case(summary, size * ceil_div(ownership_.lanes(), ranks));
      }
    }
  }

  /// The same for the steps in which a rank has so many records.
  void check_worst_case(const corpus_summary& summary, std::uint64_t records) const {
    const worst_case_chunks worst = worst_case(summary, records);
    if (worst_case_fits_micro_batches(batcher_.options(), worst, batcher_.multiple())) return;
    const std::string wanted =
        options_.micro_batches ? std::to_string(*options_.micro_batches)
                               : "a multiple of " + std::to_string(options_.micro_batch_multiple);
    throw_invalid_option(
        options_.micro_batches ? "micro_batches" : "micro_batch_multiple", wanted,
        "a number that the worst step of policy " + options_.plan.policy +
            " fits: " + std::to_string(records) + " records of up to " +
            std::to_string(worst.uncut.largest_record) + " tokens, " +
            std::to_string(worst.uncut.total_tokens) + " in all, in micro-batches of " +
            std::to_string(capacity()) + " tokens, none of them empty" +
            (worst.chunks == 0 ? ""
                               : ", or " + std::to_string(worst.chunks) + " chunks among them") +
            "; a policy that plans all lanes could keep it with fewer");
  }

  /// The heaviest records of the corpus, as often as they can come in one step.
  [[nodiscard]] worst_case_chunks worst_case(const corpus_summary& summary,
                                             std::uint64_t records) const {
    const std::uint64_t n = feed_->sampler().fewest_epoch_records();
    // Where epochs are not drained one by one, a record can come again in the next epoch, and as
    // often as a lookahead spans epochs; padding repeats records too.
    const std::uint64_t span = saturating_mul(saturating_mul(ownership_.lanes(), records),
                                              std::uint64_t{2} * options_.plan.lookahead_steps);
    const bool once = options_.plan.rule == epoch_end::drop_last;
    // A small part of a mixture comes as often as its weight says.
    const std::uint64_t repeats = options_.plan.mixture ? records
                                  : once                ? 1
                                                        : 1 + ceil_div(span, n);
    worst_case_chunks worst;
    const auto add = [](worst_case_step& step, std::uint64_t count, std::uint64_t tokens) {
      step.records += count;
      step.largest_record = std::max(step.largest_record, tokens);
      step.total_tokens = saturating_add(step.total_tokens, saturating_mul(count, tokens));
    };
    std::uint64_t left = records;
    const std::vector<length_bucket> buckets = summary.histogram.buckets();
    for (std::size_t i = buckets.size(); i > 0; --i) {
      const length_bucket& bucket = buckets[i - 1];
      if (!feed_->selection().limits.keeps(bucket.first)) continue;
      const std::uint64_t longest = std::min(bucket.last, summary.max_tokens);
      const std::uint64_t kept = std::min(longest, capacity());
      // Every segment is padded; that there is room for it was checked.
      const std::uint64_t padding =
          (std::min(source_.most_segments(), kept) - 1) * (options_.fields.record_multiple - 1);
      const std::uint64_t tokens =
          std::min(traits::room(options_.fields, kept + padding), capacity());
      const std::uint64_t all = saturating_mul(bucket.records, repeats);
      const std::uint64_t count = std::min(left, all);
      left -= count;
      const bool cut = feed_->selection().limits.chunks() && longest > capacity();
      if (cut) {
        worst.cut_records += count;
        worst.chunks = saturating_add(
            worst.chunks,
            saturating_mul(count, ceil_div(traits::room(options_.fields, longest), capacity())));
      } else {
        add(worst.whole, count, tokens);
      }
      if (!cut || bucket.first <= capacity()) {
        add(worst.uncut, std::min(records - worst.uncut.records, all), tokens);
      }
    }
    // A corpus of too few records repeats them; one that is all cut has no such step.
    worst.uncut.records = worst.uncut.largest_record == 0 ? 0 : records;
    worst.whole.records = records - worst.cut_records;
    return worst;
  }

  void start() {
    if (stopping_) return;
    if (!planning_thread_.joinable()) planning_thread_ = std::thread([this] { plan_all(); });
    reading_thread_ = std::thread([this] { read_all(); });
  }

  /// Takes the next slot; what the background threads ended with is thrown here, once.
  [[nodiscard]] std::optional<typename ring_type::lease> take_slot() {
    try {
      return ring_.next();
    } catch (...) {
      failed_ = true;
      if (current_) current_->remaining = 0;
      throw;
    }
  }

  /// Returns the micro-batches of the last step that the trainer did not take.
  void pass_over_current() {
    if (!current_) return;
    while (current_->remaining != 0) {
      if (!take_slot()) break;
      --current_->remaining;
    }
    current_.reset();
  }

  [[nodiscard]] std::shared_ptr<step_state> pop_step() {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return !steps_.empty() || reading_ended_; };
    if (!ready()) {
      ++statistics_.step_waits;
      const auto start = std::chrono::steady_clock::now();
      step_ready_.wait(lock, ready);
      statistics_.step_wait_time += std::chrono::steady_clock::now() - start;
    }
    if (steps_.empty()) return nullptr;
    std::shared_ptr<step_state> state = std::move(steps_.front());
    steps_.pop_front();
    return state;
  }

  // Two threads work for the trainer's: one plans; the other reads, completes what it has read
  // while that is in the processor's caches, and hands it over.

  void plan_all() noexcept {
    std::exception_ptr failure;
    try {
      while (plan_some()) {
      }
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::scoped_lock lock(mutex_);
      planning_failure_ = std::move(failure);
      planning_ended_ = true;
    }
    job_ready_.notify_one();
  }

  void read_all() noexcept {
    std::exception_ptr failure;
    try {
      while (read_some()) {
      }
    } catch (...) {
      failure = std::current_exception();
    }
    fillings_.clear();
    // Nothing here refers to the exception any more once the trainer may have it.
    if (failure) {
      if (options_.on_failure) {
        try {
          options_.on_failure(failure);
        } catch (...) {  // The trainer gets the error that came first.
        }
      }
      ring_.fail(std::move(failure));
    } else {
      ring_.close();
    }
    {
      const std::scoped_lock lock(mutex_);
      reading_ended_ = true;
    }
    plan_wanted_.notify_one();
    step_ready_.notify_all();
  }

  /// Plans a step once few micro-batches are left to be read.
  /// @return  False at the end of the plan, or when the loader is stopped.
  bool plan_some() {
    {
      std::unique_lock lock(mutex_);
      if (jobs_.size() >= most_planned_ahead) planning_pauses_ = true;
      plan_wanted_.wait(lock, [this] { return !planning_pauses_ || reading_ended_ || stopping_; });
      if (reading_ended_ || stopping_) return false;
    }
    return plan_step();
  }

  /// Reads, completes and submits what is planned, into the slots that are free.
  /// @return  False at the end of the plan, or when the loader is stopped.
  /// @throws  what ended reading, or planning once everything planned before is submitted.
  bool read_some() {
    fillings_.clear();
    while (fillings_.size() < read_together_) {
      std::optional<typename ring_type::slot> slot =
          fillings_.empty() ? ring_.acquire() : ring_.try_acquire();
      if (!slot) break;
      std::optional<job> work = fillings_.empty() ? wait_for_job() : take_job();
      if (!work) break;
      fillings_.push_back({std::move(*work), std::move(*slot)});
    }
    if (fillings_.empty()) return false;
    read();
    for (filling& done : fillings_) complete(done);
    return ring_.submit(completed_);
  }

  /// The next micro-batch to be read; nullopt at the end of the plan, or when the loader is
  /// stopped.
  /// @throws  what ended planning.
  [[nodiscard]] std::optional<job> wait_for_job() {
    std::unique_lock lock(mutex_);
    job_ready_.wait(lock, [this] { return !jobs_.empty() || planning_ended_ || stopping_; });
    if (stopping_) return std::nullopt;
    if (!jobs_.empty()) return pop_job(lock);
    if (planning_failure_) std::rethrow_exception(std::exchange(planning_failure_, nullptr));
    return std::nullopt;
  }

  [[nodiscard]] std::optional<job> take_job() {
    std::unique_lock lock(mutex_);
    if (jobs_.empty()) return std::nullopt;
    return pop_job(lock);
  }

  [[nodiscard]] std::optional<job> pop_job(std::unique_lock<std::mutex>& lock) {
    std::optional<job> taken(std::move(jobs_.front()));
    jobs_.pop_front();
    const bool wake = planning_pauses_ && jobs_.size() <= fewest_planned_ahead;
    if (wake) planning_pauses_ = false;
    lock.unlock();
    if (wake) plan_wanted_.notify_one();
    return taken;
  }

  /// Completes a micro-batch that was read.
  void complete(filling& done) {
    const std::span<std::byte> slab = done.slot.bytes();
    job& work = done.work;
    if (options_.digests) digest(work, slab);
    if (const std::optional<record_chunk> chunk = work.chunk()) {
      work.layout.place_chunk({.prefix_tokens = chunk->prefix_tokens,
                               .predicts_next = !chunk->last() && work.next_mask != 0,
                               .next_token = work.next_token});
    }
    filled_slot<Layout>& out = slots_[done.slot.index()];
    out.view = work.layout.complete(slab);
    out.payloads = work.payloads.complete(slab);
    out.step = std::move(work.step);
    out.micro_batch = work.micro_batch;
    const std::size_t used = std::max(work.layout.slab_bytes(), work.payloads.slab_bytes());
    bytes_.fetch_add(used);
    completed_.add(std::move(done.slot), used);
  }

  /// Plans the next step, hands it to the trainer and queues its micro-batches.
  /// @return  False at the end of the run.
  bool plan_step() {
    // A policy with memory may have many steps to live through; somebody may want to stop
    // meanwhile.
    while (!planner_.pass_over(windows_between_looks)) {
      const std::scoped_lock lock(mutex_);
      if (stopping_ || reading_ended_) return false;
    }
    const std::optional<step_plan> plan = planner_.next();
    if (!plan) return false;
    auto state = std::make_shared<step_state>();
    state->step = plan->step;
    state->global = plan->global;
    state->after = planner_.state();
    rooms_.clear();
    costs_.clear();
    std::size_t count = 0;
    for (const pack_plan& pack : plan->packs) count += pack.records.size();
    state->records.reserve(count);
    state->roles.reserve(count);
    state->tokens.reserve(count);
    state->packs.reserve(plan->packs.size());
    for (const pack_plan& pack : plan->packs) {
      const std::size_t first = state->records.size();
      for (const candidate& record : pack.records) {
        state->records.push_back(record.record);
        state->roles.push_back(record.role);
        state->tokens.push_back(record.tokens);
        rooms_.push_back(traits::room(options_.fields, record.tokens));
        costs_.push_back(record.cost);
        state->planned.tokens += record.tokens;
        state->planned.loss_tokens += record.loss_tokens;
      }
      state->packs.push_back(
          {.lane = pack.lane, .cost = pack.cost, .first = first, .last = state->records.size()});
      state->cost += pack.cost;
    }
    state->planned.records = state->records.size();
    // All packs of a step have the same number of records, on every rank.
    state->expected_loss_tokens = feed_->expected_loss_tokens(
        options_.plan.lanes * std::uint64_t{plan->packs.front().records.size()});
    if (segmented()) plan_segments(*state);
    if (!payloads_.none()) plan_payloads(*state);
    batcher_.form(rooms_, state->micro_batches, state->chunks, costs_);
    state->remaining = state->micro_batches.size();
    if (options_.digests) state->record_digests.resize(state->records.size());
    planned_.clear();
    for (std::size_t i = 0; i < state->micro_batches.size(); ++i) {
      lengths_.clear();
      if (segmented()) {
        lay_segments(*state, i);
      } else {
        for (const std::uint32_t record : state->micro_batches[i]) {
          lengths_.push_back(state->tokens[record]);
        }
      }
      if (i < state->chunks.size()) {
        // Micro-batches are formed of padded records.
        record_chunk& chunk = state->chunks[i];
        chunk.tokens = std::min(chunk.tokens, lengths_.front() - chunk.prefix_tokens);
        lengths_.front() = chunk.tokens;
      }
      Layout layout(options_.fields, lengths_);
      if constexpr (!traits::rows) {
        if (segmented()) layout.count_records(state->micro_batches[i].size());
      }
      const std::span<const std::uint32_t> records = state->records_of_segments(i);
      for (std::size_t k = 0; k < lengths_.size(); ++k) {
        if (state->roles[records[k]] == record_role::masked) layout.mask_record(k);
      }
      state->planned.padding_tokens += layout_padding(layout, lengths_);
      payload_layout payloads;
      if (!payloads_.none()) payloads = lay_payloads(*state, i, layout.slab_bytes());
      planned_.push_back({state, i, std::move(layout), std::move(payloads)});
    }
    {
      const std::scoped_lock lock(mutex_);
      for (job& work : planned_) jobs_.push_back(std::move(work));
      steps_.push_back(std::move(state));
    }
    step_ready_.notify_one();
    job_ready_.notify_one();
    return true;
  }

  /// Looks up the segments of a step's records, as they are delivered, and gives a record the room
  /// that they take together.
  void plan_segments(const step_state& step) {
    whole_segments_.clear();
    segments_.clear();
    ids_.clear();
    for (const record_ref& record : step.records) ids_.push_back(record.id);
    source_.segments(ids_, whole_segments_);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      segments_.add_first(whole_segments_[i], step.tokens[i]);
      std::uint64_t tokens = 0;
      rooms_[i] = 0;
      for (const std::uint64_t length : segments_[i]) {
        tokens += length;
        rooms_[i] += traits::room(options_.fields, length);
      }
      if (tokens != step.tokens[i] || segments_[i].size() > source_.most_segments()) {
        throw_data_error(
            {.path = source_.describe(), .byte_offset = {}, .record = ids_[i], .line = {}},
            "found " + std::to_string(segments_[i].size()) + " segments of " +
                std::to_string(tokens) + " tokens together, expected at most " +
                std::to_string(source_.most_segments()) + " of " + std::to_string(step.tokens[i]) +
                " as its shape says");
      }
    }
  }

  /// Puts the segments of a micro-batch into `lengths_` and the step.
  void lay_segments(step_state& step, std::size_t index) {
    if (step.first_segment.empty()) step.first_segment.push_back(0);
    for (const std::uint32_t record : step.micro_batches[index]) {
      for (const std::uint64_t tokens : segments_[record]) {
        lengths_.push_back(tokens);
        step.segment_records.push_back(record);
      }
    }
    step.first_segment.push_back(step.segment_records.size());
  }

  /// Looks up the payloads of a step's records and gives a record room by its bytes where they fill
  /// a larger part of a micro-batch than its tokens do: what fits the capacity then fits in both.
  void plan_payloads(const step_state& step) {
    const std::size_t records = step.records.size();
    ids_.clear();
    for (const record_ref& record : step.records) ids_.push_back(record.id);
    shapes_.resize(payloads_.names->size() * records);
    for (std::size_t p = 0; p < payloads_.names->size(); ++p) {
      source_.payload_shapes(p, ids_, std::span(shapes_).subspan(p * records, records));
    }
    for (std::size_t i = 0; i < records; ++i) {
      std::uint64_t bytes = 0;
      for (std::size_t p = 0; p < payloads_.names->size(); ++p) {
        bytes = saturating_add(bytes, shapes_[p * records + i].bytes());
      }
      if (bytes > payloads_.bytes) throw_unexpected_payload(ids_[i], bytes);
      if (payloads_.always_fit || bytes == 0) continue;
      const uint128 scaled = static_cast<uint128>(bytes) * capacity();
      const auto room =
          static_cast<std::uint64_t>((scaled + payloads_.bytes - 1) / payloads_.bytes);
      rooms_[i] = std::max(rooms_[i], room);
    }
  }

  [[noreturn]] LANEPACK_COLD void throw_unexpected_payload(record_id id,
                                                           std::uint64_t bytes) const {
    throw_data_error({.path = source_.describe(), .byte_offset = {}, .record = id, .line = {}},
                     "found payloads of " + std::to_string(bytes) + " bytes, expected at most " +
                         std::to_string(payloads_.bytes) + ", what a micro-batch has room for");
  }

  [[nodiscard]] payload_layout lay_payloads(const step_state& step, std::size_t index,
                                            std::size_t first_byte) const {
    const std::span<const std::uint32_t> records = step.micro_batches[index];
    const std::optional<record_chunk> chunk = step.chunk(index);
    std::vector<payload_shape> shapes(payloads_.names->size() * records.size());
    if (!chunk || chunk->index == 0) {
      for (std::size_t p = 0; p < payloads_.names->size(); ++p) {
        for (std::size_t k = 0; k < records.size(); ++k) {
          shapes[p * records.size() + k] = shapes_[p * step.records.size() + records[k]];
        }
      }
    }
    return payload_layout(payloads_.names, std::move(shapes), records.size(), first_byte);
  }

  static std::uint64_t layout_padding(const Layout& layout,
                                      std::span<const std::uint64_t> lengths) noexcept {
    std::uint64_t total = 0;
    if constexpr (traits::rows) {
      total = static_cast<std::uint64_t>(layout.rows()) * layout.width();
    } else {
      total = layout.total_tokens();
    }
    for (const std::uint64_t length : lengths) total -= length;
    return total;
  }

  void read() {
    reads_.clear();
    for (filling& target : fillings_) {
      const std::span<std::byte> slab = target.slot.bytes();
      const std::span<const std::uint32_t> records =
          target.work.step->records_of_segments(target.work.micro_batch);
      const std::optional<record_chunk> chunk = target.work.chunk();
      std::uint64_t first_token = chunk ? chunk->prefix_tokens : 0;
      for (std::size_t k = 0; k < records.size(); ++k) {
        const std::span<std::int32_t> tokens = target.work.layout.token_span(slab, k);
        reads_.push_back({.id = target.work.step->records[records[k]].id,
                          .first_token = first_token,
                          .tokens = tokens,
                          .loss_mask = target.work.layout.mask_span(slab, k)});
        const bool goes_on = k + 1 < records.size() && records[k + 1] == records[k];
        first_token = goes_on ? first_token + tokens.size() : 0;
      }
      if (chunk && !chunk->last()) {
        reads_.push_back({.id = reads_.back().id,
                          .first_token = chunk->prefix_tokens + chunk->tokens,
                          .tokens = {&target.work.next_token, 1},
                          .loss_mask = {&target.work.next_mask,
                                        options_.fields.reads_loss_mask ? std::size_t{1} : 0}});
      }
    }
    try {
      source_.read(reads_);
      if (!payloads_.none()) read_payloads();
    } catch (const file_changed&) {
      throw;
    } catch (const data_error&) {
      if (options_.bad_records == bad_record_policy::fail) throw;
      read_one_by_one();
    }
  }

  void read_payloads() {
    payload_reads_.clear();
    for (filling& target : fillings_) {
      const std::size_t records = target.work.step->micro_batches[target.work.micro_batch].size();
      const std::vector<std::span<std::byte>> spans =
          target.work.payloads.spans(target.slot.bytes());
      for (std::size_t k = 0; k < records; ++k) add_payload_reads(target.work, spans, k);
    }
    source_.read_payloads(payload_reads_);
  }

  /// Adds the reads of one record of a micro-batch.
  void add_payload_reads(const job& work, std::span<const std::span<std::byte>> spans,
                         std::size_t record) {
    const std::span<const std::uint32_t> records = work.step->micro_batches[work.micro_batch];
    for (std::size_t p = 0; p < work.payloads.payloads(); ++p) {
      const std::span<std::byte> bytes = spans[p * records.size() + record];
      if (bytes.empty()) continue;
      payload_reads_.push_back(
          {.id = work.step->records[records[record]].id, .payload = p, .bytes = bytes});
    }
  }

  /// The first segment after those of the record of segment `first`.
  [[nodiscard]] static std::size_t end_of_record(std::span<const std::uint32_t> records,
                                                 std::size_t first) noexcept {
    std::size_t end = first + 1;
    while (end < records.size() && records[end] == records[first]) ++end;
    return end;
  }

  /// Reads again what could not be read together, and masks the records that are bad.
  void read_one_by_one() {
    std::size_t at = 0;
    for (filling& target : fillings_) {
      const std::span<const std::uint32_t> records =
          target.work.step->records_of_segments(target.work.micro_batch);
      const std::optional<record_chunk> chunk = target.work.chunk();
      std::vector<std::span<std::byte>> spans;
      if (!payloads_.none()) spans = target.work.payloads.spans(target.slot.bytes());
      std::size_t record = 0;
      std::size_t next = 0;
      for (std::size_t k = 0; k < records.size(); k = next, ++record) {
        next = end_of_record(records, k);
        const std::size_t reads = next - k + (chunk && !chunk->last() ? 1 : 0);
        payload_reads_.clear();
        if (!payloads_.none()) add_payload_reads(target.work, spans, record);
        try {
          source_.read(std::span<const record_read>(reads_).subspan(at, reads));
          if (!payload_reads_.empty()) source_.read_payloads(payload_reads_);
        } catch (const file_changed&) {
          throw;
        } catch (const data_error&) {
          for (std::size_t segment = k; segment < next; ++segment) {
            const record_read& bad = reads_[at + segment - k];
            std::fill(bad.tokens.begin(), bad.tokens.end(), options_.fields.pad_token);
            std::fill(bad.loss_mask.begin(), bad.loss_mask.end(), std::uint8_t{0});
            target.work.layout.mask_record(segment);
          }
          for (const payload_read& read : payload_reads_) {
            std::fill(read.bytes.begin(), read.bytes.end(), std::byte{0});
          }
          masked_records_.fetch_add(1);
        }
        at += reads;
      }
    }
  }

  /// Digests the records of a micro-batch, and the packs with the step's last one.
  void digest(const job& work, std::span<std::byte> slab) {
    step_state& step = *work.step;
    const std::span<const std::uint32_t> records = step.records_of_segments(work.micro_batch);
    const std::size_t count = step.micro_batches[work.micro_batch].size();
    const std::optional<record_chunk> chunk = work.chunk();
    std::vector<std::span<std::byte>> spans;
    if (!payloads_.none()) spans = work.payloads.spans(slab);
    std::size_t next = 0;
    for (std::size_t k = 0, record = 0; k < records.size(); k = next, ++record) {
      next = end_of_record(records, k);
      // The chunks of a record follow each other, so one builder goes through them.
      if (!chunk || chunk->index == 0) {
        record_digest_ = digest_builder();
        if (!payloads_.none()) payload_digest_ = digest_payloads(work, spans, record, count);
      }
      for (std::size_t segment = k; segment < next; ++segment) {
        const std::span<const std::int32_t> tokens = work.layout.token_span(slab, segment);
        record_digest_.bytes(std::as_bytes(tokens));
        // Of one sequence the pack's digest has the length.
        if (next - k > 1) record_digest_.number(tokens.size());
      }
      if (!payloads_.none() && (!chunk || chunk->last())) record_digest_.digest(payload_digest_);
      step.record_digests[records[k]] = record_digest_.value();
    }
    if (work.micro_batch + 1 != step.micro_batches.size()) return;
    for (const delivered_pack& pack : step.packs) {
      digest_builder builder;
      builder.number(pack.last - pack.first);
      for (std::size_t i = pack.first; i < pack.last; ++i) {
        builder.number(step.records[i].epoch);
        builder.number(step.records[i].id);
        builder.number(step.tokens[i]);
        builder.digest(step.record_digests[i]);
      }
      step.pack_digests.push_back(builder.value());
    }
  }

  /// Over names, shapes and bytes of what a record carries.
  [[nodiscard]] digest128 digest_payloads(const job& work,
                                          std::span<const std::span<std::byte>> spans,
                                          std::size_t record, std::size_t records) const {
    digest_builder builder;
    for (std::size_t p = 0; p < work.payloads.payloads(); ++p) {
      builder.text((*payloads_.names)[p]);
      digest_shape(builder, work.payloads.shape(p, record));
      builder.bytes(spans[p * records + record]);
    }
    return builder.value();
  }

  const fork_guard guard_;
  const loader_options options_;
  const any_source source_;
  const lane_ownership ownership_;
  const std::shared_ptr<const candidate_feed> feed_;
  planner planner_;
  chunked_micro_batcher batcher_;
  const payload_limits payloads_;
  ring_type ring_;
  /// What stands in each slot of the ring; owned by whoever holds the slot.
  std::vector<filled_slot<Layout>> slots_;

  // Of the trainer's thread: what `properties_of_run` says while so many sections of the mixture
  // matter.
  mutable std::vector<run_property> run_;
  mutable std::size_t run_sections_ = 0;

  // Of the planning thread, with planner_ and batcher_.
  std::vector<std::uint64_t> rooms_;
  std::vector<std::uint64_t> costs_;
  std::vector<std::uint64_t> lengths_;
  std::vector<record_id> ids_;
  /// Of the step's records, where they may have several: all, and what is delivered.
  segment_lists whole_segments_;
  segment_lists segments_;
  /// Of payload p of record i of the step that is being planned, at p x records + i.
  std::vector<payload_shape> shapes_;
  std::vector<job> planned_;

  // Of the reading thread.
  std::size_t read_together_ = 1;
  std::vector<filling> fillings_;
  std::vector<record_read> reads_;
  typename ring_type::batch completed_;
  std::vector<payload_read> payload_reads_;
  digest_builder record_digest_;
  digest128 payload_digest_;
  std::atomic<std::uint64_t> masked_records_{0};
  std::atomic<std::uint64_t> bytes_{0};

  // Shared by all threads.
  mutable std::mutex mutex_;
  std::condition_variable step_ready_;
  std::condition_variable job_ready_;
  std::condition_variable plan_wanted_;
  std::deque<std::shared_ptr<step_state>> steps_;
  std::deque<job> jobs_;
  bool planning_pauses_ = false;
  bool planning_ended_ = false;
  bool reading_ended_ = false;
  bool stopping_ = false;
  /// What ended planning.
  std::exception_ptr planning_failure_;

  // Of the trainer's thread.
  std::thread planning_thread_;
  std::thread reading_thread_;
  std::shared_ptr<step_state> current_;
  std::shared_ptr<const run_state> stands_at_;
  bool failed_ = false;
  bool finished_ = false;
  loader_statistics statistics_;
};

/// Checks the options and makes the state of a loader.
template <class Layout>
std::shared_ptr<loader_state<Layout>> make_loader_state(
    any_source source, const world& where, loader_options options, const any_estimator& estimator,
    const std::optional<corpus_summary>& summary) {
  validate(options.plan);
  const lane_ownership ownership(options.plan.lanes, where, options.uneven);
  const auto build = [&](const corpus_summary& known) {
    return new loader_state<Layout>(std::move(source), ownership, std::move(options), estimator,
                                    known);
  };
  // A forked child must not join a thread that it does not have.
  const auto destroy = [](loader_state<Layout>* gone) {
    if (!gone->guard().in_child()) delete gone;
  };
  if (summary) return {build(*summary), destroy};
  return {source.unindexed() != nullptr ? build({}) : build(summarize(source)), destroy};
}

}  // namespace detail

template <class Layout>
basic_loader<Layout>::basic_loader(any_source source, const world& where, loader_options options,
                                   any_estimator estimator,
                                   const std::optional<corpus_summary>& summary)
    : state_(detail::make_loader_state<Layout>(std::move(source), where, std::move(options),
                                               estimator, summary)) {}

template <class Layout>
basic_loader<Layout>& basic_loader<Layout>::operator=(basic_loader&& other) noexcept {
  if (this == &other) return *this;
  if (state_) state_->stop();
  state_ = std::move(other.state_);
  return *this;
}

template <class Layout>
basic_loader<Layout>::~basic_loader() {
  if (state_) state_->stop();
}

template <class Layout>
std::optional<loaded_step<Layout>> basic_loader<Layout>::next() {
  return state_->next_step();
}

template <class Layout>
std::optional<std::uint64_t> basic_loader<Layout>::steps() const {
  return state_->feed().sampler().schedule().steps();
}

template <class Layout>
const record_selection& basic_loader<Layout>::selection() const noexcept {
  return state_->feed().selection();
}

template <class Layout>
std::optional<schedule_counts> basic_loader<Layout>::schedule() const {
  return state_->feed().sampler().schedule().counts();
}

template <class Layout>
lane_range basic_loader<Layout>::lanes() const noexcept {
  return state_->ownership().owned();
}

template <class Layout>
run_state basic_loader<Layout>::state() const {
  return state_->state();
}

template <class Layout>
loader_statistics basic_loader<Layout>::statistics() const {
  return state_->statistics();
}

}  // namespace lanepack::inline LANEPACK_ABI
