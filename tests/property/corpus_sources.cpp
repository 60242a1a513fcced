// The sources of token files and of shards against records in memory.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lanepack/corpus/megatron.hpp>
#include <lanepack/corpus/memory.hpp>
#include <lanepack/corpus/open.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/token_file.hpp>
#include <lanepack/corpus/webdataset.hpp>
#include <lanepack/json/mds.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/mds.hpp"
#include "support/scratch.hpp"
#include "support/tar.hpp"

using namespace lanepack;
using lanepack_test::gen;
using lanepack_test::scratch_dir;

namespace {

constexpr std::array<token_type, 8> all_types = {token_type::u8,  token_type::i8,  token_type::u16,
                                                 token_type::i16, token_type::u32, token_type::i32,
                                                 token_type::u64, token_type::i64};

std::vector<std::vector<std::int32_t>> random_records(gen& random, std::int32_t largest) {
  std::vector<std::vector<std::int32_t>> records(random.between(0, 200));
  for (auto& record : records) {
    record.resize(random.one_in(5) ? 0 : random.heavy_tailed(11));
    for (std::int32_t& token : record) {
      token = static_cast<std::int32_t>(random.between(0, static_cast<std::uint64_t>(largest)));
    }
  }
  return records;
}

/// Shapes and random reads of both sources are the same.
void require_same(const any_source& found, const any_source& expected, gen& random) {
  REQUIRE(found.size() == expected.size());
  std::vector<record_id> ids(found.size());
  std::iota(ids.begin(), ids.end(), record_id{0});
  random.shuffle(std::span(ids));
  std::vector<record_shape> shapes(ids.size());
  std::vector<record_shape> expected_shapes(ids.size());
  found.shapes(ids, shapes);
  expected.shapes(ids, expected_shapes);
  REQUIRE(shapes == expected_shapes);
  if (ids.empty()) return;

  // Parts of records in any order, some of them twice, some empty.
  struct wanted {
    std::vector<std::int32_t> tokens;
    std::vector<std::uint8_t> mask;
  };
  const std::size_t count = random.between(0, 300);
  std::vector<wanted> mine(count);
  std::vector<wanted> theirs(count);
  std::vector<record_read> reads;
  std::vector<record_read> expected_reads;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t which = random.between(0, ids.size() - 1);
    const std::uint64_t length = shapes[which].tokens;
    const std::uint64_t first = random.one_in(2) ? 0 : random.between(0, length);
    const std::uint64_t size =
        random.one_in(2) ? length - first : random.between(0, length - first);
    const std::size_t mask_size = random.one_in(2) ? size : 0;
    for (auto* side : {&mine[i], &theirs[i]}) {
      side->tokens.assign(size, -1);
      side->mask.assign(mask_size, 9);
    }
    reads.push_back({ids[which], first, mine[i].tokens, mine[i].mask});
    expected_reads.push_back({ids[which], first, theirs[i].tokens, theirs[i].mask});
  }
  found.read(reads);
  expected.read(expected_reads);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(mine[i].tokens == theirs[i].tokens);
    REQUIRE(mine[i].mask == theirs[i].mask);
  }
}

/// Payloads of both sources are the same.
void require_same_payloads(const any_source& found, const any_source& expected, gen& random) {
  const std::size_t payloads = expected.payload_names().size();
  REQUIRE(found.payload_names().size() == payloads);
  std::vector<record_id> ids(found.size());
  std::iota(ids.begin(), ids.end(), record_id{0});
  random.shuffle(std::span(ids));
  std::vector<std::vector<std::byte>> bytes;
  std::vector<payload_read> reads;
  std::vector<payload_read> expected_reads;
  bytes.reserve(2 * payloads * ids.size());
  for (std::size_t p = 0; p < payloads; ++p) {
    REQUIRE(found.payload_names()[p] == expected.payload_names()[p]);
    std::vector<payload_shape> shapes(ids.size());
    std::vector<payload_shape> expected_shapes(ids.size());
    found.payload_shapes(p, ids, shapes);
    expected.payload_shapes(p, ids, expected_shapes);
    REQUIRE(shapes == expected_shapes);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      for (auto* side : {&reads, &expected_reads}) {
        bytes.emplace_back(static_cast<std::size_t>(shapes[i].bytes()));
        side->push_back({ids[i], p, bytes.back()});
      }
    }
  }
  found.read_payloads(reads);
  expected.read_payloads(expected_reads);
  for (std::size_t i = 0; i < bytes.size(); i += 2) REQUIRE(bytes[i] == bytes[i + 1]);
  REQUIRE(found.largest_payload().bytes == expected.largest_payload().bytes);
}

