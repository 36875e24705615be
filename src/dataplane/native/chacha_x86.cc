/** ChaCha kernels of x86: 16 blocks at a time on AVX-512, 8 on AVX2, 4 on SSE2, a word of each block in a vector. */
#include "chacha.h"

#if defined(__x86_64__)
// GCC 12's own header leaves the unused operand of unmasked intrinsics uninitialised on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

// Every function carries its own target, so that the addon as a whole runs on any x86-64.
#define INLINE(isa) __attribute__((target(isa), always_inline)) static inline
#define TARGET(isa) __attribute__((target(isa))) static

#define AVX512 "avx512f,avx512bw"
#define AVX2 "avx2"
#define SSE2 "sse2"

// The quarter round of RFC 8439, section 2.1, on four quadruples of words at once: their chains hide each other's latency.
#define STEP(a, b, d, turn, add, exclusive) \
  for (int i = 0; i < 4; i++) {             \
    v[a[i]] = add(v[a[i]], v[b[i]]);        \
    v[d[i]] = turn(exclusive(v[d[i]], v[a[i]])); \
  }
#define QUARTERS(a, b, c, d, by16, by12, by8, by7, add, exclusive) \
  STEP(a, b, d, by16, add, exclusive)                              \
  STEP(c, d, b, by12, add, exclusive)                              \
  STEP(a, b, d, by8, add, exclusive)                               \
  STEP(c, d, b, by7, add, exclusive)
#define DOUBLE_ROUND(by16, by12, by8, by7, add, exclusive)                           \
  QUARTERS(kA, kB, kC, kD, by16, by12, by8, by7, add, exclusive)                     \
  QUARTERS(kA, kDiagonalB, kDiagonalC, kDiagonalD, by16, by12, by8, by7, add, exclusive)

