/** GF(2^8) kernels of x86: PSHUFB nibble tables on 512 and 128 bits here, on 256 in gf256_avx2.cc, GF2P8AFFINEQB in gf256_gfni.cc. */
#if defined(__x86_64__)
#include "gf256_x86.h"

#include <cpuid.h>

#define AVX512 "avx512f,avx512bw"
#define SSSE3 "ssse3"

namespace penstock {

/** The nibble tables of the coefficient of source `i` and target `j` of a group whose first row is `row`. */
static inline __attribute__((always_inline)) const __m128i* nibblesOf(const Product& product, const uint8_t* row, size_t i, int j) {
  return reinterpret_cast<const __m128i*>(gfTables.nibbles[row[static_cast<size_t>(j) * product.stride + i]]);
}

template <int M, int U>
INLINE(AVX512) void tileAvx512(const Product& product, size_t group, size_t at) {
  uint8_t stage[64 * U];
  __m512i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm512_setzero_si512();
  }
  const __m512i nibble = _mm512_set1_epi8(15);
  const uint8_t* row = product.matrix + group * product.stride;
  for (size_t i = 0; i < product.k; i++) {
    const uint8_t* source = window(product, i, at, 64 * U, stage);
    __m512i low[U], high[U];
    for (int u = 0; u < U; u++) {
      const __m512i in = _mm512_loadu_si512(source + u * 64);
      low[u] = _mm512_and_si512(in, nibble);
      high[u] = _mm512_and_si512(_mm512_srli_epi16(in, 4), nibble);
    }
    for (int j = 0; j < M; j++) {
      const __m128i* table = nibblesOf(product, row, i, j);
      const __m512i lows = _mm512_broadcast_i32x4(_mm_load_si128(table));
      const __m512i highs = _mm512_broadcast_i32x4(_mm_load_si128(table + 1));
      for (int u = 0; u < U; u++) {
        sum[j][u] = _mm512_ternarylogic_epi64(sum[j][u], _mm512_shuffle_epi8(lows, low[u]),
                                              _mm512_shuffle_epi8(highs, high[u]), 0x96);
      }
    }
  }
  for (int j = 0; j < M; j++) {
    uint8_t* target = product.targets[group + static_cast<size_t>(j)] + at;
    for (int u = 0; u < U; u++) _mm512_storeu_si512(target + u * 64, sum[j][u]);
  }
}
GROUPS(AVX512, groupsAvx512, tileAvx512)
TARGET(AVX512) void multiplyAvx512(Product& product) { COLUMNS(64, groupsAvx512) }

template <int M, int U>
INLINE(SSSE3) void tileSsse3(const Product& product, size_t group, size_t at) {
  uint8_t stage[16 * U];
  __m128i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm_setzero_si128();
  }
  const __m128i nibble = _mm_set1_epi8(15);
  const uint8_t* row = product.matrix + group * product.stride;
  for (size_t i = 0; i < product.k; i++) {
    const auto* source = reinterpret_cast<const __m128i*>(window(product, i, at, 16 * U, stage));
    __m128i low[U], high[U];
    for (int u = 0; u < U; u++) {
      const __m128i in = _mm_loadu_si128(source + u);
      low[u] = _mm_and_si128(in, nibble);
      high[u] = _mm_and_si128(_mm_srli_epi16(in, 4), nibble);
    }
    for (int j = 0; j < M; j++) {
      const __m128i* table = nibblesOf(product, row, i, j);
      const __m128i lows = _mm_load_si128(table);
      const __m128i highs = _mm_load_si128(table + 1);
      for (int u = 0; u < U; u++) {
        sum[j][u] = _mm_xor_si128(sum[j][u], _mm_xor_si128(_mm_shuffle_epi8(lows, low[u]), _mm_shuffle_epi8(highs, high[u])));
      }
    }
  }
  for (int j = 0; j < M; j++) {
    auto* target = reinterpret_cast<__m128i*>(product.targets[group + static_cast<size_t>(j)] + at);
    for (int u = 0; u < U; u++) _mm_storeu_si128(target + u, sum[j][u]);
  }
}
GROUPS(SSSE3, groupsSsse3, tileSsse3)
TARGET(SSSE3) void multiplySsse3(Product& product) { COLUMNS(16, groupsSsse3) }

TARGET(SSSE3) void addMultiplesSsse3(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other,
                                     const uint8_t* factors, size_t bytes) {
  const __m128i nibble = _mm_set1_epi8(15);
  for (size_t at = 0; at < bytes; at += 16) {
    const __m128i own = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + at)), _mm_loadu_si128(reinterpret_cast<const __m128i*>(other + at)));
    const __m128i low = _mm_and_si128(own, nibble), high = _mm_and_si128(_mm_srli_epi16(own, 4), nibble);
    for (size_t j = 0; j < count; j++) {
      const auto* table = reinterpret_cast<const __m128i*>(gfTables.nibbles[factors[j]]);
      auto* to = reinterpret_cast<__m128i*>(rows + j * stride + at);
      const __m128i products = _mm_xor_si128(_mm_shuffle_epi8(table[0], low), _mm_shuffle_epi8(table[1], high));
      _mm_storeu_si128(to, _mm_xor_si128(_mm_loadu_si128(to), products));
    }
  }
}

// __builtin_cpu_supports asks XCR0 too: the operating system must save the registers.
static bool hasAvx2() { return __builtin_cpu_supports("avx2"); }
static bool hasAvx512() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"); }
static bool hasSsse3() { return __builtin_cpu_supports("ssse3"); }
static bool hasGfni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 8 & 1);
}

static const Kernel kernels[] = {
    {"gfni-avx512", multiplyGfni512, addMultiplesGfni512, solveFewGfni512, [] { return hasGfni() && hasAvx512(); }, true, true},
    {"gfni-avx2", multiplyGfni256, addMultiplesGfni256, solveFewGfni256, [] { return hasGfni() && hasAvx2(); }, true, false},
    {"avx512bw", multiplyAvx512, addMultiplesAvx2, solveFewAvx2, hasAvx512, false, false},
    {"avx2", multiplyAvx2, addMultiplesAvx2, solveFewAvx2, hasAvx2, false, false},
    {"ssse3", multiplySsse3, addMultiplesSsse3, nullptr, hasSsse3, false, false},
};
const Kernel* const archKernels = kernels;
const size_t archKernelCount = sizeof kernels / sizeof kernels[0];

}  // namespace penstock
#endif