/// Records in memory and the same in a dataset of either kind, with "x.npy", rows of three 16-bit
/// numbers, and "raw", bytes, as payloads.
struct shards_and_memory {
  any_source memory = memory_source({}, {0});
  std::string mds;
  std::vector<std::string> tars;
};

shards_and_memory make_shards(gen& random, const scratch_dir& scratch, token_type type) {
  const auto records = random_records(random, max_token_id(type));
  shards_and_memory made;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::uint8_t> mask;
  std::vector<memory_payload> payloads(2);
  payloads[0].name = "x.npy";
  payloads[1].name = "raw";
  std::vector<std::vector<std::vector<std::string>>> shards;
  std::vector<std::string> archives;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i == 0 || random.one_in(20)) {
      shards.emplace_back();
      archives.emplace_back();
    }
    const std::string key = "s" + std::to_string(i);
    std::string ids;
    detail::with_token_type(type, [&](auto zero) {
      for (const std::int32_t token : records[i]) {
        ids += lanepack_test::little_endian(static_cast<decltype(zero)>(token));
      }
    });
    tokens.insert(tokens.end(), records[i].begin(), records[i].end());
    offsets.push_back(tokens.size());
    std::string own_mask;
    for (std::size_t k = 0; k < records[i].size(); ++k) {
      own_mask.push_back(static_cast<char>(random.between(0, 1)));
      mask.push_back(static_cast<std::uint8_t>(own_mask.back()));
    }
    const std::uint64_t rows = random.between(1, 3);
    const std::array<std::string, 2> contents = {std::string(rows * 6, static_cast<char>(i)),
                                                 std::string(random.between(0, 700), 'r')};
    payloads[0].shapes.emplace_back(payload_type::i16,
                                    std::initializer_list<std::uint64_t>{rows, 3});
    payloads[1].shapes.emplace_back(payload_type::u8,
                                    std::initializer_list<std::uint64_t>{contents[1].size()});
    for (std::size_t p = 0; p < 2; ++p) {
      for (const char byte : contents[p]) payloads[p].bytes.push_back(static_cast<std::byte>(byte));
    }
    const std::string head = std::string(1, '\x08') + static_cast<char>(rows) + '\x03';
    shards.back().push_back({own_mask, contents[1], ids, head + contents[0]});
    archives.back() +=
        lanepack_test::tar_member_bytes(key + ".ids", ids) +
        lanepack_test::tar_member_bytes(key + ".mask", own_mask) +
        lanepack_test::tar_member_bytes(
            key + ".x.npy",
            lanepack_test::npy_bytes("<i2", "(" + std::to_string(rows) + ", 3)", contents[0])) +
        lanepack_test::tar_member_bytes(key + ".raw", contents[1]);
  }
  if (archives.empty()) archives.emplace_back();
  made.memory = memory_source(std::move(tokens), std::move(offsets), std::move(mask), {},
                              std::move(payloads));
  made.mds = scratch.path();
  lanepack_test::write_mds(made.mds,
                           {{"mask", "bytes", 0},
                            {"raw", "bytes", 0},
                            {"tokens", "bytes", 0},
                            {"x.npy", "ndarray:int16", 0}},
                           shards);
  for (std::size_t i = 0; i < archives.size(); ++i) {
    made.tars.push_back(scratch.path(std::to_string(i) + ".tar"));
    lanepack_test::write_file(made.tars.back(), archives[i] + lanepack_test::tar_end());
  }
  return made;
}

any_source open_shards(const shards_and_memory& made, bool mds, token_type type,
                       const shard_options& shards) {
  if (mds) {
    mds_record_options options;
    options.bytes_type = type;
    options.loss_mask = "mask";
    options.payloads = {"x.npy", "raw"};
    return open_mds(made.mds, options, shards);
  }
  webdataset_options options;
  options.tokens = "ids";
  options.numbers_type = type;
  options.loss_mask = "mask";
  options.payloads = {"x.npy", "raw"};
  return open_webdataset(made.tars, options, shards);
}

