/** GF(2^8) kernels of x86 with GF2P8AFFINEQB, on 512 and 256 bits. */
#if defined(__x86_64__)
#include "gf256_x86.h"

#define GFNI512 "avx512f,avx512bw,gfni"
#define GFNI256 "avx2,gfni"

namespace penstock {

/** The bit matrix of the coefficient of source `i` in target `j`: at hand, or looked up. */
template <bool atHand>
static inline __attribute__((always_inline)) long long affineOf(const Product& product, size_t j, size_t i) {
  return static_cast<long long>(atHand ? product.coefficients[i * product.m + j] : gfTables.affine[product.matrix[j * product.stride + i]]);
}

/** The inverse of what two rows have in two columns, row by row; false where there is none. Bit matrices are in the cache, since products look them up. */
INLINE("gfni,avx2") bool invertTwo(const uint8_t* first, const uint8_t* second, const uint8_t* unknowns, uint8_t* inverse) {
  const uint8_t a = first[unknowns[0]], b = first[unknowns[1]], c = second[unknowns[0]], d = second[unknowns[1]];
  const auto by = [](uint8_t factor) { return static_cast<long long>(gfTables.affine[factor]); };
  const __m128i ad = _mm_gf2p8affine_epi64_epi8(_mm_cvtsi32_si128(d), _mm_cvtsi64_si128(by(a)), 0);
  const __m128i bc = _mm_gf2p8affine_epi64_epi8(_mm_cvtsi32_si128(c), _mm_cvtsi64_si128(by(b)), 0);
  const auto determinant = static_cast<uint8_t>(_mm_cvtsi128_si32(_mm_xor_si128(ad, bc)));
  if (determinant == 0) return false;
  const __m128i all = _mm_cvtsi32_si128(static_cast<int>(static_cast<uint32_t>(a) << 24 | static_cast<uint32_t>(c << 16 | b << 8 | d)));
  const int word = _mm_cvtsi128_si32(_mm_gf2p8affine_epi64_epi8(all, _mm_cvtsi64_si128(by(gfTables.inverse[determinant])), 0));
  memcpy(inverse, &word, sizeof word);
  return true;
}

/** Writes an inverse into the columns of which it is one, after all that is written as vectors. */
static void putInverse(uint8_t* first, uint8_t* second, const uint8_t* unknowns, const uint8_t* inverse) {
  first[unknowns[0]] = inverse[0];
  first[unknowns[1]] = inverse[1];
  second[unknowns[0]] = inverse[2];
  second[unknowns[1]] = inverse[3];
}

// --- GFNI, 512 bits -----------------------------------------------------------------------------------------------------

INLINE(GFNI512) __mmask64 lowest(size_t count) { return count >= 64 ? ~0ull : (1ull << count) - 1; }

/** Reads the bit matrices of the coefficients of targets from `group` on, source after source. */
template <bool atHand>
class Coefficients {
 public:
  INLINE_MEMBER Coefficients(const Product& product, size_t group)
      : next_(atHand ? product.coefficients + group : nullptr),
        low_(product.matrix + group * product.stride),
        high_(low_ + 3 * product.stride),
        step_(atHand ? product.m : product.stride) {}

  /** That of target group + j, below 6, in the next source, or in the one behind it. */
  INLINE_MEMBER long long get(size_t j, size_t behind) const {
    if (atHand) return static_cast<long long>(next_[behind * step_ + j]);
    const uint8_t* row = j < 3 ? low_ + j * step_ : high_ + (j - 3) * step_;
    return static_cast<long long>(gfTables.affine[row[behind]]);
  }
  INLINE_MEMBER void skip(size_t sources) {
    next_ += atHand ? sources * step_ : 0;
    low_ += sources;
    high_ += sources;
    // Compilers make a pointer of every row otherwise, for which there are not registers enough.
    if (!atHand) __asm__("" : "+r"(low_), "+r"(high_));
  }

