/** The ChaCha kernel of 64-bit ARM, four blocks at a time, and none for other architectures. */
#include "chacha.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace penstock {

static inline uint32x4_t turn16(uint32x4_t x) { return vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x))); }
template <int n>
static inline uint32x4_t turn(uint32x4_t x) {
  return vsriq_n_u32(vshlq_n_u32(x, n), x, 32 - n);
}

/** RFC 8439, section 2.1. */
static inline void quarter(uint32x4_t& a, uint32x4_t& b, uint32x4_t& c, uint32x4_t& d) {
  a = vaddq_u32(a, b), d = turn16(veorq_u32(d, a));
  c = vaddq_u32(c, d), b = turn<12>(veorq_u32(b, c));
  a = vaddq_u32(a, b), d = turn<8>(veorq_u32(d, a));
  c = vaddq_u32(c, d), b = turn<7>(veorq_u32(b, c));
}

/** Four words of four blocks, v[i] word i of all before, the four of block i after. */
static inline void transpose(uint32x4_t* v) {
  const uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(v[0], v[1])), b = vreinterpretq_u64_u32(vtrn2q_u32(v[0], v[1]));
  const uint64x2_t c = vreinterpretq_u64_u32(vtrn1q_u32(v[2], v[3])), d = vreinterpretq_u64_u32(vtrn2q_u32(v[2], v[3]));
  v[0] = vreinterpretq_u32_u64(vtrn1q_u64(a, c));
  v[1] = vreinterpretq_u32_u64(vtrn1q_u64(b, d));
  v[2] = vreinterpretq_u32_u64(vtrn2q_u64(a, c));
  v[3] = vreinterpretq_u32_u64(vtrn2q_u64(b, d));
}

static void encryptNeon(const ChachaKey& key, const ChachaLanes& lanes) {
  for (size_t from = 0; from < lanes.count; from += 4) {
    uint32x4_t first[16], v[16];
    for (int i = 0; i < 16; i++) first[i] = vdupq_n_u32(key.words[i]);
    first[12] = vld1q_u32(lanes.counter + from);
    first[14] = vld1q_u32(lanes.nonce1 + from);
    first[15] = vld1q_u32(lanes.nonce2 + from);
    for (int i = 0; i < 16; i++) v[i] = first[i];
    for (int round = 0; round < key.rounds; round += 2) {
      for (int i = 0; i < 4; i++) quarter(v[i], v[4 + i], v[8 + i], v[12 + i]);
      for (int i = 0; i < 4; i++) quarter(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4]);
    }
    for (int i = 0; i < 16; i++) v[i] = vaddq_u32(v[i], first[i]);
    for (int i = 0; i < 16; i += 4) transpose(v + i);
    for (size_t i = 0; i < 4 && from + i < lanes.count; i++) {
      uint8_t stream[kChachaBlock];
      for (size_t part = 0; part < 4; part++) vst1q_u8(stream + 16 * part, vreinterpretq_u8_u32(v[4 * part + i]));
      uint8_t* data = lanes.data[from + i];
      if (lanes.length[from + i] < kChachaBlock) {
        chachaMask(data, stream, lanes.length[from + i]);
        continue;
      }
      for (size_t part = 0; part < kChachaBlock; part += 16) {
        vst1q_u8(data + part, veorq_u8(vld1q_u8(data + part), vld1q_u8(stream + part)));
      }
    }
  }
}

static const ChachaKernel kernels[] = {{"neon", encryptNeon, [] { return true; }}};
const ChachaKernel* const chachaArchKernels = kernels;
const size_t chachaArchKernelCount = 1;

}  // namespace penstock
#elif !defined(__x86_64__)
namespace penstock {
const ChachaKernel* const chachaArchKernels = nullptr;
const size_t chachaArchKernelCount = 0;
}  // namespace penstock
#endif
