#pragma once

/// @file
/// Benchmarks of the way from files to micro-batches in host memory.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <lanepack/lanepack.hpp>

#include "bench/harness.hpp"
#include "bench/lengths.hpp"
#include "bench/planning.hpp"

namespace lanepack_bench {

/// A fresh folder that is removed with its contents.
class scratch_folder {
 public:
  explicit scratch_folder(const std::string& parent) : path_(parent + "/lanepack-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("cannot make a folder for corpora in " + parent);
    }
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A Megatron-LM corpus made on the spot.
class made_corpus {
 public:
  made_corpus(const std::string& parent, const std::string& lengths, lanepack::token_type type,
              std::uint64_t bytes)
      : folder_(parent), token_bytes_(lanepack::token_bytes(type)) {
    lanepack::megatron_writer writer(prefix(), {.type = type});
    std::vector<std::int32_t> pool(std::size_t{1} << 20);
    for (std::size_t i = 0; i < pool.size(); ++i) {
      pool[i] = static_cast<std::int32_t>(lanepack::counter_random({.seed = 3}, i) >> 48);
    }
    starts_.push_back(0);
    for (std::uint64_t id = 0; starts_.back() * token_bytes_ < bytes; ++id) {
      const std::uint32_t length = record_length(lengths, id);
      const std::uint64_t from =
          lanepack::random_below(lanepack::counter_random({.seed = 4}, id), pool.size() - length);
      writer.add_document(std::span(pool).subspan(static_cast<std::size_t>(from), length));
      starts_.push_back(starts_.back() + length);
    }
    writer.finish();
  }

  [[nodiscard]] std::string prefix() const { return folder_.path() + "/corpus"; }
  [[nodiscard]] std::string bin() const { return prefix() + ".bin"; }
  [[nodiscard]] std::size_t token_bytes() const { return token_bytes_; }
  [[nodiscard]] std::uint64_t records() const { return starts_.size() - 1; }
  /// Byte at which a record starts.
  [[nodiscard]] std::uint64_t offset(std::uint64_t id) const {
    return starts_[static_cast<std::size_t>(id)] * token_bytes_;
  }
  [[nodiscard]] std::uint64_t length(std::uint64_t id) const {
    return starts_[static_cast<std::size_t>(id) + 1] - starts_[static_cast<std::size_t>(id)];
  }

  /// Makes the kernel forget the tokens, and returns the share of them that it still has.
  [[nodiscard]] double drop_from_page_cache() const {
    const int fd = ::open(bin().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 1;
    double kept = 1;
    const auto bytes = static_cast<std::size_t>(starts_.back() * token_bytes_);
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (mapping != MAP_FAILED) {
      const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
      std::vector<unsigned char> present((bytes + page - 1) / page);
      if (::mincore(mapping, bytes, present.data()) == 0) {
        const auto count = std::count_if(present.begin(), present.end(),
                                         [](unsigned char flags) { return (flags & 1) != 0; });
        kept = static_cast<double>(count) / static_cast<double>(present.size());
      }
      ::munmap(mapping, bytes);
    }
    ::close(fd);
    return kept;
  }

 private:
  scratch_folder folder_;
  std::size_t token_bytes_;
  std::vector<std::uint64_t> starts_;
};

/// What a loader is measured with.
struct loading_case {
  std::string lengths = "500";
  lanepack::token_type type = lanepack::token_type::i32;
  lanepack::file_access access = lanepack::file_access::positioned;
  lanepack::shuffle_kind shuffle = lanepack::shuffle_kind::full;
  /// Labels, positions and loss mask too.
  bool all_fields = true;
  /// Nothing is in the page cache.
  bool cold = false;

