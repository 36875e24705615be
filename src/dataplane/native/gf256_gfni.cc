/** GF(2^8) kernels of x86 with GF2P8AFFINEQB, on 512 and 256 bits. */
#if defined(__x86_64__)
#include "cauchy.h"
#include "gf256_x86.h"

#define GFNI512 "avx512f,avx512bw,avx512vl,gfni"
#define GFNI256 "avx2,gfni"

namespace penstock {

/** The bit matrix of 1. */
constexpr long long kIdentity = 0x0102040810204080;

/** The bit matrix of the coefficient of source `i` in target `j`: at hand, or looked up. */
template <bool atHand>
static inline __attribute__((always_inline)) long long affineOf(const Product& product, size_t j, size_t i) {
  return static_cast<long long>(atHand ? product.coefficients[i * product.m + j] : gfTables.affine[product.matrix[j * product.stride + i]]);
}

/**
 * The inverse of what `count` rows have in as many columns, at most kFewEquations, in the field of GF2P8MULB (GfTables::toAes): Gauss-Jordan in place,
 * each row a register where `count` is a constant. False where a pivot is 0: the rows would have to change places.
 */
INLINE("gfni,avx2") bool invertFew(const uint8_t* rows, size_t stride, const uint8_t* unknowns, size_t count, __m128i* inverse) {
  const __m128i toAes = _mm_set1_epi64x(static_cast<long long>(gfTables.toAes));
#pragma GCC unroll 16
  for (size_t j = 0; j < count; j++, rows += stride) {
    // In registers of their own: a vector would wait for bytes that were stored one by one.
    uint64_t low = 0, high = 0;
#pragma GCC unroll 16
    for (size_t i = 0; i < count && i < 8; i++) low |= static_cast<uint64_t>(rows[unknowns[i]]) << 8 * i;
#pragma GCC unroll 16
    for (size_t i = 8; i < count; i++) high |= static_cast<uint64_t>(rows[unknowns[i]]) << 8 * (i - 8);
    inverse[j] = _mm_gf2p8affine_epi64_epi8(_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low)), toAes, 0);
  }
  const __m128i identity = _mm_set1_epi64x(kIdentity), one = _mm_set1_epi8(1);
  if (count == 2) {
    // In less time than by pivots: 1 / (ad + bc) times d, b and c, a.
    const __m128i rowsOfBoth = _mm_unpacklo_epi16(inverse[0], inverse[1]);
    const __m128i halves = _mm_gf2p8mul_epi8(rowsOfBoth, _mm_shuffle_epi8(rowsOfBoth, _mm_set1_epi32(0x00010203)));
    const __m128i determinant = _mm_shuffle_epi8(_mm_xor_si128(halves, _mm_srli_epi16(halves, 8)), _mm_setzero_si128());
    const __m128i by = _mm_gf2p8affineinv_epi64_epi8(determinant, identity, 0);
    inverse[0] = _mm_gf2p8mul_epi8(_mm_shuffle_epi8(rowsOfBoth, _mm_set1_epi16(0x0103)), by);
    inverse[1] = _mm_gf2p8mul_epi8(_mm_shuffle_epi8(rowsOfBoth, _mm_set1_epi16(0x0002)), by);
    return (_mm_cvtsi128_si32(determinant) & 255) != 0;
  }
  const __m128i columns = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  __m128i zeros = _mm_setzero_si128(), column = zeros;
#pragma GCC unroll 16
  for (size_t pivot = 0; pivot < count; pivot++, column = _mm_add_epi8(column, one)) {
    const __m128i isPivot = _mm_cmpeq_epi8(columns, column);
    const __m128i entry = _mm_shuffle_epi8(inverse[pivot], column);
    zeros = _mm_or_si128(zeros, _mm_cmpeq_epi8(entry, _mm_setzero_si128()));
    const __m128i by = _mm_gf2p8affineinv_epi64_epi8(entry, identity, 0);
    const __m128i own = _mm_gf2p8mul_epi8(_mm_blendv_epi8(inverse[pivot], one, isPivot), by);
#pragma GCC unroll 16
    for (size_t j = 0; j < count; j++) {
      const __m128i factor = _mm_shuffle_epi8(inverse[j], column);
      inverse[j] = _mm_xor_si128(_mm_andnot_si128(isPivot, inverse[j]), _mm_gf2p8mul_epi8(factor, own));
    }
    inverse[pivot] = own;
  }
  return _mm_movemask_epi8(zeros) == 0;
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

