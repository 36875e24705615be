/** Runs in arrays of words that JavaScript may write at any time: each word is loaded once. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace penstock {

/** How many of the first `count` words are `first`, `first + step`, and so on; sums wrap around. */
inline size_t risingWords(const int32_t* at, size_t count, int32_t first, int32_t step) {
  size_t n = 0;
  const auto from = static_cast<uint32_t>(first), by = static_cast<uint32_t>(step);
#if defined(__x86_64__)
  const auto lane = [=](uint32_t i) { return static_cast<int32_t>(from + i * by); };
  const __m128i four = _mm_set1_epi32(static_cast<int32_t>(4 * by));
  __m128i expected = _mm_set_epi32(lane(3), lane(2), lane(1), lane(0));
  for (; n + 4 <= count; n += 4, expected = _mm_add_epi32(expected, four)) {
    const __m128i found = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + n));
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(found, expected)) != 0xffff) break;
  }
#endif
  while (n < count && static_cast<uint32_t>(__atomic_load_n(at + n, __ATOMIC_RELAXED)) == from + static_cast<uint32_t>(n) * by) n++;
  return n;
}

/** How many of the first `count` words are `value`. */
inline size_t equalWords(const int32_t* at, size_t count, int32_t value) { return risingWords(at, count, value, 0); }

}  // namespace penstock