 private:
  const uint64_t* next_;
  const uint8_t *low_, *high_;
  const size_t step_;
};

/** Where a tile begins, which may be in front of the columns, and which bytes of its first and of its last vector count. */
struct Edges {
  ptrdiff_t at;
  __mmask64 first, last;
};

/** `U` vectors of source `i`; with `edged` only bytes that count, others are 0 and not read. */
template <int U, bool edged, bool padded>
INLINE(GFNI512) void loadGfni512(__m512i* in, const Product& product, size_t i, const Edges& edges) {
  const uint8_t* source = product.sources[i] + edges.at;
  const ptrdiff_t left = padded ? product.lengths[i] - edges.at : 0;
  for (int u = 0; u < U; u++) {
    const ptrdiff_t skipped = u * 64;
    if (!edged && !padded) {
      in[u] = _mm512_loadu_si512(source + skipped);
      continue;
    }
    __mmask64 mask = !padded ? ~0ull : left > skipped ? lowest(static_cast<size_t>(left - skipped)) : 0;
    if (edged && u == 0) mask &= edges.first;
    if (edged && u == U - 1) mask &= edges.last;
    in[u] = _mm512_maskz_loadu_epi8(mask, source + skipped);
  }
}

/**
 * `U` vectors of 64 columns of targets [group, group + M). With `edged` only the bytes that count are read and written. Sources go in pairs, so that one
 * instruction adds two products.
 */
template <int M, int U, bool edged, bool padded, bool atHand>
INLINE(GFNI512) void tileGfni512(const Product& product, size_t group, const Edges& edges) {
  __m512i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm512_setzero_si512();
  }
  Coefficients<atHand> coefficients(product, group);
  size_t i = 0;
  for (; i + 2 <= product.k; i += 2) {
    __m512i one[U], other[U];
    loadGfni512<U, edged, padded>(one, product, i, edges);
    loadGfni512<U, edged, padded>(other, product, i + 1, edges);
    for (int j = 0; j < M; j++) {
      const __m512i byOne = _mm512_set1_epi64(coefficients.get(static_cast<size_t>(j), 0));
      const __m512i byOther = _mm512_set1_epi64(coefficients.get(static_cast<size_t>(j), 1));
      for (int u = 0; u < U; u++) {
        const __m512i ofOne = _mm512_gf2p8affine_epi64_epi8(one[u], byOne, 0);
        const __m512i ofOther = _mm512_gf2p8affine_epi64_epi8(other[u], byOther, 0);
        sum[j][u] = _mm512_ternarylogic_epi64(sum[j][u], ofOne, ofOther, 0x96);
      }
    }
    coefficients.skip(2);
  }
  if (i < product.k) {
    __m512i last[U];
    loadGfni512<U, edged, padded>(last, product, i, edges);
    for (int j = 0; j < M; j++) {
      const __m512i by = _mm512_set1_epi64(coefficients.get(static_cast<size_t>(j), 0));
      for (int u = 0; u < U; u++) {
        sum[j][u] = _mm512_xor_si512(sum[j][u], _mm512_gf2p8affine_epi64_epi8(last[u], by, 0));
      }
    }
  }
  for (int j = 0; j < M; j++) {
    uint8_t* target = product.targets[group + static_cast<size_t>(j)] + edges.at;
    for (int u = 0; u < U; u++) {
      if (!edged || (u > 0 && u < U - 1)) {
        _mm512_storeu_si512(target + u * 64, sum[j][u]);
      } else {
        _mm512_mask_storeu_epi8(target + u * 64, (u == 0 ? edges.first : ~0ull) & (u == U - 1 ? edges.last : ~0ull), sum[j][u]);
      }
    }
  }
}

/** Vectors of a tile of M targets: its sums, and those of a pair of sources with two coefficients, fill the registers. More than seven gain nothing. */
template <int M>
constexpr int kTileVectors = M < 3 ? 7 : 30 / (M + 2);