/**
 * Writes the bit matrices of sixteen coefficients each of two targets, elements of the field of AES, source by source. The columns of one are its coefficient times
 * 1, x, x^2 and so on; their rows are what they make, as a bit matrix, of the bytes with one bit.
 */
INLINE(GFNI512) void writeSixteen(__m128i one, __m128i other, uint64_t* out) {
  const __m512i fromAes = _mm512_set1_epi64(static_cast<long long>(gfTables.fromAes)), powers = _mm512_set1_epi64(static_cast<long long>(gfTables.powersInAes));
  const __m512i identity = _mm512_set1_epi64(kIdentity);
  const __m512i ofFirst = _mm512_set_epi64(0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404, 0x0303030303030303,
                                           0x0202020202020202, 0x0101010101010101, 0);
  const __m512i ofSecond = _mm512_add_epi8(ofFirst, _mm512_set1_epi8(8));
  const auto write = [&](__m512i coefficients, __m512i which, uint64_t* at) __attribute__((target(GFNI512), always_inline)) {
    const __m512i columns = _mm512_gf2p8affine_epi64_epi8(_mm512_gf2p8mul_epi8(_mm512_shuffle_epi8(coefficients, which), powers), fromAes, 0);
    _mm512_storeu_si512(at, _mm512_gf2p8affine_epi64_epi8(identity, columns, 0));
  };
  const __m512i low = _mm512_broadcast_i32x4(_mm_unpacklo_epi8(one, other)), high = _mm512_broadcast_i32x4(_mm_unpackhi_epi8(one, other));
  write(low, ofFirst, out);
  write(low, ofSecond, out + 8);
  write(high, ofFirst, out + 16);
  write(high, ofSecond, out + 24);
}

/** Writes the bit matrices of the coefficients of two targets, source by source. */
TARGET(GFNI512) void writeMatrices(const Product& product, uint64_t* out) {
  const __m128i toAes = _mm_set1_epi64x(static_cast<long long>(gfTables.toAes));
  for (size_t i = 0; i < product.k; i += 16, out += 32) {
    const auto mask = static_cast<__mmask16>(lowest(product.k - i));
    const __m128i one = _mm_gf2p8affine_epi64_epi8(_mm_maskz_loadu_epi8(mask, product.matrix + i), toAes, 0);
    const __m128i other = _mm_gf2p8affine_epi64_epi8(_mm_maskz_loadu_epi8(mask, product.matrix + product.stride + i), toAes, 0);
    writeSixteen(one, other, out);
  }
}

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

/** Multiplies with bit matrices that are made first. */
TARGET(GFNI512) void multiplyByFew(Product& product) {
  alignas(64) uint64_t matrices[kFewTargets * (kMaxSymbols + 1)];
  writeMatrices(product, matrices);
  product.coefficients = matrices;
  product.padded ? stripsGfni512<true, true>(product) : stripsGfni512<false, true>(product);
}

