#pragma once

/// @file
/// The bodies of the functions in step.hpp, and what a step is made of.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/batch/payloads.hpp>
#include <lanepack/batch/thd.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/staging_ring.hpp>
#include <lanepack/loader/run_state.hpp>
#include <lanepack/loader/step.hpp>
#include <lanepack/loader/step_counts.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/packer/record_chunk.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// A step on its way from the background threads to the trainer.
struct step_state {
  step_index step = 0;
  /// By lane, then in pack order.
  std::vector<record_ref> records;
  std::vector<record_role> roles;
  std::vector<std::uint64_t> tokens;
  std::vector<delivered_pack> packs;
  micro_batch_list micro_batches;
  /// Where records may have several segments: the record of every segment, one micro-batch after
  /// the other, and where each micro-batch begins; else empty.
  std::vector<std::uint32_t> segment_records;
  std::vector<std::size_t> first_segment;
  /// The chunks in the first micro-batches, where records are cut.
  std::vector<record_chunk> chunks;
  batch_counts planned;
  std::optional<global_step_counts> global;
  std::uint64_t cost = 0;
  std::uint64_t expected_loss_tokens = 1;
  /// Where the lanes stand after the step; `run` is left empty.
  run_state after;
  /// Written by a background thread until the last micro-batch is submitted.
  std::vector<digest128> record_digests;
  std::vector<digest128> pack_digests;
  /// Micro-batches that the trainer has not taken; only its thread uses this.
  std::size_t remaining = 0;

  /// The record of every segment of a micro-batch.
  [[nodiscard]] std::span<const std::uint32_t> records_of_segments(
      std::size_t micro_batch) const noexcept {
    if (first_segment.empty()) return micro_batches[micro_batch];
    return std::span(segment_records)
        .subspan(first_segment[micro_batch],
                 first_segment[micro_batch + 1] - first_segment[micro_batch]);
  }

  /// What a micro-batch holds of its record where that is cut.
  [[nodiscard]] std::optional<record_chunk> chunk(std::size_t micro_batch) const noexcept {
    if (micro_batch >= chunks.size()) return std::nullopt;
    return chunks[micro_batch];
  }

  /// Throws unless the digests are complete.
  void check_digests() const {
    if (remaining != 0) {
      throw_state_error("digests of step " + std::to_string(step) +
                        " are known after its last micro-batch; found " +
                        std::to_string(remaining) + " not taken");
    }
    if (pack_digests.empty()) {
      throw_state_error("the loader was not asked for digests: loader_options::digests");
    }
  }
};

/// A micro-batch in a slot.
template <class Layout>
struct filled_slot {
  typename layout_traits<Layout>::view view;
  batch_payloads payloads;
  std::shared_ptr<const step_state> step;
  std::size_t micro_batch = 0;
};

}  // namespace detail

template <class Layout>
std::span<const std::uint32_t> leased_micro_batch<Layout>::record_indices() const noexcept {
  return step_->records_of_segments(index_);
}

template <class Layout>
record_ref leased_micro_batch<Layout>::record(std::size_t segment) const noexcept {
  return step_->records[record_indices()[segment]];
}

template <class Layout>
std::optional<record_chunk> leased_micro_batch<Layout>::chunk() const noexcept {
  return step_->chunk(index_);
}

template <class Layout>
std::uint64_t leased_micro_batch<Layout>::expected_loss_tokens() const noexcept {
  return step_->expected_loss_tokens;
}

template <class Layout>
step_index leased_micro_batch<Layout>::step() const noexcept {
  return step_->step;
}

template <class Layout>
leased_micro_batch<Layout>::leased_micro_batch(const detail::filled_slot<Layout>& from,
                                               ring_lease<host_backend> lease)
    : view_type(from.view),
      lease_(std::move(lease)),
      step_(from.step),
      index_(from.micro_batch),
      payloads_(from.payloads) {}

template <class Layout>
step_index loaded_step<Layout>::number() const noexcept {
  return state_->step;
}

template <class Layout>
std::span<const delivered_pack> loaded_step<Layout>::packs() const noexcept {
  return state_->packs;
}

template <class Layout>
std::span<const record_ref> loaded_step<Layout>::records() const noexcept {
  return state_->records;
}

template <class Layout>
std::span<const std::uint64_t> loaded_step<Layout>::record_tokens() const noexcept {
  return state_->tokens;
}

template <class Layout>
std::span<const record_role> loaded_step<Layout>::roles() const noexcept {
  return state_->roles;
}

template <class Layout>
std::size_t loaded_step<Layout>::micro_batches() const noexcept {
  return state_->micro_batches.size();
}

template <class Layout>
const batch_counts& loaded_step<Layout>::planned() const noexcept {
  return state_->planned;
}

template <class Layout>
const std::optional<global_step_counts>& loaded_step<Layout>::global_counts() const noexcept {
  return state_->global;
}

template <class Layout>
std::uint64_t loaded_step<Layout>::cost() const noexcept {
  return state_->cost;
}

template <class Layout>
std::uint64_t loaded_step<Layout>::expected_loss_tokens() const noexcept {
  return state_->expected_loss_tokens;
}

template <class Layout>
run_state loaded_step<Layout>::state() const {
  return owner_->with_properties(state_->after);
}

template <class Layout>
std::optional<leased_micro_batch<Layout>> loaded_step<Layout>::next() {
  return owner_->next_micro_batch(*state_);
}

template <class Layout>
std::span<const digest128> loaded_step<Layout>::pack_digests() const {
  state_->check_digests();
  return state_->pack_digests;
}

template <class Layout>
std::span<const digest128> loaded_step<Layout>::record_digests() const {
  state_->check_digests();
  return state_->record_digests;
}

}  // namespace lanepack::inline LANEPACK_ABI
