/** GF(2^8) kernels of x86 with PSHUFB nibble tables on 256 bits. */
#if defined(__x86_64__)
#include "cauchy.h"
#include "gf256_x86.h"

#define AVX2 "avx2"

namespace penstock {

/** The nibble tables of the coefficients of M targets from `group` on, source after source: in a row of their own, or looked up in the matrix. */
template <int M, bool atHand>
class NibbleTables {
 public:
  INLINE_MEMBER NibbleTables(const Product& product, size_t group, const __m256i* tables)
      : tables_(tables), row_(product.matrix + group * product.stride), stride_(product.stride) {}

  /** The products with low nibbles, then with high ones, of target group + j in the source at hand. */
  INLINE_MEMBER const __m128i* of(int j) const {
    const void* table = atHand ? static_cast<const void*>(tables_ + j) : gfTables.nibbles[row_[static_cast<size_t>(j) * stride_]];
    return static_cast<const __m128i*>(table);
  }
  INLINE_MEMBER void next() {
    tables_ += M;
    row_++;
  }

 private:
  const __m256i* tables_;
  const uint8_t* row_;
  const size_t stride_;
};

/** `U` vectors of targets [group, group + M) from column `at` on. */
template <int M, int U, bool padded, bool atHand>
INLINE(AVX2) void tileAvx2(const Product& product, size_t group, size_t at, const __m256i* coefficients) {
  uint8_t stage[32 * U];
  __m256i sum[M][U];
  for (int j = 0; j < M; j++) {
    for (int u = 0; u < U; u++) sum[j][u] = _mm256_setzero_si256();
  }
  const __m256i nibble = _mm256_set1_epi8(15);
  NibbleTables<M, atHand> tables(product, group, coefficients);
  for (size_t i = 0; i < product.k; i++, tables.next()) {
    const auto* source = reinterpret_cast<const __m256i*>(padded ? window(product, i, at, 32 * U, stage) : product.sources[i] + at);
    __m256i low[U], high[U];
    for (int u = 0; u < U; u++) {
      const __m256i in = _mm256_loadu_si256(source + u);
      low[u] = _mm256_and_si256(in, nibble);
      high[u] = _mm256_and_si256(_mm256_srli_epi16(in, 4), nibble);
    }
    for (int j = 0; j < M; j++) {
      const __m128i* table = tables.of(j);
      const __m256i lows = _mm256_broadcastsi128_si256(_mm_load_si128(table));
      for (int u = 0; u < U; u++) {
        sum[j][u] = _mm256_xor_si256(sum[j][u], _mm256_shuffle_epi8(lows, low[u]));
        // Compilers add both products first otherwise, for which there is a register too few.
        __asm__("" : "+x"(sum[j][u]));
      }
      const __m256i highs = _mm256_broadcastsi128_si256(_mm_load_si128(table + 1));
      for (int u = 0; u < U; u++) sum[j][u] = _mm256_xor_si256(sum[j][u], _mm256_shuffle_epi8(highs, high[u]));
    }
  }
  for (int j = 0; j < M; j++) {
    auto* target = reinterpret_cast<__m256i*>(product.targets[group + static_cast<size_t>(j)] + at);
    for (int u = 0; u < U; u++) _mm256_storeu_si256(target + u, sum[j][u]);
  }
}

/** All columns of targets [group, group + M): tiles as wide as there are registers for, of two vectors, of one, the last moved back to end with the columns. */
template <int M, bool padded, bool atHand>
TARGET(AVX2) void stripAvx2(const Product& product, size_t group) {
  __m256i tables[atHand ? M * kMaxSymbols : 1];
  // From here on they lie in one row: where a tile finds them it need not ask for each.
  for (size_t i = 0; atHand && i < product.k; i++) {
    for (size_t j = 0; j < M; j++) {
      tables[M * i + j] = _mm256_load_si256(reinterpret_cast<const __m256i*>(gfTables.nibbles[product.matrix[(group + j) * product.stride + i]]));
    }
  }
  size_t at = 0;
  for (; M == 1 && at + 128 <= product.bytes; at += 128) tileAvx2<M, M == 1 ? 4 : 2, padded, atHand>(product, group, at, tables);
  for (; at + 64 <= product.bytes; at += 64) tileAvx2<M, 2, padded, atHand>(product, group, at, tables);
  for (; at + 32 <= product.bytes; at += 32) tileAvx2<M, 1, padded, atHand>(product, group, at, tables);
  if (at < product.bytes) tileAvx2<M, 1, padded, atHand>(product, group, product.bytes - 32, tables);
}

template <bool padded, bool atHand>
TARGET(AVX2) void stripsAvx2(const Product& product) {
  size_t group = 0;
  size_t left = product.m;
  while (left) {
    // Even groups: 5 is 3 + 2, not 4 + 1.
    const size_t groups = (left + 3) / 4;
    const size_t count = (left + groups - 1) / groups;
    switch (count) {
      case 1: stripAvx2<1, padded, atHand>(product, group); break;
      case 2: stripAvx2<2, padded, atHand>(product, group); break;
      case 3: stripAvx2<3, padded, atHand>(product, group); break;
      default: stripAvx2<4, padded, atHand>(product, group); break;
    }
    group += count;
    left -= count;
  }
}

__attribute__((target(AVX2))) void multiplyAvx2(Product& product) {
  if (product.bytes < 32) return multiplyScalar(product);
  const bool atHand = product.k <= kMaxSymbols;
  if (product.padded) {
    atHand ? stripsAvx2<true, true>(product) : stripsAvx2<true, false>(product);
  } else {
    atHand ? stripsAvx2<false, true>(product) : stripsAvx2<false, false>(product);
  }
}

/** The products of 32 bytes, apart by their low and high nibbles, with the factor of a nibble table. */
INLINE(AVX2) __m256i timesAvx2(__m256i low, __m256i high, uint8_t factor) {
  const auto* table = reinterpret_cast<const __m128i*>(gfTables.nibbles[factor]);
  const __m256i lows = _mm256_broadcastsi128_si256(_mm_load_si128(table)), highs = _mm256_broadcastsi128_si256(_mm_load_si128(table + 1));
  return _mm256_xor_si256(_mm256_shuffle_epi8(lows, low), _mm256_shuffle_epi8(highs, high));
}

__attribute__((target(AVX2))) void addMultiplesAvx2(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors,
                                   size_t bytes) {
  const __m256i nibble = _mm256_set1_epi8(15);
  for (size_t at = 0; at < bytes; at += 32) {
    const __m256i own = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + at)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(other + at)));
    const __m256i low = _mm256_and_si256(own, nibble), high = _mm256_and_si256(_mm256_srli_epi16(own, 4), nibble);
    for (size_t j = 0; j < count; j++) {
      auto* to = reinterpret_cast<__m256i*>(rows + j * stride + at);
      _mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), timesAvx2(low, high, factors[j])));
    }
  }
}

