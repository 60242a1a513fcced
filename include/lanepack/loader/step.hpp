#pragma once

/// @file
/// What a loader hands to the trainer: steps, and their micro-batches one by one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <lanepack/batch/layout_options.hpp>
#include <lanepack/batch/padded.hpp>
#include <lanepack/batch/payloads.hpp>
#include <lanepack/batch/thd.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/device/ring_lease.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/loader/step_counts.hpp>
#include <lanepack/packer/record_chunk.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a loader has to know of a layout.
template <class Layout>
struct layout_traits;

template <>
struct layout_traits<thd_layout> {
  using view = micro_batch_view;
  static constexpr bool rows = false;

  /// Tokens that a record takes in a micro-batch.
  [[nodiscard]] static std::uint64_t room(const layout_options& options,
                                          std::uint64_t tokens) noexcept {
    return round_up(tokens, options.record_multiple);
  }
};

template <>
struct layout_traits<padded_layout> {
  using view = padded_view;
  static constexpr bool rows = true;

  /// Tokens that a row takes at most if no other row of its micro-batch is longer.
  [[nodiscard]] static std::uint64_t room(const layout_options& options,
                                          std::uint64_t tokens) noexcept {
    return round_up(tokens, std::lcm<std::uint64_t, std::uint64_t>(options.record_multiple,
                                                                   options.total_multiple));
  }
};

/// A pack of a step as the trainer sees it.
struct delivered_pack {
  lane_index lane = 0;
  /// Sum of its records' estimated costs.
  std::uint64_t cost = 0;
  /// Its records: [first, last) of the step's `records()`.
  std::size_t first = 0;
  std::size_t last = 0;
};

class host_backend;

namespace detail {

struct step_state;

template <class Layout>
struct filled_slot;

template <class Layout>
class loader_state;

}  // namespace detail

/// A micro-batch in host memory and the right to read it; its fields are those of the layout's
/// view.
///
/// Moving it keeps spans valid. Going out of scope returns the slot to the loader.
/// @thread_safety  None: one thread per object.
template <class Layout>
class leased_micro_batch : public layout_traits<Layout>::view {
 public:
  using view_type = typename layout_traits<Layout>::view;

  /// The record of each segment or row: indices into the step's `records()`. A record of several
  /// segments comes as often as it has segments, in a row.
  [[nodiscard]] std::span<const std::uint32_t> record_indices() const noexcept;
  /// (epoch, id) of one of the records.
  /// @param segment  Below the size of `record_indices()`.
  [[nodiscard]] record_ref record(std::size_t segment) const noexcept;
  /// Which part of its only record this micro-batch holds; nullopt where records are whole. The
  /// chunks of a record stand in consecutive micro-batches, first to last.
  [[nodiscard]] std::optional<record_chunk> chunk() const noexcept;
  /// What the records carry beside their tokens, a record after the other, however many segments
  /// they have; none where the source has no payloads. Of a record
  /// that is cut, the first chunk has them.
  [[nodiscard]] const batch_payloads& payloads() const noexcept { return payloads_; }
  /// As `loaded_step::expected_loss_tokens`.
  [[nodiscard]] std::uint64_t expected_loss_tokens() const noexcept;
  /// Number of this micro-batch in its step.
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  /// The step it belongs to.
  [[nodiscard]] step_index step() const noexcept;

  /// Returns the slot now; spans must not be used any more.
  void release() { lease_.release(); }

 private:
  friend class detail::loader_state<Layout>;
  leased_micro_batch(const detail::filled_slot<Layout>& from, ring_lease<host_backend> lease);

  ring_lease<host_backend> lease_;
  std::shared_ptr<const detail::step_state> step_;
  std::size_t index_;
  batch_payloads payloads_;
};

/// One step of this rank: its packs, its counts, and its micro-batches in order.
///
/// A range: `for (auto&& micro_batch : step)` takes the micro-batches one by one, heaviest first.
/// Those that were not taken when the loader is asked for the next step are passed over.
/// @thread_safety  None: the thread that uses the loader.
template <class Layout>
class loaded_step {
 public:
  using micro_batch = leased_micro_batch<Layout>;
  class iterator;

