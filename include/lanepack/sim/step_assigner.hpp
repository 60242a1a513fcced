#pragma once

/// @file
/// How the records of a step become micro-batches of ranks, in a simulation.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <lanepack/core/arithmetic.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/packer/candidate.hpp>
#include <lanepack/packer/chunking.hpp>
#include <lanepack/packer/micro_batcher.hpp>
#include <lanepack/sim/step_assignment.hpp>
#include <lanepack/sim/step_time.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Splits the packs of a step, all L of them by lane, over `ranks` ranks.
template <class Assigner>
concept step_assigner = requires(Assigner& assigner, const step_plan& step, std::uint32_t ranks,
                                 step_assignment& out) {
  assigner.assign(step, ranks, out);
};

/// Any `step_assigner`, owned by value.
///
/// One virtual call a step.
/// @thread_safety  None: one thread per object.
class any_step_assigner {
 public:
  /// Takes an assigner by value.
  template <class Assigner>
  requires(!std::same_as<std::remove_cvref_t<Assigner>, any_step_assigner> &&
           step_assigner<std::remove_cvref_t<Assigner>>)
      any_step_assigner(Assigner&& assigner)  // NOLINT(google-explicit-constructor)
      : self_(std::make_unique<model<std::remove_cvref_t<Assigner>>>(
            std::forward<Assigner>(assigner))) {}

  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    self_->assign(step, ranks, out);
  }

 private:
  struct interface {
    interface() = default;
    interface(const interface&) = delete;
    interface& operator=(const interface&) = delete;
    virtual ~interface() = default;
    virtual void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) = 0;
  };

  template <class Assigner>
  struct model final : interface {
    explicit model(Assigner assigner) : value(std::move(assigner)) {}
    void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) override {
      value.assign(step, ranks, out);
    }
    Assigner value;
  };

  std::unique_ptr<interface> self_;
};

static_assert(step_assigner<any_step_assigner>);

/// Whether ranks run the same number of micro-batches in a step.
enum class micro_batch_counts : std::uint8_t {
  /// Each as many as its records need.
  own,
  /// All as many as the rank that needs most.
  common,
};

/// What suits ranks that wait for each other there.
[[nodiscard]] constexpr micro_batch_counts counts_for(sync_model sync) noexcept {
  return sync == sync_model::micro_batch ? micro_batch_counts::common : micro_batch_counts::own;
}

namespace detail {

/// Columns of records: what assigners decide by.
struct record_columns {
  /// Tokens after padding.
  std::vector<std::uint64_t> rooms;
  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> tokens;

  [[nodiscard]] std::size_t size() const noexcept { return rooms.size(); }
  void clear() noexcept {
    rooms.clear();
    costs.clear();
    tokens.clear();
  }
  void add(const candidate& record, std::uint32_t record_multiple) {
    rooms.push_back(round_up(record.tokens, record_multiple));
    costs.push_back(record.cost);
    tokens.push_back(record.tokens);
  }
  /// Adds a record of other columns.
  void add(const record_columns& from, std::size_t index) {
    rooms.push_back(from.rooms[index]);
    costs.push_back(from.costs[index]);
    tokens.push_back(from.tokens[index]);
  }
  /// Replaces the columns by all records of a step, pack by pack.
  void read(const step_plan& step, std::uint32_t record_multiple) {
    clear();
    for (const pack_plan& pack : step.packs) {
      for (const candidate& record : pack.records) add(record, record_multiple);
    }
  }
  /// Some of the records as a micro-batch; `first` is added to their numbers.
  [[nodiscard]] simulated_micro_batch micro_batch(std::span<const std::uint32_t> records,
                                                  std::size_t first = 0) const {
    simulated_micro_batch out;
    for (const std::uint32_t record : records) {
      out.cost += costs[first + record];
      out.tokens += tokens[first + record];
    }
    out.records = records.size();
    return out;
  }
};

/// Cuts the records of every rank into micro-batches with a `micro_batcher`.
class rank_micro_batcher {
 public:
  /// @param multiple   Records above the capacity are cut into chunks at multiples of this.
  /// @param estimator  Tells what a chunk costs; without one, its share of the record's tokens.
  rank_micro_batcher(const micro_batch_options& options, micro_batch_counts counts,
                     std::uint64_t multiple = 1,
                     std::shared_ptr<const any_estimator> estimator = nullptr)
      : batcher_(options, multiple), counts_(counts), estimator_(std::move(estimator)) {}

