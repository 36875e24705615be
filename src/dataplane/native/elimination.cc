/** Gauss-Jordan elimination over GF(2^8) of rows as they come, and the random coefficients of combinations. */
#include "elimination.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "gf256.h"
#include "memory.h"
#include "words_x86.h"

namespace penstock {

/** One word of each of eight and of sixteen streams. */
typedef uint32_t Words8 __attribute__((vector_size(32)));
typedef uint32_t Words16 __attribute__((vector_size(64)));
/** Words drawn before they are turned from one word of each stream to four words of one. */
constexpr size_t kDrawn = kRandomBytes / 4;

/** Words a[x], b[x], a[y], b[y] of each 16 bytes. */
#define INTERLEAVE(a, b, x, y)                                                                                    \
  __builtin_shuffle(a, b, Words16{x, x + 16, y, y + 16, x + 4, x + 20, y + 4, y + 20, x + 8, x + 24, y + 8, y + 24, \
                                  x + 12, x + 28, y + 12, y + 28})

/** Where among the four vectors that were turned the words of stream `n` are: vector n mod 4, 16 bytes n / 4. */
static size_t placeOf(size_t n) { return n % 4 * 64 + n / 4 * 16; }

/** Eight seeds, loaded one by one, as they were written a moment ago: a vector would wait until the cache has them. */
#define SEED(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define SEEDS(s) Words8{SEED(s), SEED(s + 1), SEED(s + 2), SEED(s + 3), SEED(s + 4), SEED(s + 5), SEED(s + 6), SEED(s + 7)}
/** The next words that SplitMix32 gives for eight seeds. */
#define SPLIT_MIX(seed, to)          \
  {                                  \
    seed += 0x9e3779b9u;             \
    Words8 z = seed;                 \
    z = (z ^ z >> 16) * 0x21f0aaadu; \
    z = (z ^ z >> 15) * 0x735a2d97u; \
    to = z ^ z >> 15;                \
  }

// All of it has the instructions of its target: without those of 32 bits each, multiplying takes several times as long. It multiplies 256 bits at a time: there are
// CPUs that lower their clock for a while after multiplications of 512 bits, so that the GF(2^8) product computed next takes 8 % longer (bench rlnc). Both
// architectures that have kernels are little-endian.
#define ROWS(name, attributes)                                                                                 \
  attributes static void name(const uint32_t* seeds, size_t used, uint8_t* rows, size_t stride, size_t bytes) { \
    Words16 state[4];                                                                                          \
    Words8 low = SEEDS(seeds), high = SEEDS(seeds + 8);                                                        \
    for (Words16& own : state) {                                                                               \
      Words8 first, second;                                                                                    \
      SPLIT_MIX(low, first)                                                                                    \
      SPLIT_MIX(high, second)                                                                                  \
      own = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);      \
    }                                                                                                          \
    state[3] |= 1;                                                                                             \
    for (size_t at = 0; at < bytes; at += kRandomBytes) {                                                      \
      Words16 word[kDrawn];                                                                                    \
      for (Words16& own : word) {                                                                              \
        const Words16 times5 = (state[1] << 2) + state[1], turned = times5 << 7 | times5 >> 25;                \
        own = (turned << 3) + turned;                                                                          \
        const Words16 t = state[1] << 9;                                                                       \
        state[2] ^= state[0];                                                                                  \
        state[3] ^= state[1];                                                                                  \
        state[1] ^= state[2];                                                                                  \
        state[0] ^= state[3];                                                                                  \
        state[2] ^= t;                                                                                         \
        state[3] = state[3] << 11 | state[3] >> 21;                                                            \
      }                                                                                                        \
      const Words16 low02 = INTERLEAVE(word[0], word[2], 0, 1), high02 = INTERLEAVE(word[0], word[2], 2, 3);   \
      const Words16 low13 = INTERLEAVE(word[1], word[3], 0, 1), high13 = INTERLEAVE(word[1], word[3], 2, 3);   \
      const Words16 turned[kDrawn] = {INTERLEAVE(low02, low13, 0, 1), INTERLEAVE(low02, low13, 2, 3),          \
                                      INTERLEAVE(high02, high13, 0, 1), INTERLEAVE(high02, high13, 2, 3)};     \
      const auto* from = reinterpret_cast<const uint8_t*>(turned);                                             \
      for (size_t n = 0; n < used; n++) memcpy(rows + n * stride + at, from + placeOf(n), kRandomBytes);       \
    }                                                                                                          \
  }

ROWS(rowsPlain, )
#if defined(__x86_64__)
ROWS(rowsAvx2, __attribute__((target("avx2"))))
ROWS(rowsAvx512, __attribute__((target("avx512f,avx512vl"))))
#endif

