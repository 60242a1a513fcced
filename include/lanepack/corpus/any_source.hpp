#pragma once

/// @file
/// `any_source`: a corpus whose type was chosen when the program ran.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/payload.hpp>
#include <lanepack/corpus/segments.hpp>
#include <lanepack/corpus/source_part.hpp>
#include <lanepack/corpus/unindexed.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Shared ownership of any `record_source`; itself one. Copies share the source.
///
/// One virtual call per batch of shapes or reads. A source may also have `parts()`, a span of
/// `source_part` that covers its records and lives as long as it does, payloads, as
/// `payload_source` says, records of several segments, as `segmented_source` says, and
/// `unindexed()`, a pointer to what it is where nobody knows the number of its records; any other
/// has no parts and no payloads, and its records are one segment each.
/// @thread_safety  As the source's: const members may be called by any number of threads.
class any_source {
 public:
  /// Takes a source by value.
  template <class Source>
  requires(!std::same_as<std::remove_cvref_t<Source>, any_source> &&
           record_source<std::remove_cvref_t<Source>>)
      any_source(Source&& source)  // NOLINT(google-explicit-constructor): a source is an any_source
      : self_(
            std::make_shared<model_of<std::remove_cvref_t<Source>>>(std::forward<Source>(source))) {
  }

  [[nodiscard]] std::uint64_t size() const { return self_->size(); }
  [[nodiscard]] source_traits traits() const { return self_->traits(); }
  void shapes(std::span<const record_id> ids, std::span<record_shape> out) const {
    self_->shapes(ids, out);
  }
  void read(std::span<const record_read> reads) const { self_->read(reads); }
  [[nodiscard]] digest128 fingerprint() const { return self_->fingerprint(); }
  [[nodiscard]] std::string describe() const { return self_->describe(); }
  /// What the corpus was put together from, by ascending first id; empty where it is one corpus.
  [[nodiscard]] std::span<const source_part> parts() const { return self_->parts(); }
  /// As `payload_source` says; empty where records carry tokens alone.
  [[nodiscard]] std::span<const std::string> payload_names() const {
    return self_->payload_names();
  }
  void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                      std::span<payload_shape> out) const {
    self_->payload_shapes(payload, ids, out);
  }
  void read_payloads(std::span<const payload_read> reads) const { self_->read_payloads(reads); }
  [[nodiscard]] record_payload_bytes largest_payload() const { return self_->largest_payload(); }
  /// As `segmented_source` says; 1 where every record is one sequence.
  [[nodiscard]] std::uint64_t most_segments() const { return self_->most_segments(); }
  void segments(std::span<const record_id> ids, segment_lists& out) const {
    self_->segments(ids, out);
  }
  /// The inputs and what they become, of a corpus without an index of records; null for any other.
  [[nodiscard]] const unindexed_records* unindexed() const { return self_->unindexed(); }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    [[nodiscard]] virtual source_traits traits() const = 0;
    virtual void shapes(std::span<const record_id> ids, std::span<record_shape> out) const = 0;
    virtual void read(std::span<const record_read> reads) const = 0;
    [[nodiscard]] virtual digest128 fingerprint() const = 0;
    [[nodiscard]] virtual std::string describe() const = 0;
    [[nodiscard]] virtual std::span<const source_part> parts() const = 0;
    [[nodiscard]] virtual std::span<const std::string> payload_names() const { return {}; }
    virtual void payload_shapes(std::size_t payload, std::span<const record_id>,
                                std::span<payload_shape>) const {
      detail::check_payload(payload, 0);
    }
    virtual void read_payloads(std::span<const payload_read> reads) const {
      if (!reads.empty()) detail::check_payload(reads.front().payload, 0);
    }
    [[nodiscard]] virtual record_payload_bytes largest_payload() const { return {}; }
    [[nodiscard]] virtual std::uint64_t most_segments() const = 0;
    virtual void segments(std::span<const record_id> ids, segment_lists& out) const = 0;
    [[nodiscard]] virtual const unindexed_records* unindexed() const = 0;
  };

  template <class Source>
  struct model : interface {
    explicit model(Source source) : value(std::move(source)) {}
    [[nodiscard]] std::uint64_t size() const override { return value.size(); }
    [[nodiscard]] source_traits traits() const override { return value.traits(); }
    void shapes(std::span<const record_id> ids, std::span<record_shape> out) const override {
      value.shapes(ids, out);
    }
    void read(std::span<const record_read> reads) const override { value.read(reads); }
    [[nodiscard]] digest128 fingerprint() const override { return value.fingerprint(); }
    [[nodiscard]] std::string describe() const override { return value.describe(); }
    [[nodiscard]] std::span<const source_part> parts() const override {
      if constexpr (requires(const Source& source) {
                      { source.parts() } -> std::same_as<std::span<const source_part>>;
                    }) {
        return value.parts();
      } else {
        return {};
      }
    }
    [[nodiscard]] std::uint64_t most_segments() const override {
      if constexpr (segmented_source<Source>) {
        return value.most_segments();
      } else {
        return 1;
      }
    }
    void segments(std::span<const record_id> ids, segment_lists& out) const override {
      if constexpr (segmented_source<Source>) {
        value.segments(ids, out);
      } else {
        detail::add_whole_records(value, ids, out);
      }
    }
    [[nodiscard]] const unindexed_records* unindexed() const override {
      if constexpr (requires(const Source& source) {
                      { source.unindexed() } -> std::same_as<const unindexed_records*>;
                    }) {
        return value.unindexed();
      } else {
        return nullptr;
      }
    }
    Source value;
  };

  template <class Source>
  struct payload_model final : model<Source> {
    using model<Source>::model;
    [[nodiscard]] std::span<const std::string> payload_names() const override {
      return this->value.payload_names();
    }
    void payload_shapes(std::size_t payload, std::span<const record_id> ids,
                        std::span<payload_shape> out) const override {
      this->value.payload_shapes(payload, ids, out);
    }
    void read_payloads(std::span<const payload_read> reads) const override {
      this->value.read_payloads(reads);
    }
    [[nodiscard]] record_payload_bytes largest_payload() const override {
      return this->value.largest_payload();
    }
  };

  template <class Source>
  using model_of = std::conditional_t<payload_source<Source>, payload_model<Source>, model<Source>>;

  std::shared_ptr<const interface> self_;
};

static_assert(payload_source<any_source>);
static_assert(segmented_source<any_source>);

}  // namespace lanepack::inline LANEPACK_ABI
