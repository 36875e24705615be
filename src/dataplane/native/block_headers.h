/** The headers of block codes' packets (docs/wire-formats.md). */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace penstock {

/** Kind, k, r, index, session and closing byte, block: what precedes the symbol of a source, or the seed of a random combination. */
constexpr int32_t kBlockHeaderBytes = 12;
/** A source's symbol begins with its payload's length. */
constexpr int32_t kLengthBytes = 2;
/** Of the word of a packet, above its index and closing byte: it is a source; the packets of a block begin. */
constexpr int32_t kSource = 1 << 16;
constexpr int32_t kBegins = 1 << 17;
/** What one more in the last byte of the first word is where the word is read as it stands in memory, little-endian. */
constexpr uint32_t kNextIndex = 1u << 24;

inline void writeWord(uint8_t* at, uint32_t word) {
  word = __builtin_bswap32(word);
  memcpy(at, &word, sizeof word);
}
inline void writeBlockHeader(uint8_t* at, uint32_t first, uint32_t sender, uint32_t block) {
  writeWord(at, first);
  writeWord(at + 4, sender);
  writeWord(at + 8, block);
}

/** What `blockHeaders` says of packets of one block that follow each other, a run, in words: RUN_… of src/dataplane/components/fec/block-header.ts. */
struct RunWord {
  enum { kShape, kSession, kBlock, kPackets, kSources, kWanted, kLongest, kRepairBytes, kWords };
};

struct Memory;
struct Packet;

class Arguments;
template <class T>
struct Span;

/**
 * Reads and cuts off the headers of `count` packets in the format at argument `formatAt`, as blockHeaders does; `out` has room for them. False after throwing, with nothing
 * changed.
 */
bool readBlockHeaders(Arguments& arguments, const Memory& memory, const Span<int32_t>& handles, size_t count, size_t formatAt, const Span<int32_t>& out);

/** The free stack is damaged. */
constexpr int32_t kDamaged = -1;

/**
 * Copies packets, bytes and annotations, into slots of their own, of which the handles go into `copies`; how many: fewer than `count` where slots run out or one is longer
 * than a slot has room for; kDamaged.
 */
int32_t copyPackets(const Memory& memory, const Packet* packets, size_t count, int32_t* copies);

napi_value blockFrame(napi_env env, napi_callback_info info);
napi_value blockHeaders(napi_env env, napi_callback_info info);
napi_value packetsCopy(napi_env env, napi_callback_info info);

}  // namespace penstock