/** The tile of `count` vectors, at most U. */
template <int M, int U, bool padded, bool atHand>
INLINE(GFNI512) void tileOf(size_t count, const Product& product, size_t group, const Edges& edges) {
  if constexpr (U > 1) {
    if (count < U) return tileOf<M, U - 1, padded, atHand>(count, product, group, edges);
  }
  // Smaller ones are alone, which is too seldom for code of their own.
  constexpr bool isOneOfSeveral = 2 * U > kTileVectors<M>;
  if (isOneOfSeveral && (edges.first & edges.last) == ~0ull) {
    tileGfni512<M, U, !isOneOfSeveral, padded, atHand>(product, group, edges);
  } else {
    tileGfni512<M, U, true, padded, atHand>(product, group, edges);
  }
}

/** All columns of targets [group, group + M), in tiles as even as can be: one of a vector or two costs more than what it has. */
template <int M, bool padded, bool atHand>
TARGET(GFNI512) void stripGfni512(const Product& product, size_t group) {
  constexpr size_t widest = kTileVectors<M>;
  size_t left = (product.lead + product.bytes + 63) / 64;
  size_t tiles = (left + widest - 1) / widest;
  const __mmask64 first = ~0ull << product.lead, last = lowest((product.lead + product.bytes - 1) % 64 + 1);
  Edges edges = {-static_cast<ptrdiff_t>(product.lead), first, tiles == 1 ? last : ~0ull};
  while (tiles > 0) {
    const size_t count = (left + tiles - 1) / tiles;
    tileOf<M, widest, padded, atHand>(count, product, group, edges);
    left -= count;
    tiles--;
    edges = {edges.at + static_cast<ptrdiff_t>(64 * count), ~0ull, tiles == 1 ? last : ~0ull};
  }
}

template <bool padded, bool atHand>
TARGET(GFNI512) void stripsGfni512(const Product& product) {
  size_t group = 0;
  size_t left = product.m;
  while (left) {
    // Even groups: 10 is 5 + 5, not 6 + 4.
    const size_t groups = (left + 5) / 6;
    const size_t count = (left + groups - 1) / groups;
    switch (count) {
      case 1: stripGfni512<1, padded, atHand>(product, group); break;
      case 2: stripGfni512<2, padded, atHand>(product, group); break;
      case 3: stripGfni512<3, padded, atHand>(product, group); break;
      case 4: stripGfni512<4, padded, atHand>(product, group); break;
      case 5: stripGfni512<5, padded, atHand>(product, group); break;
      default: stripGfni512<6, padded, atHand>(product, group); break;
    }
    group += count;
    left -= count;
  }
}

__attribute__((target(GFNI512))) void multiplyGfni512(const Product& product) {
  if (product.padded) {
    product.coefficients ? stripsGfni512<true, true>(product) : stripsGfni512<true, false>(product);
  } else {
    product.coefficients ? stripsGfni512<false, true>(product) : stripsGfni512<false, false>(product);
  }
}

__attribute__((target(GFNI512))) void addMultiplesGfni512(uint8_t* rows, size_t stride, size_t count, const uint8_t* row,
                                                          const uint8_t* other, const uint8_t* factors, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) {
    const __m512i own = _mm512_xor_si512(_mm512_loadu_si512(row + at), _mm512_loadu_si512(other + at));
    uint8_t* to = rows + at;
    for (size_t j = 0; j < count; j++, to += stride) {
      const __m512i by = _mm512_set1_epi64(static_cast<long long>(gfTables.affine[factors[j]]));
      _mm512_storeu_si512(to, _mm512_xor_si512(_mm512_loadu_si512(to), _mm512_gf2p8affine_epi64_epi8(own, by, 0)));
    }
  }
}

