/** Adds regions of packet memory to others by exclusive or, with the widest vectors that the CPU has. */
#include "xor.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

namespace penstock {

// Every function carries its own target, so that the addon as a whole runs on any CPU. The unrolled vectors hide the latency of loads.
#define ADD(name, attributes, width)                                                                    \
  attributes static void name(uint8_t* to, const uint8_t* from, size_t bytes) {                         \
    typedef uint8_t Vector __attribute__((vector_size(width)));                                         \
    size_t at = 0;                                                                                      \
    for (; at + 4 * (width) <= bytes; at += 4 * (width)) {                                              \
      Vector sum[4], more[4];                                                                           \
      memcpy(sum, to + at, sizeof sum);                                                                 \
      memcpy(more, from + at, sizeof more);                                                             \
      for (int i = 0; i < 4; i++) sum[i] ^= more[i];                                                    \
      memcpy(to + at, sum, sizeof sum);                                                                 \
    }                                                                                                   \
    for (; at + (width) <= bytes; at += (width)) {                                                      \
      Vector sum, more;                                                                                 \
      memcpy(&sum, to + at, sizeof sum);                                                                \
      memcpy(&more, from + at, sizeof more);                                                            \
      sum ^= more;                                                                                      \
      memcpy(to + at, &sum, sizeof sum);                                                                \
    }                                                                                                   \
    for (; at < bytes; at++) to[at] = static_cast<uint8_t>(to[at] ^ from[at]);                          \
  }

ADD(addBy16, , 16)
#if defined(__x86_64__)
ADD(addBy32, __attribute__((target("avx2"))), 32)
ADD(addBy64, __attribute__((target("avx512f,avx512bw"))), 64)
#endif

using Add = void (*)(uint8_t*, const uint8_t*, size_t);

/** With vectors of at most `widest` bytes. */
static Add adder(int64_t widest) {
#if defined(__x86_64__)
  if (widest >= 64 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return addBy64;
  if (widest >= 32 && __builtin_cpu_supports("avx2")) return addBy32;
#else
  (void)widest;
#endif
  return addBy16;
}

static constexpr size_t kStep = 4;
static constexpr int64_t kMaxSteps = 65536;

napi_value xorAdd(napi_env env, napi_callback_info info) {
  static const Add fastest = adder(64);
  Arguments arguments(env, info, "xorAdd", 3);
  Memory* memory = memoryArgument(arguments, 0);
  const auto count = static_cast<size_t>(arguments.integer(2, "count", 0, kMaxSteps));
  Span<int32_t> steps = arguments.int32s(1, "steps", count * kStep);
  if (arguments.failed()) return nullptr;
  Add add = fastest;
  if (arguments.given() > 3) add = adder(arguments.integer(3, "widest", 16, 64));
  if (arguments.failed()) return nullptr;
  const auto slab = static_cast<int64_t>(memory->bytes());
  std::vector<int32_t>& checked = arguments.state().lengths;
  if (checked.size() < count * kStep) checked.resize(count * kStep);
  for (size_t n = 0; n < count; n++) {
    int32_t* step = checked.data() + n * kStep;
    for (size_t word = 0; word < kStep; word++) step[word] = loadOnce(steps.data + n * kStep + word);
    const int64_t target = step[0], filled = step[1], source = step[2], bytes = step[3];
    if (target < 0 || filled < 0 || source < 0 || bytes < 0 || target + (filled > bytes ? filled : bytes) > slab || source + bytes > slab) {
      throwRange(env, "xorAdd: step %zu, %lld bytes at %lld to %lld bytes at %lld, is not in the slab", n, static_cast<long long>(bytes),
                 static_cast<long long>(source), static_cast<long long>(filled), static_cast<long long>(target));
      return nullptr;
    }
  }
  for (size_t n = 0; n < count; n++) {
    const int32_t* step = checked.data() + n * kStep;
    uint8_t* target = memory->data + step[0];
    const uint8_t* source = memory->data + step[2];
    const auto filled = static_cast<size_t>(step[1]), bytes = static_cast<size_t>(step[3]);
    add(target, source, filled < bytes ? filled : bytes);
    if (bytes > filled) memmove(target + filled, source + filled, bytes - filled);
  }
  return nullptr;
}

}  // namespace penstock
