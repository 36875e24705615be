/** The ones' complement sum of the Internet's checksums (RFC 1071), with the widest vectors that the CPU has. */
#include "checksum.h"

#include <string.h>

#include "arguments.h"

namespace penstock {

/**
 * Both halves of each word are added under a mask, which compilers turn into vector code without unpacking, as wide as the function that this
 * becomes part of may have it.
 */
__attribute__((always_inline)) static inline uint64_t sumWords(const uint8_t* data, size_t bytes, uint64_t start) {
  uint64_t total = 0;
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, 8);
    total += (word & 0xffffffff) + (word >> 32);
  }
  if (at + 4 <= bytes) {
    uint32_t word;
    memcpy(&word, data + at, 4);
    total += word;
    at += 4;
  }
  if (at + 2 <= bytes) {
    uint16_t word;
    memcpy(&word, data + at, 2);
    total += word;
    at += 2;
  }
  if (at < bytes) {
    uint16_t word = 0;
    memcpy(&word, data + at, 1);
    total += word;
  }
  return start + (total & 0xffffffff) + (total >> 32);
}

uint64_t onesSumOfFew(const uint8_t* data, size_t bytes, uint64_t start) { return sumWords(data, bytes, start); }

#if defined(__x86_64__)

__attribute__((target("avx2"))) static uint64_t sum32(const uint8_t* data, size_t bytes, uint64_t start) {
  return sumWords(data, bytes, start);
}

__attribute__((target("avx512f,prefer-vector-width=512"))) static uint64_t sum64(const uint8_t* data, size_t bytes, uint64_t start) {
  return sumWords(data, bytes, start);
}

OnesSum onesSumWith(int64_t widest) {
  if (widest >= 64 && __builtin_cpu_supports("avx512f")) return sum64;
  if (widest >= 32 && __builtin_cpu_supports("avx2")) return sum32;
  return onesSumOfFew;
}

#else

OnesSum onesSumWith(int64_t) { return onesSumOfFew; }

#endif

const OnesSum onesSum = onesSumWith(64);

napi_value onesSumOf(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "onesSumOf", 2);
  const Span<uint8_t> bytes = arguments.bytes(0, "bytes", 0);
  const int64_t widest = arguments.integer(1, "widest", 1, 64);
  if (arguments.failed()) return nullptr;
  return toInteger(env, foldOnes(onesSumWith(widest)(bytes.data, bytes.length, 0)));
}

}  // namespace penstock
