/** TinyMT32 (RFC 8682), and the coding coefficients that RFC 8681, section 3.6, draws from it for m = 8 and DT = 15. */
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace penstock {

class TinyMt32 {
 public:
  explicit TinyMt32(uint32_t seed) {
    state_[0] = seed;
    for (uint32_t i = 1; i < 8; i++) {
      const uint32_t before = state_[(i - 1) & 3];
      state_[i & 3] ^= i + 1812433253u * (before ^ before >> 30);
    }
    for (int i = 0; i < 8; i++) step();
  }

  uint32_t draw() {
    step();
    const uint32_t sum = state_[0] + (state_[2] >> 8);
    return state_[3] ^ sum ^ (sum & 1 ? kTemper : 0);
  }

 private:
  static constexpr uint32_t kFirst = 0x8f7011ee;
  static constexpr uint32_t kSecond = 0xfc78ff1f;
  static constexpr uint32_t kTemper = 0x3793fdff;

  void step() {
    uint32_t y = state_[3];
    uint32_t x = (state_[0] & 0x7fffffffu) ^ state_[1] ^ state_[2];
    x ^= x << 1;
    y ^= y >> 1 ^ x;
    const uint32_t odd = 0u - (y & 1);
    state_[0] = state_[1];
    state_[1] = state_[2] ^ (odd & kFirst);
    state_[2] = x ^ y << 10 ^ (odd & kSecond);
    state_[3] = y;
  }

  uint32_t state_[4] = {0, kFirst, kSecond, kTemper};
};

/** The coefficients of `count` sources, the oldest first, none of them 0. */
inline void codingCoefficients(uint16_t key, uint8_t* out, size_t count) {
  TinyMt32 random(key);
  for (size_t i = 0; i < count; i++) {
    do {
      out[i] = static_cast<uint8_t>(random.draw());
    } while (out[i] == 0);
  }
}

}  // namespace penstock
