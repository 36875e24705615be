/** The headers of block codes' packets read, those of a batch in one call. */
#include "block_headers.h"

#include <algorithm>

#include "memory.h"

namespace penstock {

static constexpr int32_t kSymbolAt = kBlockHeaderBytes;
static constexpr int32_t kNoHeader = -1;
/** Packets of one block that follow each other: in the words of the headers, and what they say of the block. */
struct Run : RunWord {
  int32_t* words;
  /** Whether the sources come one after the other, then the repairs, which say the same of their block. */
  bool orderly = false;
  int32_t nextSource = 0, nextRepair = 0, packets = 0, sources = 0, closing = 0, longest = 0, repairBytes = 0;

  explicit Run(int32_t* at) : words(at) {}
  void begin(uint32_t shape, uint32_t session, uint32_t block, bool isOrderly) {
    words[kShape] = static_cast<int32_t>(shape);
    words[kSession] = static_cast<int32_t>(session);
    words[kBlock] = static_cast<int32_t>(block);
    orderly = isOrderly;
    nextSource = nextRepair = packets = sources = closing = longest = repairBytes = 0;
  }
  /** `count` sources, the first of them `index`, each the one behind the last, the longest of `bytes` bytes. */
  void addSources(int32_t index, int32_t count, int32_t bytes) {
    orderly &= nextRepair == 0 && index >= nextSource;
    nextSource = index + count;
    longest = std::max(longest, bytes);
    packets += count;
    sources += count;
  }
  void addRepair(int32_t index, int32_t over, int32_t bytes) {
    orderly &= index >= nextRepair && (packets == sources || (over == closing && bytes == repairBytes));
    nextRepair = index + 1;
    closing = over;
    repairBytes = bytes;
    packets++;
  }
  /** How many sources the block has, where that many symbols are there which go together; 0 otherwise. */
  int32_t wanted() const {
    const int32_t k = words[kShape] >> 8;
    if (!orderly || sources == 0) return 0;
    if (packets == sources) return sources == k ? k : 0;
    return closing >= nextSource && repairBytes >= longest && packets >= closing ? closing : 0;
  }
  /** Writes what there is to say, and goes on to the words of the next. */
  void end() {
    words[kPackets] = packets;
    words[kSources] = sources;
    words[kWanted] = wanted();
    words[kLongest] = longest;
    words[kRepairBytes] = repairBytes;
    words += kWords;
  }
};

static uint32_t wordAt(const uint8_t* at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return __builtin_bswap32(word);
}

/** Whether a source has as many bytes as its symbol says. */
static bool isWhole(const Packet& packet) {
  return (packet.data[kSymbolAt] << 8 | packet.data[kSymbolAt + 1]) == packet.length - kSymbolAt - kLengthBytes;
}

/** Whether a header is this one, as it stands in memory. */
static bool same(const uint8_t* at, uint32_t first, uint64_t rest) {
  uint32_t ownFirst;
  uint64_t ownRest;
  memcpy(&ownFirst, at, sizeof ownFirst);
  memcpy(&ownRest, at + sizeof ownFirst, sizeof ownRest);
  return ownFirst == first && ownRest == rest;
}

/** The packet begins `bytes` later. */
static void cut(const Memory& memory, Packet* packet, int32_t bytes) {
  packet->data += bytes;
  packet->length -= bytes;
  memory.offset[packet->handle] = static_cast<int32_t>(packet->data - memory.data);
  memory.length[packet->handle] = packet->length;
}

/** Sources that follow each other: how many, and the bytes of the longest of their symbols. */
struct Following {
  size_t count;
  int32_t longest;
};

/**
 * Cuts the headers off those of the first `most` packets that are each the source behind the last, of which the first has a header that begins with `first`
 * and goes on with `rest`, as they stand in memory, and the word `word`; writes their words.
 */
__attribute__((noinline)) static Following cutFollowing(const Memory& memory, Packet* packets, size_t most, uint32_t first, uint64_t rest, uint32_t word,
                                                       int32_t* words) {
  int32_t *const offsets = memory.offset, *const lengths = memory.length;
  const uint8_t* const data = memory.data;
  size_t count = 0;
  int32_t longest = 0;
  for (; count < most; count++, first += kNextIndex) {
    Packet& packet = packets[count];
    if (packet.length < kSymbolAt + kLengthBytes || !same(packet.data, first, rest) || !isWhole(packet)) break;
    uint8_t* const at = packet.data + kSymbolAt;
    const int32_t length = packet.length - kSymbolAt;
    words[count] = static_cast<int32_t>(word++);
    offsets[packet.handle] = static_cast<int32_t>(at - data);
    lengths[packet.handle] = length;
    packet.data = at;
    packet.length = length;
    longest = std::max(longest, length);
  }
  return {count, longest};
}

/** How the packets of one code differ from those of the others. */
struct Format {
  enum { kSourceKind, kRepairKind, kRepairSymbolAt, kMostSymbols, kProgressive, kWords };
  uint32_t source, repair;
  int32_t repairSymbolAt;
  uint32_t mostSymbols;
  bool progressive;

