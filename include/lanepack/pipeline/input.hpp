#pragma once

/// @file
/// `pipeline_input`: what a pipeline makes records from, documents or records.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/digest.hpp>
#include <lanepack/core/types.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/pipeline/sample.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Shared ownership of a `document_source`, whose documents become samples with text, or of a
/// `record_source`, whose records become samples with tokens and loss mask. Payloads, where the
/// source has any, do not travel through the stages: they stay where they are until they are read,
/// and belong to the first record that an input becomes.
/// @thread_safety  Const members may be called by any number of threads.
class pipeline_input {
 public:
  /// Takes a source by value.
  template <class Source>
  requires(!std::same_as<std::remove_cvref_t<Source>, pipeline_input> &&
           (document_source<std::remove_cvref_t<Source>> ||
            record_source<std::remove_cvref_t<Source>>))
      pipeline_input(Source&& source)  // NOLINT(google-explicit-constructor): a source is one
      : self_(std::make_shared<model<std::remove_cvref_t<Source>>>(std::forward<Source>(source))) {}

  [[nodiscard]] std::uint64_t size() const { return self_->size(); }
  /// Replaces `out[i]` by the sample that input `ids[i]` is.
  /// @throws  as the source's `read`.
  void read(std::span<const record_id> ids, std::span<sample> out) const { self_->read(ids, out); }
  /// Writes the bytes of each input in memory, or a bound from above, without reading it.
  void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const {
    self_->sizes(ids, out);
  }
  [[nodiscard]] digest128 fingerprint() const { return self_->fingerprint(); }
  [[nodiscard]] std::string describe() const { return self_->describe(); }
  /// As `payload_source` says; empty for a source without payloads.
  [[nodiscard]] std::span<const std::string> payload_names() const {
    return self_->payload_names();
  }
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const {
    self_->payload_shapes(payload, ids, out);
  }
  void read_payloads(std::span<const payload_read> reads) const { self_->read_payloads(reads); }
  [[nodiscard]] record_payload_bytes largest_payload() const { return self_->largest_payload(); }
  /// Writes the vision patches of each input.
  void patches(std::span<const record_id> ids, std::span<std::uint64_t> out) const {
    self_->patches(ids, out);
  }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    virtual void read(std::span<const record_id> ids, std::span<sample> out) const = 0;
    virtual void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const = 0;
    [[nodiscard]] virtual digest128 fingerprint() const = 0;
    [[nodiscard]] virtual std::string describe() const = 0;
    [[nodiscard]] virtual std::span<const std::string> payload_names() const = 0;
    virtual void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                                std::span<payload_shape> out) const = 0;
    virtual void read_payloads(std::span<const payload_read> reads) const = 0;
    [[nodiscard]] virtual record_payload_bytes largest_payload() const = 0;
    virtual void patches(std::span<const record_id> ids, std::span<std::uint64_t> out) const = 0;
  };

  template <class Source>
  struct model final : interface {
    static constexpr bool documents = document_source<Source>;

    explicit model(Source source) : value(std::move(source)) {}
    [[nodiscard]] std::uint64_t size() const override { return value.size(); }
    void read(std::span<const record_id> ids, std::span<sample> out) const override {
      if constexpr (documents) {
        std::vector<std::string> texts(ids.size());
        value.read(ids, std::span(texts));
        for (std::size_t i = 0; i < ids.size(); ++i) {
          out[i] = {};
          out[i].text = std::move(texts[i]);
        }
      } else {
        std::vector<record_shape> shapes(ids.size());
        value.shapes(ids, std::span(shapes));
        const bool masked = value.traits().has_loss_mask;
        std::vector<record_read> reads(ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) {
          out[i] = {};
          out[i].tokens.resize(static_cast<std::size_t>(shapes[i].tokens));
          if (masked) out[i].loss_mask.resize(out[i].tokens.size());
          reads[i] = {.id = ids[i],
                      .first_token = 0,
                      .tokens = out[i].tokens,
                      .loss_mask = out[i].loss_mask};
        }
        value.read(std::span<const record_read>(reads));
        if constexpr (segmented_source<Source>) add_segments(ids, out);
      }
    }
    void sizes(std::span<const record_id> ids, std::span<std::uint64_t> out) const override {
      if constexpr (documents) {
        value.sizes(ids, out);
      } else {
        std::vector<record_shape> shapes(ids.size());
        value.shapes(ids, std::span(shapes));
        for (std::size_t i = 0; i < ids.size(); ++i) {
          out[i] = shapes[i].tokens * (sizeof(std::int32_t) + 1);
        }
      }
    }
    [[nodiscard]] digest128 fingerprint() const override { return value.fingerprint(); }
    [[nodiscard]] std::string describe() const override { return value.describe(); }

    [[nodiscard]] std::span<const std::string> payload_names() const override {
      if constexpr (payload_source<Source>) {
        return value.payload_names();
      } else {
        return {};
      }
    }
    void payload_shapes(std::size_t payload, [[maybe_unused]] std::span<const record_id> ids,
                        [[maybe_unused]] std::span<payload_shape> out) const override {
      if constexpr (payload_source<Source>) {
        value.payload_shapes(payload, ids, out);
      } else {
        detail::check_payload(payload, 0);
      }
    }
    void read_payloads(std::span<const payload_read> reads) const override {
      if constexpr (payload_source<Source>) {
        value.read_payloads(reads);
      } else if (!reads.empty()) {
        detail::check_payload(reads.front().payload, 0);
      }
    }
    [[nodiscard]] record_payload_bytes largest_payload() const override {
      if constexpr (payload_source<Source>) {
        return value.largest_payload();
      } else {
        return {};
      }
    }
    void patches(std::span<const record_id> ids, std::span<std::uint64_t> out) const override {
      std::fill(out.begin(), out.end(), std::uint64_t{0});
      if constexpr (record_source<Source>) {
        std::vector<record_shape> shapes(ids.size());
        value.shapes(ids, std::span(shapes));
        for (std::size_t i = 0; i < ids.size(); ++i) out[i] = shapes[i].patches;
      }
    }

    void add_segments(std::span<const record_id> ids, std::span<sample> out) const {
      if (value.most_segments() == 1) return;
      segment_lists lists;
      value.segments(ids, lists);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (lists[i].size() < 2) continue;
        out[i].segments.assign(lists[i].begin(), lists[i].end());
        detail::fill_loss_mask(out[i]);
        std::size_t first = 0;
        for (const std::uint64_t tokens : lists[i]) {
          if (first != 0) out[i].loss_mask[first] = 0;
          first += static_cast<std::size_t>(tokens);
        }
      }
    }

    Source value;
  };

  std::shared_ptr<const interface> self_;
};

}  // namespace lanepack::inline LANEPACK_ABI
