/** Gauss-Jordan elimination over GF(2^8) of rows as they come, and the random coefficients of combinations. */
#include "elimination.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "gf256.h"
#include "memory.h"
#include "words_x86.h"

namespace penstock {

/** One word of each of sixteen streams. */
typedef uint32_t Words __attribute__((vector_size(64)));
/** Up to so many seeds are read one by one, as they were written a moment ago: a vector would wait until the cache has them. */
constexpr size_t kFewSeeds = 4;
/** Words drawn before they are turned from one word of each stream to four words of one. */
constexpr size_t kDrawn = kRandomBytes / 4;

/** Words a[0], b[0], a[1], b[1], or those of the upper half, in each 16 bytes. */
#define INTERLEAVE(a, b, x, y)                                                                                  \
  __builtin_shuffle(a, b, Words{x, x + 16, y, y + 16, x + 4, x + 20, y + 4, y + 20, x + 8, x + 24, y + 8, y + 24, \
                                x + 12, x + 28, y + 12, y + 28})

/** Where among the four vectors that were turned the words of stream `n` are: vector n mod 4, 16 bytes n / 4. */
static size_t placeOf(size_t n) { return n % 4 * 64 + n / 4 * 16; }

#define TIMES(words, factor) ((words) * (factor))
#define TIMES_IN_HALVES(words, factor) reinterpret_cast<Words>(timesInHalves(reinterpret_cast<__m512i>(words), factor))

// All of it has the instructions of its target: without those of 32 bits each, multiplying takes several times as long. Both architectures
// that have kernels are little-endian.
#define ROWS(name, attributes, times)                                                                          \
  attributes static void name(const uint32_t* seeds, size_t used, uint8_t* rows, size_t stride, size_t bytes) { \
    Words seed = {seeds[0], seeds[1], seeds[2], seeds[3]}, state[4];                                           \
    if (used > kFewSeeds) memcpy(&seed, seeds, sizeof seed);                                                   \
    for (Words& own : state) {                                                                                 \
      seed += 0x9e3779b9u;                                                                                     \
      Words z = seed;                                                                                          \
      z = times(z ^ z >> 16, 0x21f0aaadu);                                                                     \
      z = times(z ^ z >> 15, 0x735a2d97u);                                                                     \
      own = z ^ z >> 15;                                                                                       \
    }                                                                                                          \
    state[3] |= 1;                                                                                             \
    for (size_t at = 0; at < bytes; at += kRandomBytes) {                                                      \
      Words word[kDrawn];                                                                                      \
      for (Words& own : word) {                                                                                \
        const Words times5 = (state[1] << 2) + state[1], turned = times5 << 7 | times5 >> 25;                  \
        own = (turned << 3) + turned;                                                                          \
        const Words t = state[1] << 9;                                                                         \
        state[2] ^= state[0];                                                                                  \
        state[3] ^= state[1];                                                                                  \
        state[1] ^= state[2];                                                                                  \
        state[0] ^= state[3];                                                                                  \
        state[2] ^= t;                                                                                         \
        state[3] = state[3] << 11 | state[3] >> 21;                                                            \
      }                                                                                                        \
      const Words low02 = INTERLEAVE(word[0], word[2], 0, 1), high02 = INTERLEAVE(word[0], word[2], 2, 3);     \
      const Words low13 = INTERLEAVE(word[1], word[3], 0, 1), high13 = INTERLEAVE(word[1], word[3], 2, 3);     \
      const Words turned[kDrawn] = {INTERLEAVE(low02, low13, 0, 1), INTERLEAVE(low02, low13, 2, 3),            \
                                    INTERLEAVE(high02, high13, 0, 1), INTERLEAVE(high02, high13, 2, 3)};       \
      const auto* from = reinterpret_cast<const uint8_t*>(turned);                                             \
      for (size_t n = 0; n < used; n++) memcpy(rows + n * stride + at, from + placeOf(n), kRandomBytes);       \
    }                                                                                                          \
  }

ROWS(rowsPlain, , TIMES)
#if defined(__x86_64__)
ROWS(rowsAvx2, __attribute__((target("avx2"))), TIMES)
ROWS(rowsAvx512, __attribute__((target("avx512f"))), TIMES_IN_HALVES)
#endif

using Rows = void (*)(const uint32_t*, size_t, uint8_t*, size_t, size_t);

static Rows fastestRows() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return rowsAvx512;
  if (__builtin_cpu_supports("avx2")) return rowsAvx2;
#endif
  return rowsPlain;
}

void randomRows(const uint32_t* seeds, size_t count, uint8_t* rows, size_t stride, size_t bytes) {
  static const Rows write = fastestRows();
  for (size_t first = 0; first < count; first += kStreams) {
    write(seeds + first, std::min(kStreams, count - first), rows + first * stride, stride, bytes);
  }
}

void CombinationRows::draw() {
  stride_ = (k_ + 63) & ~static_cast<size_t>(63);
  if (scratch_.rows.size() < count_ * stride_) scratch_.rows.resize(count_ * stride_);
  randomRows(scratch_.seeds.data(), count_, scratch_.rows.data(), stride_, k_);
}

uint8_t* CombinationRows::take(size_t count) {
  if (count > count_ - taken_) return nullptr;
  uint8_t* rows = scratch_.rows.data() + taken_ * stride_;
  taken_ += count;
  return rows;
}

