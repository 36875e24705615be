/** Sums by exclusive or, at every width of vectors; `addPairs` is what a source of rows and columns costs. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace penstock {

/** A source and the second of the two sums that it is added to; `fresh`: that sum has nothing yet, the source is copied. */
struct XorPair {
  const uint8_t* source;
  uint8_t* target;
  bool fresh;
};

struct XorKernel {
  /** to ^= from. */
  void (*add)(uint8_t* to, const uint8_t* from, size_t bytes);
  /**
   * Adds each source to `sum` and to its own target, in turn; `fresh`: `sum` has nothing yet. Regions that overlap begin at the same place, and `sum`
   * overlaps no other.
   */
  void (*addPairs)(const XorPair* pairs, size_t count, uint8_t* sum, bool fresh, size_t bytes);
};

/** The kernel with vectors of at most `widest` bytes that this CPU has. */
const XorKernel& xorKernel(int64_t widest);

}  // namespace penstock
