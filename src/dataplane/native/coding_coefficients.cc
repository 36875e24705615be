/** Coding coefficients of sixteen keys at once. */
#include "coding_coefficients.h"

#include <string.h>

#include "tinymt32.h"

namespace penstock {

/** Draws made at once: with fewer a short window would pay for a long one. */
static constexpr size_t kDraws = 32;

using Lanes = uint32_t __attribute__((vector_size(64)));
using LowBytes = uint8_t __attribute__((vector_size(16)));

// The step and the tempering of RFC 8682, section 2.1, in each lane.
#define DRAW(name, attributes)                                                                           \
  attributes static void name(uint32_t (*state)[CodingCoefficients::kKeys], uint8_t* out, size_t count) { \
    Lanes s[4];                                                                                          \
    memcpy(s, state, sizeof s);                                                                          \
    for (size_t n = 0; n < count; n++) {                                                                 \
      Lanes y = s[3];                                                                                    \
      Lanes x = (s[0] & 0x7fffffffu) ^ s[1] ^ s[2];                                                      \
      x ^= x << 1;                                                                                       \
      y ^= y >> 1 ^ x;                                                                                   \
      const Lanes odd = -(y & 1);                                                                        \
      s[0] = s[1];                                                                                       \
      s[1] = s[2] ^ (odd & TinyMt32::kFirst);                                                            \
      s[2] = x ^ y << 10 ^ (odd & TinyMt32::kSecond);                                                    \
      s[3] = y;                                                                                          \
      const Lanes sum = s[0] + (s[2] >> 8);                                                              \
      const Lanes drawn = s[3] ^ sum ^ (-(sum & 1) & TinyMt32::kTemper);                                 \
      const LowBytes low = __builtin_convertvector(drawn, LowBytes);                                     \
      memcpy(out + n * CodingCoefficients::kKeys, &low, sizeof low);                                     \
    }                                                                                                    \
    memcpy(state, s, sizeof s);                                                                          \
  }

DRAW(drawPlain, )
#if defined(__x86_64__)
DRAW(drawAvx2, __attribute__((target("avx2"))))
DRAW(drawAvx512, __attribute__((target("avx512f,avx512bw"))))
#endif

using Draw = void (*)(uint32_t (*)[CodingCoefficients::kKeys], uint8_t*, size_t);

static Draw fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return drawAvx512;
  if (__builtin_cpu_supports("avx2")) return drawAvx2;
#endif
  return drawPlain;
}

void CodingCoefficients::begin(uint16_t first) {
  first_ = first;
  begun_ = true;
  draws_ = 0;
  for (size_t lane = 0; lane < kKeys; lane++) {
    const TinyMt32 random(static_cast<uint32_t>(first) + static_cast<uint32_t>(lane));
    for (size_t word = 0; word < 4; word++) state_[word][lane] = random.state()[word];
  }
}

void CodingCoefficients::write(uint16_t key, uint8_t* out, size_t count) {
  static const Draw draw = fastest();
  const auto lane = static_cast<size_t>(key % kKeys);
  const auto first = static_cast<uint16_t>(key - lane);
  if (!begun_ || first != first_) begin(first);
  size_t n = 0;
  for (size_t at = 0; n < count;) {
    if (at == draws_) {
      if (drawn_.size() < (draws_ + kDraws) * kKeys) drawn_.resize((draws_ + kDraws) * kKeys);
      draw(state_, drawn_.data() + draws_ * kKeys, kDraws);
      draws_ += kDraws;
    }
    const uint8_t* drawn = drawn_.data() + lane;
    for (; at < draws_ && n < count; at++) {
      out[n] = drawn[at * kKeys];
      n += out[n] != 0;
    }
  }
}

}  // namespace penstock
