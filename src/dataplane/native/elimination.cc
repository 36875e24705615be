/** Gauss-Jordan elimination over GF(2^8) of rows as they come, and the random coefficients of combinations. */
#include "elimination.h"

#include <string.h>

#include <algorithm>

#include "gf256.h"
#include "memory.h"

namespace penstock {

static uint8_t inverseOf(uint8_t a) {
  struct Inverses {
    uint8_t of[256] = {};
    Inverses() {
      for (int a = 1; a < 256; a++) {
        for (int b = 1; b < 256; b++) {
          if (gfTables.product[a][b] == 1) of[a] = static_cast<uint8_t>(b);
        }
      }
    }
  };
  static const Inverses inverses;
  return inverses.of[a];
}

/** One word of each of four streams. */
typedef uint32_t Words __attribute__((vector_size(16)));
constexpr size_t kStreams = 4;

static inline Words rotate(Words x, int by) { return x << by | x >> (32 - by); }

void randomRows(const uint32_t* seeds, size_t count, uint8_t* rows, size_t stride, size_t bytes) {
  for (size_t first = 0; first < count; first += kStreams, rows += kStreams * stride) {
    const size_t streams = std::min(kStreams, count - first);
    Words seed = {};
    for (size_t n = 0; n < streams; n++) seed[n] = seeds[first + n];
    Words state[4];
    for (Words& word : state) {
      seed += 0x9e3779b9u;
      Words z = seed;
      z = (z ^ z >> 16) * 0x21f0aaadu;
      z = (z ^ z >> 15) * 0x735a2d97u;
      word = z ^ z >> 15;
    }
    state[3] |= 1;
    for (size_t at = 0; at < bytes; at += 4) {
      const Words word = rotate(state[1] * 5, 7) * 9;
      const Words t = state[1] << 9;
      state[2] ^= state[0];
      state[3] ^= state[1];
      state[1] ^= state[2];
      state[0] ^= state[3];
      state[2] ^= t;
      state[3] = rotate(state[3], 11);
      // Both architectures that have kernels are little-endian.
      for (size_t n = 0; n < streams; n++) {
        const uint32_t own = word[n];
        memcpy(rows + n * stride + at, &own, 4);
      }
    }
  }
}

void runRandomProduct(State& state, const int32_t* seeds, size_t k, size_t m, size_t bytes, bool padded) {
  EliminationScratch& scratch = state.elimination;
  const size_t stride = (k + 3) & ~static_cast<size_t>(3);
  if (scratch.seeds.size() < m) scratch.seeds.resize(m);
  if (scratch.matrix.size() < m * stride) scratch.matrix.resize(m * stride);
  for (size_t j = 0; j < m; j++) scratch.seeds[j] = static_cast<uint32_t>(loadOnce(seeds + j));
  randomRows(scratch.seeds.data(), m, scratch.matrix.data(), stride, k);
  scratch.rows.resize(m);
  for (size_t j = 0; j < m; j++) scratch.rows[j] = scratch.matrix.data() + j * stride;
  scratch.columns.resize(k);
  for (size_t i = 0; i < k; i++) scratch.columns[i] = static_cast<int32_t>(i);
  runProductOnce(state, scratch.rows.data(), scratch.columns.data(), k, m, bytes, padded);
}

/** Takes multiples of the rows that have a pivot away from rows [fresh, count), so that those have 0 in the pivots' columns. */
static void reduce(const RowSystem& system, AddMultiples addMultiples, size_t fresh, size_t count) {
  uint8_t factors[kMaxColumns];
  uint8_t* rows = system.rows + fresh * system.stride;
  for (size_t row = 0; row < fresh && fresh < count; row++) {
    if (system.pivots[row] < 0) continue;
    const auto column = static_cast<size_t>(system.pivots[row]);
    for (size_t j = 0; j < count - fresh; j++) factors[j] = rows[j * system.stride + column];
    addMultiples(rows, system.stride, count - fresh, system.rows + row * system.stride, factors, system.bytes);
  }
}

/** Divides a row by what it has in `column`, and takes it away from all others, so that they have 0 there. */
static void pivotOn(const RowSystem& system, AddMultiples addMultiples, size_t row, size_t column, size_t count) {
  uint8_t factors[kMaxColumns];
  const uint8_t* own = system.rows + row * system.stride;
  const uint8_t* times = gfTables.product[inverseOf(own[column])];
  for (size_t j = 0; j < count; j++) factors[j] = times[system.rows[j * system.stride + column]];
  // As for the others, but with itself added: own + (1/a + 1) own = own / a.
  factors[row] = times[1] ^ 1;
  addMultiples(system.rows, system.stride, count, own, factors, system.bytes);
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

}  // namespace penstock