/** Takes multiples of the rows that have a pivot away from rows [fresh, count), so that those have 0 in the pivots' columns. */
static void reduce(const RowSystem& system, AddMultiples addMultiples, size_t fresh, size_t count) {
  uint8_t factors[kMaxColumns];
  uint8_t* rows = system.rows + fresh * system.stride;
  for (size_t row = 0; row < fresh && fresh < count; row++) {
    if (system.pivots[row] < 0) continue;
    const auto column = static_cast<size_t>(system.pivots[row]);
    for (size_t j = 0; j < count - fresh; j++) factors[j] = rows[j * system.stride + column];
    addMultiples(rows, system.stride, count - fresh, system.rows + row * system.stride, zeroRow(), factors, system.bytes);
  }
}

/** Divides a row by what it has in `column`, and takes it away from all others, so that they have 0 there. */
static void pivotOn(const RowSystem& system, AddMultiples addMultiples, size_t row, size_t column, size_t count) {
  uint8_t factors[kMaxColumns];
  const uint8_t* own = system.rows + row * system.stride;
  const uint8_t* times = gfTables.product[gfTables.inverse[own[column]]];
  for (size_t j = 0; j < count; j++) factors[j] = times[system.rows[j * system.stride + column]];
  // As for the others, but with itself added: own + (1/a + 1) own = own / a.
  factors[row] = times[1] ^ 1;
  addMultiples(system.rows, system.stride, count, own, zeroRow(), factors, system.bytes);
}

size_t eliminate(const RowSystem& system, size_t fresh, size_t count) {
  const AddMultiples addMultiples = addMultiplesInUse();
  reduce(system, addMultiples, fresh, count);
  size_t kept = 0;
  for (size_t row = 0; row < count; row++) {
    const uint8_t* own = system.rows + row * system.stride;
    for (size_t i = 0; i < system.unknownCount && system.pivots[row] < 0; i++) {
      const int32_t column = system.unknowns[i];
      if (own[column] == 0) continue;
      pivotOn(system, addMultiples, row, static_cast<size_t>(column), count);
      system.pivots[row] = column;
    }
    if (system.pivots[row] >= 0) kept++;
  }
  if (kept == count) return count;
  size_t to = 0;
  for (size_t row = 0; row < count; row++) {
    if (system.pivots[row] < 0) continue;
    if (to != row) {
      memcpy(system.rows + to * system.stride, system.rows + row * system.stride, system.bytes);
      system.pivots[to] = system.pivots[row];
    }
    to++;
  }
  return kept;
}

/** Puts sums of the rows that are solved in the place of the unknowns that these are for. */
static void substitute(uint8_t* own, const uint8_t* rows, size_t stride, size_t bytes, const uint8_t* unknowns, size_t count, const uint8_t* rowOf,
                       const bool* solved) {
  const AddMultiples addMultiples = addMultiplesInUse();
  uint8_t factors[kMaxColumns];
  for (size_t u = 0; u < count; u++) {
    if (solved[u]) factors[u] = std::exchange(own[unknowns[u]], 0);
  }
  for (size_t u = 0; u < count; u++) {
    if (solved[u]) addMultiples(own, stride, 1, rows + rowOf[u] * stride, zeroRow(), factors + u, bytes);
  }
}

bool solveInPlace(uint8_t* rows, size_t stride, size_t bytes, size_t rowCount, const uint8_t* unknowns, size_t count, uint8_t* rowOf,
                  uint8_t* combined) {
  const SolveFew solveFew = count > 0 && count <= kFewEquations ? solveFewInUse() : nullptr;
  if (solveFew && solveFew(rows, stride, bytes, unknowns, count)) {
    for (size_t u = 0; u < count; u++) rowOf[u] = combined[u] = static_cast<uint8_t>(u);
    return true;
  }
  const AddMultiples addMultiples = addMultiplesInUse();
  uint8_t factors[kMaxColumns];
  bool solved[kMaxColumns];
  std::fill_n(solved, count, false);
  size_t next = count;
  for (size_t row = 0; row < count; row++) {
    uint8_t* own = rows + row * stride;
    const auto pivot = [&] {
      size_t u = 0;
      while (u < count && (solved[u] || own[unknowns[u]] == 0)) u++;
      return u;
    };
    size_t combination = row, u = pivot();
    for (; u == count; u = pivot()) {
      if (next >= rowCount) return false;
      combination = next++;
      memcpy(own, rows + combination * stride, bytes);
      substitute(own, rows, stride, bytes, unknowns, count, rowOf, solved);
    }
    solved[u] = true;
    rowOf[u] = static_cast<uint8_t>(row);
    combined[u] = static_cast<uint8_t>(combination);
    const size_t column = unknowns[u];
    const uint8_t inverse = gfTables.inverse[own[column]];
    for (size_t j = 0; j < count; j++) factors[j] = gfTimes(inverse, rows[j * stride + column]);
    // With the row itself added: own + (1/a + 1) own = own / a. With 1 added to its entry a in the column, what is taken from an entry b / a · a
    // there leaves b / a, and of its own 1 / a: the inverse. No byte is written there, for which the vectors would wait.
    factors[row] = inverse ^ 1;
    addMultiples(rows, stride, count, own, unitRow(column), factors, bytes);
  }
  return true;
}

}  // namespace penstock