using Rows = void (*)(const uint32_t*, size_t, uint8_t*, size_t, size_t);

static Rows fastestRows() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return rowsAvx512;
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

const uint8_t* RowsAhead::find(const uint32_t* seeds, size_t count, size_t k) {
  const uint32_t first = seeds[0];
  bool isOneRange = true;
  for (size_t n = 1; n < count; n++) isOneRange &= seeds[n] == first + n;
  const uint32_t skipped = first - next_;
  next_ = seeds[count - 1] + 1;
  if (!isOneRange) return nullptr;
  if (k > columns_ || first - first_ > kStreams - count) {
    if (skipped >= kStreams) return nullptr;
    uint32_t drawn[kStreams];
    for (size_t n = 0; n < kStreams; n++) drawn[n] = first + static_cast<uint32_t>(n);
    first_ = first;
    columns_ = k;
    randomRows(drawn, kStreams, rows_[0], kStride, k);
  }
  return rows_[first - first_];
}

void CombinationRows::draw() {
  const uint32_t* const seeds = scratch_.seeds.data();
  if (count_ > 0 && count_ <= RowsAhead::kMost) {
    stride_ = RowsAhead::kStride;
    rows_ = scratch_.ahead.find(seeds, count_, k_);
    if (rows_) return;
  }
  stride_ = (k_ + 63) & ~static_cast<size_t>(63);
  if (scratch_.rows.size() < count_ * stride_) scratch_.rows.resize(count_ * stride_);
  randomRows(seeds, count_, scratch_.rows.data(), stride_, k_);
  rows_ = scratch_.rows.data();
}

const uint8_t* CombinationRows::take(size_t count) {
  if (count > count_ - taken_) return nullptr;
  const uint8_t* rows = rows_ + taken_ * stride_;
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

/** As `solve`, the rows, `bytes` apart, becoming what they are solved to. */
static bool solveInPlace(uint8_t* rows, size_t bytes, size_t rowCount, const uint8_t* unknowns, size_t count, uint8_t* rowOf, uint8_t* combined) {
  const AddMultiples addMultiples = addMultiplesInUse();
  uint8_t factors[kMaxColumns];
  bool solved[kMaxColumns];
  std::fill_n(solved, count, false);
  size_t next = count;
  for (size_t row = 0; row < count; row++) {
    uint8_t* own = rows + row * bytes;
    const auto pivot = [&] {
      size_t u = 0;
      while (u < count && (solved[u] || own[unknowns[u]] == 0)) u++;
      return u;
    };
    size_t combination = row, u = pivot();
    for (; u == count; u = pivot()) {
      if (next >= rowCount) return false;
      combination = next++;
      memcpy(own, rows + combination * bytes, bytes);
      substitute(own, rows, bytes, bytes, unknowns, count, rowOf, solved);
    }
    solved[u] = true;
    rowOf[u] = static_cast<uint8_t>(row);
    combined[u] = static_cast<uint8_t>(combination);
    const size_t column = unknowns[u];
    const uint8_t inverse = gfTables.inverse[own[column]];
    for (size_t j = 0; j < count; j++) factors[j] = gfTimes(inverse, rows[j * bytes + column]);
    // With the row itself added: own + (1/a + 1) own = own / a. With 1 added to its entry a in the column, what is taken from an entry b / a · a
    // there leaves b / a, and of its own 1 / a: the inverse. No byte is written there, for which the vectors would wait.
    factors[row] = inverse ^ 1;
    addMultiples(rows, bytes, count, own, unitRow(column), factors, bytes);
  }
  return true;
}

bool solve(const Equations& equations, size_t rowCount, EliminationScratch& scratch, Solution* solution) {
  const auto [rows, stride, k, bytes, unknowns, count] = equations;
  if (rowCount < count) return false;
  if (scratch.solved.size() < rowCount * bytes) scratch.solved.resize(rowCount * bytes);
  uint8_t* const out = scratch.solved.data();
  solution->rows = out;
  solution->coefficients = nullptr;
  const SolveFew solveFew = count > 0 && count <= kFewEquations ? solveFewInUse() : nullptr;
  const Solved solved = solveFew ? solveFew(equations, out, scratch.coefficients) : Solved::kNot;
  if (solved != Solved::kNot) {
    for (size_t u = 0; u < count; u++) solution->rowOf[u] = solution->combined[u] = static_cast<uint8_t>(u);
    if (solved == Solved::kCoefficients) solution->coefficients = scratch.coefficients;
    return true;
  }
  for (size_t row = 0; row < rowCount; row++) memcpy(out + row * bytes, rows + row * stride, bytes);
  return solveInPlace(out, bytes, rowCount, unknowns, count, solution->rowOf, solution->combined);
}

}  // namespace penstock
