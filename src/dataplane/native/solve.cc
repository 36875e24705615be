/** Random linear combinations of symbols in packet memory, made and undone: the calls from JavaScript. */
#include <string.h>

#include <algorithm>

#include "elimination.h"
#include "gf256.h"
#include "memory.h"

namespace penstock {

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
  const uint32_t seed = arguments.word(1, "seed");
  if (arguments.failed()) return nullptr;
  State& state = arguments.state();
  CombinationRows rows(state.elimination);
  for (size_t j = 0; j < m; j++) rows.add(seed + static_cast<uint32_t>(j), k);
  // What else is given, and looking it up, does not wait for what is drawn.
  rows.draw();
  Span<int32_t> places = arguments.int32s(2, "places", k + m);
  const int64_t bytes = arguments.integer(5, "bytes", 0, static_cast<int64_t>(memory->bytes()));
  Span<int32_t> lengths;
  if (arguments.given() > 6 && !arguments.isNull(6)) lengths = arguments.int32s(6, "lengths", k);
  if (arguments.failed()) return nullptr;
  bool padded = false;
  if (!gfPlaces(arguments, *memory, places.data, lengths.data, k, m, bytes, &padded)) return nullptr;
  gfProduct(productOf(state, rows.take(m), rows.stride(), k, m, static_cast<size_t>(bytes), padded));
  return nullptr;
}

/** The table that src/dataplane/codes/elimination.ts keeps, in JavaScript's memory: its head, checked, and its lists. */
struct Table {
  enum { kMostColumns, kMostRows, kColumns, kTaken, kRows, kDone, kRoom, kBytes, kHead };
  /** Sources, combinations that came, rows, and combinations in them; sources that may be told, and their bytes. */
  size_t columns, taken, count, done, room, bytes;
  int32_t *head, *places, *lengths, *found, *targets, *combined, *combinedLengths, *seeds, *covered, *pivots;
  uint8_t* rows;
  size_t stride;
};

static bool openTable(Arguments& arguments, const Memory& memory, Span<int32_t> words, Table* table) {
  size_t head[Table::kHead];
  const int64_t most[Table::kHead] = {kMaxColumns, kMaxColumns, kMaxColumns, kMaxColumns, kMaxColumns, kMaxColumns, kMaxColumns,
                                      static_cast<int64_t>(memory.bytes())};
  for (size_t n = 0; n < Table::kHead; n++) {
    const int32_t value = loadOnce(words.data + n);
    if (value < 0 || value > most[n]) {
      throwRange(arguments.env(), "%s: table[%zu] = %d is not from 0 to %lld", arguments.function(), n, value, static_cast<long long>(most[n]));
      return false;
    }
    head[n] = static_cast<size_t>(value);
  }
  const size_t columns = head[Table::kMostColumns], rows = head[Table::kMostRows];
  table->stride = (columns + rows + 63) & ~static_cast<size_t>(63);
  const size_t size = Table::kHead + 4 * columns + 5 * rows + rows * table->stride / 4;
  if (words.length < size) {
    throwRange(arguments.env(), "%s: table has %zu elements, at least %zu are needed", arguments.function(), words.length, size);
    return false;
  }
  table->columns = head[Table::kColumns];
  table->taken = head[Table::kTaken];
  table->count = head[Table::kRows];
  table->done = head[Table::kDone];
  table->room = head[Table::kRoom];
  table->bytes = head[Table::kBytes];
  if (table->columns > columns || table->taken > rows || table->room > columns) {
    throwRange(arguments.env(), "%s: %zu sources, %zu combinations and room for %zu sources are more than a table of %zu × %zu has",
               arguments.function(), table->columns, table->taken, table->room, columns, rows);
    return false;
  }
  if (table->done < table->count || table->done > table->taken) {
    throwRange(arguments.env(), "%s: a table of %zu rows from %zu of %zu combinations cannot be", arguments.function(), table->count,
               table->done, table->taken);
    return false;
  }
  table->head = words.data;
  table->places = words.data + Table::kHead;
  table->lengths = table->places + columns;
  table->found = table->lengths + columns;
  table->targets = table->found + columns;
  table->combined = table->targets + columns;
  table->combinedLengths = table->combined + rows;
  table->seeds = table->combinedLengths + rows;
  table->covered = table->seeds + rows;
  table->pivots = table->covered + rows;
  table->rows = reinterpret_cast<uint8_t*>(table->pivots + rows);
  return true;
}

