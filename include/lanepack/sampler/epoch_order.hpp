#pragma once

/// @file
/// `epoch_order`: which record stands at which position of which epoch.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <lanepack/core/config.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/sampler/domain.hpp>
#include <lanepack/sampler/shuffle.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// The order of the records of one epoch.
/// @complexity     Memory O(1) beside the shared domain; O(1) a position, O(log excluded) where
///                 records are excluded.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Integers only: a pure function of domain, options, seed and epoch.
class ordered_epoch {
 public:
  ordered_epoch(record_domain domain, const shuffle_options& options, std::uint64_t seed,
                epoch_index epoch)
      : domain_(std::move(domain)), epoch_(epoch), shuffle_(domain_.size(), options, seed, epoch) {}

  [[nodiscard]] epoch_index epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return domain_.size(); }

  /// Writes the record at `positions[i]` to `out[i]`; the two may be the same memory.
  /// @pre  Every position is below `size()`; both spans have the same length.
  void records(std::span<const std::uint64_t> positions, std::span<record_id> out) const noexcept {
    shuffle_.apply(positions, out);
    domain_.to_ids(out);
  }

  /// The position of record `id`, or nullopt where it is excluded or not in the corpus.
  [[nodiscard]] std::optional<std::uint64_t> position_of(record_id id) const noexcept {
    const std::optional<std::uint64_t> index = domain_.index(id);
    if (!index) return std::nullopt;
    return shuffle_.position_of(*index);
  }

 private:
  record_domain domain_;
  epoch_index epoch_;
  epoch_shuffle shuffle_;
};

/// The orders of all epochs of a corpus.
/// @thread_safety  Const members may be called by any number of threads.
/// @determinism    Integers only: a pure function of domain, options, seed and epoch.
class epoch_order {
 public:
  /// @throws invalid_option  where a block or a group of a block shuffle would be empty.
  epoch_order(record_domain domain, const shuffle_options& options, std::uint64_t seed)
      : domain_(std::move(domain)), options_(options), seed_(seed) {
    static_cast<void>(epoch(0));
  }

  /// Number of feasible records: positions of every epoch.
  [[nodiscard]] std::uint64_t size() const noexcept { return domain_.size(); }
  [[nodiscard]] const record_domain& domain() const noexcept { return domain_; }
  [[nodiscard]] const shuffle_options& options() const noexcept { return options_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

  /// The order of one epoch, to be kept by a caller who asks for it more than once.
  /// @complexity  About 0.2 us.
  [[nodiscard]] ordered_epoch epoch(epoch_index epoch) const {
    return ordered_epoch(domain_, options_, seed_, epoch);
  }

  /// Writes the record at `positions[i]` of `epoch` to `out[i]`; the two may be the same memory.
  /// @pre  Every position is below `size()`; both spans have the same length.
  void records(epoch_index epoch, std::span<const std::uint64_t> positions,
               std::span<record_id> out) const {
    this->epoch(epoch).records(positions, out);
  }

 private:
  record_domain domain_;
  shuffle_options options_;
  std::uint64_t seed_;
};

}  // namespace lanepack::inline LANEPACK_ABI
