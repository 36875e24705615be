/**
 * AES-GCM by vectors of four blocks. The hash of one group of vectors is computed while the next one is encrypted, as both
 * take turns at the same units of the processor. Products are summed before they are reduced (Gueron and Kounavis, "Intel
 * Carry-Less Multiplication Instruction and its Usage for Computing the GCM Mode", 2014), of bit-reflected operands and a hash
 * key multiplied by x, so that no product has to be shifted (Gueron, "AES-GCM for Efficient Authenticated Encryption", 2013).
 */
#include "aes_gcm.h"

#include <string.h>

#if defined(__x86_64__)
// GCC 12's own header leaves the unused operand of unmasked intrinsics uninitialised on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <cpuid.h>
#include <immintrin.h>

#include "vector_registers.h"

// So that the addon as a whole runs on any x86-64.
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,vaes,vpclmulqdq,aes,pclmul,sse4.1,bmi2")))
#define INLINE TARGET __attribute__((always_inline)) static inline
#define UNROLL _Pragma("GCC unroll 16")

namespace penstock {

static constexpr size_t kVector = 64;
/** Vectors that are encrypted side by side, which hides the latency of a round. */
static constexpr size_t kGroup = 4;
static constexpr size_t kGroupBytes = kGroup * kVector;
/** Of a text that is too long for one sum, the groups of one. */
static constexpr size_t kSumGroups = 5;
static constexpr size_t kSumBlocks = kSumGroups * kGroupBytes / kGcmBlock;
static_assert(kSumBlocks + 1 < kGcmBlocks, "with the block before them");

INLINE __m128i load(const uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
INLINE void store(uint8_t* to, __m128i block) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block); }
INLINE __m128i swapped(__m128i x) { return _mm_shuffle_epi8(x, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)); }
INLINE __m512i swapped(__m512i x) {
  return _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
}
/** The first `bytes` of a vector. */
INLINE __mmask64 firstOf(size_t bytes) { return _bzhi_u64(~0ull, static_cast<unsigned>(bytes)); }

// --- GHASH --------------------------------------------------------------------------------------------------------------

/** A sum of products that are not reduced yet, four side by side: low halves, high halves, and products of the sums of halves. */
struct Sum {
  __m512i low, high, middle;
};