  /// @param records  Of all ranks, those of a rank next to each other.
  /// @param ends     For every rank, the number of records of it and the ranks before it.
  void form(const record_columns& records, std::span<const std::size_t> ends,
            step_assignment& out) {
    if (bins_.size() < ends.size()) {
      bins_.resize(ends.size());
      chunks_.resize(ends.size());
    }
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const std::size_t first = rank == 0 ? 0 : ends[rank - 1];
      const std::size_t count = ends[rank] - first;
      batcher_.form(std::span(records.rooms).subspan(first, count), bins_[rank], chunks_[rank],
                    std::span(records.costs).subspan(first, count));
      most = std::max(most, bins_[rank].size());
    }
    out.clear();
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const std::size_t first = rank == 0 ? 0 : ends[rank - 1];
      const std::size_t count = ends[rank] - first;
      if (counts_ == micro_batch_counts::common && bins_[rank].size() < most) {
        batcher_.form_exactly(static_cast<std::uint32_t>(most),
                              std::span(records.rooms).subspan(first, count), bins_[rank],
                              chunks_[rank], std::span(records.costs).subspan(first, count));
      }
      for (std::size_t i = 0; i < bins_[rank].size(); ++i) {
        simulated_micro_batch micro_batch = records.micro_batch(bins_[rank][i], first);
        if (i < chunks_[rank].size()) {
          cut(chunks_[rank][i], first + bins_[rank][i].front(), records, micro_batch);
        }
        out.add(micro_batch);
      }
      out.close_rank();
    }
  }

 private:
  /// Replaces what a whole record is by what a chunk of it is; the chunks' costs add up to the
  /// record's.
  void cut(const record_chunk& chunk, std::size_t record, const record_columns& records,
           simulated_micro_batch& out) const {
    const std::uint64_t end = chunk.prefix_tokens + chunk.tokens;
    const std::uint64_t before = cost_up_to(chunk.prefix_tokens, record, records);
    const std::uint64_t after =
        chunk.last() ? records.costs[record] : cost_up_to(end, record, records);
    out.cost = after - std::min(after, before);
    out.tokens = std::min(end, records.tokens[record]) - chunk.prefix_tokens;
    out.records = chunk.index == 0 ? 1 : 0;
  }

  /// Cost of the first tokens of a record.
  [[nodiscard]] std::uint64_t cost_up_to(std::uint64_t tokens, std::size_t record,
                                         const record_columns& records) const {
    const std::uint64_t whole = records.costs[record];
    if (tokens == 0) return 0;
    const std::uint64_t cost =
        estimator_ != nullptr
            ? estimator_->cost({.tokens = tokens, .loss_tokens = tokens - 1})
            : static_cast<std::uint64_t>(static_cast<uint128>(whole) * tokens /
                                         std::max(records.tokens[record], tokens));
    return std::min(cost, whole);
  }

  chunked_micro_batcher batcher_;
  micro_batch_counts counts_;
  std::shared_ptr<const any_estimator> estimator_;
  std::vector<micro_batch_list> bins_;
  std::vector<std::vector<record_chunk>> chunks_;
};

}  // namespace detail

/// What lanepack does: a rank runs the packs of its own lanes, cut by a `micro_batcher`.
class own_lanes_assigner {
 public:
  /// @param record_multiple  Records are padded to a multiple of this, at least 1.
  /// @param estimator  Tells what the chunks of a record above the capacity cost; without one, in
  ///                   proportion to their tokens.
  /// @param counts  `common` where ranks meet in every micro-batch: the number is common knowledge
  ///                where every rank plans all packs, and takes an agreement on one integer a step
  ///                (or a fixed `micro_batches`) where a rank plans its own lanes only.
  explicit own_lanes_assigner(const micro_batch_options& options, std::uint32_t record_multiple = 1,
                              micro_batch_counts counts = micro_batch_counts::own,
                              std::shared_ptr<const any_estimator> estimator = nullptr)
      : batcher_(options, counts,
                 options.capacity_tokens % record_multiple == 0 ? record_multiple : 1,
                 std::move(estimator)),
        record_multiple_(record_multiple) {}

  /// @pre  `ranks` divides the number of packs.
  void assign(const step_plan& step, std::uint32_t ranks, step_assignment& out) {
    const std::size_t packs = step.packs.size() / ranks;
    records_.clear();
    ends_.clear();
    for (std::size_t i = 0; i < step.packs.size(); ++i) {
      for (const candidate& record : step.packs[i].records) records_.add(record, record_multiple_);
      if ((i + 1) % packs == 0) ends_.push_back(records_.size());
    }
    batcher_.form(records_, ends_, out);
  }

 private:
  detail::rank_micro_batcher batcher_;
  std::uint32_t record_multiple_;
  detail::record_columns records_;
  std::vector<std::size_t> ends_;
};

static_assert(step_assigner<own_lanes_assigner>);

}  // namespace lanepack::inline LANEPACK_ABI
