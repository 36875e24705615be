/** GF(2^8) kernels of x86: GF2P8AFFINEQB on 512 and 256 bits, PSHUFB nibble tables on 512, 256 and 128 bits. */
#include "gf256.h"

#if defined(__x86_64__)
#include <cpuid.h>
// GCC 12's own header leaves the unused operand of unmasked intrinsics uninitialised on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#include <string.h>

// Every function carries its own target, so that the addon as a whole runs on any x86-64. The column tile is the outer loop: a
// tile of every source is loaded once per group of up to `M` targets and added into accumulators that stay in registers.
#define INLINE(isa) __attribute__((target(isa), always_inline)) static inline
#define TARGET(isa) __attribute__((target(isa))) static

#define GFNI512 "avx512f,avx512bw,gfni"
#define GFNI256 "avx2,gfni"
#define AVX512 "avx512f,avx512bw"
#define AVX2 "avx2"
#define SSSE3 "ssse3"

namespace penstock {

/** The bytes of source `i` from `at` on, zero-padded to `width` in `stage` when it ends before. */
static inline __attribute__((always_inline)) const uint8_t* window(const Product& product, size_t i, size_t at,
                                                                   size_t width, uint8_t* stage) {
  const auto length = static_cast<size_t>(product.lengths[i]);
  if (__builtin_expect(at + width <= length, 1)) return product.sources[i] + at;
  memset(stage, 0, width);
  if (length > at) memcpy(stage, product.sources[i] + at, length - at);
  return stage;
}

// --- GFNI, 512 bits -----------------------------------------------------------------------------------------------------

INLINE(GFNI512) __mmask64 lowest(size_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }

/**
 * `U` vectors of 64 columns from `at` on, of targets [group, group + M). With `tailed` only the lowest `tail` columns of the last
 * vector: masked-out bytes are neither read nor written.
 */
template <int M, int U, bool tailed, bool padded>
INLINE(GFNI512) void tileGfni512(const Product& product, size_t group, size_t at, __mmask64 tail) {
  __m512i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm512_setzero_si512();
  }
  const uint64_t* coefficients = product.coefficients + group;
  const size_t k = product.k, m = product.m;
  const uint8_t* const* sources = product.sources;
  for (size_t i = 0; i < k; i++, coefficients += m) {
    const uint8_t* source = sources[i] + at;
    __m512i in[U];
    if (padded) {
      const size_t length = static_cast<size_t>(product.lengths[i]);
      const size_t left = length > at ? length - at : 0;
      for (int u = 0; u < U; u++) {
        const size_t skipped = static_cast<size_t>(u) * 64;
        __mmask64 mask = left > skipped ? lowest(left - skipped) : 0;
        if (tailed && u == U - 1) mask &= tail;
        in[u] = _mm512_maskz_loadu_epi8(mask, source + skipped);
      }
    } else {
      for (int u = 0; u < U; u++) {
        in[u] = tailed && u == U - 1 ? _mm512_maskz_loadu_epi8(tail, source + u * 64) : _mm512_loadu_si512(source + u * 64);
      }
    }
    for (int j = 0; j < M; j++) {
      const __m512i by = _mm512_set1_epi64(static_cast<long long>(coefficients[j]));
      for (int u = 0; u < U; u++) {
        sum[j][u] = _mm512_xor_si512(sum[j][u], _mm512_gf2p8affine_epi64_epi8(in[u], by, 0));
      }
    }
  }
  for (int j = 0; j < M; j++) {
    uint8_t* target = product.targets[group + static_cast<size_t>(j)] + at;
    for (int u = 0; u < U; u++) {
      if (tailed && u == U - 1) {
        _mm512_mask_storeu_epi8(target + u * 64, tail, sum[j][u]);
      } else {
        _mm512_storeu_si512(target + u * 64, sum[j][u]);
      }
    }
  }
}

/** All columns of targets [group, group + M). */
template <int M, bool padded>
TARGET(GFNI512) void stripGfni512(const Product& product, size_t group) {
  size_t at = 0;
  for (; at + 256 <= product.bytes; at += 256) tileGfni512<M, 4, false, padded>(product, group, at, 0);
  const size_t rest = product.bytes - at;
  if (rest == 0) return;
  const __mmask64 tail = lowest((rest - 1) % 64 + 1);
  switch ((rest + 63) / 64) {
    case 1: return tileGfni512<M, 1, true, padded>(product, group, at, tail);
    case 2: return tileGfni512<M, 2, true, padded>(product, group, at, tail);
    case 3: return tileGfni512<M, 3, true, padded>(product, group, at, tail);
    default: return tileGfni512<M, 4, true, padded>(product, group, at, tail);
  }
}

