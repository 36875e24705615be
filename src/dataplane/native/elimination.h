/** Linear systems over GF(2^8), reduced row by row as they come, and the random coefficients of combinations. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

#include <utility>
#include <vector>

#include "gf256.h"

namespace penstock {

struct State;

/** Most sources of a block of random linear combinations, and most combinations. */
constexpr int64_t kMaxColumns = 255;

/**
 * Rows of `stride` bytes: the coefficients of a combination, then of which combinations the row is the sum. `bytes` of each count,
 * a multiple of 64 that may be more than there are.
 *
 * The first rows are reduced: `pivots[row]` is a column in which they have 1 and all others 0. The rows behind them are new, pivot -1.
 */
struct RowSystem {
  uint8_t* rows;
  size_t stride;
  size_t bytes;
  int32_t* pivots;
  /** Columns in which a pivot may stand, in the order in which they are preferred. */
  const int32_t* unknowns;
  size_t unknownCount;
};

/**
 * Brings rows [0, count) with pivot -1, whose entries in the columns of the other pivots are 0 already or, from `fresh` on, are not,
 * to reduced row echelon form (Gauss-Jordan). Rows in which no unknown is left vanish. Returns how many stay, the first ones.
 */
size_t eliminate(const RowSystem& system, size_t fresh, size_t count);

/**
 * Row `rowOf[u]`, of rows `bytes` apart, says of what unknown u is the sum: the column of unknown v stands for combination `combined[v]`. Where `coefficients` are
 * not nullptr, those are there instead, as Product has them. Rows and coefficients are the scratch memory's.
 */
struct Solution {
  const uint8_t* rows;
  const uint64_t* coefficients;
  uint8_t *rowOf, *combined;
};

struct EliminationScratch;

/** Of `rowCount` equations those from `count` on take the place of such as follow from others. False when there are too few. */
bool solve(const Equations& equations, size_t rowCount, EliminationScratch& scratch, Solution* solution);

/**
 * Writes `count` rows of random bytes, `stride` apart, the row of each seed: the stream of xoshiro128** 1.1, seeded by
 * SplitMix32(seed), as src/dataplane/engine/random.ts has it. Of a row `bytes` rounded up to a multiple of `kRandomBytes` are written.
 */
constexpr size_t kRandomBytes = 16;
/** Seeds that are spread together: as many are read as the next multiple of it. */
constexpr size_t kStreams = 16;
void randomRows(const uint32_t* seeds, size_t count, uint8_t* rows, size_t stride, size_t bytes);

/**
 * Rows of sixteen seeds that follow each other, drawn before most of them are asked for: the repairs of an encoder have such seeds, and those of a block are
 * fewer than a vector draws.
 */
class RowsAhead {
 public:
  /** Of more seeds at once a vector's share is small anyway. */
  static constexpr size_t kMost = kStreams / 2;
  static constexpr size_t kStride = 256;

  /** The rows of `count` seeds, 1 to kMost, of k bytes, 1 to kMaxColumns, kStride apart, until the next call; nullptr where they do not go on from those before. */
  const uint8_t* find(const uint32_t* seeds, size_t count, size_t k);

 private:
  alignas(64) uint8_t rows_[kStreams][kStride] = {};
  /** The seed of the first row, and the bytes that were drawn of each. */
  uint32_t first_ = 0;
  size_t columns_ = 0;
  /** The seed behind the last that was asked for. */
  uint32_t next_ = 0;
};

/** What the calls of random linear combinations keep, so that none allocates: work of one call, and checked copies of what JavaScript's arrays said. */
struct EliminationScratch {
  std::vector<uint32_t> seeds;
  std::vector<int32_t> pivots;
  std::vector<int32_t> unknowns;
  /** Of every combination, how many sources it is one of; of every source that one covers, its place, negative: not known. */
  std::vector<size_t> covered;
  std::vector<int32_t> places;
  /** Pivot and row, in one number. */
  std::vector<int32_t> clean;
  /** Rows of CombinationRows. */
  std::vector<uint8_t> rows;
  RowsAhead ahead;
  /** Of a Solution. */
  std::vector<uint8_t> solved;
  alignas(64) uint64_t coefficients[kFewTargets * (kMaxColumns + 1)];
  /** Coefficients of a product. */
  std::vector<uint8_t> matrix;
  /** Columns of the sources that it takes: where those that follow each other begin, and how many they are. */
  std::vector<std::pair<size_t, size_t>> stretches;
};

/** The coefficients of random combinations, those of several blocks drawn together, since a vector draws those of sixteen. There is one at a time. */
class CombinationRows {
 public:
  explicit CombinationRows(EliminationScratch& scratch) : scratch_(scratch) {}
  /** Whether all that were drawn have been taken, so that others are to be added. */
  bool empty() const { return taken_ == count_; }
  /** Whether those of another block should be drawn with those that were added. */
  bool hasRoom() const { return empty() || count_ < kTogether; }
  /** Adds the combination of `k` sources that `seed` gives. */
  void add(uint32_t seed, size_t k) {
    if (empty()) count_ = taken_ = k_ = 0;
    if (scratch_.seeds.size() < count_ + kStreams) scratch_.seeds.resize(2 * (count_ + kStreams));
    scratch_.seeds[count_++] = seed;
    if (k > k_) k_ = k;
  }
  /** Draws the rows of all that were added. */
  void draw();
  /** Those of the next `count` combinations, `stride` apart, a multiple of 64; nullptr where there are not as many. */
  const uint8_t* take(size_t count);
  size_t stride() const { return stride_; }
  /** Leaves what has not been taken. */
  void clear() { taken_ = count_; }

 private:
  /** A few vectors of them. */
  static constexpr size_t kTogether = 64;
  EliminationScratch& scratch_;
  const uint8_t* rows_ = nullptr;
  size_t count_ = 0, taken_ = 0, k_ = 0, stride_ = 0;
};

napi_value gfRandomMultiply(napi_env env, napi_callback_info info);
napi_value gfSolve(napi_env env, napi_callback_info info);

}  // namespace penstock