INLINE __m128i folded(__m512i x) {
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/** Modulo x^128 + x^127 + x^126 + x^121 + 1, the polynomial of GCM reflected; `middle` stands 64 bits higher than `low`. */
INLINE __m128i reduced(__m128i low, __m128i middle, __m128i high) {
  const __m128i polynomial = _mm_set_epi64x(0, static_cast<long long>(0xc200000000000000ull));
  const auto swapHalves = [](__m128i x) TARGET { return _mm_shuffle_epi32(x, 0x4e); };
  middle = _mm_ternarylogic_epi64(middle, swapHalves(low), _mm_clmulepi64_si128(low, polynomial, 0x00), 0x96);
  return _mm_ternarylogic_epi64(high, swapHalves(middle), _mm_clmulepi64_si128(middle, polynomial, 0x00), 0x96);
}

INLINE __m128i reduced(const Sum& sum) {
  const __m128i low = folded(sum.low), high = folded(sum.high);
  return reduced(low, _mm_ternarylogic_epi64(folded(sum.middle), low, high, 0x96), high);
}

/** Where the powers begin of `blocks` blocks, the last of which is multiplied by the first power. */
INLINE const uint8_t* powersOf(const AesGcmKey& key, size_t blocks) { return key.power[kGcmBlocks - blocks]; }
INLINE const uint8_t* halvesAt(const uint8_t* power) { return power + sizeof(AesGcmKey::power); }

/** The product of one block and a power. */
INLINE Sum product(__m128i block, const uint8_t* power) {
  const __m128i factor = load(power), halves = _mm_xor_si128(block, _mm_shuffle_epi32(block, 0x4e));
  return {_mm512_zextsi128_si512(_mm_clmulepi64_si128(block, factor, 0x00)), _mm512_zextsi128_si512(_mm_clmulepi64_si128(block, factor, 0x11)),
          _mm512_zextsi128_si512(_mm_clmulepi64_si128(halves, load(halvesAt(power)), 0x00))};
}

INLINE void add(Sum* sum, const Sum& other) {
  sum->low = _mm512_xor_si512(sum->low, other.low);
  sum->high = _mm512_xor_si512(sum->high, other.high);
  sum->middle = _mm512_xor_si512(sum->middle, other.middle);
}

/** Adds the products of four blocks, as they stand in the message, and the powers from `power` on. */
INLINE void hash(Sum* sum, __m512i vector, const uint8_t* power) {
  const __m512i blocks = swapped(vector), factors = _mm512_loadu_si512(power);
  const __m512i halves = _mm512_xor_si512(blocks, _mm512_shuffle_epi32(blocks, _MM_PERM_BADC));
  add(sum, {_mm512_clmulepi64_epi128(blocks, factors, 0x00), _mm512_clmulepi64_epi128(blocks, factors, 0x11),
            _mm512_clmulepi64_epi128(halves, _mm512_loadu_si512(halvesAt(power)), 0x00)});
}

/** The hash of `bytes` bytes, the last block filled up with zeros. */
TARGET static __m128i hashOf(const AesGcmKey& key, const uint8_t* from, size_t bytes) {
  __m128i before = _mm_setzero_si128();
  while (bytes > 0) {
    const size_t part = bytes < kSumBlocks * kGcmBlock ? bytes : kSumBlocks * kGcmBlock;
    const uint8_t* power = powersOf(key, (part + kGcmBlock - 1) / kGcmBlock);
    Sum sum = product(before, power);
    // What was hashed before is added to the first block, and so multiplied by its power.
    for (size_t i = 0; i < part; i += kVector) {
      const size_t left = part - i;
      const __m512i vector = left < kVector ? _mm512_maskz_loadu_epi8(firstOf(left), from + i) : _mm512_loadu_si512(from + i);
      hash(&sum, vector, power + i);
    }
    before = reduced(sum);
    from += part;
    bytes -= part;
  }
  return before;
}

// --- CTR ----------------------------------------------------------------------------------------------------------------

/** The next blocks of the counter, and how far the text is. */
struct Position {
  /** Four blocks as numbers, so that the last word of each is its number. */
  __m512i blocks;
  /** Of the first one. */
  uint32_t number;
  const uint8_t* from;
  uint8_t* to;
};

template <int Vectors>
INLINE void takeBlocks(Position* at, __m512i* blocks) {
  if ((at->number & 0xff) + 4 * Vectors <= 256) {
    // Only the last byte of a block changes, which is the highest of its last word.
    blocks[0] = swapped(at->blocks);
    UNROLL for (int i = 1; i < Vectors; i++) blocks[i] = _mm512_add_epi32(blocks[i - 1], _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0, 4 << 24)));
  } else {
    UNROLL for (int i = 0; i < Vectors; i++) blocks[i] = swapped(_mm512_add_epi32(at->blocks, _mm512_broadcast_i32x4(_mm_setr_epi32(4 * i, 0, 0, 0))));
  }
  at->blocks = _mm512_add_epi32(at->blocks, _mm512_broadcast_i32x4(_mm_setr_epi32(4 * Vectors, 0, 0, 0)));
  at->number += 4 * Vectors;
}

INLINE __m512i roundKey(const AesGcmKey& key, int round) { return _mm512_load_si512(key.round[round]); }

/**
 * Encrypts or decrypts `Vectors` vectors, of the last one `last` bytes, and hashes those of the group before meanwhile, of which there are
 * `Hashed`, with the powers from `power` on. `cipher` becomes what is to be hashed of them.
 */
template <int Rounds, bool Seals, int Vectors, int Hashed, bool Ends>
INLINE void encryptGroup(const AesGcmKey& key, Position* at, size_t last, __m512i* cipher, Sum* sum, const uint8_t* power) {
  __m512i state[Vectors];
  takeBlocks<Vectors>(at, state);
  UNROLL for (int i = 0; i < Vectors; i++) state[i] = _mm512_xor_si512(state[i], roundKey(key, 0));
  UNROLL for (int round = 1; round < Rounds; round++) {
    const __m512i with = roundKey(key, round);
    UNROLL for (int i = 0; i < Vectors; i++) state[i] = _mm512_aesenc_epi128(state[i], with);
    const int hashed = round / 2;
    if (round % 2 == 1 && hashed < Hashed) hash(sum, cipher[hashed], power + hashed * kVector);
  }
  const __mmask64 there = firstOf(last);
  UNROLL for (int i = 0; i < Vectors; i++) {
    const bool partly = Ends && i == Vectors - 1;
    const __m512i text = partly ? _mm512_maskz_loadu_epi8(there, at->from + i * kVector) : _mm512_loadu_si512(at->from + i * kVector);
    const __m512i made = _mm512_aesenclast_epi128(state[i], _mm512_xor_si512(roundKey(key, Rounds), text));
    if (partly) {
      _mm512_mask_storeu_epi8(at->to + i * kVector, there, made);
    } else {
      _mm512_storeu_si512(at->to + i * kVector, made);
    }
    cipher[i] = !Seals ? text : partly ? _mm512_maskz_mov_epi8(there, made) : made;
  }
  at->from += Vectors * kVector;
  at->to += Vectors * kVector;
}

