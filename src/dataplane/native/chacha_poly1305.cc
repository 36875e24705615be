/**
 * ChaCha20 by vectors that hold a row of four blocks each, up to 24 blocks side by side, and Poly1305 by vectors of eight blocks, in limbs of
 * 44, 44 and 42 bits (Goll and Gueron, "Vectorization on ChaCha Stream Cipher", 2014, and "Vectorization of Poly1305 Message Authentication
 * Code", 2015).
 */
#include "chacha_poly1305.h"

#include <string.h>

#include <algorithm>

#if defined(__x86_64__)
// GCC 12's own header leaves the unused operand of unmasked intrinsics uninitialised on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "vector_registers.h"

// So that the addon as a whole runs on any x86-64.
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,bmi2")))
#define INLINE TARGET __attribute__((always_inline)) static inline
#define UNROLL _Pragma("GCC unroll 8")

namespace penstock {

static constexpr size_t kVector = 64;
static constexpr size_t kBlock = 16;
static constexpr size_t kStreamBlock = 64;

/** As OPENSSL_cleanse, which takes 8 bytes at a time. */
static inline void wipe(void* from, size_t bytes) {
  memset(from, 0, bytes);
  asm volatile("" ::"r"(from) : "memory");
}

/** The first `bytes` of a vector; none when negative. */
INLINE __mmask64 upTo(ptrdiff_t bytes) {
  return bytes >= static_cast<ptrdiff_t>(kVector) ? ~0ull : bytes <= 0 ? 0 : _bzhi_u64(~0ull, static_cast<unsigned>(bytes));
}

// --- ChaCha20 -----------------------------------------------------------------------------------------------------------

static constexpr size_t kGroupBytes = 4 * kStreamBlock;
/** Groups of four blocks that are computed side by side at most: those of a packet of 1,472 bytes. */
static constexpr size_t kGroups = 6;
static constexpr size_t kStream = kGroups * kGroupBytes;

/** The first block: its rows, of four words each, the key among them. Wiped when it goes. */
struct First {
  __m128i row[4];
  ~First() { wipe(this, sizeof *this); }
};

INLINE First firstOf(const uint8_t* key, const uint8_t* nonce) {
  int32_t words[3];
  memcpy(words, nonce, sizeof words);
  return {{_mm_setr_epi32(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574), _mm_loadu_si128(reinterpret_cast<const __m128i*>(key)),
           _mm_loadu_si128(reinterpret_cast<const __m128i*>(key + kBlock)), _mm_setr_epi32(0, words[0], words[1], words[2])}};
}

/** Four words of sixteen blocks, a vector for each, in `words`; four words of four blocks, a vector for all, in `rows`. */
template <int Groups>
struct Row {
  __m512i words[4];
  __m512i rows[Groups > 0 ? Groups : 1];
};

/** a += b; d = (d ^ a) <<< Turn. */
template <int Turn>
INLINE void step(__m512i& a, const __m512i& b, __m512i& d) {
  a = _mm512_add_epi32(a, b);
  d = _mm512_rol_epi32(_mm512_xor_si512(d, a), Turn);
}

template <bool Words, int Groups, int Turn>
INLINE void step(Row<Groups>& a, const Row<Groups>& b, Row<Groups>& d) {
  UNROLL for (int i = 0; Words && i < 4; i++) step<Turn>(a.words[i], b.words[i], d.words[i]);
  UNROLL for (int i = 0; i < Groups; i++) step<Turn>(a.rows[i], b.rows[i], d.rows[i]);
}

/** Of all columns (RFC 8439, section 2.1). */
template <bool Words, int Groups>
INLINE void quarterRounds(Row<Groups>* row) {
  step<Words, Groups, 16>(row[0], row[1], row[3]);
  step<Words, Groups, 12>(row[2], row[3], row[1]);
  step<Words, Groups, 8>(row[0], row[1], row[3]);
  step<Words, Groups, 7>(row[2], row[3], row[1]);
}

/** Turns the words of a row. */
template <bool Words, int Groups, int By>
INLINE void turn(Row<Groups>& row) {
  if (Words) {
    const __m512i before[4] = {row.words[0], row.words[1], row.words[2], row.words[3]};
    UNROLL for (int i = 0; i < 4; i++) row.words[i] = before[(i + By) % 4];
  }
  constexpr int order = By == 1 ? 0x39 : By == 2 ? 0x4e : 0x93;
  UNROLL for (int i = 0; i < Groups; i++) row.rows[i] = _mm512_shuffle_epi32(row.rows[i], static_cast<_MM_PERM_ENUM>(order));
}

/** A row of four blocks each becomes a block of four rows each, the blocks `apart` vectors from one another. */
INLINE void storeBlocks(__m512i a, __m512i b, __m512i c, __m512i d, uint8_t* to, size_t apart) {
  const __m512i ab = _mm512_shuffle_i32x4(a, b, 0x44), cd = _mm512_shuffle_i32x4(c, d, 0x44);
  const __m512i abEnd = _mm512_shuffle_i32x4(a, b, 0xee), cdEnd = _mm512_shuffle_i32x4(c, d, 0xee);
  auto* at = reinterpret_cast<__m512i*>(to);
  _mm512_store_si512(at, _mm512_shuffle_i32x4(ab, cd, 0x88));
  _mm512_store_si512(at + apart, _mm512_shuffle_i32x4(ab, cd, 0xdd));
  _mm512_store_si512(at + 2 * apart, _mm512_shuffle_i32x4(abEnd, cdEnd, 0x88));
  _mm512_store_si512(at + 3 * apart, _mm512_shuffle_i32x4(abEnd, cdEnd, 0xdd));
}

/** Words of sixteen blocks become rows: the row of the blocks i, 4 + i, 8 + i and 12 + i in row[i]. */
INLINE void rowsOf(const __m512i* words, __m512i* row) {
  const __m512i a = _mm512_unpacklo_epi32(words[0], words[1]), b = _mm512_unpackhi_epi32(words[0], words[1]);
  const __m512i c = _mm512_unpacklo_epi32(words[2], words[3]), d = _mm512_unpackhi_epi32(words[2], words[3]);
  row[0] = _mm512_unpacklo_epi64(a, c);
  row[1] = _mm512_unpackhi_epi64(a, c);
  row[2] = _mm512_unpacklo_epi64(b, d);
  row[3] = _mm512_unpackhi_epi64(b, d);
}

/**
 * Key stream from the block `number` on, to `to`: sixteen blocks by words, if `Words`, and `Groups` groups of four by rows. That by words takes
 * fewer instructions for a block, that by rows fills up what a packet is longer; side by side they hide each other's latency.
 */
template <bool Words, int Groups>
TARGET static void stream(const First& first, uint32_t number, uint8_t* to) {
  constexpr int byWords = Words ? 16 : 0;
  const __m512i counting = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto word = [&](int i, int j) TARGET {
    const __m512i all = _mm512_permutexvar_epi32(_mm512_set1_epi32(j), _mm512_castsi128_si512(first.row[i]));
    return i == 3 && j == 0 ? _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(number)), counting) : all;
  };
  const auto row = [&](int i, int group) TARGET {
    const __m512i all = _mm512_broadcast_i32x4(first.row[i]);
    if (i < 3) return all;
    const int from = static_cast<int>(number) + byWords + 4 * group;
    return _mm512_add_epi32(all, _mm512_setr_epi32(from, 0, 0, 0, from + 1, 0, 0, 0, from + 2, 0, 0, 0, from + 3, 0, 0, 0));
  };
  Row<Groups> state[4];
  UNROLL for (int i = 0; i < 4; i++) {
    UNROLL for (int j = 0; Words && j < 4; j++) state[i].words[j] = word(i, j);
    UNROLL for (int group = 0; group < Groups; group++) state[i].rows[group] = row(i, group);
  }
  for (int round = 0; round < 20; round += 2) {
    quarterRounds<Words, Groups>(state);
    // Diagonals become columns, and columns again.
    turn<Words, Groups, 1>(state[1]);
    turn<Words, Groups, 2>(state[2]);
    turn<Words, Groups, 3>(state[3]);
    quarterRounds<Words, Groups>(state);
    turn<Words, Groups, 3>(state[1]);
    turn<Words, Groups, 2>(state[2]);
    turn<Words, Groups, 1>(state[3]);
  }
  // What is added now is loaded again: the compiler would keep the key on the stack meanwhile.
  asm volatile("" ::: "memory");
  if (Words) {
    __m512i rows[4][4];
    UNROLL for (int i = 0; i < 4; i++) {
      UNROLL for (int j = 0; j < 4; j++) state[i].words[j] = _mm512_add_epi32(state[i].words[j], word(i, j));
      rowsOf(state[i].words, rows[i]);
    }
    UNROLL for (int i = 0; i < 4; i++) storeBlocks(rows[0][i], rows[1][i], rows[2][i], rows[3][i], to + i * kVector, 4);
  }
  UNROLL for (int group = 0; group < Groups; group++) {
    __m512i sum[4];
    UNROLL for (int i = 0; i < 4; i++) sum[i] = _mm512_add_epi32(state[i].rows[group], row(i, group));
    storeBlocks(sum[0], sum[1], sum[2], sum[3], to + byWords * kStreamBlock + group * kGroupBytes, 1);
  }
}