shard_options random_shard_options(gen& random) {
  shard_options options;
  options.threads = static_cast<unsigned>(random.between(1, 3));
  options.most_open_files = random.between(1, 3);
  options.cache_index = random.one_in(2);
  return options;
}

file_access random_access(gen& random) {
  return random.one_in(2) ? file_access::mapped : file_access::positioned;
}

}  // namespace

TEST_CASE("corpus: what is written as Megatron-LM is read back", "[corpus]") {
  const scratch_dir scratch;
  lanepack_test::for_each_seed(120, [&](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const token_type type = random.pick(std::span<const token_type>(all_types));
    const auto sequences = random_records(random, max_token_id(type));
    std::vector<std::vector<std::int32_t>> documents;
    bool open = false;
    {
      megatron_writer writer(scratch.path("m"), {.type = type});
      for (const auto& sequence : sequences) {
        if (!open) documents.emplace_back();
        documents.back().insert(documents.back().end(), sequence.begin(), sequence.end());
        writer.add_sequence(sequence);
        open = !random.one_in(2);
        if (!open) writer.end_document();
      }
      writer.finish();
    }
    megatron_options options;
    options.access = random_access(random);
    options.index_access = random_access(random);
    if (random.one_in(2)) options.index_cache_bytes = 0;
    if (random.one_in(3)) options.pointers = megatron_pointers::recomputed;
    options.threads = static_cast<unsigned>(random.between(1, 3));
    require_same(megatron_source(scratch.path("m"), options), memory_source(sequences), random);
    options.record = megatron_record::document;
    require_same(megatron_source(scratch.path("m"), options), memory_source(documents), random);
  });
  REQUIRE(scratch.entries() == 2);
}

TEST_CASE("corpus: a token file is cut at every end-of-text token", "[corpus]") {
  const scratch_dir scratch;
  lanepack_test::for_each_seed(120, [&](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const token_type type = random.pick(std::span<const token_type>(all_types));
    const std::int32_t largest = max_token_id(type);
    const auto end_of_text =
        static_cast<std::int32_t>(random.between(0, static_cast<std::uint64_t>(largest)));
    const bool in_front = random.one_in(2);
    std::vector<std::vector<std::int32_t>> documents = random_records(random, largest);
    std::vector<std::int32_t> tokens;
    for (auto& document : documents) {
      for (std::int32_t& token : document) {
        if (token == end_of_text) token = end_of_text == 0 ? 1 : 0;
      }
      document.insert(in_front ? document.begin() : document.end(), end_of_text);
    }
    if (!documents.empty() && random.one_in(3)) {
      // A file that is a part of a longer run starts or ends inside a document.
      auto& part = in_front ? documents.front() : documents.back();
      part.erase(in_front ? part.begin() : part.end() - 1);
      if (part.empty()) documents.erase(in_front ? documents.begin() : documents.end() - 1);
    }
    for (const auto& document : documents) {
      tokens.insert(tokens.end(), document.begin(), document.end());
    }
    if (std::find(tokens.begin(), tokens.end(), end_of_text) == tokens.end()) return;
    std::string bytes;
    detail::with_token_type(type, [&](auto zero) {
      for (const std::int32_t token : tokens) {
        bytes += lanepack_test::little_endian(static_cast<decltype(zero)>(token));
      }
    });
    lanepack_test::write_file(scratch.path("f.bin"), bytes);
    token_file_options options;
    options.type = type;
    options.end_of_text = end_of_text;
    options.place = in_front ? end_of_text_place::first : end_of_text_place::last;
    options.access = random_access(random);
    options.threads = static_cast<unsigned>(random.between(1, 3));
    const memory_source expected(documents);
    // The second time the cut comes from the cache.
    require_same(token_file_source(scratch.path("f.bin"), options), expected, random);
    require_same(token_file_source(scratch.path("f.bin"), options), expected, random);
  });
}

TEST_CASE("corpus: summaries agree with the records whatever the source", "[corpus]") {
  const scratch_dir scratch;
  lanepack_test::for_each_seed(60, [&](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const auto records = random_records(random, 65535);
    {
      megatron_writer writer(scratch.path("m"), {.type = token_type::u16});
      for (const auto& record : records) writer.add_document(record);
      writer.finish();
    }
    open_options options;
    options.summary = summary_use::always;
    options.threads = static_cast<unsigned>(random.between(1, 3));
    const opened_corpus corpus = open_corpus(scratch.path("m"), options);
    corpus_summary expected = summarize(memory_source(records), {.threads = 1});
    expected.fingerprint = corpus.source.fingerprint();
    REQUIRE(corpus.summary == expected);
    REQUIRE(open_corpus(scratch.path("m")).summary == expected);
  });
}