namespace penstock {

static constexpr int kA[4] = {0, 1, 2, 3};
static constexpr int kB[4] = {4, 5, 6, 7};
static constexpr int kC[4] = {8, 9, 10, 11};
static constexpr int kD[4] = {12, 13, 14, 15};
static constexpr int kDiagonalB[4] = {5, 6, 7, 4};
static constexpr int kDiagonalC[4] = {10, 11, 8, 9};
static constexpr int kDiagonalD[4] = {15, 12, 13, 14};

// --- AVX-512 ------------------------------------------------------------------------------------------------------------

INLINE(AVX512) __m512i turn16(__m512i x) { return _mm512_rol_epi32(x, 16); }
INLINE(AVX512) __m512i turn12(__m512i x) { return _mm512_rol_epi32(x, 12); }
INLINE(AVX512) __m512i turn8(__m512i x) { return _mm512_rol_epi32(x, 8); }
INLINE(AVX512) __m512i turn7(__m512i x) { return _mm512_rol_epi32(x, 7); }

/** Rows of words become rows of blocks: v[i] word i of 16 blocks before, block i after. */
INLINE(AVX512) void transpose(__m512i v[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 4) {
    const __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]), b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
    t[i] = _mm512_unpacklo_epi64(a, c);
    t[i + 1] = _mm512_unpackhi_epi64(a, c);
    t[i + 2] = _mm512_unpacklo_epi64(b, d);
    t[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  for (int i = 0; i < 4; i++) {
    // t[j + i]: words j to j + 3 of the blocks i, 4 + i, 8 + i and 12 + i, 128 bits each.
    const __m512i a = _mm512_shuffle_i32x4(t[i], t[4 + i], 0x44), b = _mm512_shuffle_i32x4(t[i], t[4 + i], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0x44), d = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0xee);
    v[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[4 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[8 + i] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

TARGET(AVX512) void encryptAvx512(const ChachaKey& key, const ChachaLanes& lanes) {
  __m512i first[16], v[16];
  for (int i = 0; i < 16; i++) first[i] = _mm512_set1_epi32(static_cast<int>(key.words[i]));
  first[12] = _mm512_load_si512(lanes.counter);
  first[14] = _mm512_load_si512(lanes.nonce1);
  first[15] = _mm512_load_si512(lanes.nonce2);
  for (int i = 0; i < 16; i++) v[i] = first[i];
  for (int round = 0; round < key.rounds; round += 2) {
    DOUBLE_ROUND(turn16, turn12, turn8, turn7, _mm512_add_epi32, _mm512_xor_si512)
  }
  for (int i = 0; i < 16; i++) v[i] = _mm512_add_epi32(v[i], first[i]);
  transpose(v);
  for (size_t i = 0; i < lanes.count; i++) {
    uint8_t* data = lanes.data[i];
    const __mmask64 there = lanes.length[i] == kChachaBlock ? ~0ull : (1ull << lanes.length[i]) - 1;
    // Masked-out bytes are neither read nor written.
    _mm512_mask_storeu_epi8(data, there, _mm512_xor_si512(v[i], _mm512_maskz_loadu_epi8(there, data)));
  }
}

// --- AVX2 ---------------------------------------------------------------------------------------------------------------

INLINE(AVX2) __m256i turn16(__m256i x) {
  return _mm256_shuffle_epi8(x, _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5,
                                                 10, 11, 8, 9, 14, 15, 12, 13));
}
INLINE(AVX2) __m256i turn8(__m256i x) {
  return _mm256_shuffle_epi8(x, _mm256_setr_epi8(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, 3, 0, 1, 2, 7, 4, 5, 6,
                                                 11, 8, 9, 10, 15, 12, 13, 14));
}
INLINE(AVX2) __m256i turn12(__m256i x) { return _mm256_or_si256(_mm256_slli_epi32(x, 12), _mm256_srli_epi32(x, 20)); }
INLINE(AVX2) __m256i turn7(__m256i x) { return _mm256_or_si256(_mm256_slli_epi32(x, 7), _mm256_srli_epi32(x, 25)); }

INLINE(AVX2) void mask(uint8_t* data, __m256i stream) {
  auto* at = reinterpret_cast<__m256i*>(data);
  _mm256_storeu_si256(at, _mm256_xor_si256(_mm256_loadu_si256(at), stream));
}

/** Eight words of eight blocks, v[i] word i of all before, the eight of block i after. */
INLINE(AVX2) void transpose(__m256i* v) {
  __m256i t[8];
  for (int i = 0; i < 8; i += 4) {
    const __m256i a = _mm256_unpacklo_epi32(v[i], v[i + 1]), b = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    const __m256i c = _mm256_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm256_unpackhi_epi32(v[i + 2], v[i + 3]);
    t[i] = _mm256_unpacklo_epi64(a, c);
    t[i + 1] = _mm256_unpackhi_epi64(a, c);
    t[i + 2] = _mm256_unpacklo_epi64(b, d);
    t[i + 3] = _mm256_unpackhi_epi64(b, d);
  }
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2x128_si256(t[i], t[4 + i], 0x20);
    v[4 + i] = _mm256_permute2x128_si256(t[i], t[4 + i], 0x31);
  }
}

TARGET(AVX2) void encryptAvx2(const ChachaKey& key, const ChachaLanes& lanes) {
  for (size_t from = 0; from < lanes.count; from += 8) {
    __m256i first[16], v[16];
    for (int i = 0; i < 16; i++) first[i] = _mm256_set1_epi32(static_cast<int>(key.words[i]));
    first[12] = _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes.counter + from));
    first[14] = _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes.nonce1 + from));
    first[15] = _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes.nonce2 + from));
    for (int i = 0; i < 16; i++) v[i] = first[i];
    for (int round = 0; round < key.rounds; round += 2) {
      DOUBLE_ROUND(turn16, turn12, turn8, turn7, _mm256_add_epi32, _mm256_xor_si256)
    }
    for (int i = 0; i < 16; i++) v[i] = _mm256_add_epi32(v[i], first[i]);
    transpose(v);
    transpose(v + 8);
    for (size_t i = 0; i < 8 && from + i < lanes.count; i++) {
      uint8_t* data = lanes.data[from + i];
      const size_t length = lanes.length[from + i];
      if (length == kChachaBlock) {
        mask(data, v[i]);
        mask(data + 32, v[8 + i]);
        continue;
      }
      alignas(32) uint8_t stream[kChachaBlock];
      _mm256_store_si256(reinterpret_cast<__m256i*>(stream), v[i]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(stream + 32), v[8 + i]);
      chachaMask(data, stream, length);
    }
  }
}

