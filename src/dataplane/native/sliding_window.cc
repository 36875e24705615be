/** The sliding window's symbols, and what an encoder makes of them. */
#include "sliding_window.h"

#include <string.h>

#include <algorithm>
#include <new>

#include "gf256.h"

namespace penstock {

/** Symbols a multiple of a page apart would share the same few lines of a cache. */
static size_t strideOf(int32_t bytes) {
  const size_t stride = (static_cast<size_t>(bytes) + 127) & ~size_t{63};
  return stride % 4096 == 0 ? stride + 64 : stride;
}

SlidingWindow::SlidingWindow(int32_t places, int32_t kept, int32_t symbolBytes)
    : places_(places),
      kept_(kept),
      symbolBytes_(symbolBytes),
      stride_(strideOf(symbolBytes)),
      store_(new (std::nothrow) uint8_t[static_cast<size_t>(kept) * stride_]),
      owner_(static_cast<size_t>(kept)),
      held_(static_cast<size_t>(places)),
      where_(static_cast<size_t>(places)),
      bytes_(static_cast<size_t>(places)),
      rowAt_(static_cast<size_t>(places), -1),
      columnAt_(static_cast<size_t>(places), -1),
      mostBytes_(static_cast<size_t>(places)),
      scratch_(new uint8_t[stride_]) {}

bool SlidingWindow::grow(int32_t places) {
  SlidingWindow larger(places, places, symbolBytes_);
  if (!larger.hasMemory()) return false;
  for (int32_t from = 0; from < places_; from++) {
    const auto n = static_cast<size_t>(from);
    if (bytes_[n] > 0) larger.keep(held_[n], at(from), bytes_[n]);
  }
  for (size_t r = 0; r < rows_.size(); r++) {
    const auto n = static_cast<size_t>(larger.place(rows_[r].pivot));
    larger.rowAt_[n] = static_cast<int16_t>(r);
    larger.mostBytes_[n] = mostBytes_[static_cast<size_t>(place(rows_[r].pivot))];
  }
  for (size_t c = 0; c < columns_.size(); c++) {
    const auto n = static_cast<size_t>(larger.place(columns_[c]));
    larger.columnAt_[n] = static_cast<int16_t>(c);
    larger.mostBytes_[n] = mostBytes_[static_cast<size_t>(place(columns_[c]))];
  }
  places_ = places;
  kept_ = places;
  store_ = std::move(larger.store_);
  owner_ = std::move(larger.owner_);
  held_ = std::move(larger.held_);
  where_ = std::move(larger.where_);
  bytes_ = std::move(larger.bytes_);
  rowAt_ = std::move(larger.rowAt_);
  columnAt_ = std::move(larger.columnAt_);
  mostBytes_ = std::move(larger.mostBytes_);
  return true;
}

void SlidingWindow::keep(int32_t sequence, const uint8_t* symbol, int32_t bytes) {
  const int32_t to = place(sequence);
  const auto n = static_cast<size_t>(to);
  if (bytes_[n] > 0 && static_cast<int32_t>(static_cast<uint32_t>(sequence) - static_cast<uint32_t>(held_[n])) < 0) return;
  const auto part = static_cast<size_t>(sequence & (kept_ - 1));
  const int32_t before = owner_[part];
  const auto theirs = static_cast<size_t>(place(before));
  // It lies across cache lines as it did in the slab, so that a product can walk over all of them line by line.
  uint8_t* copy = store_.get() + part * stride_;
  copy += (reinterpret_cast<uintptr_t>(symbol) - reinterpret_cast<uintptr_t>(copy)) & 63;
  if (before != sequence && has(before) && where_[theirs] >= store_.get() + part * stride_ && where_[theirs] < store_.get() + (part + 1) * stride_) bytes_[theirs] = 0;
  if (copy != symbol) memcpy(copy, symbol, static_cast<size_t>(bytes));
  owner_[part] = sequence;
  held_[n] = sequence;
  where_[n] = copy;
  bytes_[n] = bytes;
}

void SlidingWindow::drop(int32_t sequence) {
  if (has(sequence)) bytes_[static_cast<size_t>(place(sequence))] = 0;
}

void SlidingWindow::refer(int32_t sequence, const uint8_t* symbol, int32_t bytes) {
  const auto n = static_cast<size_t>(place(sequence));
  held_[n] = sequence;
  where_[n] = symbol;
  bytes_[n] = bytes;
}

void SlidingWindow::settle(int32_t sequence, int32_t newest) {
  if (!has(sequence)) return;
  const auto n = static_cast<size_t>(place(sequence));
  const auto behind = static_cast<uint32_t>(newest) - static_cast<uint32_t>(sequence);
  if (behind < static_cast<uint32_t>(kept_)) {
    keep(sequence, where_[n], bytes_[n]);
  } else {
    bytes_[n] = 0;
  }
}

const uint8_t* SlidingWindow::symbol(int32_t sequence, int32_t* bytes) const {
  if (!has(sequence)) return nullptr;
  *bytes = bytes_[static_cast<size_t>(place(sequence))];
  return at(place(sequence));
}

void SlidingWindow::addTerm(const uint8_t* source, int32_t bytes, uint8_t factor) {
  sources_.push_back(source);
  lengths_.push_back(bytes);
  factors_.push_back(factor);
}

void SlidingWindow::sumTerms(uint8_t* target, int32_t bytes) {
  bool padded = false;
  for (int32_t& length : lengths_) {
    if (length < bytes) padded = true;
  }
  gfProduct({factors_.data(), sources_.size(), sources_.size(), 1, sources_.data(), lengths_.data(), padded, &target, static_cast<size_t>(bytes), nullptr});
  sources_.clear();
  lengths_.clear();
  factors_.clear();
}

static int32_t plus(int32_t sequence, int32_t n) {
  return static_cast<int32_t>(static_cast<uint32_t>(sequence) + static_cast<uint32_t>(n));
}
/** How far `a` is ahead of `b`. */
static int32_t ahead(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

/** More than that many sums do not fit the registers of one pass over the sources. */
static constexpr size_t kMaxTogether = 5;

size_t SlidingWindow::together(const Repair* repairs, size_t count) const {
  size_t n = 1;
  while (n < count && n < kMaxTogether) {
    const int32_t before = ahead(repairs[n].first, repairs[0].first);
    const int32_t after = before + (repairs[n].count - repairs[0].count);
    // What is in one window and not in the other is multiplied by 0.
    const int32_t most = repairs[0].count / 4;
    if (before < 0 || before > most || after < 0 || after > most) break;
    n++;
  }
  return n;
}

Making SlidingWindow::makeTogether(Repair* repairs, size_t count) {
  const int32_t first = repairs[0].first;
  const int32_t columns = ahead(repairs[count - 1].first, first) + repairs[count - 1].count;
  int32_t longest = 0;
  int32_t room = repairs[0].room;
  sources_.clear();
  lengths_.clear();
  for (int32_t i = 0; i < columns; i++) {
    int32_t bytes = 0;
    const uint8_t* source = symbol(plus(first, i), &bytes);
    if (!source) return Making::kNotAtHand;
    longest = std::max(longest, bytes);
    sources_.push_back(source);
    lengths_.push_back(bytes);
  }
  uint8_t* targets[kMaxTogether];
  factors_.assign(count * static_cast<size_t>(columns), 0);
  for (size_t j = 0; j < count; j++) {
    Repair& repair = repairs[j];
    const auto from = static_cast<size_t>(ahead(repair.first, first));
    coefficients_.write(repair.key, factors_.data() + j * static_cast<size_t>(columns) + from, static_cast<size_t>(repair.count));
    const auto begin = lengths_.begin() + static_cast<ptrdiff_t>(from);
    repair.bytes = *std::max_element(begin, begin + repair.count);
    targets[j] = repair.target;
    room = std::min(room, repair.room);
  }
  if (longest > room) return Making::kNoRoom;
  const bool padded = std::any_of(lengths_.begin(), lengths_.end(), [longest](int32_t length) { return length < longest; });
  gfProduct({factors_.data(), sources_.size(), sources_.size(), count, sources_.data(), lengths_.data(), padded, targets, static_cast<size_t>(longest), nullptr});
  return Making::kMade;
}

Making SlidingWindow::make(Repair* repairs, size_t count) {
  Making made = Making::kMade;
  for (size_t n = 0; n < count && made == Making::kMade;) {
    const size_t step = together(repairs + n, count - n);
    made = makeTogether(repairs + n, step);
    n += step;
  }
  sources_.clear();
  lengths_.clear();
  factors_.clear();
  return made;
}

void SlidingWindow::reset() {
  clear();
  std::fill(bytes_.begin(), bytes_.end(), 0);
}

}  // namespace penstock