TEST_CASE("corpus: one damaged byte or a cut is an error or leaves whole records", "[corpus]") {
  const scratch_dir scratch;
  lanepack_test::for_each_seed(400, [&](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const auto records = random_records(random, 65535);
    {
      megatron_writer writer(scratch.path("m"));
      for (const auto& record : records) writer.add_document(record);
      writer.finish();
    }
    const std::string path = scratch.path(random.one_in(3) ? "m.bin" : "m.idx");
    std::string bytes = lanepack_test::read_file(path);
    if (bytes.empty()) return;
    const std::size_t at = random.between(0, bytes.size() - 1);
    if (random.one_in(4)) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(random.between(1, 255)));
    }
    lanepack_test::write_file(path, bytes);
    megatron_options options;
    options.threads = 1;
    options.access = random_access(random);
    options.index_access = random_access(random);
    if (random.one_in(2)) options.record = megatron_record::document;
    try {
      const megatron_source source(scratch.path("m"), options);
      std::vector<record_id> ids(source.size());
      std::iota(ids.begin(), ids.end(), record_id{0});
      std::vector<record_shape> shapes(ids.size());
      source.shapes(ids, shapes);
      std::vector<std::int32_t> tokens;
      for (const record_id id : ids) {
        tokens.resize(shapes[id].tokens);
        const record_read read{.id = id, .first_token = 0, .tokens = tokens, .loss_mask = {}};
        source.read(std::span(&read, 1));
        for (const std::int32_t token : tokens) REQUIRE(token >= 0);
      }
    } catch (const data_error& failure) {
      REQUIRE(std::string(failure.what()).find(scratch.path("m")) == 0);
      REQUIRE(failure.where().byte_offset.has_value());
    }
  });
}

TEST_CASE("corpus: shards hold what was written, with payloads", "[corpus]") {
  lanepack_test::for_each_seed(25, [&](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const scratch_dir scratch;
    const token_type type = random.pick(std::span<const token_type>(all_types));
    const shards_and_memory made = make_shards(random, scratch, type);
    for (const bool mds : {true, false}) {
      CAPTURE(mds);
      const shard_options options = random_shard_options(random);
      const any_source first = open_shards(made, mds, type, options);
      require_same(first, made.memory, random);
      require_same_payloads(first, made.memory, random);
      // The second time it may come from the index.
      const any_source second = open_shards(made, mds, type, options);
      REQUIRE(second.fingerprint() == first.fingerprint());
      require_same(second, made.memory, random);
      require_same_payloads(second, made.memory, random);
    }
  });
}

TEST_CASE("corpus: one damaged byte or a cut of a shard is an error or leaves whole records",
          "[corpus]") {
  lanepack_test::for_each_seed(40, [&](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const scratch_dir scratch;
    const token_type type = random.pick(std::span<const token_type>(all_types));
    const shards_and_memory made = make_shards(random, scratch, type);
    const bool mds = random.one_in(2);
    if (mds && made.memory.size() == 0) return;
    const std::string path = mds ? made.mds + "/shard.0.mds" : made.tars[0];
    std::string bytes = lanepack_test::read_file(path);
    const std::size_t at = random.between(0, bytes.size() - 1);
    if (random.one_in(4)) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(random.between(1, 255)));
    }
    lanepack_test::write_file(path, bytes);
    shard_options options = random_shard_options(random);
    options.cache_index = false;
    try {
      const any_source source = open_shards(made, mds, type, options);
      std::vector<std::int32_t> tokens;
      for (record_id id = 0; id < source.size(); ++id) {
        record_shape shape;
        source.shapes({&id, 1}, {&shape, 1});
        tokens.resize(shape.tokens);
        const record_read read{.id = id, .first_token = 0, .tokens = tokens, .loss_mask = {}};
        source.read(std::span(&read, 1));
        for (const std::int32_t token : tokens) REQUIRE(token >= 0);
      }
    } catch (const data_error& failure) {
      REQUIRE(failure.where().path == path);
      REQUIRE(failure.where().byte_offset.has_value());
    }
  });
}
