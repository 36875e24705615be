/** What the GF(2^8) kernels of x86 have in common. */
#pragma once
#include "gf256.h"

// GCC 12's own header leaves the unused operand of unmasked intrinsics uninitialised on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#include <string.h>

// Every function carries its own target, so that the addon as a whole runs on any x86-64. The column tile is the outer loop: a
// tile of every source is loaded once per group of up to `M` targets and added into accumulators that stay in registers.
#define INLINE(isa) __attribute__((target(isa), always_inline)) static inline
#define INLINE_MEMBER __attribute__((always_inline)) inline
#define TARGET(isa) __attribute__((target(isa))) static

namespace penstock {

/** The bytes of source `i` from `at` on, zero-padded to `width` in `stage` when it ends before. */
static inline __attribute__((always_inline)) const uint8_t* window(const Product& product, size_t i, size_t at,
                                                                   size_t width, uint8_t* stage) {
  const auto length = static_cast<size_t>(product.lengths[i]);
  if (__builtin_expect(at + width <= length, 1)) return product.sources[i] + at;
  memset(stage, 0, width);
  if (length > at) memcpy(stage, product.sources[i] + at, length - at);
  return stage;
}

void multiplyGfni512(Product& product);
void multiplyGfni256(Product& product);
void addMultiplesGfni512(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors, size_t bytes);
Solved solveFewGfni512(const Equations& equations, uint8_t* rows, uint64_t* coefficients);
Solved solveFewGfni256(const Equations& equations, uint8_t* rows, uint64_t* coefficients);
void addMultiplesGfni256(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors, size_t bytes);
void multiplyAvx2(Product& product);
void addMultiplesAvx2(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors, size_t bytes);
Solved solveFewAvx2(const Equations& equations, uint8_t* rows, uint64_t* coefficients);

}  // namespace penstock

// Kernels without masks: tiles of two vectors, then of one; the last is moved back to end with the columns.

#define COLUMNS(width, groups)                                                              \
  if (product.bytes < (width)) return multiplyScalar(product);                              \
  size_t at = 0;                                                                            \
  for (; at + 2 * (width) <= product.bytes; at += 2 * (width)) groups<2>(product, at);      \
  for (; at + (width) <= product.bytes; at += (width)) groups<1>(product, at);              \
  if (at < product.bytes) groups<1>(product, product.bytes - (width));

#define GROUPS(isa, name, tile)                                                \
  template <int U>                                                             \
  TARGET(isa) void name(const Product& product, size_t at) {                   \
    size_t group = 0;                                                          \
    for (; group + 4 <= product.m; group += 4) tile<4, U>(product, group, at); \
    switch (product.m - group) {                                               \
      case 3: tile<3, U>(product, group, at); break;                           \
      case 2: tile<2, U>(product, group, at); break;                           \
      case 1: tile<1, U>(product, group, at); break;                           \
      default: break;                                                          \
    }                                                                          \
  }
