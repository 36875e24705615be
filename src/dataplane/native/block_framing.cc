/** The headers of block codes' source packets written, those of a batch in one call. */
#include <algorithm>

#include "block_headers.h"
#include "memory.h"

namespace penstock {

/** What framing goes on from, and where it is afterwards. */
struct Framing {
  enum { kFirstWord, kSender, kBlock, kIndex, kFront, kSources, kAt, kStride, kBlocks, kPrevious, kNoRoom, kLast, kCopied, kWords };
};
/** In front of a payload. */
static constexpr int32_t kFramed = kBlockHeaderBytes + kLengthBytes;

/** The header of a source as it stands in memory: its first word, and both others. */
struct Header {
  uint32_t first;
  uint64_t rest;
};

/** Moves a packet out of its train; false where it has no room for `front` bytes in front of its payload then. */
__attribute__((noinline, cold)) static bool makeRoom(const Memory& memory, Packet* packet, int32_t front) {
  if (packet->length > 0xffff || !memory.settle(packet)) return false;
  const int64_t room = packet->data - memory.slot(packet->handle);
  return room >= front && room <= memory.slotBytes;
}

/** Where sources are put. */
struct Place {
  int32_t* handles;
  const uint8_t** symbols;
  int32_t* lengths;
};

/**
 * Frames packets, of which `count` are left, as sources of one block until it has `wanted` more; says how many there were, and releases those without room. What the
 * loop goes on with is in variables of its own: bytes that it writes might be anything else.
 */
__attribute__((noinline)) static size_t frameSources(const Memory& memory, const Packet* packets, size_t count, size_t wanted, int32_t front,
                                                     Header header, const Place& place, FramedBlock* block, int32_t* noRoom) {
  const auto [handles, symbols, symbolLengths] = place;
  uint8_t* const data = memory.data;
  int32_t *const offsets = memory.offset, *const lengths = memory.length;
  const auto slotBytes = static_cast<size_t>(memory.slotBytes), behind = static_cast<size_t>(front), room = slotBytes - behind;
  auto [first, rest] = header;
  int32_t shortest = block->shortest, last = block->last;
  Packet longest = block->longest;
  size_t n = 0, put = 0;
  for (; n < count && put < wanted; n++) {
    auto [from, length, handle] = packets[n];
    // In front of it is far behind it as a number without sign. Trains are behind all slots.
    const size_t within = static_cast<size_t>(from - data) - static_cast<size_t>(handle) * slotBytes - behind;
    if (__builtin_expect(within >= room || length > 0xffff, 0)) {
      Packet packet = packets[n];
      if (!makeRoom(memory, &packet, front)) {
        memory.release(handle);
        ++*noRoom;
        continue;
      }
      from = packet.data;
    }
    uint8_t* const at = from - kFramed;
    const uint16_t big = __builtin_bswap16(static_cast<uint16_t>(length));
    const int32_t symbol = length + kLengthBytes;
    memcpy(at, &first, sizeof first);
    memcpy(at + sizeof first, &rest, sizeof rest);
    memcpy(at + kBlockHeaderBytes, &big, sizeof big);
    first += kNextIndex;
    offsets[handle] = static_cast<int32_t>(at - data);
    lengths[handle] = length + kFramed;
    handles[put] = handle;
    symbols[put] = at + kBlockHeaderBytes;
    symbolLengths[put] = symbol;
    put++;
    shortest = std::min(shortest, symbol);
    if (symbol > longest.length) longest = {at + kBlockHeaderBytes, symbol, handle};
    last = handle;
  }
  *block = {longest, shortest, last};
  return n;
}

/** Copies sources of a block, as they are framed; how many, kDamaged. */
static int32_t copySources(const Memory& memory, const int32_t* handles, const uint8_t* const* symbols, const int32_t* lengths, size_t count, int32_t* copies) {
  Packet packets[kMaxSymbols];
  for (size_t n = 0; n < count; n++) {
    const auto headers = static_cast<size_t>(symbols[n] - memory.data) - kBlockHeaderBytes;
    packets[n] = {memory.data + headers, lengths[n] + kBlockHeaderBytes, handles[n]};
  }
  return copyPackets(memory, packets, count, copies);
}

napi_value blockFrame(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blockFrame", 6);
  const Memory* memory = memoryArgument(arguments, 0);
  const auto end = static_cast<size_t>(arguments.integer(3, "end", 0, memory ? memory->slots : 0));
  auto from = static_cast<size_t>(arguments.integer(2, "from", 0, static_cast<int64_t>(end)));
  const Span<int32_t> handles = arguments.int32s(1, "packets", end);
  const Span<int32_t> state = arguments.int32s(4, "state", Framing::kWords);
  const Span<int32_t> symbols = arguments.int32s(5, "symbols", 0);
  const Span<int32_t> copies = arguments.given() > 6 ? arguments.int32s(6, "copies", kMaxSymbols) : Span<int32_t>{};
  if (arguments.failed() || !packetsArgument(arguments, *memory, handles, from, end - from)) return nullptr;
  int32_t word[Framing::kWords];
  for (size_t n = 0; n < Framing::kWords; n++) word[n] = loadOnce(state.data + n);
  const int32_t front = word[Framing::kFront], sources = word[Framing::kSources];
  const bool isRight = front >= kFramed && front <= memory->slotBytes && sources >= 1 && sources <= 255 && word[Framing::kIndex] >= 0 &&
                       word[Framing::kIndex] < sources && word[Framing::kAt] >= 0 && word[Framing::kStride] >= 0 && word[Framing::kBlocks] >= 1;
  const int64_t most = word[Framing::kAt] + static_cast<int64_t>(word[Framing::kBlocks] - 1) * word[Framing::kStride] + sources;
  if (!isRight || most > static_cast<int64_t>(symbols.length)) {
    throwRange(env, "blockFrame: state has numbers that cannot be, or symbols no room for them");
    return nullptr;
  }
  const auto wanted = static_cast<size_t>(sources), stride = static_cast<size_t>(word[Framing::kStride]);
  auto at = static_cast<size_t>(word[Framing::kAt]), index = static_cast<size_t>(word[Framing::kIndex]);
  auto sender = static_cast<uint32_t>(word[Framing::kSender]), block = static_cast<uint32_t>(word[Framing::kBlock]);
  const auto first = static_cast<uint32_t>(word[Framing::kFirstWord]);
  int32_t left = word[Framing::kBlocks], noRoom = 0;
  const Packet* packet = arguments.state().packets.data();
  FramedBlocks& framed = arguments.state().framed;
  framed.begin(memory->id, symbols.data, std::max(stride, static_cast<size_t>(1)), wanted, at, index, static_cast<size_t>(most));
  // Nobody else sees this one: it stays in registers.
  const Memory own = *memory;
  FramedBlock next = kNoSources;
  while (from < end && left > 0) {
    const uint64_t rest = static_cast<uint64_t>(sender) << 32 | block;
    const Header header = {__builtin_bswap32(first | static_cast<uint32_t>(index)), __builtin_bswap64(rest)};
    const Place place = {symbols.data + at + index, framed.symbols() + at + index, framed.lengths() + at + index};
    const int32_t refused = noRoom;
    const size_t taken = frameSources(own, packet, end - from, wanted - index, front, header, place, &next, &noRoom);
    from += taken;
    packet += taken;
    index += taken - static_cast<size_t>(noRoom - refused);
    if (index < wanted) break;
    framed.add(at, next);
    next = kNoSources;
    // The last one stays at hand.
    if (--left == 0) break;
    index = 0;
    block++;
    at += stride;
    sender = (sender & ~255u) | (static_cast<uint32_t>(word[Framing::kPrevious]) & 255);
  }
  // Of the block at hand, where it goes on, what has come in this call outlives it.
  const size_t had = block == static_cast<uint32_t>(word[Framing::kBlock]) ? static_cast<size_t>(word[Framing::kIndex]) : 0;
  const bool goesOn = index > had && static_cast<int64_t>(index) < word[Framing::kLast];
  const size_t added = at + had;
  const int32_t copied = copies.data && goesOn ? copySources(own, symbols.data + added, framed.symbols() + added, framed.lengths() + added, index - had, copies.data) : 0;
  if (copied < 0) {
    throwFreeStack(arguments);
    return nullptr;
  }
  word[Framing::kCopied] = copied;
  word[Framing::kIndex] = static_cast<int32_t>(index);
  word[Framing::kBlock] = static_cast<int32_t>(block);
  word[Framing::kAt] = static_cast<int32_t>(at);
  word[Framing::kSender] = static_cast<int32_t>(sender);
  word[Framing::kBlocks] = left;
  word[Framing::kNoRoom] = noRoom;
  for (size_t n = 0; n < Framing::kWords; n++) state.data[n] = word[n];
  return toInteger(env, static_cast<int32_t>(from));
}

}  // namespace penstock
