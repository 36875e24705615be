/** TinyMT32 (RFC 8682). */
#pragma once
#include <stdint.h>

namespace penstock {

/** A generator that was just seeded; `coding_coefficients.cc` draws from sixteen of them at once. */
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

  /** Its four words before the first number is drawn. */
  const uint32_t* state() const { return state_; }

  static constexpr uint32_t kFirst = 0x8f7011ee;
  static constexpr uint32_t kSecond = 0xfc78ff1f;
  static constexpr uint32_t kTemper = 0x3793fdff;

 private:
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

}  // namespace penstock