template <bool padded>
TARGET(GFNI512) void stripsGfni512(const Product& product) {
  size_t group = 0;
  size_t left = product.m;
  while (left) {
    // Even groups: 10 is 5 + 5, not 6 + 4.
    const size_t groups = (left + 5) / 6;
    const size_t count = (left + groups - 1) / groups;
    switch (count) {
      case 1: stripGfni512<1, padded>(product, group); break;
      case 2: stripGfni512<2, padded>(product, group); break;
      case 3: stripGfni512<3, padded>(product, group); break;
      case 4: stripGfni512<4, padded>(product, group); break;
      case 5: stripGfni512<5, padded>(product, group); break;
      default: stripGfni512<6, padded>(product, group); break;
    }
    group += count;
    left -= count;
  }
}

TARGET(GFNI512) void multiplyGfni512(const Product& product) {
  if (product.padded) {
    stripsGfni512<true>(product);
  } else {
    stripsGfni512<false>(product);
  }
}

// --- The kernels without masks: the last tile is moved back to end with the columns ----------------------------------------

#define COLUMNS(width, groups)                                                   \
  if (product.bytes < (width)) return multiplyScalar(product);                   \
  size_t at = 0;                                                                 \
  for (; at + (width) <= product.bytes; at += (width)) groups(product, at);      \
  if (at < product.bytes) groups(product, product.bytes - (width));

#define GROUPS(isa, name, tile)                                    \
  TARGET(isa) void name(const Product& product, size_t at) {       \
    size_t group = 0;                                              \
    for (; group + 4 <= product.m; group += 4) tile<4>(product, group, at); \
    switch (product.m - group) {                                   \
      case 3: tile<3>(product, group, at); break;                  \
      case 2: tile<2>(product, group, at); break;                  \
      case 1: tile<1>(product, group, at); break;                  \
      default: break;                                              \
    }                                                              \
  }

template <int M>
INLINE(GFNI256) void tileGfni256(const Product& product, size_t group, size_t at) {
  uint8_t stage[64];
  __m256i sum[M][2];
  for (int j = 0; j < M; j++) sum[j][0] = sum[j][1] = _mm256_setzero_si256();
  const uint64_t* coefficients = product.coefficients + group;
  for (size_t i = 0; i < product.k; i++, coefficients += product.m) {
    const uint8_t* source = window(product, i, at, 64, stage);
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 32));
    for (int j = 0; j < M; j++) {
      const __m256i by = _mm256_set1_epi64x(static_cast<long long>(coefficients[j]));
      sum[j][0] = _mm256_xor_si256(sum[j][0], _mm256_gf2p8affine_epi64_epi8(first, by, 0));
      sum[j][1] = _mm256_xor_si256(sum[j][1], _mm256_gf2p8affine_epi64_epi8(second, by, 0));
    }
  }
  for (int j = 0; j < M; j++) {
    uint8_t* target = product.targets[group + static_cast<size_t>(j)] + at;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), sum[j][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + 32), sum[j][1]);
  }
}
GROUPS(GFNI256, groupsGfni256, tileGfni256)

TARGET(GFNI256) void multiplyGfni256(const Product& product) {
  COLUMNS(64, groupsGfni256)
}

template <int M>
INLINE(AVX512) void tileAvx512(const Product& product, size_t group, size_t at) {
  uint8_t stage[64];
  __m512i sum[M];
  for (int j = 0; j < M; j++) sum[j] = _mm512_setzero_si512();
  const __m512i nibble = _mm512_set1_epi8(15);
  const uint8_t* row = product.matrix + group * product.k;
  for (size_t i = 0; i < product.k; i++) {
    const __m512i in = _mm512_loadu_si512(window(product, i, at, 64, stage));
    const __m512i low = _mm512_and_si512(in, nibble);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(in, 4), nibble);
    for (int j = 0; j < M; j++) {
      const auto* table = reinterpret_cast<const __m128i*>(gfTables.nibbles[row[static_cast<size_t>(j) * product.k + i]]);
      const __m512i lows = _mm512_broadcast_i32x4(_mm_load_si128(table));
      const __m512i highs = _mm512_broadcast_i32x4(_mm_load_si128(table + 1));
      sum[j] = _mm512_ternarylogic_epi64(sum[j], _mm512_shuffle_epi8(lows, low), _mm512_shuffle_epi8(highs, high), 0x96);
    }
  }
  for (int j = 0; j < M; j++) _mm512_storeu_si512(product.targets[group + static_cast<size_t>(j)] + at, sum[j]);
}
GROUPS(AVX512, groupsAvx512, tileAvx512)
TARGET(AVX512) void multiplyAvx512(const Product& product) { COLUMNS(64, groupsAvx512) }

