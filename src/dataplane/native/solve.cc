/** Random linear combinations of symbols in packet memory, made and undone: the calls from JavaScript. */
#include <string.h>

#include <algorithm>

#include "elimination.h"
#include "gf256.h"
#include "memory.h"

namespace penstock {

static constexpr size_t kHead = 2;
/** Places of sources that are not known, and of those of them that were computed. */
static constexpr int32_t kUnknown = -1, kTold = -2;
/** Column and row of a clean row in one number, so that they sort by column. */
static constexpr int kRowBits = 8;
static int32_t columnOf(int32_t clean) { return clean >> kRowBits; }
static size_t rowOf(int32_t clean) { return static_cast<size_t>(clean & ((1 << kRowBits) - 1)); }

napi_value gfRandomMultiply(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfRandomMultiply", 6);
  Memory* memory = memoryArgument(arguments, 0);
  const auto k = static_cast<size_t>(arguments.integer(3, "k", 0, kMaxColumns));
  const auto m = static_cast<size_t>(arguments.integer(4, "m", 0, kMaxColumns));
  Span<int32_t> seeds = arguments.int32s(1, "seeds", m);
  Span<int32_t> places = arguments.int32s(2, "places", k + m);
  if (arguments.failed()) return nullptr;
  const int64_t bytes = arguments.integer(5, "bytes", 0, static_cast<int64_t>(memory->bytes()));
  Span<int32_t> lengths;
  if (arguments.given() > 6 && !arguments.isNull(6)) lengths = arguments.int32s(6, "lengths", k);
  if (arguments.failed()) return nullptr;
  State& state = arguments.state();
  bool padded = false;
  if (!gfPlaces(arguments, *memory, places.data, lengths.data, k, m, bytes, &padded)) return nullptr;
  runProduct(state, randomMatrix(state.elimination.factors, seeds.data, k, m), k, m, static_cast<size_t>(bytes), padded);
  return nullptr;
}

/** The lists of the table that src/dataplane/codes/elimination.ts keeps, all of them in JavaScript's memory. */
struct Table {
  int32_t *head, *places, *lengths, *combined, *combinedLengths, *seeds, *covered, *pivots;
  size_t columns, capacity;

