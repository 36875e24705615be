/** The sliding window's symbols, and what an encoder makes of them. */
#include "sliding_window.h"

#include <string.h>

#include <algorithm>
#include <new>

#include "gf256.h"
#include "tinymt32.h"

namespace penstock {

/** Symbols a multiple of a page apart would share the same few lines of a cache. */
static size_t strideOf(int32_t bytes) {
  const size_t stride = (static_cast<size_t>(bytes) + 63) & ~size_t{63};
  return stride % 4096 == 0 ? stride + 64 : stride;
}

SlidingWindow::SlidingWindow(int32_t places, int32_t symbolBytes)
    : places_(places),
      symbolBytes_(symbolBytes),
      stride_(strideOf(symbolBytes)),
      store_(new (std::nothrow) uint8_t[static_cast<size_t>(places) * stride_]),
      held_(static_cast<size_t>(places)),
      bytes_(static_cast<size_t>(places)),
      rowAt_(static_cast<size_t>(places), -1),
      columnAt_(static_cast<size_t>(places), -1),
      scratch_(new uint8_t[stride_]) {}

bool SlidingWindow::grow(int32_t places) {
  SlidingWindow larger(places, symbolBytes_);
  if (!larger.hasMemory()) return false;
  for (int32_t from = 0; from < places_; from++) {
    const auto n = static_cast<size_t>(from);
    if (bytes_[n] > 0) larger.keep(held_[n], at(from), bytes_[n]);
  }
  for (size_t r = 0; r < rows_.size(); r++) larger.rowAt_[static_cast<size_t>(larger.place(rows_[r].pivot))] = static_cast<int16_t>(r);
  for (size_t c = 0; c < columns_.size(); c++) {
    larger.columnAt_[static_cast<size_t>(larger.place(columns_[c]))] = static_cast<int16_t>(c);
  }
  places_ = places;
  store_ = std::move(larger.store_);
  held_ = std::move(larger.held_);
  bytes_ = std::move(larger.bytes_);
  rowAt_ = std::move(larger.rowAt_);
  columnAt_ = std::move(larger.columnAt_);
  return true;
}

void SlidingWindow::keep(int32_t sequence, const uint8_t* symbol, int32_t bytes) {
  const int32_t to = place(sequence);
  const auto n = static_cast<size_t>(to);
  if (bytes_[n] > 0 && static_cast<int32_t>(static_cast<uint32_t>(sequence) - static_cast<uint32_t>(held_[n])) < 0) return;
  memcpy(at(to), symbol, static_cast<size_t>(bytes));
  held_[n] = sequence;
  bytes_[n] = bytes;
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
  Product product = {factors_.data(), sources_.size(), 1, sources_.data(), lengths_.data(), padded, &target, static_cast<size_t>(bytes), nullptr};
  gfProduct(product, affine_);
  sources_.clear();
  lengths_.clear();
  factors_.clear();
}

int32_t SlidingWindow::make(int32_t first, int32_t count, uint16_t key, uint8_t* target, int32_t room) {
  if (drawn_.size() < static_cast<size_t>(count)) drawn_.resize(static_cast<size_t>(count));
  codingCoefficients(key, drawn_.data(), static_cast<size_t>(count));
  int32_t longest = 0;
  for (int32_t i = 0; i < count; i++) {
    int32_t bytes = 0;
    const uint8_t* source = symbol(static_cast<int32_t>(static_cast<uint32_t>(first) + static_cast<uint32_t>(i)), &bytes);
    if (!source || bytes > room) {
      sources_.clear();
      lengths_.clear();
      factors_.clear();
      return source ? -2 : -1;
    }
    longest = std::max(longest, bytes);
    addTerm(source, bytes, drawn_[static_cast<size_t>(i)]);
  }
  sumTerms(target, longest);
  return longest;
}

void SlidingWindow::reset() {
  clear();
  std::fill(bytes_.begin(), bytes_.end(), 0);
}

}  // namespace penstock