  /// Number of the step in the run.
  [[nodiscard]] step_index number() const noexcept;
  /// Packs of this rank's lanes, by lane.
  [[nodiscard]] std::span<const delivered_pack> packs() const noexcept;
  /// Records of all packs, one pack after the other.
  [[nodiscard]] std::span<const record_ref> records() const noexcept;
  /// Tokens that are delivered of each record, before padding.
  [[nodiscard]] std::span<const std::uint64_t> record_tokens() const noexcept;
  /// Why each record is in the step.
  [[nodiscard]] std::span<const record_role> roles() const noexcept;
  /// Micro-batches of this rank in this step.
  [[nodiscard]] std::size_t micro_batches() const noexcept;
  /// Records, tokens and loss tokens of this rank as planned. Loss tokens are an upper bound where
  /// records with a loss mask were truncated; micro-batches count exactly.
  [[nodiscard]] const batch_counts& planned() const noexcept;
  /// Records, tokens and loss tokens of the step over all ranks, as planned: the same on every
  /// rank, no all-reduce needed. Known where the policy plans all lanes (`replicated`), else
  /// nullopt.
  [[nodiscard]] const std::optional<global_step_counts>& global_counts() const noexcept;
  /// Estimated cost of this rank's records.
  [[nodiscard]] std::uint64_t cost() const noexcept;
  /// Loss tokens that a step of so many records has on average over all ranks, at least 1: a
  /// constant normaliser of the loss, the same on every rank and in every step with as many records
  /// (tokens where the corpus has no loss tokens).
  ///
  /// A policy puts long records together in some steps. A loss that is divided by the loss tokens
  /// of its own step then gives a token less weight in such a step; divided by this constant, every
  /// token of the run weighs the same. Sum the loss over the tokens of a micro-batch, divide it by
  /// this number, accumulate gradients over micro-batches and sum them over ranks; where a
  /// framework averages over ranks instead, multiply by the number of ranks. Ranks need no message
  /// for it.
  [[nodiscard]] std::uint64_t expected_loss_tokens() const noexcept;

  /// The next micro-batch, waiting for it to be read; nullopt after the last.
  /// @throws  what ended the run on a background thread, once; the loader is then closed.
  [[nodiscard]] std::optional<micro_batch> next();

  /// Digests of the packs over (epoch, id), boundaries, token bytes and payloads, in the order of
  /// `packs()`.
  /// @throws  state_error before the last micro-batch was taken, or if the loader was not asked for
  ///          digests.
  [[nodiscard]] std::span<const digest128> pack_digests() const;
  /// Digests of the token bytes of the records, and of names, shapes and bytes of their payloads
  /// where the source has any, in the order of `records()`.
  /// @throws  as `pack_digests`.
  [[nodiscard]] std::span<const digest128> record_digests() const;

  /// Where the run stands once this step is done, for `loader_options::resume_from`.
  ///
  /// It does not matter how far the loader has read ahead. Under `calendar` it holds what this
  /// rank's lanes need, and the states of all ranks have to be merged; under other policies every
  /// rank has the same.
  /// @complexity  A copy of a few numbers, and of 16 bytes for each record that this rank's lanes
  ///              hold.
  [[nodiscard]] run_state state() const;

  [[nodiscard]] iterator begin() { return iterator(this); }
  [[nodiscard]] iterator end() noexcept { return iterator(nullptr); }

  /// Single-pass iterator over the micro-batches; it holds the current one.
  class iterator {
   public:
    [[nodiscard]] micro_batch& operator*() noexcept { return *current_; }
    [[nodiscard]] micro_batch* operator->() noexcept { return &*current_; }
    iterator& operator++() {
      // The slot goes back before the next one is awaited, so that a ring of one slot suffices.
      current_.reset();
      current_ = step_->next();
      if (!current_) step_ = nullptr;
      return *this;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.step_ == b.step_;
    }

   private:
    friend class loaded_step;
    explicit iterator(loaded_step* step) : step_(step) {
      if (step_ == nullptr) return;
      current_ = step_->next();
      if (!current_) step_ = nullptr;
    }
    loaded_step* step_;
    std::optional<micro_batch> current_;
  };

 private:
  friend class detail::loader_state<Layout>;
  loaded_step(std::shared_ptr<detail::loader_state<Layout>> owner,
              std::shared_ptr<detail::step_state> state)
      : owner_(std::move(owner)), state_(std::move(state)) {}

  std::shared_ptr<detail::loader_state<Layout>> owner_;
  std::shared_ptr<detail::step_state> state_;
};

#if LANEPACK_COMPILED
extern template class leased_micro_batch<thd_layout>;
extern template class leased_micro_batch<padded_layout>;
extern template class loaded_step<thd_layout>;
extern template class loaded_step<padded_layout>;
#endif

}  // namespace lanepack::inline LANEPACK_ABI

#if !LANEPACK_COMPILED
#include <lanepack/loader/step.ipp>
#endif
