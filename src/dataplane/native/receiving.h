/** What taking batches of packets from devices and connections has in common: the call's arguments, free slots, giving packets out. */
#pragma once
#include "arguments.h"
#include "clock.h"
#include "memory.h"

namespace penstock {

/** The arguments of a receiving call from the second on; nothing of them is to be used once `arguments.failed()`. */
struct ReceiveArguments {
  explicit ReceiveArguments(Arguments& arguments)
      : memory(memoryArgument(arguments, 1)),
        handles(arguments.int32s(2, "handles", 1)),
        max(static_cast<int32_t>(arguments.integer(3, "max", 1, static_cast<int64_t>(handles.length)))),
        origin(arguments.number(4, "origin")),
        counters(arguments.float64s(5, "counters", kCounters)) {}
  Memory* memory;
  Span<int32_t> handles;
  int32_t max;
  double origin;
  Span<double> counters;
};

/** The arguments of a sending call from the second on. */
struct SendArguments {
  explicit SendArguments(Arguments& arguments)
      : memory(memoryArgument(arguments, 1)),
        handles(arguments.int32s(2, "handles", 0)),
        from(static_cast<size_t>(arguments.integer(3, "from", 0, static_cast<int64_t>(handles.length)))),
        count(static_cast<size_t>(arguments.integer(4, "count", 0, static_cast<int64_t>(handles.length - from)))),
        counters(arguments.float64s(5, "counters", kCounters)) {}
  /** Puts the packets into `state().packets`; false after throwing, also when an argument was wrong. */
  bool packets(Arguments& arguments) const {
    return !arguments.failed() && packetsArgument(arguments, *memory, handles, from, count);
  }
  Memory* memory;
  Span<int32_t> handles;
  size_t from;
  size_t count;
  Span<double> counters;
};

/** One receiving call in progress. */
struct Receiving {
  explicit Receiving(const ReceiveArguments& given)
      : memory(*given.memory),
        handles(given.handles.data),
        max(given.max),
        origin(given.origin),
        counters(given.counters.data) {}
  const Memory& memory;
  int32_t* handles;
  const int32_t max;
  /** The run's zero on CLOCK_MONOTONIC. */
  const double origin;
  double* counters;
  int32_t taken = 0;
  int32_t seen = 0;
  /** The free stack is. */
  bool damaged = false;
  /** Arrival time of what is being delivered. */
  double now = 0;

  /** The kernel has just handed something over, or there is something of before: it had arrived by now. */
  void stamp() { now = static_cast<double>(monotonic()) - origin; }

  /** The handle `depth` below the top of the free stack, -1 when there is none or the stack is damaged. */
  int32_t freeSlot(int32_t depth) {
    const int32_t count = memory.freeCount();
    if (count < 0) damaged = true;
    if (count <= depth) return -1;
    const int32_t handle = memory.freeAt(count, depth);
    if (handle < 0) damaged = true;
    return handle;
  }

  /** Takes the top of the free stack, which is `handle`; `remote` is who sent it, null for nobody. */
  void deliver(int32_t handle, size_t bytes, const uint8_t* remote) {
    memory.free[0] = loadOnce(memory.free) - 1;
    memory.admit(handle, static_cast<int32_t>(bytes), now, remote);
    handles[taken++] = handle;
    counters[kReceivedBytes] += static_cast<double>(bytes);
  }
};

}  // namespace penstock
