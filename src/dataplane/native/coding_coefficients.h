/** The coding coefficients of RFC 8681, section 3.6, for m = 8 and DT = 15, of sixteen keys in a row at once. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace penstock {

/**
 * Each number of TinyMT32 (RFC 8682) waits for the one before it, so sixteen generators side by side take as long as one, and an encoder's
 * keys follow each other. What was drawn for sixteen keys is kept until another sixteen are asked for.
 */
class CodingCoefficients {
 public:
  static constexpr size_t kKeys = 16;

  /** Writes the coefficients of `count` sources for `key`, the oldest first, none of them 0. */
  void write(uint16_t key, uint8_t* out, size_t count);

 private:
  /** Draws for the sixteen keys from `first` on. */
  void begin(uint16_t first);

  alignas(64) uint32_t state_[4][kKeys];
  uint16_t first_ = 0;
  bool begun_ = false;
  /** Draw by draw, the lowest byte of each key's. */
  std::vector<uint8_t> drawn_;
  size_t draws_ = 0;
};

}  // namespace penstock
