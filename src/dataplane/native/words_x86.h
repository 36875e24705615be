/** Multiplication of sixteen words, as all calls that do it beside GF(2^8) products should. */
#pragma once
#if defined(__x86_64__)
#include <stdint.h>

// GCC 12's own header leaves the unused operand of unmasked intrinsics uninitialised on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

namespace penstock {

/**
 * The lower halves of the products with `factor`, 256 bits at a time: CPUs lower their clock for a while after multiplications of 512 bits, so that the GF(2^8)
 * product computed next takes 8 % longer (bench rlnc).
 */
__attribute__((target("avx512f"), always_inline)) static inline __m512i timesInHalves(__m512i words, uint32_t factor) {
  const __m256i by = _mm256_set1_epi32(static_cast<int32_t>(factor));
  const __m256i low = _mm256_mullo_epi32(_mm512_castsi512_si256(words), by), high = _mm256_mullo_epi32(_mm512_extracti64x4_epi64(words, 1), by);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

}  // namespace penstock
#endif
