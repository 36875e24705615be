/** GF(2^8) kernels of x86 with GF2P8AFFINEQB, on 512 and 256 bits. */
#if defined(__x86_64__)
#include "gf256_x86.h"

#define GFNI512 "avx512f,avx512bw,gfni"
#define GFNI256 "avx2,gfni"

namespace penstock {

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

__attribute__((target(GFNI512))) void multiplyGfni512(const Product& product) {
  if (product.padded) {
    stripsGfni512<true>(product);
  } else {
    stripsGfni512<false>(product);
  }
}

__attribute__((target(GFNI512))) void addMultiplesGfni512(uint8_t* rows, size_t stride, size_t count, const uint8_t* row,
                                                          const uint8_t* factors, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) {
    const __m512i own = _mm512_loadu_si512(row + at);
    uint8_t* to = rows + at;
    for (size_t j = 0; j < count; j++, to += stride) {
      const __m512i by = _mm512_set1_epi64(static_cast<long long>(gfTables.affine[factors[j]]));
      _mm512_storeu_si512(to, _mm512_xor_si512(_mm512_loadu_si512(to), _mm512_gf2p8affine_epi64_epi8(own, by, 0)));
    }
  }
}

// --- GFNI, 256 bits -----------------------------------------------------------------------------------------------------

template <int M, int U>
INLINE(GFNI256) void tileGfni256(const Product& product, size_t group, size_t at) {
  uint8_t stage[32 * U];
  __m256i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm256_setzero_si256();
  }
  const uint64_t* coefficients = product.coefficients + group;
  for (size_t i = 0; i < product.k; i++, coefficients += product.m) {
    const auto* source = reinterpret_cast<const __m256i*>(window(product, i, at, 32 * U, stage));
    __m256i in[U];
    for (int u = 0; u < U; u++) in[u] = _mm256_loadu_si256(source + u);
    for (int j = 0; j < M; j++) {
      const __m256i by = _mm256_set1_epi64x(static_cast<long long>(coefficients[j]));
      for (int u = 0; u < U; u++) {
        sum[j][u] = _mm256_xor_si256(sum[j][u], _mm256_gf2p8affine_epi64_epi8(in[u], by, 0));
      }
    }
  }
  for (int j = 0; j < M; j++) {
    auto* target = reinterpret_cast<__m256i*>(product.targets[group + static_cast<size_t>(j)] + at);
    for (int u = 0; u < U; u++) _mm256_storeu_si256(target + u, sum[j][u]);
  }
}
GROUPS(GFNI256, groupsGfni256, tileGfni256)
__attribute__((target(GFNI256))) void multiplyGfni256(const Product& product) { COLUMNS(32, groupsGfni256) }

__attribute__((target(GFNI256))) void addMultiplesGfni256(uint8_t* rows, size_t stride, size_t count, const uint8_t* row,
                                                          const uint8_t* factors, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 32) {
    const __m256i own = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + at));
    for (size_t j = 0; j < count; j++) {
      auto* to = reinterpret_cast<__m256i*>(rows + j * stride + at);
      const __m256i by = _mm256_set1_epi64x(static_cast<long long>(gfTables.affine[factors[j]]));
      _mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), _mm256_gf2p8affine_epi64_epi8(own, by, 0)));
    }
  }
}

}  // namespace penstock
#endif
