/** The missing sources of a block, made as packets of the symbols of it that are at hand. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

#include "cauchy.h"

namespace penstock {

class Arguments;
struct Memory;
struct State;

/** A packet whose place was checked: its bytes lie inside its own slot, or inside the train it belongs to. */
struct Packet {
  uint8_t* data;
  int32_t length;
  int32_t handle;
};

/** How the repairs of a block are made of its sources: as codes/cauchy.ts has it, or as random combinations, whose seeds stand in front of their symbols. */
enum class BlockCode { kCauchy, kRandom };

/** A packet that is all symbol. */
struct MadePacket {
  int32_t handle;
  const uint8_t* symbol;
};

/** What a call of `recoverBlock` works with, and leaves: of the missing sources, in ascending order, which they are and what was made of each. */
struct RecoveryScratch {
  Erasures erasures;
  MadePacket made[kMaxSymbols];
  /** The row of the product that each missing source is. */
  uint8_t rowOf[kMaxSymbols];
  /** Repairs at hand. */
  Packet repairs[kMaxSymbols];
};

/**
 * The symbols of a block that are at hand, as sources of the product that makes those of its first `wanted` sources that are missing: each source in
 * its own column, repairs in those of what is missing. There is one at a time: the symbols stand in `state.sources` and `state.recovery`.
 */
class BlockSymbols {
 public:
  BlockSymbols(State& state, size_t wanted, int32_t bytes);

  /** Of indices below `wanted`, each above the last. */
  void addSource(size_t index, const Packet& packet) {
    skipTo(index);
    put(next_++, packet);
  }
  /** Once all sources are there: what is not is missing. */
  void endSources() { skipTo(wanted_); }
  /** Of indices each above the last, below 255. */
  void addRepair(size_t index, const Packet& packet) {
    scratch_->erasures.repairs[repairs_] = static_cast<uint8_t>(index);
    scratch_->repairs[repairs_++] = packet;
  }
  /** Puts repair `n` of those at hand in the place of missing source `m`. */
  void replace(size_t m, size_t n) { put(scratch_->erasures.missing[m], scratch_->repairs[n]); }

  size_t wanted() const { return wanted_; }
  size_t missing() const { return missing_; }
  size_t repairs() const { return repairs_; }
  int32_t bytes() const { return bytes_; }
  /** Whether some symbol is shorter than those that are made. */
  bool padded() const { return shortest_ < bytes_; }
  /** Where in their slots those are to lie: as the longest symbol does, so that they find the same room around them. */
  int64_t start(const Memory& memory) const;

 private:
  void skipTo(size_t index) {
    while (next_ < index) {
      scratch_->erasures.missing[missing_++] = static_cast<uint8_t>(next_++);
      // Seldom more than one: vectors for them are dearer than they are.
      __asm__("" : "+r"(next_));
    }
  }
  void put(size_t column, const Packet& packet) {
    sources_[column] = packet.data;
    lengths_[column] = packet.length < bytes_ ? packet.length : bytes_;
    if (packet.length < shortest_) shortest_ = packet.length;
    if (packet.length > longest_.length) longest_ = packet;
  }

  RecoveryScratch* scratch_;
  const uint8_t** sources_;
  int32_t* lengths_;
  int32_t bytes_;
  size_t wanted_, next_ = 0, missing_ = 0, repairs_ = 0;
  int32_t shortest_ = 0x7fffffff;
  Packet longest_{nullptr, -1, 0};
};

/** Coefficients of the first `count` repairs at hand of a block of random combinations, rows `stride` apart; nullptr: there are not as many. */
struct Combinations {
  const uint8_t* rows;
  size_t stride;
  size_t count;
};

/** What came of it where no sources did: too few slots; repairs that say too little; or something was thrown. Nothing was made then. */
enum Unrecovered { kNoSlots = -1, kDependent = -2, kThrown = -3 };

/**
 * Makes packets of the missing sources of a block into `state.recovery`, with the annotations of packet `like`; how many, or why not. A block of the
 * Cauchy code has no `combinations`.
 */
int32_t recoverBlock(Arguments& arguments, const Memory& memory, BlockSymbols& symbols, int32_t like, const Combinations* combinations);

napi_value gfRecover(napi_env env, napi_callback_info info);
napi_value gfRecoverRandom(napi_env env, napi_callback_info info);
napi_value blocksPass(napi_env env, napi_callback_info info);

}  // namespace penstock
