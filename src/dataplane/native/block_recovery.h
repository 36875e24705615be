/** The missing sources of a block, made as packets of the symbols of it that are at hand. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

#include "cauchy.h"

namespace penstock {

class Arguments;
struct Memory;

/** A packet whose place was checked: its bytes lie inside its own slot, or inside the train it belongs to. */
struct Packet {
  uint8_t* data;
  int32_t length;
  int32_t handle;
};

/** How the repairs of a block are made of its sources: as codes/cauchy.ts has it, or as random combinations, whose seeds stand in front of their symbols. */
enum class BlockCode { kCauchy, kRandom };

/** A block that lacks sources. Of each symbol the packet plus 1, where it is at hand: JavaScript's numbers. */
struct LossyBlock {
  const int32_t* sources;
  const int32_t* repairs;
  size_t repairCount;
  /** How many of its first sources are to be there in the end, and the bytes of each. */
  size_t wanted;
  int64_t bytes;
  /** The packet whose annotations what is made gets. */
  int32_t like;
};

/** A packet that is all symbol. */
struct MadePacket {
  int32_t handle;
  const uint8_t* symbol;
};

/** What a call of `recoverBlock` works with, and leaves: of the missing sources, in ascending order, which they are and what was made of each. */
struct RecoveryScratch {
  Erasures erasures;
  MadePacket made[kMaxSymbols];
  /** Sources that are at hand. */
  uint8_t present[kMaxSymbols];
  /** The row of the product that each missing source is. */
  uint8_t rowOf[kMaxSymbols];
  /** Repairs that are random combinations, and their seeds. */
  Packet combinations[kMaxSymbols];
  uint32_t seeds[kMaxSymbols];
};

/** What came of it where no sources did: too few slots; repairs that say too little; or something was thrown. Nothing was made then. */
enum Unrecovered { kNoSlots = -1, kDependent = -2, kThrown = -3 };

/** Makes packets of the sources that are missing into `state.recovery`; how many, or why not. */
int32_t recoverBlock(Arguments& arguments, const Memory& memory, BlockCode code, const LossyBlock& block);

napi_value gfRecover(napi_env env, napi_callback_info info);
napi_value gfRecoverRandom(napi_env env, napi_callback_info info);
napi_value blocksPass(napi_env env, napi_callback_info info);

}  // namespace penstock