template <int M>
INLINE(AVX2) void tileAvx2(const Product& product, size_t group, size_t at) {
  uint8_t stage[32];
  __m256i sum[M];
  for (int j = 0; j < M; j++) sum[j] = _mm256_setzero_si256();
  const __m256i nibble = _mm256_set1_epi8(15);
  const uint8_t* row = product.matrix + group * product.k;
  for (size_t i = 0; i < product.k; i++) {
    const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(window(product, i, at, 32, stage)));
    const __m256i low = _mm256_and_si256(in, nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(in, 4), nibble);
    for (int j = 0; j < M; j++) {
      const auto* table = reinterpret_cast<const __m128i*>(gfTables.nibbles[row[static_cast<size_t>(j) * product.k + i]]);
      const __m256i lows = _mm256_broadcastsi128_si256(_mm_load_si128(table));
      const __m256i highs = _mm256_broadcastsi128_si256(_mm_load_si128(table + 1));
      sum[j] = _mm256_xor_si256(
          sum[j], _mm256_xor_si256(_mm256_shuffle_epi8(lows, low), _mm256_shuffle_epi8(highs, high)));
    }
  }
  for (int j = 0; j < M; j++) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(product.targets[group + static_cast<size_t>(j)] + at), sum[j]);
  }
}
GROUPS(AVX2, groupsAvx2, tileAvx2)
TARGET(AVX2) void multiplyAvx2(const Product& product) { COLUMNS(32, groupsAvx2) }

template <int M>
INLINE(SSSE3) void tileSsse3(const Product& product, size_t group, size_t at) {
  uint8_t stage[16];
  __m128i sum[M];
  for (int j = 0; j < M; j++) sum[j] = _mm_setzero_si128();
  const __m128i nibble = _mm_set1_epi8(15);
  const uint8_t* row = product.matrix + group * product.k;
  for (size_t i = 0; i < product.k; i++) {
    const __m128i in = _mm_loadu_si128(reinterpret_cast<const __m128i*>(window(product, i, at, 16, stage)));
    const __m128i low = _mm_and_si128(in, nibble);
    const __m128i high = _mm_and_si128(_mm_srli_epi16(in, 4), nibble);
    for (int j = 0; j < M; j++) {
      const auto* table = reinterpret_cast<const __m128i*>(gfTables.nibbles[row[static_cast<size_t>(j) * product.k + i]]);
      sum[j] = _mm_xor_si128(sum[j], _mm_xor_si128(_mm_shuffle_epi8(_mm_load_si128(table), low),
                                                   _mm_shuffle_epi8(_mm_load_si128(table + 1), high)));
    }
  }
  for (int j = 0; j < M; j++) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(product.targets[group + static_cast<size_t>(j)] + at), sum[j]);
  }
}
GROUPS(SSSE3, groupsSsse3, tileSsse3)
TARGET(SSSE3) void multiplySsse3(const Product& product) { COLUMNS(16, groupsSsse3) }

// __builtin_cpu_supports asks XCR0 too: the operating system must save the registers.
static bool hasAvx2() { return __builtin_cpu_supports("avx2"); }
static bool hasAvx512() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"); }
static bool hasSsse3() { return __builtin_cpu_supports("ssse3"); }
static bool hasGfni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 8 & 1);
}

static const Kernel kernels[] = {
    {"gfni-avx512", multiplyGfni512, [] { return hasGfni() && hasAvx512(); }, true},
    {"gfni-avx2", multiplyGfni256, [] { return hasGfni() && hasAvx2(); }, true},
    {"avx512bw", multiplyAvx512, hasAvx512, false},
    {"avx2", multiplyAvx2, hasAvx2, false},
    {"ssse3", multiplySsse3, hasSsse3, false},
};
const Kernel* const archKernels = kernels;
const size_t archKernelCount = sizeof kernels / sizeof kernels[0];

}  // namespace penstock
#endif