using Stream = void (*)(const First& first, uint32_t number, uint8_t* to);
static constexpr Stream streams[kGroups] = {stream<false, 1>, stream<false, 2>, stream<false, 3>, stream<true, 0>, stream<true, 1>, stream<true, 2>};

/** As much of the key stream as `bytes` bytes from the block `number` on need. */
INLINE void streamOf(const First& first, uint32_t number, size_t bytes, uint8_t* to) {
  streams[(bytes + kGroupBytes - 1) / kGroupBytes - 1](first, number, to);
}

INLINE void mask(const uint8_t* stream, const uint8_t* from, uint8_t* to, size_t bytes) {
  size_t i = 0;
  for (; i + kVector <= bytes; i += kVector) _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), _mm512_load_si512(stream + i)));
  if (i == bytes) return;
  const __mmask64 there = upTo(static_cast<ptrdiff_t>(bytes - i));
  _mm512_mask_storeu_epi8(to + i, there, _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, from + i), _mm512_load_si512(stream + i)));
}

// --- Poly1305 -----------------------------------------------------------------------------------------------------------

static constexpr int kLimbs = 3;
static constexpr uint64_t k44 = (1ull << 44) - 1, k42 = (1ull << 42) - 1;
/** 2^132, the place of what would be the fourth limb, is four times 2^130, which is 5. */
static constexpr uint64_t kWrap = 20;

