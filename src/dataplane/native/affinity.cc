/** The calling thread's CPU: pinning it, asking for it, its time; and the monotonic clock. */
#include "affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mutex>

#include "arguments.h"
#include "clock.h"

namespace penstock {

constexpr int kCpus = 8192;
constexpr size_t kSetBytes = kCpus / 8;

/** cpu_set_t ends at 1024; the CPU_*_S macros and the kernel take larger ones. */
union CpuSet {
  cpu_set_t set;
  unsigned char bytes[kSetBytes];
};

static CpuSet initial;

void rememberAffinity() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The main thread's, even when a worker loads the addon first.
    if (sched_getaffinity(getpid(), kSetBytes, &initial.set) < 0) memset(&initial, 0, sizeof initial);
  });
}

napi_value now(napi_env env, napi_callback_info) {
  return toNumber(env, static_cast<double>(monotonic()));
}

napi_value readClock(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "readClock", 1);
  const Span<double> time = arguments.float64s(0, "time", 1);
  if (!arguments.failed()) time.data[0] = static_cast<double>(monotonic());
  return nullptr;
}

napi_value affinity(napi_env env, napi_callback_info) {
  napi_value list = nullptr;
  napi_create_array(env, &list);
  uint32_t length = 0;
  for (int cpu = 0; cpu < kCpus; cpu++) {
    if (CPU_ISSET_S(cpu, kSetBytes, &initial.set)) napi_set_element(env, list, length++, toInteger(env, cpu));
  }
  return list;
}

napi_value setAffinity(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "setAffinity", 1);
  if (arguments.failed()) return nullptr;
  bool array = false;
  napi_is_array(env, arguments.raw(0), &array);
  if (!array) {
    arguments.type("cpus", "an array of numbers");
    return nullptr;
  }
  uint32_t length = 0;
  napi_get_array_length(env, arguments.raw(0), &length);
  CpuSet wanted;
  memset(&wanted, 0, sizeof wanted);
  std::string text;
  for (uint32_t i = 0; i < length; i++) {
    napi_value element = nullptr;
    double cpu = -1;
    napi_get_element(env, arguments.raw(0), i, &element);
    if (napi_get_value_double(env, element, &cpu) != napi_ok) {
      arguments.type("cpus", "an array of numbers");
      return nullptr;
    }
    if (!(cpu >= 0 && cpu < kCpus) || cpu != static_cast<int>(cpu)) {
      throwRange(env, "setAffinity: %.17g is no CPU number", cpu);
      return nullptr;
    }
    CPU_SET_S(static_cast<int>(cpu), kSetBytes, &wanted.set);
    text += (i ? "," : "") + std::to_string(static_cast<int>(cpu));
  }
  if (length == 0) wanted = initial;
  if (sched_setaffinity(0, kSetBytes, &wanted.set) < 0) throwSystem(env, errno, "sched_setaffinity", "CPUs " + text);
  return nullptr;
}

napi_value currentCpu(napi_env env, napi_callback_info) { return toInteger(env, sched_getcpu()); }

napi_value threadCpuTime(napi_env env, napi_callback_info) {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return toNumber(env, static_cast<double>(time.tv_sec * 1000000000ll + time.tv_nsec));
}

}  // namespace penstock
