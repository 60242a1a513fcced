#pragma once

/// @file
/// `memory_source`: a corpus whose tokens are in memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/token_type.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// A payload of every record of a `memory_source`.
struct memory_payload {
  /// Not empty, and no other payload's.
  std::string name;
  /// Of each record.
  std::vector<payload_shape> shapes;
  /// Those of all records, one after the other.
  std::vector<std::byte> bytes;
};

/// Records stored one after the other in memory; a `payload_source`.
///
/// The fingerprint covers the lengths, the loss tokens and the patches of the records, and the
/// names and shapes of payloads.
/// @thread_safety  Const members may be called by any number of threads.
class memory_source {
 public:
  /// Takes tokens, the position at which each record starts, and an optional loss mask.
  /// @param tokens     Ids in [0, 2^31) of all records in order.
  /// @param offsets    Record i is tokens [offsets[i], offsets[i + 1]): one more than records,
  ///                   from 0, never falling, to `tokens.size()`.
  /// @param loss_mask  Empty, or 0 or 1 for each token.
  /// @throws invalid_option  The arguments contradict each other.
  /// @throws data_error      A token or a mask value is out of range.
  memory_source(std::vector<std::int32_t> tokens, std::vector<std::uint64_t> offsets,
                std::vector<std::uint8_t> loss_mask = {})
      : tokens_(std::move(tokens)), offsets_(std::move(offsets)), loss_mask_(std::move(loss_mask)) {
    check();
    if (!loss_mask_.empty()) count_loss_tokens();
    digest_builder digest;
    digest.text("memory");
    digest.number(size());
    for (record_id id = 0; id < size(); ++id) {
      digest.number(length(id));
      digest.number(loss_tokens(id));
    }
    fingerprint_ = digest.value();
  }

