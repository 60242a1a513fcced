#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lanepack/batch.hpp>

#include "support/catch.hpp"
#include "support/gen.hpp"

using namespace lanepack;
using lanepack_test::gen;

namespace {

struct case_data {
  layout_options options;
  std::vector<std::uint64_t> lengths;
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<bool> silent;
};

case_data random_case(gen& random) {
  case_data result;
  layout_options& options = result.options;
  constexpr std::array<std::uint32_t, 8> multiples{1, 1, 2, 3, 8, 12, 16, 32};
  options.record_multiple = random.pick(std::span<const std::uint32_t>(multiples));
  options.total_multiple = random.pick(std::span<const std::uint32_t>(multiples));
  options.pad_token = static_cast<std::int32_t>(random.between(0, 3));
  options.labels = !random.one_in(4);
  options.position_ids = !random.one_in(4);
  options.loss_mask = !random.one_in(4);
  options.reads_loss_mask = random.one_in(2);
  if (random.one_in(3)) options.boundary = boundary_labels::megatron_compat;

  const std::size_t records = random.between(1, 20);
  for (std::size_t i = 0; i < records; ++i) {
    const std::uint64_t length = std::max<std::uint64_t>(1, random.heavy_tailed(9));
    result.lengths.push_back(length);
    std::vector<std::int32_t> tokens(length);
    std::vector<std::uint8_t> mask(length);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.between(0, 5));
    for (std::uint8_t& bit : mask) bit = static_cast<std::uint8_t>(random.between(0, 1));
    result.tokens.push_back(tokens);
    result.masks.push_back(mask);
    result.silent.push_back(random.one_in(6));
  }
  return result;
}

// One more byte than the layout asks for on either side, to see that nobody writes there.
struct guarded_slab {
  explicit guarded_slab(std::size_t bytes) : memory((bytes + 3) / 4 + 2, 0x5a5a5a5a), size(bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() {
    return std::as_writable_bytes(std::span(memory)).subspan(4, size);
  }
  [[nodiscard]] bool intact() const {
    return memory.front() == 0x5a5a5a5a && memory.back() == 0x5a5a5a5a;
  }
  std::vector<std::uint32_t> memory;
  std::size_t size;
};

template <class Layout>
void write(const case_data& data, Layout& layout, std::span<std::byte> slab) {
  for (std::size_t i = 0; i < data.lengths.size(); ++i) {
    const auto tokens = layout.token_span(slab, i);
    REQUIRE(tokens.size() == data.lengths[i]);
    std::copy(data.tokens[i].begin(), data.tokens[i].end(), tokens.begin());
    const auto mask = layout.mask_span(slab, i);
    REQUIRE(mask.size() == (data.options.reads_loss_mask ? data.lengths[i] : 0));
    if (!mask.empty()) std::copy(data.masks[i].begin(), data.masks[i].end(), mask.begin());
    if (data.silent[i]) layout.mask_record(i);
  }
}

bool wanted(const case_data& data, std::size_t record, std::size_t token) {
  return !data.silent[record] && (!data.options.reads_loss_mask || data.masks[record][token] != 0);
}

// What a row should hold, one position at a time.
struct expected_row {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> positions;
  std::vector<std::uint8_t> mask;
  std::uint64_t loss_tokens = 0;

  void add(std::int32_t token, std::int32_t label, bool counts, std::size_t position) {
    tokens.push_back(token);
    labels.push_back(counts ? label : ignored_label);
    positions.push_back(static_cast<std::int32_t>(position));
    mask.push_back(counts ? 1 : 0);
    loss_tokens += counts ? 1 : 0;
  }
};

void add_record(const case_data& data, std::size_t record, std::size_t padded, bool may_join,
                expected_row& row) {
  const std::size_t length = data.lengths[record];
  for (std::size_t k = 0; k < padded; ++k) {
    if (k >= length) {
      row.add(data.options.pad_token, 0, false, k);
    } else if (k + 1 < length) {
      row.add(data.tokens[record][k], data.tokens[record][k + 1], wanted(data, record, k + 1), k);
    } else {
      const bool joins = may_join && data.options.boundary == boundary_labels::megatron_compat &&
                         length == padded && record + 1 < data.lengths.size() &&
                         !data.silent[record] && wanted(data, record + 1, 0);
      row.add(data.tokens[record][k], joins ? data.tokens[record + 1][0] : 0, joins, k);
    }
  }
}

template <class T>
bool same(std::span<const T> found, const std::vector<T>& expected, bool asked) {
  if (!asked) return found.empty();
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end());
}

}  // namespace

