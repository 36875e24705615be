/** The ones' complement sum of the Internet's checksums (RFC 1071), with the widest vectors that the CPU has. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace penstock {

/** `start` and the words of `data` in memory order, unfolded: byte order does not matter until the end. `bytes` is below 2^32. */
using OnesSum = uint64_t (*)(const uint8_t* data, size_t bytes, uint64_t start);

/** That with vectors of at most `widest` bytes. */
OnesSum onesSumWith(int64_t widest);

/** Of what is long, such as payloads. */
extern const OnesSum onesSum;
/** Copies `bytes` bytes of `from` to `to`, which does not overlap with it, and sums them up like `OnesSum`. */
using CopyOnesSum = uint64_t (*)(uint8_t* to, const uint8_t* from, size_t bytes, uint64_t start);

CopyOnesSum copyOnesSumWith(int64_t widest);
extern const CopyOnesSum copyOnesSum;

/** The rest of a sum, from byte `at` on: less than a word. */
__attribute__((always_inline)) static inline uint64_t endSum(const uint8_t* data, size_t bytes, size_t at, uint64_t total, uint64_t start) {
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
  return endSum(data, bytes, at, total, start);
}

/** Of what is short, such as headers. */
inline uint64_t onesSumOfFew(const uint8_t* data, size_t bytes, uint64_t start) { return sumWords(data, bytes, start); }

inline uint16_t foldOnes(uint64_t total) {
  while (total >> 16) total = (total & 0xffff) + (total >> 16);
  return static_cast<uint16_t>(total);
}

/** What a field of 16 bits, in network byte order, is in a sum. */
inline uint64_t onesOfField(uint64_t value) { return __builtin_bswap16(static_cast<uint16_t>(value)); }

napi_value onesSumOf(napi_env env, napi_callback_info info);

}  // namespace penstock