/** A number modulo 2^130 - 5, the lowest limb first. */
struct Number {
  uint64_t limb[kLimbs];
};

typedef unsigned __int128 Wide;

/** Brings limbs of up to 63 bits to 44, 44 and 42 bits and a little. */
static Number carried(uint64_t low, uint64_t middle, uint64_t high) {
  middle += low >> 44;
  high += middle >> 44;
  low = (low & k44) + 5 * (high >> 42);
  return {{low & k44, (middle & k44) + (low >> 44), high & k42}};
}

INLINE Number product(const Number& x, const Number& y) {
  const uint64_t *a = x.limb, *b = y.limb;
  const uint64_t wrapped1 = b[1] * kWrap, wrapped2 = b[2] * kWrap;
  const Wide low = static_cast<Wide>(a[0]) * b[0] + static_cast<Wide>(a[1]) * wrapped2 + static_cast<Wide>(a[2]) * wrapped1;
  Wide middle = static_cast<Wide>(a[0]) * b[1] + static_cast<Wide>(a[1]) * b[0] + static_cast<Wide>(a[2]) * wrapped2;
  Wide high = static_cast<Wide>(a[0]) * b[2] + static_cast<Wide>(a[1]) * b[1] + static_cast<Wide>(a[2]) * b[0];
  middle += static_cast<uint64_t>(low >> 44);
  high += static_cast<uint64_t>(middle >> 44);
  const uint64_t first = (static_cast<uint64_t>(low) & k44) + 5 * static_cast<uint64_t>(high >> 42);
  return {{first & k44, (static_cast<uint64_t>(middle) & k44) + (first >> 44), static_cast<uint64_t>(high) & k42}};
}

/** Eight numbers side by side. */
struct Numbers {
  __m512i limb[kLimbs];
};

INLINE Numbers eightOf(const Number& x) {
  Numbers all;
  UNROLL for (int i = 0; i < kLimbs; i++) all.limb[i] = _mm512_set1_epi64(static_cast<long long>(x.limb[i]));
  return all;
}

INLINE Numbers operator+(const Numbers& a, const Numbers& b) {
  Numbers sum;
  UNROLL for (int i = 0; i < kLimbs; i++) sum.limb[i] = _mm512_add_epi64(a.limb[i], b.limb[i]);
  return sum;
}