  [[nodiscard]] std::string name() const {
    std::string out = "/lengths=" + lengths;
    out += "/type=" + std::string(lanepack::token_type_name(type));
    out += access == lanepack::file_access::mapped ? "/access=mapped" : "/access=positioned";
    out += "/shuffle=" + lanepack::to_string(shuffle);
    out += all_fields ? "/fields=all" : "/fields=tokens";
    out += cold ? "/cache=cold" : "/cache=warm";
    return out;
  }
};

/// The corpus of a case, made once for cases in a row that share it.
inline std::shared_ptr<const made_corpus> corpus_of(const loading_case& what, const settings& how) {
  struct last_made {
    std::string key;
    std::shared_ptr<const made_corpus> corpus;
  };
  static last_made last;
  const std::uint64_t bytes = what.cold ? how.corpus_bytes / 8 : how.corpus_bytes;
  const std::string key = what.lengths + " " + std::string(lanepack::token_type_name(what.type)) +
                          " " + std::to_string(bytes);
  if (last.key != key) {
    last = {};
    last = {key, std::make_shared<const made_corpus>(how.folder, what.lengths, what.type, bytes)};
  }
  return last.corpus;
}

inline lanepack::loader_options options_of(const loading_case& what) {
  lanepack::loader_options options;
  options.plan.seed = 1;
  options.plan.lanes = 4;
  options.plan.records_per_pack = 16;
  options.plan.rule = lanepack::epoch_end::continue_epochs;
  options.plan.shuffle.kind = what.shuffle;
  options.plan.limits.infeasible = lanepack::infeasible_policy::truncate;
  options.fields.labels = what.all_fields;
  options.fields.position_ids = what.all_fields;
  options.fields.loss_mask = what.all_fields;
  return options;
}

/// One record of a micro-batch, where it lies in the file.
struct copied_record {
  std::uint64_t offset;
  std::uint32_t tokens;
  bool starts_micro_batch;
};

/// The steps that are measured, in the order of the loader.
struct measured_steps {
  std::uint64_t warm_steps = 0;
  std::uint64_t steps = 0;
  std::vector<copied_record> records;
  std::uint64_t tokens = 0;
};

inline std::uint64_t add_record(std::uint64_t sum, std::uint64_t tokens, std::uint64_t first,
                                std::uint64_t last) {
  return mixed(sum, (tokens << 40) ^ (first << 20) ^ last);
}

/// A loader that delivers the same steps again and again.
class measured_loader {
 public:
  measured_loader(std::shared_ptr<const made_corpus> corpus, const loading_case& what)
      : corpus_(std::move(corpus)),
        source_(lanepack::megatron_source(corpus_->prefix(), {.access = what.access})),
        summary_(lanepack::summarize(source_)),
        options_(options_of(what)) {
    // Until the ring went round twice: its memory is touched then and the threads keep pace.
    steps_.warm_steps = 2 * options_.prefetch_micro_batches;
    const std::uint64_t steps_of_epoch =
        corpus_->records() / options_.plan.lanes / options_.plan.records_per_pack;
    steps_.steps =
        std::max<std::uint64_t>(4, steps_of_epoch - std::min(steps_of_epoch, steps_.warm_steps));
    list_records();
  }

  [[nodiscard]] const measured_steps& steps() const { return steps_; }
  [[nodiscard]] std::uint64_t ring_bytes() const {
    return options_.prefetch_micro_batches *
           lanepack::thd_layout::slab_bytes_bound(
               options_.fields, capacity(), options_.plan.lanes * options_.plan.records_per_pack);
  }
  [[nodiscard]] std::uint64_t capacity() const { return *options_.plan.limits.capacity_tokens; }
  [[nodiscard]] const made_corpus& corpus() const { return *corpus_; }
  [[nodiscard]] const lanepack::any_source& source() const { return source_; }

  void prepare() {
    loader_.emplace(source_, lanepack::world{0, 1}, options_, lanepack::default_cost(), summary_);
    for (std::uint64_t step = 0; step < steps_.warm_steps; ++step) take_step();
  }

  std::uint64_t run() {
    std::uint64_t sum = 0;
    for (std::uint64_t step = 0; step < steps_.steps; ++step) sum = mixed_with_step(sum);
    return sum;
  }

  void finish() { loader_.reset(); }

 private:
  void take_step() { static_cast<void>(mixed_with_step(0)); }

  std::uint64_t mixed_with_step(std::uint64_t sum) {
    auto step = loader_->next();
    if (!step) throw std::runtime_error("the loader ended early");
    for (auto&& micro_batch : *step) {
      const std::span<const std::int32_t> tokens = micro_batch.tokens();
      const std::span<const std::int32_t> starts = micro_batch.cu_seqlens_padded();
      for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        const auto first = static_cast<std::size_t>(starts[i]);
        const auto last = static_cast<std::size_t>(starts[i + 1]) - 1;
        sum = add_record(sum, last - first + 1, static_cast<std::uint64_t>(tokens[first]),
                         static_cast<std::uint64_t>(tokens[last]));
      }
    }
    return sum;
  }