__attribute__((target(GFNI512))) void multiplyGfni512(Product& product) {
  const bool isByFew = product.m == kFewTargets && !product.coefficients && product.k <= kMaxSymbols;
  if (isByFew) return multiplyByFew(product);
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

using SolveCount = Solved (*)(const Equations& equations, uint8_t* out, uint64_t* coefficients);

/** SolveFew for a count that is a constant: all of it stays in registers. */
template <size_t count>
TARGET(GFNI512) Solved solveGfni512(const Equations& equations, uint8_t* out, uint64_t* coefficients) {
  const auto [rows, stride, k, bytes, unknowns, same] = equations;
  __m128i inverse[count];
  if (!invertFew(rows, stride, unknowns, count, inverse)) return Solved::kNot;
  const __m512i toAes = _mm512_set1_epi64(static_cast<long long>(gfTables.toAes));
  const __m512i fromAes = _mm512_set1_epi64(static_cast<long long>(gfTables.fromAes));
  for (size_t at = 0; at < bytes; at += 64) {
    // In the columns of the unknowns each row counts once: the inverse comes to stand there.
    __mmask64 unknown = 0, itsOwn[count];
    for (size_t j = 0; j < count; j++) {
      itsOwn[j] = unknowns[j] / 64 == at / 64 ? 1ull << unknowns[j] % 64 : 0;
      unknown |= itsOwn[j];
    }
    __m512i in[count];
    for (size_t j = 0; j < count; j++) {
      const __m512i known = _mm512_maskz_loadu_epi8(~unknown, rows + j * stride + at);
      in[j] = _mm512_mask_blend_epi8(itsOwn[j], _mm512_gf2p8affine_epi64_epi8(known, toAes, 0), _mm512_set1_epi8(1));
    }
    __m512i sum[count];
    for (size_t m = 0; m < count; m++) {
      const __m512i factors = _mm512_broadcast_i32x4(inverse[m]);
      __m512i column = _mm512_setzero_si512();
      sum[m] = column;
#pragma GCC unroll 16
      for (size_t j = 0; j < count; j++, column = _mm512_add_epi8(column, _mm512_set1_epi8(1))) {
        sum[m] = _mm512_xor_si512(sum[m], _mm512_gf2p8mul_epi8(in[j], _mm512_shuffle_epi8(factors, column)));
      }
      if (count != kFewTargets) _mm512_storeu_si512(out + m * bytes + at, _mm512_gf2p8affine_epi64_epi8(sum[m], fromAes, 0));
    }
    if constexpr (count == kFewTargets) {
      uint64_t* const matrices = coefficients + count * at;
      const size_t left = equations.k - at;
      writeSixteen(_mm512_castsi512_si128(sum[0]), _mm512_castsi512_si128(sum[1]), matrices);
      if (left > 16) writeSixteen(_mm512_extracti32x4_epi32(sum[0], 1), _mm512_extracti32x4_epi32(sum[1], 1), matrices + 32);
      if (left > 32) writeSixteen(_mm512_extracti32x4_epi32(sum[0], 2), _mm512_extracti32x4_epi32(sum[1], 2), matrices + 64);
      if (left > 48) writeSixteen(_mm512_extracti32x4_epi32(sum[0], 3), _mm512_extracti32x4_epi32(sum[1], 3), matrices + 96);
    }
  }
  return count == kFewTargets ? Solved::kCoefficients : Solved::kRows;
}

Solved solveFewGfni512(const Equations& equations, uint8_t* rows, uint64_t* coefficients) {
  static constexpr SolveCount of[] = {
      solveGfni512<1>, solveGfni512<2>,  solveGfni512<3>,  solveGfni512<4>,  solveGfni512<5>,  solveGfni512<6>,  solveGfni512<7>,  solveGfni512<8>,
      solveGfni512<9>, solveGfni512<10>, solveGfni512<11>, solveGfni512<12>, solveGfni512<13>, solveGfni512<14>, solveGfni512<15>, solveGfni512<16>,
  };
  static_assert(sizeof of == kFewEquations * sizeof of[0]);
  return of[equations.count - 1](equations, rows, coefficients);
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
TARGET(GFNI256) void multiplyAtHand(Product& product) { COLUMNS(32, groupsAtHand) }
TARGET(GFNI256) void multiplyLookedUp(Product& product) { COLUMNS(32, groupsLookedUp) }
__attribute__((target(GFNI256))) void multiplyGfni256(Product& product) {
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

__attribute__((target(GFNI256))) Solved solveFewGfni256(const Equations& equations, uint8_t* out, uint64_t*) {
  const auto [rows, stride, k, bytes, unknowns, count] = equations;
  __m128i inverse[kFewEquations];
  if (!invertFew(rows, stride, unknowns, count, inverse)) return Solved::kNot;
  const __m256i toAes = _mm256_set1_epi64x(static_cast<long long>(gfTables.toAes));
  const __m256i fromAes = _mm256_set1_epi64x(static_cast<long long>(gfTables.fromAes));
  for (size_t at = 0; at < bytes; at += 32) {
    __m256i in[kFewEquations];
    for (size_t j = 0; j < count; j++) {
      in[j] = _mm256_gf2p8affine_epi64_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + j * stride + at)), toAes, 0);
    }
    for (size_t m = 0; m < count; m++) {
      const __m256i factors = _mm256_broadcastsi128_si256(inverse[m]);
      __m256i sum = _mm256_setzero_si256(), column = sum;
      for (size_t j = 0; j < count; j++, column = _mm256_add_epi8(column, _mm256_set1_epi8(1))) {
        sum = _mm256_xor_si256(sum, _mm256_gf2p8mul_epi8(in[j], _mm256_shuffle_epi8(factors, column)));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + m * bytes + at), _mm256_gf2p8affine_epi64_epi8(sum, fromAes, 0));
    }
  }
  for (size_t m = 0; m < count; m++) {
    uint8_t entries[kFewEquations];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(entries), _mm_gf2p8affine_epi64_epi8(inverse[m], _mm256_castsi256_si128(fromAes), 0));
    for (size_t j = 0; j < count; j++) out[m * bytes + unknowns[j]] = entries[j];
  }
  return Solved::kRows;
}

}  // namespace penstock
#endif
