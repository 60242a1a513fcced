#include <lanepack/corpus/megatron_loss_mask.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <lanepack/corpus/megatron.hpp>
#include <lanepack/corpus/open.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

namespace {

using rows = std::vector<std::vector<std::int32_t>>;
using counts = std::vector<std::uint32_t>;

const rows tokens = {{10, 11, 12, 13}, {}, {20}, {30, 31, 32}};
const rows masks = {{1, 0, 1, 1}, {}, {1}, {0, 0, 1}};

struct masked_corpus {
  scratch_dir scratch;
  std::string prefix = scratch.path("corpus");

  explicit masked_corpus(const rows& mask = masks, token_type type = token_type::u8) {
    write(prefix, tokens, token_type::u16);
    write(prefix + "_loss_mask", mask, type);
  }

  static void write(const std::string& path, const rows& sequences, token_type type) {
    megatron_writer writer(path, {.type = type});
    for (const auto& sequence : sequences) writer.add_document(sequence);
    writer.finish();
  }

  void write_counts(const counts& values) const {
    write_file(prefix + "_loss_tokens.u32", little_endian(std::span<const std::uint32_t>(values)));
  }
};

std::vector<std::uint64_t> loss_tokens_of(const megatron_source& source) {
  std::vector<std::uint64_t> all;
  for (record_id id = 0; id < source.size(); ++id) {
    record_shape shape;
    source.shapes({&id, 1}, {&shape, 1});
    all.push_back(shape.loss_tokens);
  }
  return all;
}

std::vector<std::uint8_t> mask_of(const megatron_source& source, record_id id, std::uint64_t first,
                                  std::size_t count) {
  std::vector<std::int32_t> out(count);
  std::vector<std::uint8_t> mask(count, 9);
  const std::array<record_read, 2> reads = {record_read{3, 0, {out.data(), 1}, {}},
                                            record_read{id, first, out, mask}};
  source.read(reads);
  return mask;
}

std::string failure_of(auto&& action) {
  try {
    action();
  } catch (const data_error& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace

TEST_CASE("megatron loss mask: read with the tokens", "[megatron][loss_mask]") {
  const masked_corpus files;
  const auto check = [&](const megatron_source& source) {
    CHECK(source.traits().has_loss_mask);
    CHECK_THAT(source.describe(), ContainsSubstring("with a loss mask"));
    CHECK(loss_tokens_of(source) == std::vector<std::uint64_t>{2, 0, 0, 1});
    CHECK(mask_of(source, 0, 0, 4) == std::vector<std::uint8_t>{1, 0, 1, 1});
    CHECK(mask_of(source, 0, 1, 2) == std::vector<std::uint8_t>{0, 1});
    CHECK(mask_of(source, 3, 2, 1) == std::vector<std::uint8_t>{1});
  };
  const digest128 counted = [&] {
    const megatron_source source(files.prefix);
    check(source);
    return source.fingerprint();
  }();
  files.write_counts({2, 0, 0, 1});
  for (const file_access access : {file_access::positioned, file_access::mapped}) {
    for (const std::uint64_t cache : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      megatron_options options;
      options.access = options.index_access = access;
      options.index_cache_bytes = cache;
      check(megatron_source(files.prefix, options));
    }
  }
  megatron_options options;
  options.record = megatron_record::document;
  check(megatron_source(files.prefix, options));
  CHECK(megatron_source(files.prefix).fingerprint() == counted);

  options = {};
  options.loss_mask = megatron_loss_mask::none;
  const megatron_source without(files.prefix, options);
  CHECK_FALSE(without.traits().has_loss_mask);
  CHECK(loss_tokens_of(without) == std::vector<std::uint64_t>{3, 0, 0, 2});
  CHECK(mask_of(without, 0, 0, 4) == std::vector<std::uint8_t>{1, 1, 1, 1});
  CHECK(without.fingerprint() != counted);
  CHECK(without.identity() != megatron_source(files.prefix).identity());
}

TEST_CASE("megatron loss mask: a saved summary knows of it", "[megatron][loss_mask]") {
  const masked_corpus files;
  const open_options options{.summary = summary_use::always};
  CHECK(open_corpus(files.prefix, options).summary->loss_tokens == 3);
  CHECK(open_corpus(files.prefix, options).summary->loss_tokens == 3);
  // Written anew, the corpus has no mask any more.
  masked_corpus::write(files.prefix, tokens, token_type::u16);
  CHECK(open_corpus(files.prefix, options).summary->loss_tokens == 5);
  masked_corpus::write(files.prefix + "_loss_mask", {{1, 1, 1, 1}, {}, {1}, {0, 0, 0}},
                       token_type::u8);
  CHECK(open_corpus(files.prefix, options).summary->loss_tokens == 3);
  CHECK(open_corpus(files.prefix, options).source.traits().has_loss_mask);
}

TEST_CASE("megatron loss mask: what does not fit is refused", "[megatron][loss_mask]") {
  const auto failure = [](const masked_corpus& files) {
    return failure_of([&] {
      const megatron_source source(files.prefix);
      loss_tokens_of(source);
      mask_of(source, 0, 0, 4);
      mask_of(source, 3, 0, 3);
    });
  };
  CHECK_THAT(failure(masked_corpus({{1, 0, 2, 1}, {}, {1}, {0, 0, 1}})),
             ContainsSubstring("_loss_mask.bin, byte 2: found 2 in a loss mask, expected 0 or 1"));
  CHECK_THAT(failure(masked_corpus({{1, 0, 1}, {}, {1}, {0, 0, 1}})),
             ContainsSubstring("found 4 sequences and 7 values, expected 4 and 8"));
  CHECK_THAT(failure(masked_corpus({{1, 0, 1, 1}, {1}, {0, 0, 1}})),
             ContainsSubstring("found 3 sequences and 8 values, expected 4 and 8"));
  CHECK_THAT(failure(masked_corpus({{1, 0, 1}, {1}, {1}, {0, 0, 1}})),
             ContainsSubstring("found a mask of 3 values from 0 on, expected 4 from 0 on"));
  CHECK_THAT(failure(masked_corpus(masks, token_type::u16)),
             ContainsSubstring("byte 17: loss mask: found values of type u16, expected u8"));
  {
    const masked_corpus files;
    files.write_counts({2, 0, 0});
    CHECK_THAT(failure(files), ContainsSubstring("_loss_tokens.u32, byte 12: found a file of 12 "
                                                 "bytes, expected 16"));
    files.write_counts({2, 0, 1, 1});
    CHECK_THAT(failure(files), ContainsSubstring("byte 8, record 2: found 1 loss tokens, expected "
                                                 "at most 0 in a sequence of 1 tokens"));
  }
  {
    const masked_corpus files;
    masked_corpus::write(files.prefix, tokens, token_type::u16);
    megatron_options options;
    options.loss_mask = megatron_loss_mask::required;
    CHECK_THAT(failure_of([&] { megatron_source(files.prefix, options); }),
               ContainsSubstring("_loss_mask.bin: cannot open the file"));
  }
}

TEST_CASE("megatron loss mask: documents of several sequences have none", "[megatron][loss_mask]") {
  const scratch_dir scratch;
  for (const bool is_mask : {false, true}) {
    megatron_writer writer(scratch.path(is_mask ? "c_loss_mask" : "c"),
                           {.type = is_mask ? token_type::u8 : token_type::u16});
    const std::array<std::int32_t, 2> pair = {1, 1};
    writer.add_sequence(pair);
    writer.add_sequence(pair);
    writer.finish();
  }
  megatron_options options;
  options.record = megatron_record::document;
  const megatron_source source(scratch.path("c"), options);
  CHECK_THAT(failure_of([&] { loss_tokens_of(source); }),
             ContainsSubstring("found a document of 2 sequences beside a loss mask"));
  CHECK(loss_tokens_of(megatron_source(scratch.path("c"))) == std::vector<std::uint64_t>{1, 1});
}
