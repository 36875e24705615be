/**
 * The equations of a sliding window, in reduced row echelon form: a row's pivot is its oldest source, and no other row has it. Known
 * sources are subtracted when a repair comes, so that rows are over missing ones only.
 */
#include <string.h>

#include <algorithm>
#include <utility>

#include "gf256.h"
#include "sliding_window.h"

namespace penstock {

/** What a repair costs is bounded with it: each row has a part in it. */
static constexpr size_t kMaxEquations = 1024;
/** Before what it protects a symbol has its length. */
static constexpr int32_t kLengthBytes = 2;

static int32_t plus(int32_t sequence, int32_t n) {
  return static_cast<int32_t>(static_cast<uint32_t>(sequence) + static_cast<uint32_t>(n));
}
static bool isBefore(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)) < 0;
}
/** Longer than any symbol. */
constexpr int32_t kNoSymbol = 0x7fffffff;

/** Bytes of the symbol that `bytes` bytes begin with, which has zeros behind; kNoSymbol when they are none. */
static int32_t symbolIn(const uint8_t* payload, int32_t bytes) {
  if (bytes < kLengthBytes) return kNoSymbol;
  const int32_t end = kLengthBytes + (payload[0] << 8 | payload[1]);
  if (end > bytes) return kNoSymbol;
  return std::all_of(payload + end, payload + bytes, [](uint8_t byte) { return byte == 0; }) ? end : kNoSymbol;
}

int32_t SlidingWindow::rowOf(int32_t sequence) const {
  const int32_t row = rowAt_[static_cast<size_t>(place(sequence))];
  return row >= 0 && rows_[static_cast<size_t>(row)].pivot == sequence ? row : -1;
}

int32_t SlidingWindow::columnOf(int32_t sequence) const {
  const int32_t column = columnAt_[static_cast<size_t>(place(sequence))];
  return column >= 0 && columns_[static_cast<size_t>(column)] == sequence ? column : -1;
}

bool SlidingWindow::addColumn(int32_t sequence) {
  const auto n = static_cast<size_t>(place(sequence));
  if (columns_.size() + rows_.size() >= static_cast<size_t>(kMaxWindow) || rowAt_[n] >= 0 || columnAt_[n] >= 0) return false;
  columnAt_[n] = static_cast<int16_t>(columns_.size());
  mostBytes_[n] = symbolBytes_;
  columns_.push_back(sequence);
  for (Row& row : rows_) row.coefficients.resize(columns_.size());
  return true;
}

/** The last column takes its place. */
void SlidingWindow::removeColumn(size_t column) {
  const size_t last = columns_.size() - 1;
  columnAt_[static_cast<size_t>(place(columns_[column]))] = -1;
  if (column != last) {
    columns_[column] = columns_[last];
    columnAt_[static_cast<size_t>(place(columns_[column]))] = static_cast<int16_t>(column);
  }
  columns_.pop_back();
  for (Row& row : rows_) {
    row.coefficients[column] = row.coefficients[last];
    row.coefficients.pop_back();
  }
}

/** The last row takes its place. */
SlidingWindow::Row SlidingWindow::takeRow(size_t row) {
  rowAt_[static_cast<size_t>(place(rows_[row].pivot))] = -1;
  Row taken = std::move(rows_[row]);
  if (row + 1 != rows_.size()) {
    rows_[row] = std::move(rows_.back());
    rowAt_[static_cast<size_t>(place(rows_[row].pivot))] = static_cast<int16_t>(row);
  }
  rows_.pop_back();
  return taken;
}

void SlidingWindow::removeRow(size_t row) { spare_.push_back(takeRow(row)); }

SlidingWindow::Row SlidingWindow::spareRow() {
  Row row;
  if (spare_.empty()) {
    row.payload.reset(new uint8_t[stride_]);
  } else {
    row = std::move(spare_.back());
    spare_.pop_back();
  }
  return row;
}

