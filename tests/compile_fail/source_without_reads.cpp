// expect: constraints not satisfied.*record_source

#include <cstdint>
#include <span>
#include <string>

#include <lanepack/corpus/any_source.hpp>

namespace {

struct source {
  std::uint64_t size() const { return 0; }
  lanepack::source_traits traits() const { return {}; }
  void shapes(std::span<const lanepack::record_id>, std::span<lanepack::record_shape>) const {}
  void read(std::span<const lanepack::record_read>) const {}
  lanepack::digest128 fingerprint() const { return {}; }
  std::string describe() const { return "empty"; }
};

struct source_without_reads : private source {
  using source::describe;
  using source::fingerprint;
  using source::shapes;
  using source::size;
  using source::traits;
};

}  // namespace

int main() {
  const lanepack::any_source good(source{});
#ifdef COMPILE_FAIL
  const lanepack::any_source bad(source_without_reads{});
#endif
  return static_cast<int>(good.size());
}
