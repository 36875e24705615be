/** The clock that runs live by. */
#pragma once
#include <stdint.h>
#include <time.h>

namespace penstock {

/** CLOCK_MONOTONIC in nanoseconds. */
inline int64_t monotonic() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

}  // namespace penstock
