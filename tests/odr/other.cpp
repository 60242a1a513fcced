#include "all_headers.hpp"

int odr_version_in_other();

int odr_version_in_other() {
  return LANEPACK_VERSION_MINOR;
}
