#pragma once

/// @file
/// `loader`: the whole path from a corpus to this rank's micro-batches in host memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <lanepack/batch/padded.hpp>
#include <lanepack/batch/thd.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/loader/options.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/loader/step.hpp>
#include <lanepack/sampler/schedule_options.hpp>
#include <lanepack/topology/lane_ownership.hpp>
#include <lanepack/topology/world.hpp>

namespace lanepack::inline LANEPACK_ABI {

struct loader_statistics;
struct record_selection;

/// Feeds this rank's part of every step, reading and completing micro-batches ahead on one
/// background thread while another one plans the steps to come.
///
/// `for (auto&& step : loader) for (auto&& micro_batch : step) ...`; every step has exactly
/// `records_per_pack` records for each lane that this rank owns, and its micro-batches stay within
/// the capacity. Ranks never talk to each other: the same options give every rank its part of the
/// same plan.
///
/// The threads start with the first `next()`. Memory is bounded by `staging_bytes`, the plan of a
/// window for each lane of this rank, and the index of the corpus.
/// @thread_safety  None: one thread uses the loader, its steps and its micro-batches. In a forked
///                 child every call throws state_error.
/// @determinism    Packs depend on corpus, estimator and plan options alone; how a rank's records
///                 are cut into micro-batches depends on its lanes too.
template <class Layout>
class basic_loader {
 public:
  using step = loaded_step<Layout>;
  using micro_batch = leased_micro_batch<Layout>;
  class iterator;

  /// @param source     The corpus.
  /// @param where      This rank and the number of ranks.
  /// @param estimator  What a record costs.
  /// @param summary    The corpus's summary; without one the index is read through once.
  /// @throws  invalid_option naming the field, data_error where the limits forbid a record, or
  ///          state_error where `resume_from` is of another run, naming what differs, or lacks
  ///          lanes of this rank.
  basic_loader(any_source source, const world& where, loader_options options,
               any_estimator estimator = default_cost(),
               const std::optional<corpus_summary>& summary = std::nullopt);

  basic_loader(basic_loader&&) noexcept = default;
  basic_loader& operator=(basic_loader&& other) noexcept;
  /// Ends the threads. Micro-batches that are still held stay readable.
  ~basic_loader();

  /// The next step of the run; nullopt after the last.
  ///
  /// Micro-batches of the step before that were not taken are passed over.
  /// @pre     Micro-batches that are still held leave a slot free, otherwise deadlock.
  /// @throws  what ended the run on a background thread, once; afterwards state_error.
  [[nodiscard]] std::optional<step> next();

  [[nodiscard]] iterator begin() { return iterator(this); }
  [[nodiscard]] iterator end() noexcept { return iterator(nullptr); }

  /// Steps of the whole run, or nullopt where it is endless.
  [[nodiscard]] std::optional<std::uint64_t> steps() const;
  /// Which records take part, and what the limits did to the others.
  [[nodiscard]] const record_selection& selection() const noexcept;
  /// What the run emits, repeats and drops over all ranks; nullopt where it is endless.
  [[nodiscard]] std::optional<schedule_counts> schedule() const;
  /// The lanes of this rank.
  [[nodiscard]] lane_range lanes() const noexcept;
  /// Waits, what is queued, bytes, and the predicted cost of the steps that are planned ahead.
  /// @complexity  O(steps planned ahead): cheap enough for every step.
  [[nodiscard]] loader_statistics statistics() const;
  /// As `step.state()` of the last step that was handed out; where the run begins, before.
  [[nodiscard]] run_state state() const;

  /// Single-pass iterator over the steps; it holds the current one.
  class iterator {
   public:
    [[nodiscard]] step& operator*() noexcept { return *current_; }
    [[nodiscard]] step* operator->() noexcept { return &*current_; }
    iterator& operator++() {
      current_ = loader_->next();
      if (!current_) loader_ = nullptr;
      return *this;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.loader_ == b.loader_;
    }

   private:
    friend class basic_loader;
    explicit iterator(basic_loader* loader) : loader_(loader) {
      if (loader_ == nullptr) return;
      current_ = loader_->next();
      if (!current_) loader_ = nullptr;
    }
    basic_loader* loader_;
    std::optional<step> current_;
  };

 private:
  std::shared_ptr<detail::loader_state<Layout>> state_;
};

/// Micro-batches in one row with `cu_seqlens`, as varlen attention takes them.
using loader = basic_loader<thd_layout>;
/// Micro-batches with one padded row per record.
using padded_loader = basic_loader<padded_layout>;

#if LANEPACK_COMPILED
extern template class basic_loader<thd_layout>;
extern template class basic_loader<padded_layout>;
#endif

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/loader/loader.ipp>
#endif