template <int Vectors>
INLINE void hashGroup(const __m512i* cipher, Sum* sum, const uint8_t* power) {
  UNROLL for (int i = 0; i < Vectors; i++) hash(sum, cipher[i], power + i * kVector);
}

/** The last 1 to 4 vectors, after a whole group or none, and the hash of what is not hashed yet. */
template <int Rounds, bool Seals, int Vectors>
INLINE void encryptEnd(const AesGcmKey& key, Position* at, size_t last, bool follows, __m512i* cipher, Sum* sum, const uint8_t* power) {
  if (follows) {
    encryptGroup<Rounds, Seals, Vectors, kGroup, true>(key, at, last, cipher, sum, power);
    power += kGroupBytes;
  } else {
    encryptGroup<Rounds, Seals, Vectors, 0, true>(key, at, last, cipher, sum, power);
  }
  hashGroup<Vectors>(cipher, sum, power);
}

/** `bytes` bytes, whose last block but one is multiplied by the second power, as the lengths come after them. */
template <int Rounds, bool Seals>
INLINE void encryptLast(const AesGcmKey& key, Position* at, size_t bytes, Sum* sum) {
  const uint8_t* power = powersOf(key, (bytes + kGcmBlock - 1) / kGcmBlock + 1);
  __m512i cipher[kGroup];
  const bool follows = bytes >= kGroupBytes;
  if (follows) {
    encryptGroup<Rounds, Seals, kGroup, 0, false>(key, at, 0, cipher, sum, power);
    for (bytes -= kGroupBytes; bytes >= kGroupBytes; bytes -= kGroupBytes, power += kGroupBytes) {
      encryptGroup<Rounds, Seals, kGroup, kGroup, false>(key, at, 0, cipher, sum, power);
    }
  }
  const size_t last = (bytes - 1) % kVector + 1;
  switch ((bytes + kVector - 1) / kVector) {
    case 0:
      if (follows) hashGroup<kGroup>(cipher, sum, power);
      break;
    case 1:
      encryptEnd<Rounds, Seals, 1>(key, at, last, follows, cipher, sum, power);
      break;
    case 2:
      encryptEnd<Rounds, Seals, 2>(key, at, last, follows, cipher, sum, power);
      break;
    case 3:
      encryptEnd<Rounds, Seals, 3>(key, at, last, follows, cipher, sum, power);
      break;
    default:
      encryptEnd<Rounds, Seals, 4>(key, at, last, follows, cipher, sum, power);
  }
}

/** The nonce and the number 1, put together in registers: what is read as one right after several stores waits until they are in the cache. */
INLINE __m128i firstBlock(const uint8_t* nonce) {
  uint64_t begin;
  uint32_t end;
  static_assert(sizeof begin + sizeof end == kAeadNonce, "all of it");
  memcpy(&begin, nonce, sizeof begin);
  memcpy(&end, nonce + sizeof begin, sizeof end);
  return _mm_set_epi64x(static_cast<long long>(end | 1ull << 56), static_cast<long long>(begin));
}

template <int Rounds, bool Seals>
INLINE bool run(const AesGcmKey& key, const AeadMessage& m) {
  const __m128i first = firstBlock(m.nonce);
  // The first block of the key stream is for the tag.
  __m128i mask = _mm_xor_si128(first, load(key.round[0]));
  UNROLL for (int round = 1; round < Rounds; round++) mask = _mm_aesenc_si128(mask, load(key.round[round]));
  mask = _mm_aesenclast_si128(mask, load(key.round[Rounds]));

  // A header of one block is hashed with the text, others before it.
  const bool oneBlock = m.associatedBytes == kGcmBlock;
  __m128i before = oneBlock ? swapped(load(m.associated)) : hashOf(key, m.associated, m.associatedBytes);
  size_t bytes = m.bytes, blocksBefore = oneBlock ? 1 : 0;
  const auto blocksOf = [](size_t of) { return (of + kGcmBlock - 1) / kGcmBlock + 1; };

  Position at = {_mm512_add_epi32(_mm512_broadcast_i32x4(swapped(first)), _mm512_setr_epi32(1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0)), 2, m.source(), m.text};
  while (blocksOf(bytes) >= kGcmBlocks) {
    Sum sum = product(before, powersOf(key, kSumBlocks + blocksBefore));
    __m512i cipher[kGroup];
    encryptGroup<Rounds, Seals, kGroup, 0, false>(key, &at, 0, cipher, &sum, nullptr);
    const uint8_t* power = powersOf(key, kSumBlocks);
    for (size_t i = 1; i < kSumGroups; i++, power += kGroupBytes) encryptGroup<Rounds, Seals, kGroup, kGroup, false>(key, &at, 0, cipher, &sum, power);
    hashGroup<kGroup>(cipher, &sum, power);
    before = reduced(sum);
    blocksBefore = 0;
    bytes -= kSumGroups * kGroupBytes;
  }
  Sum sum = product(before, powersOf(key, blocksOf(bytes) + blocksBefore));
  add(&sum, product(_mm_set_epi64x(static_cast<long long>(m.associatedBytes * 8), static_cast<long long>(m.bytes * 8)), powersOf(key, 1)));
  encryptLast<Rounds, Seals>(key, &at, bytes, &sum);
  const __m128i tag = _mm_xor_si128(swapped(reduced(sum)), mask);
  bool same = true;
  if (Seals) {
    store(m.tag, tag);
  } else {
    const __m128i differs = _mm_xor_si128(tag, load(m.tag));
    same = _mm_testz_si128(differs, differs);
  }
  clearVectorRegisters();
  return same;
}

