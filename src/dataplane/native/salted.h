/** What the ciphers have in common: packets in place behind a header of salt and counter, numbered by the caller. */
#pragma once
#include <string.h>

#include "arguments.h"
#include "memory.h"

namespace penstock {

constexpr size_t kSalt = 8;
/** Salt, counter (8). */
constexpr int kSaltedHeader = 16;
/** Counters stay below 2^53: exact in a double. */
constexpr double kCounterEnd = 9007199254740992.0;

inline uint64_t bigAt(const uint8_t* from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return __builtin_bswap64(value);
}

inline void putBig(uint8_t* to, uint64_t value) {
  const uint64_t big = __builtin_bswap64(value);
  memcpy(to, &big, sizeof big);
}

/** Packets that a call works on: memory, handles and their number, arguments 1 to 3. */
struct PacketsArguments {
  explicit PacketsArguments(Arguments& arguments)
      : memory(memoryArgument(arguments, 1)),
        handles(arguments.int32s(2, "handles", 0)),
        count(static_cast<size_t>(arguments.integer(3, "count", 0, static_cast<int64_t>(handles.length)))) {}
  /** Puts the packets into `state().packets`; false after throwing, also when an argument was wrong. */
  bool packets(Arguments& arguments) const {
    return !arguments.failed() && packetsArgument(arguments, *memory, handles, 0, count);
  }
  Memory* memory;
  Span<int32_t> handles;
  size_t count;
};

/** The same of a call that numbers its packets: the first counter, and where those go that fail, arguments `index` and the next. */
struct NumberedArguments : PacketsArguments {
  NumberedArguments(Arguments& arguments, size_t index)
      : PacketsArguments(arguments),
        counter(arguments.float64s(index, "counter", 1)),
        failed(arguments.int32s(index + 1, "failed", count)) {}
  /** As `packets`, and the first counter into `next`; throws too when there are not counters enough. */
  bool numbered(Arguments& arguments, uint64_t* next) const {
    if (!packets(arguments)) return false;
    const double first = counter.data[0];
    if (!(first >= 0 && first + static_cast<double>(count) < kCounterEnd) ||
        first != static_cast<double>(static_cast<uint64_t>(first))) {
      throwRange(arguments.env(), "%s: counter %.17g is used up or no whole number below 2^53", arguments.function(), first);
      return false;
    }
    *next = static_cast<uint64_t>(first);
    return true;
  }
  Span<double> counter;
  Span<int32_t> failed;
};

}  // namespace penstock