  /// Notes what the measured steps hold, and checks every token of them against the file.
  void list_records() {
    const lanepack::input_file file(corpus_->bin(), lanepack::file_access::mapped);
    prepare();
    for (std::uint64_t step = 0; step < steps_.steps; ++step) {
      auto delivered = loader_->next();
      for (auto&& micro_batch : *delivered) {
        const std::span<const std::int32_t> starts = micro_batch.cu_seqlens_padded();
        for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
          const std::uint64_t id = micro_batch.record(i).id;
          const auto first = static_cast<std::size_t>(starts[i]);
          const auto length = static_cast<std::size_t>(starts[i + 1]) - first;
          check(file, id, micro_batch.tokens().subspan(first, length));
          steps_.records.push_back(
              {corpus_->offset(id), static_cast<std::uint32_t>(length), i == 0});
          steps_.tokens += length;
        }
      }
    }
    finish();
  }

  void check(const lanepack::input_file& file, std::uint64_t id,
             std::span<const std::int32_t> tokens) const {
    std::size_t same = 0;
    const std::byte* const stored = file.mapping() + corpus_->offset(id);
    if (corpus_->token_bytes() == 2) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        same += lanepack::detail::load_number<std::uint16_t>(stored + 2 * i) == tokens[i] ? 1 : 0;
      }
    } else {
      same = std::memcmp(stored, tokens.data(), tokens.size_bytes()) == 0 ? tokens.size() : 0;
    }
    if (same != tokens.size() || tokens.size() != std::min(corpus_->length(id), capacity())) {
      throw std::runtime_error("record " + std::to_string(id) + " was delivered with other tokens");
    }
  }

  std::shared_ptr<const made_corpus> corpus_;
  lanepack::any_source source_;
  lanepack::corpus_summary summary_;
  lanepack::loader_options options_;
  measured_steps steps_;
  std::optional<lanepack::loader> loader_;
};

/// Buffers that are written in turn; together they are as large as the loader's staging ring.
class rotating_buffers {
 public:
  /// @param buffer_bytes  Bytes of one buffer, for the tokens of a micro-batch.
  rotating_buffers(std::uint64_t ring_bytes, std::uint64_t buffer_bytes)
      : slots_(std::max<std::uint64_t>(ring_bytes / buffer_bytes, 1)),
        slot_bytes_(static_cast<std::size_t>(buffer_bytes)),
        memory_(static_cast<std::size_t>(slots_) * slot_bytes_) {}

  std::byte* next() {
    at_ = (at_ + 1) % slots_;
    return memory_.data() + static_cast<std::size_t>(at_) * slot_bytes_;
  }

 private:
  std::uint64_t slots_;
  std::size_t slot_bytes_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> memory_;
};

/// Brings the stored tokens of all records to `buffers` in the loader's order, with
/// `fetch(offset, to)` for each.
template <class Fetch>
std::uint64_t copy_records(const measured_loader& loader, rotating_buffers& buffers,
                           const Fetch& fetch) {
  const std::size_t bytes = loader.corpus().token_bytes();
  std::byte* to = nullptr;
  std::uint64_t sum = 0;
  const auto token = [bytes](const std::byte* from) -> std::uint64_t {
    return bytes == 2 ? lanepack::detail::load_number<std::uint16_t>(from)
                      : lanepack::detail::load_number<std::uint32_t>(from);
  };
  for (const copied_record& record : loader.steps().records) {
    if (record.starts_micro_batch) to = buffers.next();
    const std::size_t size = record.tokens * bytes;
    fetch(record.offset, std::span(to, size));
    sum = add_record(sum, record.tokens, token(to), token(to + size - bytes));
    to += size;
  }
  return sum;
}

/// `memcpy` out of the mapped file.
inline std::uint64_t copy_records(const measured_loader& loader, const std::byte* mapping,
                                  rotating_buffers& buffers) {
  return copy_records(loader, buffers, [mapping](std::uint64_t offset, std::span<std::byte> to) {
    std::memcpy(to.data(), mapping + offset, to.size());
  });
}

