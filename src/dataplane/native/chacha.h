/** The ChaCha stream cipher: what every kernel computes, and the calls from JavaScript. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

namespace penstock {

constexpr size_t kChachaBlock = 64;
constexpr size_t kChachaLanes = 16;

/**
 * Blocks to be encrypted side by side, of any packets: lane i is up to 64 bytes at `data[i]`, the block counter and the last two
 * words of the nonce are its own, all else is in `ChachaKey`. Lanes from `count` on have numbers, but no data.
 */
struct ChachaLanes {
  alignas(64) uint32_t counter[kChachaLanes];
  alignas(64) uint32_t nonce1[kChachaLanes];
  alignas(64) uint32_t nonce2[kChachaLanes];
  uint8_t* data[kChachaLanes];
  uint8_t length[kChachaLanes];
  size_t count;
};

/** The words of the first block (RFC 8439, section 2.3), and how many rounds make one, an even number. */
struct ChachaKey {
  uint32_t words[16];
  int rounds;
};

/** XORs the key stream into the data of 0 to kChachaLanes lanes; no other data is read or written. */
struct ChachaKernel {
  const char* name;
  void (*encrypt)(const ChachaKey& key, const ChachaLanes& lanes);
  bool (*supported)();
};

/** XORs `length` bytes of key stream, at most a block, into `data`. */
inline void chachaMask(uint8_t* data, const uint8_t* stream, size_t length) {
  for (size_t i = 0; i < length; i++) data[i] = static_cast<uint8_t>(data[i] ^ stream[i]);
}

/** Kernels of this architecture, fastest first, whether or not this CPU runs them. */
extern const ChachaKernel* const chachaArchKernels;
extern const size_t chachaArchKernelCount;

napi_value chachaKernels(napi_env env, napi_callback_info info);
napi_value chachaKernel(napi_env env, napi_callback_info info);
napi_value chachaUse(napi_env env, napi_callback_info info);
napi_value chachaOpen(napi_env env, napi_callback_info info);
napi_value chachaEncrypt(napi_env env, napi_callback_info info);
napi_value chachaDecrypt(napi_env env, napi_callback_info info);

}  // namespace penstock