  /// As above, with vision patches and payloads.
  /// @param patches   Of each record, or empty.
  /// @param payloads  What records carry beside their tokens.
  /// @throws invalid_option, data_error  As above.
  memory_source(std::vector<std::int32_t> tokens, std::vector<std::uint64_t> offsets,
                std::vector<std::uint8_t> loss_mask, std::vector<std::uint64_t> patches,
                std::vector<memory_payload> payloads)
      : memory_source(std::move(tokens), std::move(offsets), std::move(loss_mask)) {
    patches_ = std::move(patches);
    payloads_ = std::move(payloads);
    check_payloads();
    digest_builder digest;
    digest.text("memory with payloads");
    digest.digest(fingerprint_);
    for (const std::uint64_t count : patches_) digest.number(count);
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(size()));
    for (const memory_payload& payload : payloads_) {
      names_.push_back(payload.name);
      digest.text(payload.name);
      std::vector<std::uint64_t>& offsets_of_payload = payload_offsets_.emplace_back(1, 0);
      for (std::size_t i = 0; i < payload.shapes.size(); ++i) {
        detail::digest_shape(digest, payload.shapes[i]);
        offsets_of_payload.push_back(
            saturating_add(offsets_of_payload.back(), payload.shapes[i].bytes()));
        sums[i] = saturating_add(sums[i], payload.shapes[i].bytes());
        if (sums[i] > largest_.bytes) largest_ = {.id = i, .bytes = sums[i]};
      }
      if (offsets_of_payload.back() != payload.bytes.size()) {
        detail::throw_invalid_option(
            "payloads", std::to_string(payload.bytes.size()) + " bytes of " + payload.name,
            std::to_string(offsets_of_payload.back()) + " as the shapes say");
      }
    }
    fingerprint_ = digest.value();
  }

  /// Copies records given one by one.
  /// @throws data_error  A token is out of range.
  explicit memory_source(std::span<const std::vector<std::int32_t>> records)
      : memory_source(joined(records), offsets_of(records)) {}

  [[nodiscard]] std::uint64_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] source_traits traits() const {
    return {.has_payload = true, .has_all_shapes = true, .has_loss_mask = !loss_mask_.empty()};
  }

  /// @throws state_error  An id is not in the corpus.
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      out[i] = {.tokens = length(ids[i]),
                .loss_tokens = loss_tokens(ids[i]),
                .patches = patches_.empty() ? 0 : patches_[ids[i]]};
    }
  }

  /// @throws state_error  An id or a range is not in the corpus.
  void read(std::span<const record_read> reads) const {
    for (const record_read& read : reads) {
      detail::check_record(read.id, size());
      detail::check_read(read, length(read.id));
      const std::uint64_t first = offsets_[read.id] + read.first_token;
      std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(first), read.tokens.size(),
                  read.tokens.begin());
      if (loss_mask_.empty()) {
        std::fill(read.loss_mask.begin(), read.loss_mask.end(), std::uint8_t{1});
      } else {
        std::copy_n(loss_mask_.begin() + static_cast<std::ptrdiff_t>(first), read.loss_mask.size(),
                    read.loss_mask.begin());
      }
    }
  }

  [[nodiscard]] std::span<const std::string> payload_names() const { return names_; }

  /// @throws state_error  An id or a payload is not in the corpus.
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const {
    LANEPACK_ASSERT(ids.size() == out.size());
    detail::check_payload(payload, payloads_.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      detail::check_record(ids[i], size());
      out[i] = payloads_[payload].shapes[ids[i]];
    }
  }

  /// @throws state_error  An id or a payload is not in the corpus, or memory is of another size.
  void read_payloads(std::span<const payload_read> reads) const {
    for (const payload_read& read : reads) {
      detail::check_payload(read.payload, payloads_.size());
      detail::check_record(read.id, size());
      const memory_payload& payload = payloads_[read.payload];
      detail::check_payload_read(read, payload.shapes[read.id].bytes());
      const std::uint64_t first = payload_offsets_[read.payload][read.id];
      std::copy_n(payload.bytes.begin() + static_cast<std::ptrdiff_t>(first), read.bytes.size(),
                  read.bytes.begin());
    }
  }

  [[nodiscard]] record_payload_bytes largest_payload() const { return largest_; }

  [[nodiscard]] digest128 fingerprint() const { return fingerprint_; }
  [[nodiscard]] std::string describe() const {
    return "memory: " + std::to_string(size()) + " records, " + std::to_string(tokens_.size()) +
           " tokens";
  }

 private:
  static std::vector<std::int32_t> joined(std::span<const std::vector<std::int32_t>> records) {
    std::vector<std::int32_t> tokens;
    for (const auto& record : records) tokens.insert(tokens.end(), record.begin(), record.end());
    return tokens;
  }

  static std::vector<std::uint64_t> offsets_of(std::span<const std::vector<std::int32_t>> records) {
    std::vector<std::uint64_t> offsets{0};
    for (const auto& record : records) offsets.push_back(offsets.back() + record.size());
    return offsets;
  }

  void check() const {
    if (offsets_.empty() || offsets_.front() != 0 || offsets_.back() != tokens_.size() ||
        !std::is_sorted(offsets_.begin(), offsets_.end())) {
      detail::throw_invalid_option(
          "offsets", offsets_.empty() ? "no offsets" : "offsets that do not cover the tokens",
          "offsets that never fall, from 0 to " + std::to_string(tokens_.size()));
    }
    if (!loss_mask_.empty() && loss_mask_.size() != tokens_.size()) {
      detail::throw_invalid_option("loss_mask", std::to_string(loss_mask_.size()) + " values",
                                   std::to_string(tokens_.size()) + ", one for each token");
    }
    if (const std::size_t bad = detail::first_negative(tokens_); bad != tokens_.size()) {
      throw_bad(bad, "token " + std::to_string(tokens_[bad]), "an id in [0, 2147483647]");
    }
    const auto bad = std::find_if(loss_mask_.begin(), loss_mask_.end(),
                                  [](std::uint8_t value) { return value > 1; });
    if (bad != loss_mask_.end()) {
      throw_bad(static_cast<std::size_t>(bad - loss_mask_.begin()),
                "loss mask " + std::to_string(*bad), "0 or 1");
    }
  }

  void check_payloads() const {
    const auto require_all = [this](const std::string& option, std::size_t found) {
      if (found == size()) return;
      detail::throw_invalid_option(option, std::to_string(found),
                                   std::to_string(size()) + ", one for each record");
    };
    if (!patches_.empty()) require_all("patches", patches_.size());
    for (std::size_t i = 0; i < payloads_.size(); ++i) {
      if (payloads_[i].name.empty()) {
        detail::throw_invalid_option("payloads[" + std::to_string(i) + "].name", "''",
                                     "a name that is not empty");
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (payloads_[k].name != payloads_[i].name) continue;
        detail::throw_invalid_option("payloads", "two called " + detail::quoted(payloads_[i].name),
                                     "names that differ");
      }
      require_all("payloads", payloads_[i].shapes.size());
    }
  }

  [[noreturn]] LANEPACK_COLD void throw_bad(std::size_t position, const std::string& found,
                                            const std::string& expected) const {
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), position);
    detail::throw_data_error({.path = "memory",
                              .byte_offset = {},
                              .record = static_cast<std::uint64_t>(after - offsets_.begin()) - 1,
                              .line = {}},
                             "found " + found + ", expected " + expected);
  }

  void count_loss_tokens() {
    loss_tokens_.resize(size());
    for (record_id id = 0; id < size(); ++id) {
      // The first token of a record has nothing before it to be predicted from.
      std::uint64_t count = 0;
      for (std::uint64_t i = offsets_[id] + 1; i < offsets_[id + 1]; ++i) count += loss_mask_[i];
      loss_tokens_[id] = count;
    }
  }

  [[nodiscard]] std::uint64_t length(record_id id) const { return offsets_[id + 1] - offsets_[id]; }
  [[nodiscard]] std::uint64_t loss_tokens(record_id id) const {
    return loss_mask_.empty() ? detail::unmasked_loss_tokens(length(id)) : loss_tokens_[id];
  }

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint8_t> loss_mask_;
  std::vector<std::uint64_t> loss_tokens_;
  std::vector<std::uint64_t> patches_;
  std::vector<memory_payload> payloads_;
  std::vector<std::string> names_;
  /// Of each payload, where the records' bytes start, and their end.
  std::vector<std::vector<std::uint64_t>> payload_offsets_;
  record_payload_bytes largest_;
  digest128 fingerprint_;
};

static_assert(payload_source<memory_source>);

}  // namespace lanepack::inline LANEPACK_ABI