// --- SSE2 ---------------------------------------------------------------------------------------------------------------

INLINE(SSE2) __m128i turn16(__m128i x) { return _mm_shufflehi_epi16(_mm_shufflelo_epi16(x, 0xb1), 0xb1); }
INLINE(SSE2) __m128i turn12(__m128i x) { return _mm_or_si128(_mm_slli_epi32(x, 12), _mm_srli_epi32(x, 20)); }
INLINE(SSE2) __m128i turn8(__m128i x) { return _mm_or_si128(_mm_slli_epi32(x, 8), _mm_srli_epi32(x, 24)); }
INLINE(SSE2) __m128i turn7(__m128i x) { return _mm_or_si128(_mm_slli_epi32(x, 7), _mm_srli_epi32(x, 25)); }

/** Four words of four blocks, v[i] word i of all before, the four of block i after. */
INLINE(SSE2) void transpose(__m128i* v) {
  const __m128i a = _mm_unpacklo_epi32(v[0], v[1]), b = _mm_unpackhi_epi32(v[0], v[1]);
  const __m128i c = _mm_unpacklo_epi32(v[2], v[3]), d = _mm_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm_unpacklo_epi64(a, c);
  v[1] = _mm_unpackhi_epi64(a, c);
  v[2] = _mm_unpacklo_epi64(b, d);
  v[3] = _mm_unpackhi_epi64(b, d);
}

TARGET(SSE2) void encryptSse2(const ChachaKey& key, const ChachaLanes& lanes) {
  for (size_t from = 0; from < lanes.count; from += 4) {
    __m128i first[16], v[16];
    for (int i = 0; i < 16; i++) first[i] = _mm_set1_epi32(static_cast<int>(key.words[i]));
    first[12] = _mm_load_si128(reinterpret_cast<const __m128i*>(lanes.counter + from));
    first[14] = _mm_load_si128(reinterpret_cast<const __m128i*>(lanes.nonce1 + from));
    first[15] = _mm_load_si128(reinterpret_cast<const __m128i*>(lanes.nonce2 + from));
    for (int i = 0; i < 16; i++) v[i] = first[i];
    for (int round = 0; round < key.rounds; round += 2) {
      DOUBLE_ROUND(turn16, turn12, turn8, turn7, _mm_add_epi32, _mm_xor_si128)
    }
    for (int i = 0; i < 16; i++) v[i] = _mm_add_epi32(v[i], first[i]);
    for (int i = 0; i < 16; i += 4) transpose(v + i);
    for (size_t i = 0; i < 4 && from + i < lanes.count; i++) {
      uint8_t* data = lanes.data[from + i];
      const size_t length = lanes.length[from + i];
      if (length == kChachaBlock) {
        for (size_t part = 0; part < 4; part++) {
          auto* at = reinterpret_cast<__m128i*>(data + 16 * part);
          _mm_storeu_si128(at, _mm_xor_si128(_mm_loadu_si128(at), v[4 * part + i]));
        }
        continue;
      }
      alignas(16) uint8_t stream[kChachaBlock];
      for (size_t part = 0; part < 4; part++) {
        _mm_store_si128(reinterpret_cast<__m128i*>(stream + 16 * part), v[4 * part + i]);
      }
      chachaMask(data, stream, length);
    }
  }
}

// __builtin_cpu_supports asks XCR0 too: the operating system must save the registers.
static const ChachaKernel kernels[] = {
    {"avx512bw", encryptAvx512, [] { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"); }},
    {"avx2", encryptAvx2, [] { return static_cast<bool>(__builtin_cpu_supports("avx2")); }},
    {"sse2", encryptSse2, [] { return true; }},
};
const ChachaKernel* const chachaArchKernels = kernels;
const size_t chachaArchKernelCount = sizeof kernels / sizeof kernels[0];

}  // namespace penstock
#endif
