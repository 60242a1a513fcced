// Linked with other.cpp, which includes the same headers: a function or variable that a header
// defines without `inline` is a duplicate symbol.

#include "all_headers.hpp"

int odr_version_in_other();

int main() {
  return odr_version_in_other() == LANEPACK_VERSION_MINOR ? 0 : 1;
}
