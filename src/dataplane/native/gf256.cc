/** GF(2^8) products: tables, the scalar kernel, the choice of kernel, and the calls from JavaScript. */
#include "gf256.h"

#include <string.h>

#include <algorithm>
#include <atomic>

#include "memory.h"

namespace penstock {

/** The polynomials of the field of all codes, and of that of AES. */
static constexpr int kPolynomial = 0x11d, kPolynomialOfAes = 0x11b;

/** A product, bit by bit. */
static uint8_t times(int a, int b, int polynomial) {
  int product = 0;
  for (int bit = 7; bit >= 0; bit--) {
    product <<= 1;
    if (product & 0x100) product ^= polynomial;
    if (b >> bit & 1) product ^= a;
  }
  return static_cast<uint8_t>(product);
}

/** The operand of GF2P8AFFINEQB that maps each 1 << n to images[n], and sums to sums. */
static uint64_t affineOfImages(const uint8_t* images) {
  uint64_t matrix = 0;
  for (int row = 0; row < 8; row++) {
    for (int column = 0; column < 8; column++) matrix |= static_cast<uint64_t>(images[column] >> row & 1) << (8 * (7 - row) + column);
  }
  return matrix;
}

/**
 * Both fields have 256 elements, so one is the other under other names: the powers of x are those of a root, in the field of AES, of the polynomial 0x11D
 * (Lidl and Niederreiter, Finite Fields, theorem 2.5).
 */
static void mapToAes(GfTables* tables) {
  for (int root = 2; root < 256; root++) {
    uint8_t powers[9] = {1};
    for (int n = 1; n < 9; n++) powers[n] = times(powers[n - 1], root, kPolynomialOfAes);
    // x^8 + x^4 + x^3 + x^2 + 1, which is kPolynomial.
    if ((powers[8] ^ powers[4] ^ powers[3] ^ powers[2] ^ powers[0]) != 0) continue;
    tables->toAes = affineOfImages(powers);
    for (int n = 0; n < 8; n++) tables->powersInAes |= static_cast<uint64_t>(powers[n]) << 8 * (7 - n);
    uint8_t back[8] = {};
    for (int element = 1; element < 256; element++) {
      uint8_t image = 0;
      for (int n = 0; n < 8; n++) image ^= static_cast<uint8_t>(element >> n & 1 ? powers[n] : 0);
      for (int n = 0; n < 8; n++) back[n] = image == 1 << n ? static_cast<uint8_t>(element) : back[n];
    }
    tables->fromAes = affineOfImages(back);
    return;
  }
}

static GfTables makeTables() {
  GfTables tables = {};
  for (int a = 0; a < 256; a++) {
    for (int b = 0; b < 256; b++) {
      tables.product[a][b] = times(a, b, kPolynomial);
      if (tables.product[a][b] == 1) tables.inverse[a] = static_cast<uint8_t>(b);
    }
    for (int nibble = 0; nibble < 16; nibble++) {
      tables.nibbles[a][nibble] = tables.product[a][nibble];
      tables.nibbles[a][16 + nibble] = tables.product[a][nibble << 4];
    }
    uint8_t images[8];
    for (int n = 0; n < 8; n++) images[n] = tables.product[a][1 << n];
    tables.affine[a] = affineOfImages(images);
  }
  mapToAes(&tables);
  return tables;
}

static const GfTables made = makeTables();
const GfTables& gfTables = made;

void multiplyScalarColumns(const Product& product, size_t from, size_t count) {
  for (size_t j = 0; j < product.m; j++) {
    uint8_t* target = product.targets[j] + from;
    memset(target, 0, count);
    for (size_t i = 0; i < product.k; i++) {
      const uint8_t* row = gfTables.product[product.matrix[j * product.stride + i]];
      const uint8_t* source = product.sources[i] + from;
      const auto length = static_cast<size_t>(product.lengths[i]);
      const size_t end = length <= from ? 0 : length - from < count ? length - from : count;
      for (size_t x = 0; x < end; x++) target[x] = static_cast<uint8_t>(target[x] ^ row[source[x]]);
    }
  }
}

void multiplyScalar(Product& product) { multiplyScalarColumns(product, 0, product.bytes); }

/** A single 1 in the middle: a row is where it begins. */
struct UnitRows {
  uint8_t bytes[2 * kMostRowBytes + 1] = {};
  UnitRows() { bytes[kMostRowBytes] = 1; }
};
static const UnitRows units;

const uint8_t* unitRow(size_t column) { return units.bytes + kMostRowBytes - column; }
const uint8_t* zeroRow() { return units.bytes + kMostRowBytes + 1; }

void addMultiplesScalar(uint8_t* rows, size_t stride, size_t count, const uint8_t* row, const uint8_t* other, const uint8_t* factors, size_t bytes) {
  uint8_t piece[64];
  for (size_t at = 0; at < bytes; at += sizeof piece) {
    for (size_t x = 0; x < sizeof piece; x++) piece[x] = row[at + x] ^ other[at + x];
    for (size_t j = 0; j < count; j++) {
      const uint8_t* times = gfTables.product[factors[j]];
      uint8_t* to = rows + j * stride + at;
      for (size_t x = 0; x < sizeof piece; x++) to[x] = static_cast<uint8_t>(to[x] ^ times[piece[x]]);
    }
  }
}

static const Kernel scalar = {"scalar", multiplyScalar, addMultiplesScalar, nullptr, [] { return true; }, false, false};

static const Kernel* kernelAt(size_t index) { return index < archKernelCount ? &archKernels[index] : &scalar; }

static const Kernel* fastest() {
  size_t index = 0;
  while (!kernelAt(index)->supported()) index++;
  return kernelAt(index);
}

static std::atomic<const Kernel*>& current() {
  static std::atomic<const Kernel*> kernel{fastest()};
  return kernel;
}

napi_value gfKernels(napi_env env, napi_callback_info) {
  napi_value list = nullptr;
  napi_create_array(env, &list);
  uint32_t length = 0;
  for (size_t i = 0; i <= archKernelCount; i++) {
    if (kernelAt(i)->supported()) napi_set_element(env, list, length++, toString(env, kernelAt(i)->name));
  }
  return list;
}

napi_value gfKernel(napi_env env, napi_callback_info) { return toString(env, current().load()->name); }

napi_value gfUse(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfUse", 1);
  if (arguments.failed()) return nullptr;
  char name[64] = "";
  size_t size = 0;
  if (napi_get_value_string_utf8(env, arguments.raw(0), name, sizeof name, &size) != napi_ok) {
    arguments.type("kernel", "a string");
    return nullptr;
  }
  for (size_t i = 0; i <= archKernelCount; i++) {
    if (strcmp(kernelAt(i)->name, name) == 0 && kernelAt(i)->supported()) {
      current().store(kernelAt(i));
      return nullptr;
    }
  }
  throwRange(env, "gfUse: this CPU has no kernel \"%s\"", name);
  return nullptr;
}

void reserveProduct(State& state, size_t k, size_t m) {
  if (state.sources.size() < k) state.sources.resize(k);
  if (state.lengths.size() < k) state.lengths.resize(k);
  if (state.targets.size() < m) state.targets.resize(m);
}

/** The matrix as bit matrices. An encoder comes with the same one every time, so the last one is kept. */
static const uint64_t* coefficientsOf(State& state, const uint8_t* matrix, size_t k, size_t m) {
  const size_t size = k * m;
  if (state.matrixK == k && state.matrix.size() == size && memcmp(state.matrix.data(), matrix, size) == 0) {
    return state.coefficients.data();
  }
  state.matrixK = k;
  state.matrix.assign(matrix, matrix + size);
  state.coefficients.resize(size);
  uint64_t* out = state.coefficients.data();
  for (size_t i = 0; i < k; i++) {
    for (size_t j = 0; j < m; j++) *out++ = gfTables.affine[state.matrix[j * k + i]];
  }
  return state.coefficients.data();
}

Product productOf(State& state, const uint8_t* matrix, size_t stride, size_t k, size_t m, size_t bytes, bool padded) {
  return {matrix, stride, k, m, state.sources.data(), state.lengths.data(), padded, state.targets.data(), bytes, nullptr};
}

void runProduct(State& state, Product&& product) {
  if (product.m == 0 || product.bytes == 0) return;
  const Kernel* kernel = current().load(std::memory_order_relaxed);
  if (kernel->coefficients && product.k > 0) product.coefficients = coefficientsOf(state, product.matrix, product.k, product.m);
  gfProduct(std::move(product));
}

AddMultiples addMultiplesInUse() { return current().load(std::memory_order_relaxed)->addMultiples; }
SolveFew solveFewInUse() { return current().load(std::memory_order_relaxed)->solveFew; }

bool gfPlaces(Arguments& arguments, const Memory& memory, const int32_t* places, const int32_t* lengths, size_t k, size_t m,
              int64_t bytes, bool* padded) {
  State& state = arguments.state();
  const auto slab = static_cast<int64_t>(memory.bytes());
  reserveProduct(state, k, m);
  *padded = false;
  for (size_t i = 0; i < k; i++) {
    int64_t length = bytes;
    if (lengths) {
      const int32_t given = loadOnce(lengths + i);
      if (given < 0) {
        throwRange(arguments.env(), "%s: lengths[%zu] = %d is negative", arguments.function(), i, given);
        return false;
      }
      if (given < bytes) {
        length = given;
        *padded = true;
      }
    }
    const int64_t at = loadOnce(places + i);
    if (at < 0 || at + length > slab) {
      throwRange(arguments.env(), "%s: source places[%zu] = %lld: %lld bytes from there are not in the slab", arguments.function(), i,
                 static_cast<long long>(at), static_cast<long long>(length));
      return false;
    }
    state.sources[i] = memory.data + at;
    state.lengths[i] = static_cast<int32_t>(length);
  }
  for (size_t j = 0; j < m; j++) {
    const int64_t at = loadOnce(places + k + j);
    if (at < 0 || at + bytes > slab) {
      throwRange(arguments.env(), "%s: target places[%zu] = %lld: %lld bytes from there are not in the slab", arguments.function(), j,
                 static_cast<long long>(at), static_cast<long long>(bytes));
      return false;
    }
    state.targets[j] = memory.data + at;
  }
  return true;
}

/** Symbols shorter than a few lines gain less than another vector costs. */
static constexpr size_t kFewLines = 4 * 64;

void gfProduct(Product&& product) {
  if (product.m == 0 || product.bytes == 0) return;
  const Kernel* kernel = current().load(std::memory_order_relaxed);
  // Packets of one stream lie alike, most of them, and nothing is won where they do not.
  if (kernel->masks && product.k > 0 && product.bytes >= kFewLines) product.lead = reinterpret_cast<uintptr_t>(product.sources[product.k / 2]) & 63;
  kernel->multiply(product);
}

napi_value gfMatrixMultiply(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfMatrixMultiply", 6);
  Memory* memory = memoryArgument(arguments, 0);
  const auto k = static_cast<size_t>(arguments.integer(3, "k", 0, kMaxRows));
  const auto m = static_cast<size_t>(arguments.integer(4, "m", 0, kMaxRows));
  Span<uint8_t> matrix = arguments.bytes(1, "matrix", k * m);
  Span<int32_t> places = arguments.int32s(2, "places", k + m);
  if (arguments.failed()) return nullptr;
  const int64_t bytes = arguments.integer(5, "bytes", 0, static_cast<int64_t>(memory->bytes()));
  Span<int32_t> lengths;
  if (arguments.given() > 6 && !arguments.isNull(6)) lengths = arguments.int32s(6, "lengths", k);
  if (arguments.failed()) return nullptr;
  bool padded = false;
  if (!gfPlaces(arguments, *memory, places.data, lengths.data, k, m, bytes, &padded)) return nullptr;
  State& state = arguments.state();
  runProduct(state, productOf(state, matrix.data, k, k, m, static_cast<size_t>(bytes), padded));
  return nullptr;
}

napi_value gfMultiplyRows(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfMultiplyRows", 7);
  const auto k = static_cast<size_t>(arguments.integer(3, "k", 0, kMaxRows));
  const auto m = static_cast<size_t>(arguments.integer(4, "m", 0, kMaxRows));
  const auto bytes = static_cast<size_t>(arguments.integer(5, "bytes", 0, 0x7fffffff));
  const auto stride = static_cast<size_t>(arguments.integer(6, "stride", static_cast<int64_t>(bytes), 0x7fffffff));
  Span<uint8_t> matrix = arguments.bytes(0, "matrix", k * m);
  Span<uint8_t> sources = arguments.bytes(1, "sources", k ? (k - 1) * stride + bytes : 0);
  Span<uint8_t> targets = arguments.bytes(2, "targets", m ? (m - 1) * stride + bytes : 0);
  if (arguments.failed()) return nullptr;
  State& state = arguments.state();
  reserveProduct(state, k, m);
  for (size_t i = 0; i < k; i++) {
    state.sources[i] = sources.data + i * stride;
    state.lengths[i] = static_cast<int32_t>(bytes);
  }
  for (size_t j = 0; j < m; j++) state.targets[j] = targets.data + j * stride;
  runProduct(state, productOf(state, matrix.data, k, k, m, bytes, false));
  return nullptr;
}

}  // namespace penstock