TEST_CASE("batch: thd segments partition the row and nothing crosses a record", "[batch]") {
  lanepack_test::for_each_seed(2000, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const case_data data = random_case(random);
    const layout_options& options = data.options;
    const std::size_t records = data.lengths.size();

    expected_row row;
    std::vector<std::int32_t> real{0};
    std::vector<std::int32_t> offsets{0};
    std::int32_t longest = 0;
    std::int32_t longest_padded = 0;
    const auto segment = [&](std::size_t length, std::size_t padded) {
      real.push_back(real.back() + static_cast<std::int32_t>(length));
      offsets.push_back(offsets.back() + static_cast<std::int32_t>(padded));
      longest = std::max(longest, static_cast<std::int32_t>(length));
      longest_padded = std::max(longest_padded, static_cast<std::int32_t>(padded));
    };
    std::uint64_t tokens = 0;
    for (std::size_t i = 0; i < records; ++i) {
      std::size_t padded = data.lengths[i];
      while (padded % options.record_multiple != 0) ++padded;
      add_record(data, i, padded, true, row);
      segment(data.lengths[i], padded);
      tokens += data.lengths[i];
    }
    std::size_t end = row.tokens.size();
    while (end % options.record_multiple != 0 || end % options.total_multiple != 0) ++end;
    const std::size_t tail = end - row.tokens.size();
    for (std::size_t k = 0; k < tail; ++k) row.add(options.pad_token, 0, false, k);
    if (tail != 0) segment(tail, tail);

    thd_layout layout(options, data.lengths);
    REQUIRE(layout.total_tokens() == end);
    guarded_slab slab(layout.slab_bytes());
    write(data, layout, slab.bytes());
    const micro_batch_view batch = layout.complete(slab.bytes());
    CHECK(slab.intact());
    CHECK(same(batch.tokens(), row.tokens, true));
    CHECK(same(batch.labels(), row.labels, options.labels));
    CHECK(same(batch.position_ids(), row.positions, options.position_ids));
    CHECK(same(batch.loss_mask(), row.mask, options.loss_mask));
    CHECK(same(batch.cu_seqlens(), real, true));
    CHECK(same(batch.cu_seqlens_padded(), offsets, true));
    CHECK(batch.max_seqlen() == longest);
    CHECK(batch.max_seqlen_padded() == longest_padded);
    CHECK(batch.pad_between_segments() == (real != offsets));
    CHECK(batch.counts() == batch_counts{.records = records,
                                         .tokens = tokens,
                                         .loss_tokens = row.loss_tokens,
                                         .padding_tokens = end - tokens});
    CHECK(std::adjacent_find(real.begin(), real.end()) == real.end());
    CHECK(layout.slab_bytes() <= thd_layout::slab_bytes_bound(options, end + random.between(0, 100),
                                                              records + random.between(0, 10)));
  });
}

TEST_CASE("batch: padded rows hold each record once and padding never counts", "[batch]") {
  lanepack_test::for_each_seed(2000, [](std::uint64_t seed, gen& random) {
    CAPTURE(seed);
    const case_data data = random_case(random);
    const layout_options& options = data.options;
    const std::size_t rows = data.lengths.size();
    std::size_t width = *std::max_element(data.lengths.begin(), data.lengths.end());
    while (width % options.record_multiple != 0 || rows * width % options.total_multiple != 0) {
      ++width;
    }
    expected_row row;
    std::uint64_t tokens = 0;
    std::vector<std::int32_t> lengths;
    for (std::size_t i = 0; i < rows; ++i) {
      add_record(data, i, width, false, row);
      tokens += data.lengths[i];
      lengths.push_back(static_cast<std::int32_t>(data.lengths[i]));
    }

    padded_layout layout(options, data.lengths);
    REQUIRE(layout.width() == width);
    guarded_slab slab(layout.slab_bytes());
    write(data, layout, slab.bytes());
    const padded_view batch = layout.complete(slab.bytes());
    CHECK(slab.intact());
    CHECK(same(batch.tokens(), row.tokens, true));
    CHECK(same(batch.labels(), row.labels, options.labels));
    CHECK(same(batch.position_ids(), row.positions, options.position_ids));
    CHECK(same(batch.loss_mask(), row.mask, options.loss_mask));
    CHECK(same(batch.lengths(), lengths, true));
    CHECK(batch.counts() == batch_counts{.records = rows,
                                         .tokens = tokens,
                                         .loss_tokens = row.loss_tokens,
                                         .padding_tokens = rows * width - tokens});
    CHECK(layout.slab_bytes() <= padded_layout::slab_bytes_bound(options, rows * width, rows));
  });
}
