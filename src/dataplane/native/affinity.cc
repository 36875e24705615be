/** The calling thread's CPU: pinning it, having it alone, asking for it, its time; and the monotonic clock. */
#include "affinity.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>

#include "arguments.h"
#include "clock.h"

namespace penstock {

constexpr int kCpus = 8192;
constexpr size_t kSetBytes = kCpus / 8;
/** Of a thread that makes two system calls; what the process has for each thread is taken from it. */
constexpr size_t kAskingStackBytes = 256 * 1024;

/** cpu_set_t ends at 1024; the CPU_*_S macros and the kernel take larger ones. */
union CpuSet {
  cpu_set_t set;
  unsigned char bytes[kSetBytes];
};

static CpuSet initial;

/** The CPUs of `initial` that the kernel still allows, for whoever has a thread to ask with: none where it refuses them all. */
static void* askForInitial(void* result) {
  CpuSet& usable = *static_cast<CpuSet*>(result);
  if (sched_setaffinity(0, kSetBytes, &initial.set) < 0) {
    if (errno == EINVAL) memset(&usable, 0, sizeof usable);
    return nullptr;
  }
  CpuSet got;
  if (sched_getaffinity(0, kSetBytes, &got.set) >= 0) CPU_AND_S(kSetBytes, &usable.set, &initial.set, &got.set);
  return nullptr;
}

static pid_t threadId() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/** The list of the process's threads, open as long as one is alone on its CPUs: when it ends there may be no descriptor left to open it. */
using Tasks = std::shared_ptr<DIR>;

constexpr const char* kTasks = "/proc/self/task";

/** The threads that are pinned, and which of them the others make room for. */
class Pins {
 public:
  /** Pins the calling thread, alone where it has `tasks`, or gives it back where `cpus` is nullptr; -1 with errno where the kernel refuses. */
  int set(const CpuSet* cpus, const Tasks& tasks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const pid_t own = threadId();
    const auto before = threads_.find(own);
    const Tasks had = before == threads_.end() ? nullptr : before->second.tasks;
    const CpuSet wanted = cpus ? *cpus : others(own);
    if (sched_setaffinity(0, kSetBytes, &wanted.set) < 0) {
      // Of those that others leave none may be had any more (cpusets).
      if (cpus || errno != EINVAL || sched_setaffinity(0, kSetBytes, &initial.set) < 0) return -1;
    }
    if (cpus) {
      threads_[own] = {*cpus, tasks};
    } else if (before != threads_.end()) {
      threads_.erase(before);
    }
    if (tasks || had) makeRoom(tasks ? tasks : had);
    return 0;
  }

  /** The calling thread ends. */
  void forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto own = threads_.find(threadId());
    if (own == threads_.end()) return;
    const Tasks tasks = own->second.tasks;
    threads_.erase(own);
    if (tasks) makeRoom(tasks);
  }

  /** The CPUs of `initial` without those that the cpuset has lost since, or that are off; all of them where the kernel does not say. */
  CpuSet usable() {
    CpuSet cpus = initial;
    CpuSet main;
    if (sched_getaffinity(getpid(), kSetBytes, &main.set) < 0) return cpus;
    CPU_AND_S(kSetBytes, &main.set, &main.set, &initial.set);
    // A cpuset that loses CPUs takes them from every thread.
    if (CPU_EQUAL_S(kSetBytes, &main.set, &initial.set)) return cpus;
    // Runs that are alone on theirs may have them, or whoever has pinned the main thread: a thread of its own asks, and changes nothing for others.
    // Meanwhile none is to make room there: it would be taken for what the kernel allows.
    const std::lock_guard<std::mutex> lock(mutex_);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kAskingStackBytes);
    if (pthread_create(&thread, &attributes, askForInitial, &cpus) == 0) pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    return cpus;
  }

 private:
  struct Pin {
    CpuSet cpus;
    /** Of one that has its CPUs alone. */
    Tasks tasks;
  };

  /** What threads that are not pinned may use, `without` counted as one of them: all CPUs of the process where nothing else would be left. */
  CpuSet others(pid_t without) const {
    CpuSet left = initial;
    for (const auto& [thread, pin] : threads_) {
      for (size_t n = 0; pin.tasks && thread != without && n < kSetBytes; n++) left.bytes[n] &= static_cast<unsigned char>(~pin.cpus.bytes[n]);
    }
    return CPU_COUNT_S(kSetBytes, &left.set) > 0 ? left : initial;
  }

  void makeRoom(const Tasks& tasks) const {
    rewinddir(tasks.get());
    const CpuSet left = others(0);
    while (const dirent* task = readdir(tasks.get())) {
      const auto thread = static_cast<pid_t>(atoi(task->d_name));
      // One that has ended meanwhile needs nothing.
      if (thread > 0 && threads_.count(thread) == 0) sched_setaffinity(thread, kSetBytes, &left.set);
    }
  }

  std::mutex mutex_;
  std::map<pid_t, Pin> threads_;
};

static Pins& pins() {
  // Never destroyed: threads may end after the process has begun to.
  static Pins& all = *new Pins;
  return all;
}

void forgetAffinity() { pins().forget(); }

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

napi_value unixTime(napi_env env, napi_callback_info) {
  return toNumber(env, static_cast<double>(realtime()));
}

napi_value readClock(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "readClock", 1);
  const Span<double> time = arguments.float64s(0, "time", 1);
  if (!arguments.failed()) time.data[0] = static_cast<double>(monotonic());
  return nullptr;
}

static napi_value toList(napi_env env, const CpuSet& cpus) {
  napi_value list = nullptr;
  napi_create_array(env, &list);
  uint32_t length = 0;
  for (int cpu = 0; cpu < kCpus; cpu++) {
    if (CPU_ISSET_S(cpu, kSetBytes, &cpus.set)) napi_set_element(env, list, length++, toInteger(env, cpu));
  }
  return list;
}

napi_value affinity(napi_env env, napi_callback_info) { return toList(env, initial); }

napi_value usableCpus(napi_env env, napi_callback_info) { return toList(env, pins().usable()); }

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
  const bool alone = arguments.given() > 1 && arguments.boolean(1, "alone");
  if (arguments.failed()) return nullptr;
  Tasks tasks;
  if (alone && length > 0) {
    DIR* const open = opendir(kTasks);
    if (!open) {
      throwSystem(env, errno, "opendir", kTasks);
      return nullptr;
    }
    tasks.reset(open, closedir);
  }
  if (pins().set(length > 0 ? &wanted : nullptr, tasks) < 0) throwSystem(env, errno, "sched_setaffinity", "CPUs " + text);
  return nullptr;
}

napi_value currentCpu(napi_env env, napi_callback_info) { return toInteger(env, sched_getcpu()); }

napi_value threadCpuTime(napi_env env, napi_callback_info) {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return toNumber(env, static_cast<double>(time.tv_sec * 1000000000ll + time.tv_nsec));
}

}  // namespace penstock
