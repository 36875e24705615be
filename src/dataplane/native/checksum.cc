/** The ones' complement sum of the Internet's checksums (RFC 1071), with the widest vectors that the CPU has. */
#include "checksum.h"

#include <string.h>

#include "arguments.h"

namespace penstock {

/** The same, with each word written to `to` on the way: its bytes are read once. */
__attribute__((always_inline)) static inline uint64_t copyWords(uint8_t* __restrict to, const uint8_t* __restrict from, size_t bytes,
                                                               uint64_t start) {
  uint64_t total = 0;
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word;
    memcpy(&word, from + at, 8);
    memcpy(to + at, &word, 8);
    total += (word & 0xffffffff) + (word >> 32);
  }
  memcpy(to + at, from + at, bytes - at);
  return endSum(from, bytes, at, total, start);
}

static uint64_t sum8(const uint8_t* data, size_t bytes, uint64_t start) { return sumWords(data, bytes, start); }

static uint64_t copy8(uint8_t* to, const uint8_t* from, size_t bytes, uint64_t start) { return copyWords(to, from, bytes, start); }

#if defined(__x86_64__)

__attribute__((target("avx2"))) static uint64_t sum32(const uint8_t* data, size_t bytes, uint64_t start) {
  return sumWords(data, bytes, start);
}

__attribute__((target("avx512f,prefer-vector-width=512"))) static uint64_t sum64(const uint8_t* data, size_t bytes, uint64_t start) {
  return sumWords(data, bytes, start);
}

__attribute__((target("avx2"))) static uint64_t copy32(uint8_t* to, const uint8_t* from, size_t bytes, uint64_t start) {
  return copyWords(to, from, bytes, start);
}

__attribute__((target("avx512f,prefer-vector-width=512"))) static uint64_t copy64(uint8_t* to, const uint8_t* from, size_t bytes,
                                                                                uint64_t start) {
  return copyWords(to, from, bytes, start);
}

OnesSum onesSumWith(int64_t widest) {
  if (widest >= 64 && __builtin_cpu_supports("avx512f")) return sum64;
  if (widest >= 32 && __builtin_cpu_supports("avx2")) return sum32;
  return sum8;
}

CopyOnesSum copyOnesSumWith(int64_t widest) {
  if (widest >= 64 && __builtin_cpu_supports("avx512f")) return copy64;
  if (widest >= 32 && __builtin_cpu_supports("avx2")) return copy32;
  return copy8;
}

#else

OnesSum onesSumWith(int64_t) { return sum8; }
CopyOnesSum copyOnesSumWith(int64_t) { return copy8; }

#endif

const OnesSum onesSum = onesSumWith(64);
const CopyOnesSum copyOnesSum = copyOnesSumWith(64);

napi_value onesSumOf(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "onesSumOf", 3);
  const Span<uint8_t> bytes = arguments.bytes(0, "bytes", 0);
  const int64_t widest = arguments.integer(1, "widest", 1, 64);
  const Span<uint8_t> to = arguments.bytes(2, "to", 0);
  if (!arguments.failed() && to.length > 0 && to.length != bytes.length) throwRange(env, "onesSumOf: to and bytes differ in length");
  if (arguments.failed() || (to.length > 0 && to.length != bytes.length)) return nullptr;
  const uint64_t total =
      to.length > 0 ? copyOnesSumWith(widest)(to.data, bytes.data, bytes.length, 0) : onesSumWith(widest)(bytes.data, bytes.length, 0);
  return toInteger(env, foldOnes(total));
}

}  // namespace penstock