/** A factor, and what its limbs count where they would come beyond the highest one. */
struct Factor {
  Numbers number;
  __m512i wrapped1, wrapped2;
};

INLINE __m512i wrapped(__m512i limb) {
  static_assert(kWrap == 4 + 16, "two shifts");
  return _mm512_add_epi64(_mm512_slli_epi64(limb, 2), _mm512_slli_epi64(limb, 4));
}

INLINE Factor factorOf(const Numbers& x) { return {x, wrapped(x.limb[1]), wrapped(x.limb[2])}; }

/** Sums of products of limbs, of each the lowest 52 bits and the others. */
struct Products {
  __m512i low[kLimbs], high[kLimbs];
};

INLINE void addProduct(Products* sum, const Numbers& x, const Factor& y) {
  const __m512i* b = y.number.limb;
  const __m512i factors[kLimbs][kLimbs] = {{b[0], b[1], b[2]}, {y.wrapped2, b[0], b[1]}, {y.wrapped1, y.wrapped2, b[0]}};
  UNROLL for (int i = 0; i < kLimbs; i++) {
    UNROLL for (int j = 0; j < kLimbs; j++) {
      sum->low[j] = _mm512_madd52lo_epu64(sum->low[j], x.limb[i], factors[i][j]);
      sum->high[j] = _mm512_madd52hi_epu64(sum->high[j], x.limb[i], factors[i][j]);
    }
  }
}

/** Limbs of 44, 44 and 42 bits and a little: the sums are of one or two products of limbs of up to 46 bits. */
INLINE Numbers carried(const Products& sum) {
  const __m512i all44 = _mm512_set1_epi64(static_cast<long long>(k44)), all42 = _mm512_set1_epi64(static_cast<long long>(k42));
  // The higher bits count 2^52 in their limb, 2^8 in the next one.
  const __m512i middle = _mm512_add_epi64(_mm512_add_epi64(sum.low[1], _mm512_slli_epi64(sum.high[0], 8)), _mm512_srli_epi64(sum.low[0], 44));
  const __m512i high = _mm512_add_epi64(_mm512_add_epi64(sum.low[2], _mm512_slli_epi64(sum.high[1], 8)), _mm512_srli_epi64(middle, 44));
  const __m512i beyond = _mm512_add_epi64(_mm512_srli_epi64(high, 42), _mm512_slli_epi64(sum.high[2], 10));
  const __m512i low = _mm512_add_epi64(_mm512_and_si512(sum.low[0], all44), _mm512_add_epi64(beyond, _mm512_slli_epi64(beyond, 2)));
  return {{_mm512_and_si512(low, all44), _mm512_add_epi64(_mm512_and_si512(middle, all44), _mm512_srli_epi64(low, 44)), _mm512_and_si512(high, all42)}};
}

INLINE Numbers product(const Numbers& x, const Factor& y) {
  Products sum = {};
  addProduct(&sum, x, y);
  return carried(sum);
}

/** In which lane each of eight blocks is after `Blocks::numbers`. */
static constexpr uint8_t kLaneOf[8] = {0, 2, 4, 6, 1, 3, 5, 7};

/** The one-time key of a message. Wiped when it goes. */
class Poly1305 {
 public:
  TARGET explicit Poly1305(const uint8_t* key) {
    uint64_t words[4];
    memcpy(words, key, sizeof words);
    words[0] &= 0x0ffffffc0fffffffull;
    words[1] &= 0x0ffffffc0ffffffcull;
    Number power[9];
    power[1] = {{words[0] & k44, (words[0] >> 44 | words[1] << 20) & k44, words[1] >> 24}};
    power[2] = product(power[1], power[1]);
    power[3] = product(power[2], power[1]);
    power[4] = product(power[2], power[2]);
    for (int i = 5; i <= 8; i++) power[i] = product(power[4], power[i - 4]);
    for (int block = 0; block < 8; block++) {
      for (int i = 0; i < kLimbs; i++) powers_[i][kLaneOf[block]] = power[8 - block].limb[i];
    }
    eighth_ = power[8];
    pad_[0] = words[2];
    pad_[1] = words[3];
    wipe(power, sizeof power);
  }
  ~Poly1305() { wipe(this, sizeof *this); }