/** The products of 16 bytes with one factor. */
INLINE(AVX2) __m128i timesOf(__m128i bytes, uint8_t factor) {
  const auto* table = reinterpret_cast<const __m128i*>(gfTables.nibbles[factor]);
  const __m128i nibble = _mm_set1_epi8(15);
  return _mm_xor_si128(_mm_shuffle_epi8(_mm_load_si128(table), _mm_and_si128(bytes, nibble)),
                       _mm_shuffle_epi8(_mm_load_si128(table + 1), _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble)));
}

/** A row of an inverse, in memory from which its entries are read. */
union InverseRow {
  __m128i all;
  uint8_t entries[kFewEquations];
};

/** The inverse of two rows: 1 / (ad + bc) times d, b and c, a. False where there is none. */
INLINE(AVX2) bool invertTwo(const uint8_t* one, const uint8_t* other, const uint8_t* unknowns, InverseRow* inverse) {
  const uint8_t a = one[unknowns[0]], b = one[unknowns[1]], c = other[unknowns[0]], d = other[unknowns[1]];
  const uint8_t determinant = gfTimes(a, d) ^ gfTimes(b, c), by = gfTables.inverse[determinant];
  inverse[0].entries[0] = gfTimes(by, d);
  inverse[0].entries[1] = gfTimes(by, b);
  inverse[1].entries[0] = gfTimes(by, c);
  inverse[1].entries[1] = gfTimes(by, a);
  return determinant != 0;
}

/** The inverse of what `count` rows have in as many columns: Gauss-Jordan in place. False where a pivot is 0: the rows would have to change places. */
INLINE(AVX2) bool invertFew(const uint8_t* rows, size_t stride, const uint8_t* unknowns, size_t count, InverseRow* inverse) {
  if (count == 2) return invertTwo(rows, rows + stride, unknowns, inverse);
  for (size_t j = 0; j < count; j++, rows += stride) {
    // In registers of their own: a vector would wait for bytes that were stored one by one.
    uint64_t low = 0, high = 0;
    for (size_t i = 0; i < count && i < 8; i++) low |= static_cast<uint64_t>(rows[unknowns[i]]) << 8 * i;
    for (size_t i = 8; i < count; i++) high |= static_cast<uint64_t>(rows[unknowns[i]]) << 8 * (i - 8);
    inverse[j].all = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  }
  for (size_t pivot = 0; pivot < count; pivot++) {
    const uint8_t entry = inverse[pivot].entries[pivot];
    if (entry == 0) return false;
    const __m128i unit = _mm_loadu_si128(reinterpret_cast<const __m128i*>(unitRow(pivot)));
    // What stands in the pivot's column is taken for 1 there, so that 1 / entry is left, and what others have of it.
    const __m128i own = timesOf(_mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(unit, _mm_set1_epi8(1)), inverse[pivot].all), unit), gfTables.inverse[entry]);
    for (size_t j = 0; j < count; j++) {
      const uint8_t factor = inverse[j].entries[pivot];
      inverse[j].all = _mm_xor_si128(_mm_andnot_si128(_mm_cmpeq_epi8(unit, _mm_set1_epi8(1)), inverse[j].all), timesOf(own, factor));
    }
    inverse[pivot].all = own;
  }
  return true;
}

__attribute__((target(AVX2))) Solved solveFewAvx2(const Equations& equations, uint8_t* out, uint64_t*) {
  const auto [rows, stride, k, bytes, unknowns, count] = equations;
  InverseRow inverse[kFewEquations];
  if (!invertFew(rows, stride, unknowns, count, inverse)) return Solved::kNot;
  const __m256i nibble = _mm256_set1_epi8(15);
  for (size_t at = 0; at < k; at += 32) {
    __m256i low[kFewEquations], high[kFewEquations];
    for (size_t j = 0; j < count; j++) {
      const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + j * stride + at));
      low[j] = _mm256_and_si256(in, nibble);
      high[j] = _mm256_and_si256(_mm256_srli_epi16(in, 4), nibble);
    }
    for (size_t m = 0; m < count; m++) {
      __m256i sum = _mm256_setzero_si256();
      for (size_t j = 0; j < count; j++) sum = _mm256_xor_si256(sum, timesAvx2(low[j], high[j], inverse[m].entries[j]));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + m * bytes + at), sum);
    }
  }
  for (size_t m = 0; m < count; m++) {
    for (size_t j = 0; j < count; j++) out[m * bytes + unknowns[j]] = inverse[m].entries[j];
  }
  return Solved::kRows;
}

}  // namespace penstock
#endif
