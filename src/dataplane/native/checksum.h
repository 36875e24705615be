/** The ones' complement sum of the Internet's checksums (RFC 1071), with the widest vectors that the CPU has. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

namespace penstock {

/** `start` and the words of `data` in memory order, unfolded: byte order does not matter until the end. `bytes` is below 2^32. */
using OnesSum = uint64_t (*)(const uint8_t* data, size_t bytes, uint64_t start);

/** That with vectors of at most `widest` bytes. */
OnesSum onesSumWith(int64_t widest);

/** Of what is long, such as payloads. */
extern const OnesSum onesSum;
/** Of what is short, such as headers. */
uint64_t onesSumOfFew(const uint8_t* data, size_t bytes, uint64_t start);

inline uint16_t foldOnes(uint64_t total) {
  while (total >> 16) total = (total & 0xffff) + (total >> 16);
  return static_cast<uint16_t>(total);
}

napi_value onesSumOf(napi_env env, napi_callback_info info);

}  // namespace penstock