  /** Takes `first`, if it is there, `bytes` bytes filled up with zeros, and `last`, if it is there: blocks of 16 bytes. */
  TARGET void take(const uint8_t* first, const uint8_t* data, size_t bytes, const uint8_t* last);
  /** The tag of all that was taken. */
  void finish(uint8_t* tag);

 private:
  alignas(64) uint64_t powers_[kLimbs][8];
  Number eighth_;
  uint64_t pad_[2];
  Number sum_ = {{0, 0, 0}};
};

/** Blocks in a row by vectors of eight, of which the first may begin with empty ones: then the last one is full. */
struct Blocks {
  const uint8_t *first, *data, *last;
  ptrdiff_t bytes, count, vectors, empty;

  Blocks(const uint8_t* first, const uint8_t* data, size_t bytes, const uint8_t* last) : first(first), data(data), last(last), bytes(static_cast<ptrdiff_t>(bytes)) {
    count = static_cast<ptrdiff_t>((bytes + kBlock - 1) / kBlock) + (first ? 1 : 0) + (last ? 1 : 0);
    vectors = (count + 7) / 8;
    empty = 8 * vectors - count;
  }

  /** Where `offset` bytes from the data on are, of which a mask leaves out what is before the data or behind it: a pointer must not be moved there. */
  const uint8_t* at(ptrdiff_t offset) const { return reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(offset)); }

  TARGET __attribute__((always_inline)) static Numbers split(__m512i begin, __m512i end, __m512i bit) {
    const __m512i low = _mm512_unpacklo_epi64(begin, end), high = _mm512_unpackhi_epi64(begin, end);
    const __m512i all44 = _mm512_set1_epi64(static_cast<long long>(k44));
    const __m512i middle = _mm512_or_si512(_mm512_srli_epi64(low, 44), _mm512_slli_epi64(high, 20));
    return {{_mm512_and_si512(low, all44), _mm512_and_si512(middle, all44), _mm512_or_si512(_mm512_srli_epi64(high, 24), bit)}};
  }

  /** Eight blocks, each with the bit behind its last byte, in the lanes `kLaneOf`. */
  TARGET __attribute__((always_inline)) Numbers numbers(ptrdiff_t vector) const {
    const ptrdiff_t skipped = static_cast<ptrdiff_t>(kBlock) * (empty + (first ? 1 : 0)), from = 128 * vector - skipped;
    const __m512i bit = _mm512_set1_epi64(1ll << 40);
    if (vector > 0 && vector < vectors - 1) return split(_mm512_loadu_si512(data + from), _mm512_loadu_si512(data + from + kVector), bit);
    const auto there = [this](ptrdiff_t offset) TARGET { return upTo(bytes - offset) & ~upTo(-offset); };
    __m512i begin = _mm512_maskz_loadu_epi8(there(from), at(from));
    __m512i end = _mm512_maskz_loadu_epi8(there(from + 64), at(from + 64));
    const auto put = [&begin, &end](ptrdiff_t block, const uint8_t* bytes16) TARGET {
      const __m128i what = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes16));
      if (block < 4) {
        begin = _mm512_mask_broadcast_i32x4(begin, static_cast<__mmask16>(0xf << 4 * block), what);
      } else {
        end = _mm512_mask_broadcast_i32x4(end, static_cast<__mmask16>(0xf << 4 * (block - 4)), what);
      }
    };
    if (first && vector == 0) put(empty, first);
    if (last && vector == vectors - 1) put(7, last);
    // An empty block is no block of zeros: it has no bit.
    static constexpr __mmask8 filled[8] = {0xff, 0xfe, 0xfa, 0xea, 0xaa, 0xa8, 0xa0, 0x80};
    return split(begin, end, vector == 0 ? _mm512_maskz_mov_epi64(filled[empty], bit) : bit);
  }
};

