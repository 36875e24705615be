/**
 * A sliding window over numbered symbols: the newest of them, repairs made over a part of it (RFC 8681), and on the other side the
 * equations that repairs are for symbols that are missing. Numbers are 32 bits and compared in serial arithmetic (RFC 1982).
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <vector>

#include "arguments.h"
#include "coding_coefficients.h"
#include "gf256.h"

namespace penstock {

/** Most sources of one repair, and most missing sources in equations. */
constexpr int32_t kMaxWindow = 4096;

/** What came of a repair or a late source, where it is not the number of sources recovered. */
enum Refusal { kRedundant = -1, kUnusable = -2, kContradicted = -3 };

/** A symbol in the slab. */
struct Source {
  int32_t sequence;
  const uint8_t* symbol;
  int32_t bytes;
};

/** A repair over `count` sources from `first` on, to be written where `room` bytes are. */
struct Repair {
  int32_t first;
  int32_t count;
  uint16_t key;
  uint8_t* target;
  int32_t room;
  int32_t bytes;
};

/** What came of making repairs. */
enum class Making { kMade, kNotAtHand, kNoRoom };

class SlidingWindow {
 public:
  /** `places` symbols of at most `symbolBytes` bytes, of which the newest `kept` outlive a call; both powers of two. */
  SlidingWindow(int32_t places, int32_t kept, int32_t symbolBytes);

  int32_t places() const { return places_; }
  int32_t symbolBytes() const { return symbolBytes_; }
  int32_t rows() const { return static_cast<int32_t>(rows_.size()); }

  /** False when there was none for its symbols: it is of no use then. */
  bool hasMemory() const { return store_ != nullptr; }
  /** Makes room for `places` symbols in all; those at hand stay. False when there is no memory for them. */
  bool grow(int32_t places);
  /** Copies a symbol, unless a newer one has its place. */
  void keep(int32_t sequence, const uint8_t* symbol, int32_t bytes);
  /** Forgets a symbol, whose place is that of any other then. */
  void drop(int32_t sequence);
  /** Reads a symbol where it lies, until `settle`. */
  void refer(int32_t sequence, const uint8_t* symbol, int32_t bytes);
  /** Copies a symbol that was referred to, unless `kept` others up to `newest` are newer: then it is forgotten. */
  void settle(int32_t sequence, int32_t newest);
  /** The symbol of `sequence` and its length; nullptr when it is not at hand. */
  const uint8_t* symbol(int32_t sequence, int32_t* bytes) const;

  /** Writes repairs and their bytes, several in one product where their windows overlap for the most part. */
  Making make(Repair* repairs, size_t count);

  /** Takes a repair in. `found`: sources recovered with it, ascending; their symbols are at hand. Returns how many, or a Refusal. */
  int32_t take(int32_t first, int32_t count, uint16_t key, const uint8_t* repair, int32_t bytes);
  /** A source that was missing has come. As `take`. */
  int32_t resolve(int32_t sequence, const uint8_t* symbol, int32_t bytes);
  std::vector<int32_t>& found() { return found_; }
  /** Room for lists of sources to take and of repairs to make. */
  std::vector<Source>& taken() { return taken_; }
  std::vector<Repair>& repairs() { return repairs_; }

  /** Gives up the missing sources below `sequence`. */
  void forget(int32_t sequence);
  /** Forgets every equation. */
  void clear();
  /** Forgets every equation and symbol. */
  void reset();

 private:
  /** source `pivot` + sum over the columns of coefficients[c] * source c = payload; shorter sums count as padded with zeros. */
  struct Row {
    int32_t pivot = 0;
    int32_t bytes = 0;
    std::vector<uint8_t> coefficients;
    std::unique_ptr<uint8_t[]> payload;
  };

  int32_t place(int32_t sequence) const { return sequence & (places_ - 1); }
  bool has(int32_t sequence) const { return bytes_[static_cast<size_t>(place(sequence))] > 0 && held_[static_cast<size_t>(place(sequence))] == sequence; }
  const uint8_t* at(int32_t place) const { return where_[static_cast<size_t>(place)]; }
  /** The row or column of a missing source, -1 where it has none. */
  int32_t rowOf(int32_t sequence) const;
  int32_t columnOf(int32_t sequence) const;
  bool addColumn(int32_t sequence);
  void removeColumn(size_t column);
  Row takeRow(size_t row);
  void removeRow(size_t row);
  Row spareRow();
  void addTerm(const uint8_t* source, int32_t bytes, uint8_t factor);
  /** Repairs from the first on that go into one product, and the product. */
  size_t together(const Repair* repairs, size_t count) const;
  Making makeTogether(Repair* repairs, size_t count);
  /** target = sum of the terms. */
  void sumTerms(uint8_t* target, int32_t bytes);
  /** row += factor * (coefficients, payload). */
  void addScaled(Row& row, const Row& other, uint8_t factor);
  void addPayload(Row& row, const uint8_t* payload, int32_t bytes, uint8_t factor);
  size_t oldestColumn(const std::vector<uint8_t>& coefficients) const;
  /** Takes `row`, whose pivot is `column` with factor 1, among the others, from which it goes. */
  void insert(Row row, size_t column);
  /** Makes symbols of the rows that have one source left. */
  int32_t collect();
  bool isSolved(const Row& row) const;
  int32_t contradicted();

  int32_t places_;
  int32_t kept_;
  int32_t symbolBytes_;
  size_t stride_;
  std::unique_ptr<uint8_t[]> store_;
  /** Whose symbol each part of the store has. */
  std::vector<int32_t> owner_;
  /** Which symbol each place has, and where. */
  std::vector<int32_t> held_;
  std::vector<const uint8_t*> where_;
  /** Bytes of the symbol in each place, 0 where none is. */
  std::vector<int32_t> bytes_;

  std::vector<Row> rows_;
  std::vector<Row> spare_;
  /** The missing sources that are no row's pivot. */
  std::vector<int32_t> columns_;
  std::vector<int16_t> rowAt_;
  std::vector<int16_t> columnAt_;
  /** Most bytes that a missing source can have: those of the shortest repair over it. By place, as the two before. */
  std::vector<int32_t> mostBytes_;
  std::vector<int32_t> found_;
  std::vector<Source> taken_;
  std::vector<Repair> repairs_;

  /** Which of the sources of the repair at hand are not. */
  std::vector<int32_t> absent_;
  CodingCoefficients coefficients_;
  /** The product in hand. */
  std::vector<uint8_t> drawn_;
  std::vector<uint8_t> reduced_;
  std::vector<uint8_t> factors_;
  std::vector<const uint8_t*> sources_;
  std::vector<int32_t> lengths_;
  std::unique_ptr<uint8_t[]> scratch_;
  std::vector<uint8_t> scratchCoefficients_;
};

napi_value slidingOpen(napi_env env, napi_callback_info info);
napi_value slidingClose(napi_env env, napi_callback_info info);
napi_value slidingGrow(napi_env env, napi_callback_info info);
napi_value slidingKeep(napi_env env, napi_callback_info info);
napi_value slidingEncode(napi_env env, napi_callback_info info);
napi_value slidingTake(napi_env env, napi_callback_info info);
napi_value slidingResolve(napi_env env, napi_callback_info info);
napi_value slidingRead(napi_env env, napi_callback_info info);
napi_value slidingMatches(napi_env env, napi_callback_info info);
napi_value slidingDrop(napi_env env, napi_callback_info info);
napi_value slidingForget(napi_env env, napi_callback_info info);
napi_value slidingReset(napi_env env, napi_callback_info info);

}  // namespace penstock
