/** Gauss-Jordan elimination over GF(2^8) of rows as they come, and the random coefficients of combinations. */
#include "elimination.h"

#include <string.h>

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

static inline uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

void randomCoefficients(uint32_t seed, uint8_t* out, size_t count) {
  uint32_t state[4];
  for (uint32_t& word : state) {
    seed += 0x9e3779b9u;
    uint32_t z = seed;
    z = (z ^ z >> 16) * 0x21f0aaadu;
    z = (z ^ z >> 15) * 0x735a2d97u;
    word = z ^ z >> 15;
  }
  state[3] |= 1;
  for (size_t at = 0; at < count; at += 4) {
    const uint32_t word = rotate(state[1] * 5, 7) * 9;
    const uint32_t t = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate(state[3], 11);
    const size_t left = count - at < 4 ? count - at : 4;
    for (size_t byte = 0; byte < left; byte++) out[at + byte] = static_cast<uint8_t>(word >> (8 * byte));
  }
}

const uint8_t* randomMatrix(std::vector<uint8_t>& matrix, const int32_t* seeds, size_t k, size_t m) {
  matrix.resize(k * m);
  for (size_t j = 0; j < m; j++) randomCoefficients(static_cast<uint32_t>(loadOnce(seeds + j)), matrix.data() + j * k, k);
  return matrix.data();
}

static void addTo(uint8_t* __restrict to, const uint8_t* __restrict from, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) to[i] = static_cast<uint8_t>(to[i] ^ from[i]);
}

/** The targets of a product are rows of the scratch memory; the sources are the caller's. */
static uint8_t* targetsInScratch(State& state, size_t k, size_t m, size_t bytes) {
  std::vector<uint8_t>& rows = state.elimination.rows;
  if (rows.size() < m * bytes) rows.resize(m * bytes);
  reserveProduct(state, k, m);
  for (size_t i = 0; i < k; i++) state.lengths[i] = static_cast<int32_t>(bytes);
  for (size_t j = 0; j < m; j++) state.targets[j] = rows.data() + j * bytes;
  return rows.data();
}

/** Takes multiples of the rows that have a pivot away from rows [fresh, count), so that those have 0 in the pivots' columns. */
static void reduce(State& state, const RowSystem& system, size_t fresh, size_t count) {
  std::vector<size_t>& reduced = state.elimination.touched;
  reduced.clear();
  for (size_t row = 0; row < fresh; row++) {
    if (system.pivots[row] >= 0) reduced.push_back(row);
  }
  const size_t k = reduced.size(), m = count - fresh;
  if (k == 0 || m == 0) return;
  std::vector<uint8_t>& factors = state.elimination.factors;
  factors.resize(k * m);
  const uint8_t* sums = targetsInScratch(state, k, m, system.bytes);
  for (size_t i = 0; i < k; i++) {
    state.sources[i] = system.rows + reduced[i] * system.stride;
    for (size_t j = 0; j < m; j++) factors[j * k + i] = system.rows[(fresh + j) * system.stride + static_cast<size_t>(system.pivots[reduced[i]])];
  }
  runProduct(state, factors.data(), k, m, system.bytes, false);
  for (size_t j = 0; j < m; j++) addTo(system.rows + (fresh + j) * system.stride, sums + j * system.bytes, system.bytes);
}

/** Divides a row by what it has in `column`, and takes it away from all others, so that they have 0 there. */
static void pivotOn(State& state, const RowSystem& system, size_t row, size_t column, size_t count) {
  std::vector<size_t>& touched = state.elimination.touched;
  std::vector<uint8_t>& factors = state.elimination.factors;
  uint8_t* own = system.rows + row * system.stride;
  const uint8_t* times = gfTables.product[inverseOf(own[column])];
  touched.assign(1, row);
  factors.assign(1, times[1]);
  for (size_t other = 0; other < count; other++) {
    const uint8_t factor = system.rows[other * system.stride + column];
    if (factor == 0 || other == row) continue;
    touched.push_back(other);
    factors.push_back(times[factor]);
  }
  const uint8_t* multiples = targetsInScratch(state, 1, touched.size(), system.bytes);
  state.sources[0] = own;
  runProduct(state, factors.data(), 1, touched.size(), system.bytes, false);
  memcpy(own, multiples, system.bytes);
  for (size_t n = 1; n < touched.size(); n++) {
    addTo(system.rows + touched[n] * system.stride, multiples + n * system.bytes, system.bytes);
  }
}

size_t eliminate(State& state, const RowSystem& system, size_t fresh, size_t count) {
  reduce(state, system, fresh, count);
  for (size_t row = 0; row < count; row++) {
    if (system.pivots[row] >= 0) continue;
    const uint8_t* own = system.rows + row * system.stride;
    for (size_t i = 0; i < system.unknownCount; i++) {
      const int32_t column = system.unknowns[i];
      if (own[column] == 0) continue;
      pivotOn(state, system, row, static_cast<size_t>(column), count);
      system.pivots[row] = column;
      break;
    }
  }
  size_t kept = 0;
  for (size_t row = 0; row < count; row++) {
    if (system.pivots[row] < 0) continue;
    if (kept != row) {
      memcpy(system.rows + kept * system.stride, system.rows + row * system.stride, system.bytes);
      system.pivots[kept] = system.pivots[row];
    }
    kept++;
  }
  return kept;
}

}  // namespace penstock