void SlidingWindow::addPayload(Row& row, const uint8_t* payload, int32_t bytes, uint8_t factor) {
  const int32_t longest = std::max(row.bytes, bytes);
  addTerm(row.payload.get(), row.bytes, 1);
  addTerm(payload, bytes, factor);
  sumTerms(scratch_.get(), longest);
  row.payload.swap(scratch_);
  row.bytes = longest;
}

void SlidingWindow::addScaled(Row& row, const Row& other, uint8_t factor) {
  addPayload(row, other.payload.get(), other.bytes, factor);
  const auto columns = static_cast<int32_t>(columns_.size());
  scratchCoefficients_.resize(columns_.size());
  addTerm(row.coefficients.data(), columns, 1);
  addTerm(other.coefficients.data(), columns, factor);
  sumTerms(scratchCoefficients_.data(), columns);
  row.coefficients.swap(scratchCoefficients_);
}

size_t SlidingWindow::oldestColumn(const std::vector<uint8_t>& coefficients) const {
  size_t oldest = columns_.size();
  for (size_t c = 0; c < columns_.size(); c++) {
    if (coefficients[c] != 0 && (oldest == columns_.size() || isBefore(columns_[c], columns_[oldest]))) oldest = c;
  }
  return oldest;
}

bool SlidingWindow::isSolved(const Row& row) const {
  return std::all_of(row.coefficients.begin(), row.coefficients.end(), [](uint8_t factor) { return factor == 0; });
}

int32_t SlidingWindow::take(int32_t first, int32_t count, uint16_t key, const uint8_t* repair, int32_t bytes) {
  found_.clear();
  absent_.clear();
  for (int32_t i = 0; i < count; i++) {
    const int32_t sequence = plus(first, i);
    const auto n = static_cast<size_t>(place(sequence));
    if (!has(sequence)) {
      // What would be recovered could not be kept.
      if (bytes_[n] > 0 && isBefore(sequence, held_[n])) return kUnusable;
      absent_.push_back(i);
    } else if (bytes_[n] > bytes) {
      return kContradicted;
    }
  }
  if (absent_.empty()) return kRedundant;
  if (rows_.size() == kMaxEquations) return kUnusable;

  const size_t before = columns_.size();
  for (const int32_t i : absent_) {
    const int32_t sequence = plus(first, i);
    if (rowOf(sequence) >= 0 || columnOf(sequence) >= 0 || addColumn(sequence)) continue;
    while (columns_.size() > before) removeColumn(columns_.size() - 1);
    return kUnusable;
  }
  if (drawn_.size() < static_cast<size_t>(count)) drawn_.resize(static_cast<size_t>(count));
  coefficients_.write(key, drawn_.data(), static_cast<size_t>(count));
  const size_t columns = columns_.size();
  reduced_.assign(columns, 0);
  for (const int32_t i : absent_) {
    const int32_t column = columnOf(plus(first, i));
    if (column >= 0) reduced_[static_cast<size_t>(column)] = drawn_[static_cast<size_t>(i)];
  }
  int32_t longest = bytes;
  for (const int32_t i : absent_) {
    const int32_t r = rowOf(plus(first, i));
    if (r < 0) continue;
    const Row& row = rows_[static_cast<size_t>(r)];
    const uint8_t* by = gfTables.product[drawn_[static_cast<size_t>(i)]];
    for (size_t c = 0; c < columns; c++) reduced_[c] = static_cast<uint8_t>(reduced_[c] ^ by[row.coefficients[c]]);
    longest = std::max(longest, row.bytes);
  }
  const size_t pivot = oldestColumn(reduced_);
  if (pivot == columns) return kRedundant;

  const uint8_t* scale = gfTables.product[gfTables.inverse[reduced_[pivot]]];
  addTerm(repair, bytes, scale[1]);
  for (int32_t i = 0; i < count; i++) {
    const int32_t sequence = plus(first, i);
    const uint8_t factor = scale[drawn_[static_cast<size_t>(i)]];
    if (has(sequence)) {
      const int32_t from = place(sequence);
      addTerm(at(from), bytes_[static_cast<size_t>(from)], factor);
      continue;
    }
    const int32_t r = rowOf(sequence);
    if (r < 0) continue;
    const Row& row = rows_[static_cast<size_t>(r)];
    addTerm(row.payload.get(), row.bytes, factor);
  }
  for (const int32_t i : absent_) {
    int32_t& most = mostBytes_[static_cast<size_t>(place(plus(first, i)))];
    most = std::min(most, bytes);
  }
  Row row = spareRow();
  row.bytes = longest;
  sumTerms(row.payload.get(), longest);
  row.coefficients.resize(columns);
  for (size_t c = 0; c < columns; c++) row.coefficients[c] = scale[reduced_[c]];
  insert(std::move(row), pivot);
  return collect();
}

