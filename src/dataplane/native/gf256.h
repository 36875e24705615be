/** Matrix products over GF(2^8) with polynomial 0x11D: what every kernel computes, and the tables they share. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

namespace penstock {

/**
 * targets[j] = sum over i of matrix[j * stride + i] * sources[i], i < k, for j < m, over `bytes` bytes. Source i is read up to
 * `lengths[i]` (at most `bytes`) and counts as zero from there on; nothing else is read or written. Targets overlap neither
 * sources nor each other.
 */
struct Product {
  const uint8_t* matrix;
  size_t stride;
  size_t k;
  size_t m;
  const uint8_t* const* sources;
  const int32_t* lengths;
  /** Whether some length is below `bytes`. */
  bool padded;
  uint8_t* const* targets;
  size_t bytes;
  /** GfTables::affine of every coefficient, source by source: [i * m + j]; nullptr: none are at hand. */
  const uint64_t* coefficients;
  /** Bytes in front of the first column, below 64, after which it stands in a vector of a kernel with masks. */
  size_t lead = 0;
};

/**
 * Adds factors[j] times (`row` + `other`) to each of `count` rows, `stride` bytes apart; `row` may be one of them, `other` overlaps none. `bytes` is a multiple
 * of 64, at most kMostRowBytes.
 */
using AddMultiples = void (*)(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors,
                              size_t bytes);
constexpr size_t kMostRowBytes = 512;

/** A row that has 1 in `column`, below kMostRowBytes, and else 0; one of zeros. */
const uint8_t* unitRow(size_t column);
const uint8_t* zeroRow();

/**
 * Equations for the `count` unknown sources of columns `unknowns`, in ascending order: rows `stride` apart of the coefficients of combinations of k sources, of
 * which `bytes` are there, the next multiple of 64.
 */
struct Equations {
  const uint8_t* rows;
  size_t stride, k, bytes;
  const uint8_t* unknowns;
  size_t count;
};

/** What SolveFew has written: nothing, where it has found no inverse, which does not say that there is none; rows; or bit matrices, as Product has them. */
enum class Solved { kNot, kRows, kCoefficients };

/**
 * Solves 1 to kFewEquations equations: multiplies them by the inverse of what they have in the columns of the unknowns, and puts that inverse there. Of the
 * products writes either rows, `bytes` apart, or, of kFewTargets, where its kernel then multiplies sooner, bit matrices.
 */
using SolveFew = Solved (*)(const Equations& equations, uint8_t* rows, uint64_t* coefficients);
constexpr size_t kFewEquations = 16;
/** A product of two targets has the largest tiles, and is so quick that it is seen when coefficients are looked up for each of them. */
constexpr size_t kFewTargets = 2;

struct Kernel {
  const char* name;
  /** It may fill in what the product has not at hand. */
  void (*multiply)(Product&);
  AddMultiples addMultiples;
  /** nullptr: it has none that is quicker than `addMultiples` for each. */
  SolveFew solveFew;
  bool (*supported)();
  /** Whether coefficients that are at hand save it work. */
  bool coefficients;
  /** Whether fewer columns than a vector has cost it a vector, not each its own look-up. */
  bool masks;
};

struct GfTables {
  uint8_t product[256][256];
  /** Products with the 16 low nibbles, then with the 16 high nibbles: the operands of PSHUFB and TBL. */
  alignas(64) uint8_t nibbles[256][32];
  /** Multiplication as an 8x8 bit matrix: the operand of GF2P8AFFINEQB (Intel SDM: row i in byte 7 - i). */
  uint64_t affine[256];
  /** To the elements of the field of AES, of polynomial 0x11B, that add and multiply alike, and back: operands of GF2P8AFFINEQB. */
  uint64_t toAes, fromAes;
  /** What x^n is there, in byte 7 - n. */
  uint64_t powersInAes;
  /** 1 / a; 0 for 0. */
  uint8_t inverse[256];
};

extern const GfTables& gfTables;

/** A product by the smaller tables, which a cache has room for beside packets. */
inline uint8_t gfTimes(uint8_t a, uint8_t b) { return gfTables.nibbles[a][b & 15] ^ gfTables.nibbles[a][16 + (b >> 4)]; }

void multiplyScalar(Product& product);
/** Columns [from, from + count) only, without vectors. */
void multiplyScalarColumns(const Product& product, size_t from, size_t count);

void addMultiplesScalar(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors, size_t bytes);

/** Kernels of this architecture, fastest first, whether or not this CPU runs them. */
extern const Kernel* const archKernels;
extern const size_t archKernelCount;

class Arguments;
struct Memory;
struct State;

/** Field elements, so neither dimension is larger in any code; also bounds what a call may take. */
constexpr int64_t kMaxRows = 4096;

/** Makes room for k sources and m targets in `state`. */
void reserveProduct(State& state, size_t k, size_t m);
/** The product of the symbols in `state.sources`, of `state.lengths`, into `state.targets`; rows of the matrix are `stride` apart. */
Product productOf(State& state, const uint8_t* matrix, size_t stride, size_t k, size_t m, size_t bytes, bool padded);
/** Fills in a product what its matrix has as bit matrices, where the kernel in use wants them, and runs it. A matrix that is used once is better run by `gfProduct`. */
void runProduct(State& state, Product&& product);
/** The AddMultiples of the kernel in use, and its SolveFew. */
AddMultiples addMultiplesInUse();
SolveFew solveFewInUse();

/**
 * Checks `places` (k sources, then m targets) and `lengths` (of the sources, or nullptr: all have `bytes`) against the slab and puts them
 * into `state.sources`, `lengths` and `targets`; throws and returns false when one leads outside.
 */
bool gfPlaces(Arguments& arguments, const Memory& memory, const int32_t* places, const int32_t* lengths, size_t k, size_t m,
              int64_t bytes, bool* padded);

/** Computes a product with the kernel in use, in vectors that lie as the cache lines of its sources do, and so does `lead`. */
void gfProduct(Product&& product);

napi_value gfKernels(napi_env env, napi_callback_info info);
napi_value gfKernel(napi_env env, napi_callback_info info);
napi_value gfUse(napi_env env, napi_callback_info info);
napi_value gfMatrixMultiply(napi_env env, napi_callback_info info);
napi_value gfMultiplyRows(napi_env env, napi_callback_info info);
napi_value gfMultiplyPackets(napi_env env, napi_callback_info info);
napi_value gfRandomPackets(napi_env env, napi_callback_info info);

}  // namespace penstock
