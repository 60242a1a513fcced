// Costs are integers, so that every compiler and machine orders records alike.
// expect: constraints not satisfied.*cost_estimator

#include <cstdint>
#include <span>
#include <string>

#include <lanepack/cost/concept.hpp>

namespace {

template <class Cost>
struct estimator {
  void costs(std::span<const lanepack::record_shape> shapes, std::span<Cost> out) const {
    for (std::size_t i = 0; i < shapes.size(); ++i) out[i] = static_cast<Cost>(shapes[i].tokens);
  }
  std::string describe() const { return "tokens"; }
};

}  // namespace

int main() {
  const lanepack::any_estimator good(estimator<std::uint64_t>{});
#ifdef COMPILE_FAIL
  const lanepack::any_estimator bad(estimator<double>{});
#endif
  return good.describe().empty() ? 1 : 0;
}