__attribute__((target(GFNI512))) bool solveTwoGfni512(uint8_t* rows, size_t stride, size_t bytes, const uint8_t* unknowns) {
  uint8_t *first = rows, *second = rows + stride;
  uint8_t inverse[4];
  if (!invertTwo(first, second, unknowns, inverse)) return false;
  __m512i times[4];
  for (int n = 0; n < 4; n++) times[n] = _mm512_set1_epi64(static_cast<long long>(gfTables.affine[inverse[n]]));
  for (size_t at = 0; at < bytes; at += 64) {
    const __m512i one = _mm512_loadu_si512(first + at), other = _mm512_loadu_si512(second + at);
    __m512i of[4];
    for (int n = 0; n < 4; n++) of[n] = _mm512_gf2p8affine_epi64_epi8(n % 2 ? other : one, times[n], 0);
    _mm512_storeu_si512(first + at, _mm512_xor_si512(of[0], of[1]));
    _mm512_storeu_si512(second + at, _mm512_xor_si512(of[2], of[3]));
  }
  putInverse(first, second, unknowns, inverse);
  return true;
}

// --- GFNI, 256 bits -----------------------------------------------------------------------------------------------------

template <int M, int U, bool atHand>
INLINE(GFNI256) void tileGfni256(const Product& product, size_t group, size_t at) {
  uint8_t stage[32 * U];
  __m256i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm256_setzero_si256();
  }
  for (size_t i = 0; i < product.k; i++) {
    const auto* source = reinterpret_cast<const __m256i*>(window(product, i, at, 32 * U, stage));
    __m256i in[U];
    for (int u = 0; u < U; u++) in[u] = _mm256_loadu_si256(source + u);
    for (int j = 0; j < M; j++) {
      const __m256i by = _mm256_set1_epi64x(affineOf<atHand>(product, group + static_cast<size_t>(j), i));
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
template <int M, int U>
INLINE(GFNI256) void tileAtHand(const Product& product, size_t group, size_t at) { tileGfni256<M, U, true>(product, group, at); }
template <int M, int U>
INLINE(GFNI256) void tileLookedUp(const Product& product, size_t group, size_t at) { tileGfni256<M, U, false>(product, group, at); }
GROUPS(GFNI256, groupsAtHand, tileAtHand)
GROUPS(GFNI256, groupsLookedUp, tileLookedUp)
TARGET(GFNI256) void multiplyAtHand(const Product& product) { COLUMNS(32, groupsAtHand) }
TARGET(GFNI256) void multiplyLookedUp(const Product& product) { COLUMNS(32, groupsLookedUp) }
__attribute__((target(GFNI256))) void multiplyGfni256(const Product& product) {
  product.coefficients ? multiplyAtHand(product) : multiplyLookedUp(product);
}

__attribute__((target(GFNI256))) void addMultiplesGfni256(uint8_t* rows, size_t stride, size_t count, const uint8_t* row,
                                                          const uint8_t* other, const uint8_t* factors, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 32) {
    const __m256i own = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + at)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(other + at)));
    for (size_t j = 0; j < count; j++) {
      auto* to = reinterpret_cast<__m256i*>(rows + j * stride + at);
      const __m256i by = _mm256_set1_epi64x(static_cast<long long>(gfTables.affine[factors[j]]));
      _mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), _mm256_gf2p8affine_epi64_epi8(own, by, 0)));
    }
  }
}

__attribute__((target(GFNI256))) bool solveTwoGfni256(uint8_t* rows, size_t stride, size_t bytes, const uint8_t* unknowns) {
  uint8_t *first = rows, *second = rows + stride;
  uint8_t inverse[4];
  if (!invertTwo(first, second, unknowns, inverse)) return false;
  __m256i times[4];
  for (int n = 0; n < 4; n++) times[n] = _mm256_set1_epi64x(static_cast<long long>(gfTables.affine[inverse[n]]));
  for (size_t at = 0; at < bytes; at += 32) {
    auto *one = reinterpret_cast<__m256i*>(first + at), *other = reinterpret_cast<__m256i*>(second + at);
    __m256i of[4];
    for (int n = 0; n < 4; n++) of[n] = _mm256_gf2p8affine_epi64_epi8(_mm256_loadu_si256(n % 2 ? other : one), times[n], 0);
    _mm256_storeu_si256(one, _mm256_xor_si256(of[0], of[1]));
    _mm256_storeu_si256(other, _mm256_xor_si256(of[2], of[3]));
  }
  putInverse(first, second, unknowns, inverse);
  return true;
}

}  // namespace penstock
#endif
