/** The clock that runs live by. */
#pragma once
#include <stdint.h>
#include <time.h>

namespace penstock {

inline int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1000000000ll + time.tv_nsec; }

/** CLOCK_MONOTONIC in nanoseconds. */
inline int64_t monotonic() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return nanoseconds(time);
}

/** CLOCK_REALTIME, by which the kernel stamps what it receives, in nanoseconds since the Unix epoch. */
inline int64_t realtime() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return nanoseconds(time);
}

}  // namespace penstock