/// `memcpy` of all bytes that the loader delivers: the tokens out of the mapped file, and labels,
/// positions and loss mask from memory that stays in the processor's caches.
inline std::uint64_t copy_fields(const measured_loader& loader, const std::byte* mapping,
                                 rotating_buffers& buffers,
                                 std::span<const std::int32_t> positions) {
  constexpr std::size_t field = sizeof(std::int32_t);
  const auto capacity = static_cast<std::size_t>(loader.capacity());
  const std::size_t bytes = loader.corpus().token_bytes();
  std::byte* slab = nullptr;
  std::size_t at = 0;
  std::uint64_t sum = 0;
  for (const copied_record& record : loader.steps().records) {
    if (record.starts_micro_batch) {
      slab = buffers.next();
      at = 0;
    }
    const std::size_t tokens = record.tokens;
    std::byte* const to = slab + at * field;
    std::memcpy(to, mapping + record.offset, tokens * bytes);
    std::memcpy(to + capacity * field, positions.data(), tokens * field);
    std::memcpy(to + 2 * capacity * field, positions.data(), tokens * field);
    std::memcpy(slab + 3 * capacity * field + at, positions.data(), tokens);
    const std::byte* const last = to + (tokens - 1) * bytes;
    sum = bytes == 2 ? add_record(sum, tokens, lanepack::detail::load_number<std::uint16_t>(to),
                                  lanepack::detail::load_number<std::uint16_t>(last))
                     : add_record(sum, tokens, lanepack::detail::load_number<std::uint32_t>(to),
                                  lanepack::detail::load_number<std::uint32_t>(last));
    at += tokens;
  }
  return sum;
}

inline comparison loader_case(const loading_case& what, const settings& how) {
  const auto loader = std::make_shared<measured_loader>(corpus_of(what, how), what);
  const auto file = std::make_shared<std::optional<lanepack::input_file>>();
  const auto map = [loader, file] {
    file->emplace(loader->corpus().bin(), lanepack::file_access::mapped);
  };
  const auto buffers = std::make_shared<rotating_buffers>(
      loader->ring_bytes(), loader->capacity() * loader->corpus().token_bytes());
  comparison out;
  out.item = "tokens";
  out.items_per_run = static_cast<double>(loader->steps().tokens);
  out.bytes_per_run = out.items_per_run * static_cast<double>(loader->corpus().token_bytes());
  out.same_checksum = true;
  const auto copy = [=] { return copy_records(*loader, (*file)->mapping(), *buffers); };
  if (what.cold) {
    const double kept = loader->corpus().drop_from_page_cache();
    if (kept > 0.1) {
      out.note = "this system keeps " + std::to_string(static_cast<int>(100 * kept)) +
                 "% in the page cache when told to drop it";
    }
    const auto drop = [loader] { static_cast<void>(loader->corpus().drop_from_page_cache()); };
    out.variants.push_back({"loader", [loader] { return loader->run(); },
                            [=] {
                              drop();
                              loader->prepare();
                            },
                            [loader] { loader->finish(); }});
    // Pages that are mapped stay in memory, so the mapping must not outlive a run.
    out.variants.push_back({"memcpy", copy,
                            [=] {
                              drop();
                              map();
                            },
                            [file] { file->reset(); }});
    return out;
  }
  map();
  out.wanted = {goal::kind::speed_ratio_at_least, 0.6};
  out.variants.push_back({"loader", [loader] { return loader->run(); },
                          [loader] { loader->prepare(); }, [loader] { loader->finish(); }});
  if (what.all_fields) {
    const auto slabs = std::make_shared<rotating_buffers>(
        loader->ring_bytes(), loader->capacity() * (3 * sizeof(std::int32_t) + 1));
    const auto positions =
        std::make_shared<std::vector<std::int32_t>>(static_cast<std::size_t>(loader->capacity()));
    std::iota(positions->begin(), positions->end(), 0);
    out.variants.push_back(
        {"memcpy", [=] { return copy_fields(*loader, (*file)->mapping(), *slabs, *positions); },
         [] {}});
    out.variants.push_back({"memcpy of the tokens alone", copy, [] {}});
  } else {
    out.variants.push_back({"memcpy", copy, [] {}});
  }
  if (what.access == lanepack::file_access::positioned) {
    const auto positioned = std::make_shared<const lanepack::input_file>(loader->corpus().bin());
    out.variants.push_back({"pread",
                            [=] {
                              return copy_records(
                                  *loader, *buffers,
                                  [&](std::uint64_t offset, std::span<std::byte> to) {
                                    positioned->read_at(offset, to);
                                  });
                            },
                            [] {}});
    out.note =
        "pread: no loader that makes a system call a record can be faster; its own share of "
        "memcpy is beside it";
  }
  return out;
}