TARGET void aes128GcmSeal(const AesGcmKey& key, const AeadMessage& message) { run<10, true>(key, message); }
TARGET void aes256GcmSeal(const AesGcmKey& key, const AeadMessage& message) { run<14, true>(key, message); }
TARGET bool aes128GcmOpen(const AesGcmKey& key, const AeadMessage& message) { return run<10, false>(key, message); }
TARGET bool aes256GcmOpen(const AesGcmKey& key, const AeadMessage& message) { return run<14, false>(key, message); }

// --- Keys ---------------------------------------------------------------------------------------------------------------

/** FIPS 197, section 5.2. */
TARGET static void expand(AesGcmKey* key, const uint8_t* from, size_t bytes) {
  const size_t given = bytes / 4, words = 4 * (given + 7);
  uint32_t constant = 1;
  for (size_t i = 0; i < words; i++) {
    uint32_t word = 0;
    if (i < given) {
      memcpy(&word, from + 4 * i, 4);
    } else {
      uint32_t before;
      memcpy(&before, key->word(i - 1), 4);
      memcpy(&word, key->word(i - given), 4);
      const __m128i substituted = _mm_aeskeygenassist_si128(_mm_set1_epi32(static_cast<int>(before)), 0);
      if (i % given == 0) {
        word ^= static_cast<uint32_t>(_mm_extract_epi32(substituted, 1)) ^ constant;
        constant = constant << 1 ^ (constant >> 7) * 0x11b;
      } else {
        word ^= given == 8 && i % given == 4 ? static_cast<uint32_t>(_mm_extract_epi32(substituted, 0)) : before;
      }
    }
    for (size_t copy = 0; copy < 4; copy++) memcpy(key->word(i) + copy * kGcmBlock, &word, 4);
  }
}

TARGET void aesGcmPrepare(AesGcmKey* key, const uint8_t* from, size_t bytes) {
  memset(key, 0, sizeof *key);
  expand(key, from, bytes);
  const int rounds = bytes == 16 ? 10 : 14;
  __m128i zeros = load(key->round[0]);
  for (int round = 1; round < rounds; round++) zeros = _mm_aesenc_si128(zeros, load(key->round[round]));
  const __m128i hashed = swapped(_mm_aesenclast_si128(zeros, load(key->round[rounds])));
  // Times x: what leaves at the top comes back as the polynomial, without a branch.
  const auto low = static_cast<uint64_t>(_mm_extract_epi64(hashed, 0)), high = static_cast<uint64_t>(_mm_extract_epi64(hashed, 1));
  const uint64_t top = high >> 63;
  const __m128i first = _mm_set_epi64x(static_cast<long long>((high << 1 | low >> 63) ^ top * 0xc200000000000000ull), static_cast<long long>(low << 1 ^ top));
  __m128i power = first;
  for (size_t i = 1;; i++) {
    store(key->power[kGcmBlocks - i], power);
    store(key->halves[kGcmBlocks - i], _mm_xor_si128(power, _mm_shuffle_epi32(power, 0x4e)));
    if (i == kGcmBlocks) break;
    power = reduced(product(power, key->power[kGcmBlocks - 1]));
  }
  clearVectorRegisters();
}

bool aesGcmSupported() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned vaesAndVpclmulqdq = 3u << 9;
  const bool wide = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & vaesAndVpclmulqdq) == vaesAndVpclmulqdq;
  // __builtin_cpu_supports asks XCR0 too: the operating system must save the registers.
  return wide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("bmi2");
}

}  // namespace penstock

#else

namespace penstock {

bool aesGcmSupported() { return false; }
void aesGcmPrepare(AesGcmKey*, const uint8_t*, size_t) {}
void aes128GcmSeal(const AesGcmKey&, const AeadMessage&) {}
void aes256GcmSeal(const AesGcmKey&, const AeadMessage&) {}
bool aes128GcmOpen(const AesGcmKey&, const AeadMessage&) { return false; }
bool aes256GcmOpen(const AesGcmKey&, const AeadMessage&) { return false; }

}  // namespace penstock
#endif
