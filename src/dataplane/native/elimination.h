/** Linear systems over GF(2^8), reduced row by row as they come, and what they say of symbols in packet memory. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace penstock {

struct State;

/** Most sources of a block of random linear combinations, and most combinations. */
constexpr int64_t kMaxColumns = 255;

/**
 * Rows of `stride` bytes: `columns` coefficients, then what is carried through the same operations (the symbol itself, or what of
 * which symbols the row is made of). `bytes` of each row count, coefficients included.
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
size_t eliminate(State& state, const RowSystem& system, size_t fresh, size_t count);

/** Byte i is that of the stream of xoshiro128** 1.1, seeded by SplitMix32(seed), as src/dataplane/engine/random.ts has it. */
void randomCoefficients(uint32_t seed, uint8_t* out, size_t count);
/** Fills `matrix` with m rows of k of them, one of each seed (read once, from JavaScript's memory); returns where they are. */
const uint8_t* randomMatrix(std::vector<uint8_t>& matrix, const int32_t* seeds, size_t k, size_t m);

/** What eliminations keep between calls, so that none allocates: work of one call, and checked copies of what JavaScript's arrays said. */
struct EliminationScratch {
  std::vector<uint8_t> rows;
  std::vector<uint8_t> factors;
  std::vector<size_t> touched;
  std::vector<int32_t> pivots;
  std::vector<int32_t> unknowns;
  /** Of every combination, how many sources it is one of; of every source that one covers, its place, negative: not known. */
  std::vector<size_t> covered;
  std::vector<int32_t> places;
  /** Pivot and row, in one number. */
  std::vector<int32_t> clean;
  std::vector<int32_t> sumPlaces;
  std::vector<int32_t> sumLengths;
};

napi_value gfRandomMultiply(napi_env env, napi_callback_info info);
napi_value gfSolve(napi_env env, napi_callback_info info);

}  // namespace penstock