TARGET void Poly1305::take(const uint8_t* first, const uint8_t* data, size_t bytes, const uint8_t* last) {
  const Blocks blocks(first, data, bytes, last);
  if (blocks.count == 0) return;
  // What was taken before is added to the first block.
  Numbers sum;
  UNROLL for (int i = 0; i < kLimbs; i++) sum.limb[i] = _mm512_maskz_set1_epi64(static_cast<__mmask8>(1 << kLaneOf[blocks.empty]), static_cast<long long>(sum_.limb[i]));
  sum = sum + blocks.numbers(0);
  if (blocks.vectors > 1) {
    const Factor eighth = factorOf(eightOf(eighth_)), sixteenth = factorOf(eightOf(product(eighth_, eighth_)));
    ptrdiff_t next = 1;
    if (blocks.vectors % 2 == 0) sum = product(sum, eighth) + blocks.numbers(next++);
    for (; next < blocks.vectors; next += 2) {
      // Two vectors for one carry.
      Products both = {};
      addProduct(&both, blocks.numbers(next), eighth);
      addProduct(&both, sum, sixteenth);
      sum = carried(both) + blocks.numbers(next + 1);
    }
  }
  const Factor powers = factorOf({{_mm512_load_si512(powers_[0]), _mm512_load_si512(powers_[1]), _mm512_load_si512(powers_[2])}});
  sum = product(sum, powers);
  const auto total = [&sum](int i) TARGET { return static_cast<uint64_t>(_mm512_reduce_add_epi64(sum.limb[i])); };
  sum_ = carried(total(0), total(1), total(2));
}

void Poly1305::finish(uint8_t* tag) {
  const Number sum = carried(sum_.limb[0], sum_.limb[1], sum_.limb[2]);
  const uint64_t* h = sum.limb;
  // Less 2^130 - 5 where that is not negative.
  const uint64_t low = h[0] + 5, middle = h[1] + (low >> 44), high = h[2] + (middle >> 44) - (1ull << 42);
  const uint64_t less = (high >> 63) - 1;
  const auto chosen = [less](uint64_t without, uint64_t with) { return (without & ~less) | (with & less); };
  const uint64_t h0 = chosen(h[0], low & k44), h1 = chosen(h[1], middle & k44), h2 = chosen(h[2], high);
  const Wide begin = static_cast<Wide>(h0 | h1 << 44) + pad_[0];
  const uint64_t words[2] = {static_cast<uint64_t>(begin), (h1 >> 20 | h2 << 24) + pad_[1] + static_cast<uint64_t>(begin >> 64)};
  memcpy(tag, words, sizeof words);
}

/** Section 2.8: the header, the encrypted text, and the lengths of both. */
INLINE void authenticate(Poly1305* poly, const AeadMessage& m, uint8_t* tag) {
  const uint64_t lengths[2] = {m.associatedBytes, m.bytes};
  const auto* last = reinterpret_cast<const uint8_t*>(lengths);
  const bool oneBlock = m.associatedBytes == kBlock;
  if (!oneBlock) poly->take(nullptr, m.associated, m.associatedBytes, nullptr);
  poly->take(oneBlock ? m.associated : nullptr, m.text, m.bytes, last);
  poly->finish(tag);
}

template <bool Seals>
INLINE bool run(const uint8_t* key, const AeadMessage& m) {
  alignas(64) uint8_t stream[kStream];
  const First block = firstOf(key, m.nonce);
  // The first block of the key stream has the key for the tag.
  const size_t first = std::min(m.bytes, kStream - kStreamBlock);
  streamOf(block, 0, kStreamBlock + first, stream);
  Poly1305 poly(stream);
  uint8_t tag[kAeadTag];
  if (!Seals) authenticate(&poly, m, tag);
  mask(stream + kStreamBlock, m.source(), m.text, first);
  uint32_t number = kStream / kStreamBlock;
  for (size_t at = first; at < m.bytes; number += kStream / kStreamBlock) {
    const size_t bytes = std::min(m.bytes - at, kStream);
    streamOf(block, number, bytes, stream);
    mask(stream, m.source() + at, m.text + at, bytes);
    at += bytes;
  }
  if (Seals) authenticate(&poly, m, m.tag);
  wipe(stream, std::min(m.bytes + kStreamBlock, kStream));
  clearVectorRegisters();
  return Seals || sameTag(tag, m.tag);
}

TARGET void chachaPolySeal(const uint8_t* key, const AeadMessage& message) { run<true>(key, message); }
TARGET bool chachaPolyOpen(const uint8_t* key, const AeadMessage& message) { return run<false>(key, message); }

bool chachaPolySupported() {
  // __builtin_cpu_supports asks XCR0 too: the operating system must save the registers.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("bmi2");
}

}  // namespace penstock

#else

namespace penstock {

bool chachaPolySupported() { return false; }
void chachaPolySeal(const uint8_t*, const AeadMessage&) {}
bool chachaPolyOpen(const uint8_t*, const AeadMessage&) { return false; }

}  // namespace penstock
#endif