/** Copies what the table says of rows and combinations, checked, into the scratch memory; throws and returns false when it is damaged. */
static bool load(Arguments& arguments, const Table& table) {
  EliminationScratch& scratch = arguments.state().elimination;
  size_t most = 0;
  scratch.covered.resize(table.taken);
  for (size_t n = 0; n < table.taken; n++) {
    const int32_t covered = loadOnce(table.covered + n);
    if (covered < 0 || static_cast<size_t>(covered) > table.columns) {
      throwRange(arguments.env(), "%s: combination %zu is one of %d of %zu sources", arguments.function(), n, covered, table.columns);
      return false;
    }
    scratch.covered[n] = static_cast<size_t>(covered);
    most = std::max(most, scratch.covered[n]);
  }
  scratch.places.resize(most);
  scratch.unknowns.resize(most);
  size_t unknowns = 0;
  for (size_t i = 0; i < most; i++) {
    const int32_t place = loadOnce(table.places + i);
    scratch.places[i] = place;
    scratch.unknowns[unknowns] = static_cast<int32_t>(i);
    unknowns += place < 0;
  }
  scratch.unknowns.resize(unknowns);
  scratch.pivots.assign(table.count + table.taken - table.done, -1);
  for (size_t row = 0; row < table.count; row++) {
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

/** Makes rows of the combinations that are in none yet. */
static void addRows(EliminationScratch& scratch, const Table& table) {
  const size_t fresh = table.taken - table.done;
  if (fresh == 0) return;
  for (size_t row = 0; row < table.count; row++) memset(table.rows + row * table.stride + table.columns + table.done, 0, fresh);
  if (scratch.seeds.size() < fresh + kStreams) scratch.seeds.resize(fresh + kStreams);
  for (size_t n = 0; n < fresh; n++) scratch.seeds[n] = static_cast<uint32_t>(loadOnce(table.seeds + table.done + n));
  uint8_t* rows = table.rows + table.count * table.stride;
  randomRows(scratch.seeds.data(), fresh, rows, table.stride, table.columns);
  for (size_t n = 0; n < fresh; n++) {
    uint8_t* row = rows + n * table.stride;
    const size_t covered = scratch.covered[table.done + n];
    memset(row + covered, 0, table.columns + table.taken - covered);
    row[table.columns + table.done + n] = 1;
  }
}

/** Rows in which one unknown is left that was not told, in the order of those. */
static void findClean(EliminationScratch& scratch, const RowSystem& system, size_t count) {
  scratch.clean.clear();
  for (size_t row = 0; row < count; row++) {
    const uint8_t* own = system.rows + row * system.stride;
    const int32_t pivot = system.pivots[row];
    if (scratch.places[static_cast<size_t>(pivot)] != kUnknown) continue;
    // With as many pivots as unknowns nothing but pivots is left.
    size_t weight = count == system.unknownCount;
    for (size_t i = 0; i < system.unknownCount && weight < 2 && count < system.unknownCount; i++) weight += own[system.unknowns[i]] != 0;
    if (weight == 1) scratch.clean.push_back(pivot << kRowBits | static_cast<int32_t>(row));
  }
  std::sort(scratch.clean.begin(), scratch.clean.end());
}

/** Puts a symbol at `place` of which `length` bytes count into `state.sources[i]`; throws and returns false when it leads outside. */
static bool takeSource(Arguments& arguments, const Memory& memory, size_t i, int64_t place, int64_t length, const Table& table, bool* padded) {
  const auto bytes = static_cast<int64_t>(table.bytes);
  if (length < bytes) *padded = true;
  const int64_t used = std::min(length, bytes);
  if (place < 0 || used < 0 || place + used > static_cast<int64_t>(memory.bytes())) {
    throwRange(arguments.env(), "%s: %lld bytes from place %lld are not in the slab", arguments.function(), static_cast<long long>(used),
               static_cast<long long>(place));
    return false;
  }
  State& state = arguments.state();
  state.sources[i] = memory.data + place;
  state.lengths[i] = static_cast<int32_t>(used);
  return true;
}

/** Writes the symbols of the clean rows to the table's targets: sums of known sources and of combinations. */
static bool compute(Arguments& arguments, const Memory& memory, const Table& table) {
  State& state = arguments.state();
  EliminationScratch& scratch = state.elimination;
  const size_t m = scratch.clean.size(), most = scratch.places.size();
  reserveProduct(state, most + table.taken, m);
  scratch.stretches.clear();
  bool padded = false;
  size_t k = 0;
  for (size_t i = 0; i < most; i++) {
    if (scratch.places[i] < 0) continue;
    if (!takeSource(arguments, memory, k++, scratch.places[i], loadOnce(table.lengths + i), table, &padded)) return false;
    if (i == 0 || scratch.places[i - 1] < 0) scratch.stretches.emplace_back(i, 0);
    scratch.stretches.back().second++;
  }
  scratch.stretches.emplace_back(table.columns, table.taken);
  for (size_t n = 0; n < table.taken; n++) {
    if (!takeSource(arguments, memory, k++, loadOnce(table.combined + n), loadOnce(table.combinedLengths + n), table, &padded)) return false;
  }
  if (scratch.matrix.size() < m * k) scratch.matrix.resize(m * k);
  uint8_t* out = scratch.matrix.data();
  for (size_t j = 0; j < m; j++) {
    const int64_t at = loadOnce(table.targets + j);
    if (at < 0 || at + static_cast<int64_t>(table.bytes) > static_cast<int64_t>(memory.bytes())) {
      throwRange(arguments.env(), "%s: %zu bytes from target %lld are not in the slab", arguments.function(), table.bytes,
                 static_cast<long long>(at));
      return false;
    }
    state.targets[j] = memory.data + at;
    const uint8_t* row = table.rows + rowOf(scratch.clean[j]) * table.stride;
    for (const auto& [from, count] : scratch.stretches) out = std::copy_n(row + from, count, out);
  }
  gfProduct(productOf(state, scratch.matrix.data(), k, k, m, table.bytes, padded));
  return true;
}

napi_value gfSolve(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfSolve", 2);
  Memory* memory = memoryArgument(arguments, 0);
  Span<int32_t> words = arguments.int32s(1, "table", Table::kHead);
  if (arguments.failed()) return nullptr;
  Table table;
  if (!openTable(arguments, *memory, words, &table) || !load(arguments, table)) return nullptr;
  EliminationScratch& scratch = arguments.state().elimination;
  addRows(scratch, table);
  const size_t count = table.count + table.taken - table.done;
  const size_t bytes = (table.columns + table.taken + 63) & ~static_cast<size_t>(63);
  const RowSystem system = {table.rows, table.stride, bytes, scratch.pivots.data(), scratch.unknowns.data(), scratch.unknowns.size()};
  const size_t kept = eliminate(system, table.count, count);
  table.head[Table::kRows] = static_cast<int32_t>(kept);
  table.head[Table::kDone] = static_cast<int32_t>(table.taken);
  for (size_t row = 0; row < kept; row++) table.pivots[row] = scratch.pivots[row];

  findClean(scratch, system, kept);
  const size_t clean = scratch.clean.size();
  for (size_t n = 0; n < clean && n < table.room; n++) table.found[n] = columnOf(scratch.clean[n]);
  if (clean > 0 && clean <= table.room) {
    if (!compute(arguments, *memory, table)) return nullptr;
    for (size_t n = 0; n < clean; n++) table.places[columnOf(scratch.clean[n])] = kTold;
  }
  return toInteger(env, static_cast<int32_t>(clean));
}

}  // namespace penstock
