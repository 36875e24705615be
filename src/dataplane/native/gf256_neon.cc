/** GF(2^8) kernels of 64-bit ARM (TBL nibble tables), and none for other architectures. */
#include "gf256.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

namespace penstock {

template <int M>
static inline void tile(const Product& product, size_t group, size_t at) {
  uint8_t stage[16];
  uint8x16_t sum[M];
  for (int j = 0; j < M; j++) sum[j] = vdupq_n_u8(0);
  const uint8_t* row = product.matrix + group * product.stride;
  for (size_t i = 0; i < product.k; i++) {
    const auto length = static_cast<size_t>(product.lengths[i]);
    const uint8_t* source = product.sources[i] + at;
    if (at + 16 > length) {
      memset(stage, 0, sizeof stage);
      if (length > at) memcpy(stage, source, length - at);
      source = stage;
    }
    const uint8x16_t in = vld1q_u8(source);
    const uint8x16_t low = vandq_u8(in, vdupq_n_u8(15));
    const uint8x16_t high = vshrq_n_u8(in, 4);
    for (int j = 0; j < M; j++) {
      const uint8_t* table = gfTables.nibbles[row[static_cast<size_t>(j) * product.stride + i]];
      sum[j] = veorq_u8(sum[j], veorq_u8(vqtbl1q_u8(vld1q_u8(table), low), vqtbl1q_u8(vld1q_u8(table + 16), high)));
    }
  }
  for (int j = 0; j < M; j++) vst1q_u8(product.targets[group + static_cast<size_t>(j)] + at, sum[j]);
}

static void groups(const Product& product, size_t at) {
  size_t group = 0;
  for (; group + 4 <= product.m; group += 4) tile<4>(product, group, at);
  for (; group < product.m; group++) tile<1>(product, group, at);
}

static void multiplyNeon(Product& product) {
  if (product.bytes < 16) return multiplyScalar(product);
  size_t at = 0;
  for (; at + 16 <= product.bytes; at += 16) groups(product, at);
  if (at < product.bytes) groups(product, product.bytes - 16);
}

static void addMultiplesNeon(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors,
                             size_t bytes) {
  for (size_t at = 0; at < bytes; at += 16) {
    const uint8x16_t own = veorq_u8(vld1q_u8(row + at), vld1q_u8(other + at));
    const uint8x16_t low = vandq_u8(own, vdupq_n_u8(15)), high = vshrq_n_u8(own, 4);
    for (size_t j = 0; j < count; j++) {
      const uint8_t* table = gfTables.nibbles[factors[j]];
      uint8_t* to = rows + j * stride + at;
      const uint8x16_t products = veorq_u8(vqtbl1q_u8(vld1q_u8(table), low), vqtbl1q_u8(vld1q_u8(table + 16), high));
      vst1q_u8(to, veorq_u8(vld1q_u8(to), products));
    }
  }
}

static const Kernel kernels[] = {{"neon", multiplyNeon, addMultiplesNeon, nullptr, [] { return true; }, false, false}};
const Kernel* const archKernels = kernels;
const size_t archKernelCount = 1;

}  // namespace penstock
#elif !defined(__x86_64__)
namespace penstock {
const Kernel* const archKernels = nullptr;
const size_t archKernelCount = 0;
}  // namespace penstock
#endif