  Table(int32_t* data, size_t columns, size_t capacity)
      : head(data),
        places(data + kHead),
        lengths(places + columns),
        combined(lengths + columns),
        combinedLengths(combined + capacity),
        seeds(combinedLengths + capacity),
        covered(seeds + capacity),
        pivots(covered + capacity),
        columns(columns),
        capacity(capacity) {}
  static size_t size(size_t columns, size_t capacity) { return kHead + 2 * columns + 5 * capacity; }
};

/** Copies what the table says of rows and combinations, checked, into the scratch memory; throws and returns false when it is damaged. */
static bool load(Arguments& arguments, const Table& table, size_t taken, size_t* rows, size_t* before) {
  EliminationScratch& scratch = arguments.state().elimination;
  const int32_t count = loadOnce(table.head), done = loadOnce(table.head + 1);
  if (count < 0 || done < count || static_cast<size_t>(done) > taken) {
    throwRange(arguments.env(), "%s: a table of %d rows from %d of %zu combinations cannot be", arguments.function(), count, done, taken);
    return false;
  }
  *rows = static_cast<size_t>(count);
  *before = static_cast<size_t>(done);
  size_t most = 0;
  scratch.covered.resize(taken);
  for (size_t n = 0; n < taken; n++) {
    const int32_t covered = loadOnce(table.covered + n);
    if (covered < 0 || static_cast<size_t>(covered) > table.columns) {
      throwRange(arguments.env(), "%s: combination %zu is one of %d of %zu sources", arguments.function(), n, covered, table.columns);
      return false;
    }
    scratch.covered[n] = static_cast<size_t>(covered);
    most = std::max(most, scratch.covered[n]);
  }
  scratch.places.resize(most);
  scratch.unknowns.clear();
  for (size_t i = 0; i < most; i++) {
    scratch.places[i] = loadOnce(table.places + i);
    if (scratch.places[i] < 0) scratch.unknowns.push_back(static_cast<int32_t>(i));
  }
  scratch.pivots.assign(table.capacity, -1);
  for (size_t row = 0; row < *rows; row++) {
    const int32_t pivot = loadOnce(table.pivots + row);
    if (pivot < 0 || static_cast<size_t>(pivot) >= most) {
      throwRange(arguments.env(), "%s: row %zu has its pivot in column %d of %zu", arguments.function(), row, pivot, most);
      return false;
    }
    // A row whose pivot has become known needs another one.
    if (scratch.places[static_cast<size_t>(pivot)] < 0) scratch.pivots[row] = pivot;
  }
  return true;
}

/** Rows in which one unknown is left that was not told, in the order of those. */
static void findClean(EliminationScratch& scratch, const RowSystem& system, size_t count) {
  scratch.clean.clear();
  for (size_t row = 0; row < count; row++) {
    const uint8_t* own = system.rows + row * system.stride;
    const int32_t pivot = system.pivots[row];
    if (scratch.places[static_cast<size_t>(pivot)] != kUnknown) continue;
    size_t weight = 0;
    for (size_t i = 0; i < system.unknownCount && weight < 2; i++) weight += own[system.unknowns[i]] != 0;
    if (weight == 1) scratch.clean.push_back(pivot << kRowBits | static_cast<int32_t>(row));
  }
  std::sort(scratch.clean.begin(), scratch.clean.end());
}

/** Writes the symbols of the clean rows to `targets`: sums of known sources and of combinations. */
static bool compute(Arguments& arguments, const Memory& memory, const Table& table, const RowSystem& system, size_t taken,
                    const int32_t* targets, int64_t bytes) {
  State& state = arguments.state();
  EliminationScratch& scratch = state.elimination;
  std::vector<int32_t>& places = scratch.sumPlaces;
  std::vector<int32_t>& lengths = scratch.sumLengths;
  std::vector<size_t>& columns = scratch.touched;
  places.clear();
  lengths.clear();
  columns.clear();
  for (size_t i = 0; i < scratch.places.size(); i++) {
    if (scratch.places[i] < 0) continue;
    columns.push_back(i);
    places.push_back(scratch.places[i]);
    lengths.push_back(loadOnce(table.lengths + i));
  }
  for (size_t n = 0; n < taken; n++) {
    columns.push_back(table.columns + n);
    places.push_back(loadOnce(table.combined + n));
    lengths.push_back(loadOnce(table.combinedLengths + n));
  }
  const size_t k = columns.size(), m = scratch.clean.size();
  for (size_t j = 0; j < m; j++) places.push_back(loadOnce(targets + j));
  bool padded = false;
  if (!gfPlaces(arguments, memory, places.data(), lengths.data(), k, m, bytes, &padded)) return false;
  scratch.factors.resize(k * m);
  for (size_t j = 0; j < m; j++) {
    const uint8_t* row = system.rows + rowOf(scratch.clean[j]) * system.stride;
    for (size_t i = 0; i < k; i++) scratch.factors[j * k + i] = row[columns[i]];
  }
  runProduct(state, scratch.factors.data(), k, m, static_cast<size_t>(bytes), padded);
  return true;
}

napi_value gfSolve(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfSolve", 10);
  Memory* memory = memoryArgument(arguments, 0);
  const auto columns = static_cast<size_t>(arguments.integer(3, "columns", 1, kMaxColumns));
  const auto capacity = static_cast<size_t>(arguments.integer(4, "capacity", 0, kMaxColumns));
  const auto taken = static_cast<size_t>(arguments.integer(5, "taken", 0, static_cast<int64_t>(capacity)));
  const size_t stride = columns + capacity;
  Span<uint8_t> rows = arguments.bytes(1, "rows", capacity * stride);
  Span<int32_t> words = arguments.int32s(2, "table", Table::size(columns, capacity));
  const auto room = static_cast<size_t>(arguments.integer(7, "room", 0, kMaxColumns));
  Span<int32_t> targets = arguments.int32s(6, "targets", room);
  Span<int32_t> found = arguments.int32s(9, "found", room);
  if (arguments.failed()) return nullptr;
  const int64_t bytes = arguments.integer(8, "bytes", 0, static_cast<int64_t>(memory->bytes()));
  if (arguments.failed()) return nullptr;

  EliminationScratch& scratch = arguments.state().elimination;
  Table table(words.data, columns, capacity);
  size_t fresh = 0, before = 0;
  if (!load(arguments, table, taken, &fresh, &before)) return nullptr;
  const size_t count = fresh + taken - before;
  for (size_t row = 0; row < fresh; row++) memset(rows.data + row * stride + columns + before, 0, taken - before);
  for (size_t n = before; n < taken; n++) {
    uint8_t* row = rows.data + (fresh + n - before) * stride;
    randomCoefficients(static_cast<uint32_t>(loadOnce(table.seeds + n)), row, scratch.covered[n]);
    memset(row + scratch.covered[n], 0, columns + taken - scratch.covered[n]);
    row[columns + n] = 1;
  }
  const RowSystem system = {rows.data, stride, columns + taken, scratch.pivots.data(), scratch.unknowns.data(), scratch.unknowns.size()};
  const size_t kept = eliminate(arguments.state(), system, fresh, count);
  table.head[0] = static_cast<int32_t>(kept);
  table.head[1] = static_cast<int32_t>(taken);
  for (size_t row = 0; row < kept; row++) table.pivots[row] = scratch.pivots[row];

  findClean(scratch, system, kept);
  const size_t clean = scratch.clean.size();
  for (size_t n = 0; n < clean && n < room; n++) found.data[n] = columnOf(scratch.clean[n]);
  if (clean > 0 && clean <= room) {
    if (!compute(arguments, *memory, table, system, taken, targets.data, bytes)) return nullptr;
    for (size_t n = 0; n < clean; n++) table.places[columnOf(scratch.clean[n])] = kTold;
  }
  return toInteger(env, static_cast<int32_t>(clean));
}

}  // namespace penstock
