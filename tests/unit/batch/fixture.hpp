#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace lanepack_test {

/// A slab full of a byte that no field should keep, aligned to 64 bytes.
class test_slab {
 public:
  explicit test_slab(std::size_t bytes)
      : size_(bytes), data_(static_cast<std::byte*>(::operator new(bytes, alignment))) {
    std::memset(data_, 0xa5, bytes);
  }
  test_slab(const test_slab&) = delete;
  test_slab& operator=(const test_slab&) = delete;
  ~test_slab() { ::operator delete(data_, alignment); }

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  static constexpr std::align_val_t alignment{64};
  std::size_t size_;
  std::byte* data_;
};

template <class T>
std::vector<int> numbers(std::span<const T> values) {
  return std::vector<int>(values.begin(), values.end());
}

/// Writes consecutive token ids from `first` into all records, and 1 into all masks.
template <class Layout>
void write_records(const Layout& layout, std::span<std::byte> slab, std::size_t records,
                   std::int32_t first) {
  for (std::size_t i = 0; i < records; ++i) {
    for (std::int32_t& token : layout.token_span(slab, i)) token = first++;
    for (std::uint8_t& mask : layout.mask_span(slab, i)) mask = 1;
  }
}

}  // namespace lanepack_test
