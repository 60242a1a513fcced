#pragma once

/// @file
/// Digests of packs and of the steps that chain them.

#include <cstdint>
#include <span>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/candidate.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Digest of what a plan says of a pack: its records' (epoch, id) and delivered lengths, in order.
/// It covers no token bytes, so it can be made without reading payload.
[[nodiscard]] inline digest128 plan_digest(std::span<const candidate> records) noexcept {
  digest_builder builder;
  builder.number(records.size());
  for (const candidate& record : records) {
    builder.number(record.record.epoch);
    builder.number(record.record.id);
    builder.number(record.tokens);
  }
  return builder.value();
}

/// Chains the digests of the packs of successive steps.
///
/// Fed with all L packs of every step by ascending lane, the value does not depend on the number of
/// ranks that planned them.
class digest_chain {
 public:
  /// Appends the packs of one step.
  void add(step_index step, std::span<const digest128> packs) noexcept {
    digest_builder builder;
    builder.digest(value_);
    builder.number(step);
    for (const digest128& pack : packs) builder.digest(pack);
    value_ = builder.value();
  }

  /// Appends the plan of one step.
  void add(const step_plan& plan) noexcept {
    digest_builder builder;
    builder.digest(value_);
    builder.number(plan.step);
    for (const pack_plan& pack : plan.packs) builder.digest(plan_digest(pack.records));
    value_ = builder.value();
  }

  [[nodiscard]] const digest128& value() const noexcept { return value_; }

 private:
  digest128 value_;
};

}  // namespace lanepack::inline LANEPACK_ABI
