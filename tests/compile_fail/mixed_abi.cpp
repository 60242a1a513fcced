// A checked and an unchecked build are different types: a symbol of one is no symbol of the other.
// expect: (v0_1_checked|no type named|does not name|has no member|is not a member)

#include <lanepack/core/types.hpp>

int main() {
  using lanepack::v0_1::record_ref;
  record_ref record;
#ifdef COMPILE_FAIL
  record = lanepack::v0_1_checked::record_ref{};
#endif
  return static_cast<int>(record.epoch);
}
