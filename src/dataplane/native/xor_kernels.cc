/** Sums by exclusive or, at every width of vectors. */
#include "xor_kernels.h"

namespace penstock {

#define INLINE(attributes) __attribute__((always_inline)) attributes static inline

/** A vector's width of ones, then as many zeros: read from the middle back it is a mask of so many bytes. */
alignas(64) static const uint8_t kMasks[3 * 64] = {
#define EIGHT(value) value, value, value, value, value, value, value, value
#define WHOLE(value) EIGHT(value), EIGHT(value), EIGHT(value), EIGHT(value), EIGHT(value), EIGHT(value), EIGHT(value), EIGHT(value)
    WHOLE(0), WHOLE(255), WHOLE(0)};

// Every function carries its own target, so that the addon as a whole runs on any CPU. A vector whose masked part is not to change is written
// as it was. Sums are walked through on their own boundaries: a store across two cache lines costs two, and a source that lies like its sums
// is then read line by line too.
#define KERNEL(name, attributes, width)                                                                                                 \
  namespace name {                                                                                                                      \
  typedef uint8_t Vector __attribute__((vector_size(width)));                                                                           \
  INLINE(attributes) Vector load(const uint8_t* at) {                                                                                   \
    Vector vector;                                                                                                                      \
    memcpy(&vector, at, width);                                                                                                         \
    return vector;                                                                                                                      \
  }                                                                                                                                     \
  INLINE(attributes) void store(uint8_t* at, Vector vector) { memcpy(at, &vector, width); }                                             \
  /* The first `count` bytes of a vector, and all but the first. */                                                                     \
  INLINE(attributes) Vector lowest(size_t count) { return load(kMasks + 128 - count); }                                                 \
  INLINE(attributes) Vector allBut(size_t count) { return load(kMasks + 64 - count); }                                                  \
                                                                                                                                        \
  template <int U>                                                                                                                      \
  INLINE(attributes) void addTile(uint8_t* to, const uint8_t* from) {                                                                   \
    Vector sum[U];                                                                                                                      \
    for (int u = 0; u < U; u++) sum[u] = load(to + u * (width)) ^ load(from + u * (width));                                             \
    for (int u = 0; u < U; u++) store(to + u * (width), sum[u]);                                                                        \
  }                                                                                                                                     \
                                                                                                                                        \
  attributes static void add(uint8_t* to, const uint8_t* from, size_t bytes) {                                                          \
    if (bytes < (width)) {                                                                                                              \
      for (size_t at = 0; at < bytes; at++) to[at] = static_cast<uint8_t>(to[at] ^ from[at]);                                           \
      return;                                                                                                                           \
    }                                                                                                                                   \
    size_t at = -reinterpret_cast<uintptr_t>(to) & ((width) - 1);                                                                       \
    if (at > 0) store(to, load(to) ^ (load(from) & lowest(at)));                                                                        \
    for (; at + 4 * (width) <= bytes; at += 4 * (width)) addTile<4>(to + at, from + at);                                                \
    for (; at + (width) <= bytes; at += (width)) addTile<1>(to + at, from + at);                                                        \
    if (at == bytes) return;                                                                                                            \
    const size_t last = bytes - (width);                                                                                                \
    store(to + last, load(to + last) ^ (load(from + last) & allBut(at - last)));                                                        \
  }                                                                                                                                     \
                                                                                                                                        \
  template <int U>                                                                                                                      \
  INLINE(attributes) void pairsTile(const XorPair* pairs, size_t count, uint8_t* sum, bool fresh, size_t at) {                          \
    Vector all[U];                                                                                                                      \
    for (int u = 0; u < U; u++) all[u] = fresh ? Vector{} : load(sum + at + u * (width));                                               \
    for (size_t i = 0; i < count; i++) {                                                                                                \
      const uint8_t* from = pairs[i].source + at;                                                                                       \
      uint8_t* to = pairs[i].target + at;                                                                                               \
      Vector source[U];                                                                                                                 \
      for (int u = 0; u < U; u++) {                                                                                                     \
        source[u] = load(from + u * (width));                                                                                           \
        all[u] ^= source[u];                                                                                                            \
      }                                                                                                                                 \
      if (!pairs[i].fresh) {                                                                                                            \
        for (int u = 0; u < U; u++) source[u] ^= load(to + u * (width));                                                                \
      }                                                                                                                                 \
      for (int u = 0; u < U; u++) store(to + u * (width), source[u]);                                                                   \
    }                                                                                                                                   \
    for (int u = 0; u < U; u++) store(sum + at + u * (width), all[u]);                                                                  \
  }                                                                                                                                     \
                                                                                                                                        \
  INLINE(attributes) void pairsMasked(const XorPair* pairs, size_t count, uint8_t* sum, bool fresh, size_t at, Vector mask) {           \
    Vector all = load(sum + at);                                                                                                        \
    if (fresh) all &= ~mask;                                                                                                            \
    for (size_t i = 0; i < count; i++) {                                                                                                \
      const Vector source = load(pairs[i].source + at) & mask;                                                                          \
      all ^= source;                                                                                                                    \
      const Vector to = load(pairs[i].target + at);                                                                                     \
      store(pairs[i].target + at, (pairs[i].fresh ? to & ~mask : to) ^ source);                                                         \
    }                                                                                                                                   \
    store(sum + at, all);                                                                                                               \
  }                                                                                                                                     \
                                                                                                                                        \
  attributes static void addPairs(const XorPair* pairs, size_t count, uint8_t* sum, bool fresh, size_t bytes) {                         \
    if (bytes < (width)) {                                                                                                              \
      if (fresh) memset(sum, 0, bytes);                                                                                                 \
      for (size_t i = 0; i < count; i++) {                                                                                              \
        add(sum, pairs[i].source, bytes);                                                                                               \
        if (pairs[i].fresh) memmove(pairs[i].target, pairs[i].source, bytes);                                                           \
        else add(pairs[i].target, pairs[i].source, bytes);                                                                              \
      }                                                                                                                                 \
      return;                                                                                                                           \
    }                                                                                                                                   \
    size_t at = -reinterpret_cast<uintptr_t>(sum) & ((width) - 1);                                                                      \
    if (at > 0) pairsMasked(pairs, count, sum, fresh, 0, lowest(at));                                                                   \
    for (; at + 4 * (width) <= bytes; at += 4 * (width)) pairsTile<4>(pairs, count, sum, fresh, at);                                    \
    for (; at + (width) <= bytes; at += (width)) pairsTile<1>(pairs, count, sum, fresh, at);                                            \
    if (at == bytes) return;                                                                                                            \
    const size_t last = bytes - (width);                                                                                                \
    pairsMasked(pairs, count, sum, fresh, last, allBut(at - last));                                                                     \
  }                                                                                                                                     \
  static const XorKernel kernel = {add, addPairs};                                                                                      \
  }

KERNEL(by16, , 16)
#if defined(__x86_64__)
KERNEL(by32, __attribute__((target("avx2"))), 32)
KERNEL(by64, __attribute__((target("avx512f,avx512bw"))), 64)
#endif

const XorKernel& xorKernel(int64_t widest) {
#if defined(__x86_64__)
  if (widest >= 64 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return by64::kernel;
  if (widest >= 32 && __builtin_cpu_supports("avx2")) return by32::kernel;
#else
  (void)widest;
#endif
  return by16::kernel;
}

}  // namespace penstock