void SlidingWindow::insert(Row row, size_t column) {
  row.pivot = columns_[column];
  for (Row& other : rows_) {
    const uint8_t factor = other.coefficients[column];
    if (factor != 0) addScaled(other, row, factor);
  }
  rows_.push_back(std::move(row));
  removeColumn(column);
  rowAt_[static_cast<size_t>(place(rows_.back().pivot))] = static_cast<int16_t>(rows_.size() - 1);
}

int32_t SlidingWindow::collect() {
  for (const Row& row : rows_) {
    if (isSolved(row) && symbolIn(row.payload.get(), row.bytes) > mostBytes_[static_cast<size_t>(place(row.pivot))]) return contradicted();
  }
  for (size_t r = rows_.size(); r-- > 0;) {
    const Row& row = rows_[r];
    if (!isSolved(row)) continue;
    const uint8_t* payload = row.payload.get();
    keep(row.pivot, payload, kLengthBytes + (payload[0] << 8 | payload[1]));
    found_.push_back(row.pivot);
    removeRow(r);
  }
  if (rows_.empty()) clear();
  std::sort(found_.begin(), found_.end(), isBefore);
  return static_cast<int32_t>(found_.size());
}

int32_t SlidingWindow::resolve(int32_t sequence, const uint8_t* symbol, int32_t bytes) {
  found_.clear();
  keep(sequence, symbol, bytes);
  const int32_t r = rowOf(sequence);
  const int32_t c = columnOf(sequence);
  if (r < 0 && c < 0) return 0;
  if (bytes > mostBytes_[static_cast<size_t>(place(sequence))]) return contradicted();
  if (r >= 0) {
    Row left = takeRow(static_cast<size_t>(r));
    addPayload(left, symbol, bytes, 1);
    const size_t pivot = oldestColumn(left.coefficients);
    if (pivot < columns_.size()) {
      const uint8_t* scale = gfTables.product[gfTables.inverse[left.coefficients[pivot]]];
      for (uint8_t& factor : left.coefficients) factor = scale[factor];
      addTerm(left.payload.get(), left.bytes, scale[1]);
      sumTerms(scratch_.get(), left.bytes);
      left.payload.swap(scratch_);
      insert(std::move(left), pivot);
    } else {
      spare_.push_back(std::move(left));
    }
  } else {
    for (Row& row : rows_) {
      const uint8_t factor = row.coefficients[static_cast<size_t>(c)];
      if (factor != 0) addPayload(row, symbol, bytes, factor);
    }
    removeColumn(static_cast<size_t>(c));
  }
  return collect();
}

void SlidingWindow::forget(int32_t sequence) {
  for (size_t r = rows_.size(); r-- > 0;) {
    if (isBefore(rows_[r].pivot, sequence)) removeRow(r);
  }
  for (size_t c = columns_.size(); c-- > 0;) {
    if (isBefore(columns_[c], sequence)) removeColumn(c);
  }
  if (rows_.empty()) clear();
}

void SlidingWindow::clear() {
  while (!rows_.empty()) removeRow(rows_.size() - 1);
  for (int32_t sequence : columns_) columnAt_[static_cast<size_t>(place(sequence))] = -1;
  columns_.clear();
}

int32_t SlidingWindow::contradicted() {
  clear();
  return kContradicted;
}

}  // namespace penstock