  /** The word of a packet without what says that a run begins; kNoHeader where it cannot have been sent. */
  int32_t read(const Packet& packet, uint32_t first, uint32_t sender) const {
    const uint32_t kind = first >> 24, k = first >> 16 & 255, r = first >> 8 & 255, index = first & 255, closing = sender & 255;
    if (k + r > mostSymbols) return kNoHeader;
    const auto word = static_cast<int32_t>(closing << 8 | index);
    if (kind == source) {
      const bool isRight = index < k && closing <= (progressive ? k : 0) && isWhole(packet);
      return isRight ? word | kSource : kNoHeader;
    }
    const bool isRight = kind == repair && index < r && closing > 0 && closing <= k && packet.length >= repairSymbolAt + kLengthBytes;
    return isRight ? word : kNoHeader;
  }
};

static bool formatArgument(Arguments& arguments, size_t index, const Memory& memory, Format* format) {
  const Span<int32_t> words = arguments.int32s(index, "format", Format::kWords);
  if (arguments.failed()) return false;
  const int32_t symbolAt = loadOnce(words.data + Format::kRepairSymbolAt);
  if (symbolAt < kSymbolAt || symbolAt > memory.slotBytes) {
    throwRange(arguments.env(), "%s: format[%d] = %d is not from %d to %d", arguments.function(), Format::kRepairSymbolAt, symbolAt, kSymbolAt,
               memory.slotBytes);
    return false;
  }
  format->source = static_cast<uint32_t>(loadOnce(words.data + Format::kSourceKind));
  format->repair = static_cast<uint32_t>(loadOnce(words.data + Format::kRepairKind));
  format->repairSymbolAt = symbolAt;
  format->mostSymbols = static_cast<uint32_t>(loadOnce(words.data + Format::kMostSymbols));
  format->progressive = loadOnce(words.data + Format::kProgressive) != 0;
  return true;
}

bool readBlockHeaders(Arguments& arguments, const Memory& memory, const Span<int32_t>& handles, size_t count, size_t formatAt, const Span<int32_t>& out) {
  Format format;
  if (!formatArgument(arguments, formatAt, memory, &format)) return false;
  KnownPackets& received = arguments.state().received;
  Packet* const packets = received.begin(memory.id, handles.data, count);
  if (!packetsArgument(arguments, memory, handles, 0, count, packets)) {
    received.clear();
    return false;
  }
  // Nobody else sees this one: it stays in registers.
  const Memory own = memory;
  // They were written elsewhere, most of them: what is not waited for one by one is there when it is read.
  for (size_t n = 0; n < count; n++) __builtin_prefetch(packets[n].data);
  uint32_t shape = 0, session = 0, block = 0;
  Run run(out.data + count);
  bool begun = false;
  // What the header of the source behind the last packet is, as it stands in memory, and the packet's word; where there can be none 0, which is no source's.
  uint32_t nextFirst = 0, nextWord = 0;
  uint64_t nextRest = 0;
  for (size_t n = 0; n < count; n++) {
    if (nextFirst != 0) {
      const size_t most = std::min<size_t>(count - n, (shape >> 8) - (nextWord & 255));
      const Following following = cutFollowing(own, packets + n, most, nextFirst, nextRest, nextWord, out.data + n);
      nextFirst = 0;
      if (following.count > 0) {
        run.addSources(static_cast<int32_t>(nextWord & 255), static_cast<int32_t>(following.count), following.longest);
        n += following.count - 1;
        continue;
      }
    }
    Packet& packet = packets[n];
    const bool isLongEnough = packet.length >= kSymbolAt + kLengthBytes;
    out.data[n] = kNoHeader;
    const uint32_t first = isLongEnough ? wordAt(packet.data) : 0, sender = isLongEnough ? wordAt(packet.data + 4) : 0;
    int32_t word = isLongEnough ? format.read(packet, first, sender) : kNoHeader;
    if (word == kNoHeader) {
      run.orderly = false;
      continue;
    }
    const uint32_t id = wordAt(packet.data + 8);
    if (!begun || (first >> 8 & 0xffff) != shape || sender >> 8 != session || id != block) {
      if (begun) run.end();
      begun = true;
      shape = first >> 8 & 0xffff;
      session = sender >> 8;
      block = id;
      run.begin(shape, session, block, !format.progressive);
      word |= kBegins;
    }
    out.data[n] = word;
    const uint8_t* const header = packet.data;
    cut(own, &packet, word & kSource ? kSymbolAt : format.repairSymbolAt);
    if (word & kSource) {
      run.addSources(word & 255, 1, packet.length);
      nextWord = static_cast<uint32_t>(word & ~kBegins) + 1;
      memcpy(&nextRest, header + 4, sizeof nextRest);
      memcpy(&nextFirst, header, sizeof nextFirst);
      nextFirst = (nextWord & 255) < shape >> 8 ? nextFirst + kNextIndex : 0;
    } else {
      run.addRepair(word & 255, word >> 8 & 255, packet.length);
    }
  }
  if (begun) run.end();
  return true;
}

napi_value blockHeaders(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blockHeaders", 5);
  const Memory* memory = memoryArgument(arguments, 0);
  const auto count = static_cast<size_t>(arguments.integer(2, "count", 0, memory ? memory->slots : 0));
  const Span<int32_t> handles = arguments.int32s(1, "packets", count);
  const Span<int32_t> out = arguments.int32s(4, "headers", count * (1 + RunWord::kWords));
  if (!arguments.failed()) readBlockHeaders(arguments, *memory, handles, count, 3, out);
  return nullptr;
}

}  // namespace penstock