/// The corpus alone: the same records, as many at a time as a loader reads together.
inline comparison read_case(const loading_case& what, const settings& how) {
  const auto loader = std::make_shared<measured_loader>(corpus_of(what, how), what);
  const auto file = std::make_shared<const lanepack::input_file>(loader->corpus().bin(),
                                                                 lanepack::file_access::mapped);
  const auto buffers = std::make_shared<rotating_buffers>(
      loader->ring_bytes(), loader->capacity() * loader->corpus().token_bytes());
  const auto targets = std::make_shared<rotating_buffers>(
      loader->ring_bytes(), loader->capacity() * sizeof(std::int32_t));
  const auto ids = std::make_shared<std::vector<std::uint64_t>>();
  {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> by_offset;
    for (std::uint64_t id = 0; id < loader->corpus().records(); ++id) {
      by_offset.emplace_back(loader->corpus().offset(id), id);
    }
    for (const copied_record& record : loader->steps().records) {
      const auto at = std::lower_bound(by_offset.begin(), by_offset.end(),
                                       std::pair<std::uint64_t, std::uint64_t>(record.offset, 0));
      ids->push_back(at->second);
    }
  }
  comparison out;
  out.item = "tokens";
  out.items_per_run = static_cast<double>(loader->steps().tokens);
  out.bytes_per_run = out.items_per_run * static_cast<double>(loader->corpus().token_bytes());
  out.same_checksum = true;
  out.variants.push_back({"read",
                          [=] {
                            const std::vector<copied_record>& records = loader->steps().records;
                            std::vector<lanepack::record_read> reads;
                            std::uint64_t sum = 0;
                            std::int32_t* to = nullptr;
                            std::size_t micro_batches = 0;
                            for (std::size_t i = 0; i < records.size(); ++i) {
                              if (records[i].starts_micro_batch) {
                                to = reinterpret_cast<std::int32_t*>(targets->next());
                                ++micro_batches;
                              }
                              reads.push_back({.id = (*ids)[i],
                                               .first_token = 0,
                                               .tokens = {to, records[i].tokens},
                                               .loss_mask = {}});
                              to += records[i].tokens;
                              const bool last = i + 1 == records.size();
                              if (!last &&
                                  !(records[i + 1].starts_micro_batch && micro_batches % 4 == 0))
                                continue;
                              loader->source().read(reads);
                              for (const lanepack::record_read& read : reads) {
                                sum = add_record(sum, read.tokens.size(),
                                                 static_cast<std::uint64_t>(read.tokens.front()),
                                                 static_cast<std::uint64_t>(read.tokens.back()));
                              }
                              reads.clear();
                            }
                            return sum;
                          },
                          [] {}});
  out.variants.push_back(
      {"memcpy", [=] { return copy_records(*loader, file->mapping(), *buffers); }, [] {}});
  return out;
}

inline void add_loading_benchmarks(std::vector<benchmark>& out) {
  using lanepack::file_access;
  using lanepack::shuffle_kind;
  using lanepack::token_type;
  const auto add = [&out](const loading_case& what) {
    out.push_back(
        {"loader" + what.name(), [what](const settings& how) { return loader_case(what, how); }});
  };
  const auto add_read = [&out](const loading_case& what) {
    out.push_back({"corpus/read" + what.name(),
                   [what](const settings& how) { return read_case(what, how); }});
  };
  // Neighbours share a corpus.
  for (const std::string lengths : {"500", "2000", "8000", "dialogues", "tasks"}) {
    for (const token_type type : {token_type::i32, token_type::u16}) {
      loading_case base;
      base.lengths = lengths;
      base.type = type;
      if (type == token_type::u16 && lengths != "500" && lengths != "dialogues") continue;
      for (const file_access access : {file_access::positioned, file_access::mapped}) {
        loading_case what = base;
        what.access = access;
        for (const shuffle_kind shuffle : {shuffle_kind::full, shuffle_kind::block}) {
          what.shuffle = shuffle;
          add(what);
        }
        what.shuffle = shuffle_kind::full;
        what.all_fields = false;
        add(what);
        if (lengths == "500" && type == token_type::i32) add_read(what);
      }
    }
  }
  for (const std::string lengths : {"500", "8000"}) {
    for (const shuffle_kind shuffle : {shuffle_kind::full, shuffle_kind::block}) {
      loading_case what;
      what.lengths = lengths;
      what.shuffle = shuffle;
      what.cold = true;
      add(what);
    }
  }
}

}  // namespace lanepack_bench
