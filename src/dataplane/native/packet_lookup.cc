/** Finding many packets again at once, sixteen with AVX-512. */
#include <algorithm>

#include "memory.h"
#include "words_x86.h"

namespace penstock {

size_t lookUpOneByOne(const Memory& shared, const int32_t* handles, size_t count, Packet* packets) {
  // Nobody else sees this one: it stays in registers.
  const Memory memory = shared;
  for (size_t n = 0; n < count; n++) {
    if (!memory.packet(loadOnce(handles + n), packets + n)) return n;
  }
  return count;
}

#if defined(__x86_64__)
static_assert(sizeof(Packet) == 16, "a packet is two words of 64 bits: its place, then length and handle");
static constexpr size_t kTogether = 16;
static constexpr unsigned kTrainShift = 16;
static_assert(kTrainBytes == 1u << kTrainShift, "trains begin at multiples of their size behind the slots");

/** Writes eight packets, those of `mask`, two bits each. */
__attribute__((target("avx512f,avx512bw,avx512dq"), always_inline)) static inline void store(Packet* packets, __mmask16 mask, __m256i offset,
                                                                                             __m256i length, __m256i handle, __m512i data) {
  const __m512i first = _mm512_add_epi64(data, _mm512_cvtepi32_epi64(offset));
  const __m512i second = _mm512_or_si512(_mm512_cvtepu32_epi64(length), _mm512_slli_epi64(_mm512_cvtepu32_epi64(handle), 32));
  const __m512i lower = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), upper = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  _mm512_mask_storeu_epi64(packets, static_cast<__mmask8>(mask), _mm512_permutex2var_epi64(first, lower, second));
  _mm512_mask_storeu_epi64(packets + 4, static_cast<__mmask8>(mask >> 8), _mm512_permutex2var_epi64(first, upper, second));
}

/** Two bits for each bit. */
static inline uint32_t doubled(uint32_t count) { return count >= kTogether ? ~0u : (1u << 2 * count) - 1; }

// Each value is loaded once, whatever other threads write, and what was loaded is checked, as `Memory::packet` has it.
__attribute__((target("avx512f,avx512bw,avx512dq"))) static size_t lookUpTogether(const Memory& memory, const int32_t* handles, size_t count,
                                                                                Packet* packets) {
  const __m512i slots = _mm512_set1_epi32(memory.slots), slotBytes = _mm512_set1_epi32(memory.slotBytes), none = _mm512_setzero_si512();
  const __m512i trainCount = _mm512_set1_epi32(memory.trains), trainBytes = _mm512_set1_epi32(static_cast<int32_t>(kTrainBytes));
  const __m512i trainsBegin = _mm512_set1_epi32(static_cast<int32_t>(memory.slotsEnd()));
  const __m512i data = _mm512_set1_epi64(reinterpret_cast<long long>(memory.data));
  const __m512i counting = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const int32_t *const trains = memory.train, *const offsets = memory.offset, *const lengths = memory.length;
  for (size_t n = 0; n < count; n += kTogether) {
    const size_t left = std::min(count - n, kTogether);
    const auto all = static_cast<__mmask16>((1u << left) - 1);
    const __m512i handle = _mm512_maskz_loadu_epi32(all, handles + n);
    const __mmask16 known = _mm512_mask_cmplt_epu32_mask(all, handle, slots);
    const __m512i next = _mm512_add_epi32(_mm512_broadcastd_epi32(_mm512_castsi512_si128(handle)), counting);
    __m512i train, offset, length;
    if (known == all && _mm512_mask_cmpeq_epi32_mask(all, handle, next) == all) {
      // Taken from the stack in a row, as most are: three loads, where a gather costs ten.
      const int32_t first = _mm_cvtsi128_si32(_mm512_castsi512_si128(handle));
      train = _mm512_maskz_loadu_epi32(all, trains + first);
      offset = _mm512_maskz_loadu_epi32(all, offsets + first);
      length = _mm512_maskz_loadu_epi32(all, lengths + first);
    } else {
      train = _mm512_mask_i32gather_epi32(none, known, handle, trains, 4);
      offset = _mm512_mask_i32gather_epi32(none, known, handle, offsets, 4);
      length = _mm512_mask_i32gather_epi32(none, known, handle, lengths, 4);
    }
    __m512i begin = timesInHalves(handle, static_cast<uint32_t>(memory.slotBytes)), room = slotBytes;
    __mmask16 there = known;
    if (_mm512_test_epi32_mask(train, train) != 0) {
      // As `trainOf` has it: below 0 is none.
      const __m512i index = _mm512_sub_epi32(train, _mm512_set1_epi32(1));
      const __mmask16 rides = _mm512_cmpge_epi32_mask(index, none);
      there = _mm512_mask_cmplt_epi32_mask(known, index, trainCount);
      begin = _mm512_mask_add_epi32(begin, rides, trainsBegin, _mm512_slli_epi32(index, kTrainShift));
      room = _mm512_mask_mov_epi32(room, rides, trainBytes);
    }
    // Slabs are shorter than 2^31 bytes: what is in front of a slot is far behind it as a number without sign.
    const __m512i within = _mm512_sub_epi32(offset, begin);
    const __mmask16 inside = _mm512_mask_cmple_epu32_mask(_mm512_mask_cmple_epu32_mask(there, within, room), length, _mm512_sub_epi32(room, within));
    if (inside != all) {
      const size_t found = lookUpOneByOne(memory, handles + n, left, packets + n);
      if (found < left) return n + found;
      continue;
    }
    const uint32_t mask = doubled(static_cast<uint32_t>(left));
    store(packets + n, static_cast<__mmask16>(mask), _mm512_castsi512_si256(offset), _mm512_castsi512_si256(length), _mm512_castsi512_si256(handle), data);
    store(packets + n + 8, static_cast<__mmask16>(mask >> 16), _mm512_extracti64x4_epi64(offset, 1), _mm512_extracti64x4_epi64(length, 1),
          _mm512_extracti64x4_epi64(handle, 1), data);
  }
  return count;
}

static bool hasVectors() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
static const bool vectors = hasVectors();
#endif

size_t lookUp(const Memory& memory, const int32_t* handles, size_t count, Packet* packets) {
#if defined(__x86_64__)
  if (vectors) return lookUpTogether(memory, handles, count, packets);
#endif
  return lookUpOneByOne(memory, handles, count, packets);
}

}  // namespace penstock
