/** The headers of block codes' packets, those of a batch in one call. */
#include "block_headers.h"

#include <string.h>

#include "memory.h"

namespace penstock {

/** Kind, k, r, index, session and closing byte, block: what precedes the symbol of a source, which begins with its payload's length. */
static constexpr int32_t kSymbolAt = 12;
static constexpr int32_t kLengthBytes = 2;
/** Of the word of a packet above its index and closing byte. */
static constexpr int32_t kSource = 1 << 16;
static constexpr int32_t kBegins = 1 << 17;
static constexpr int32_t kNoHeader = -1;
static constexpr size_t kRunWords = 3;

static uint32_t wordAt(const uint8_t* at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return __builtin_bswap32(word);
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
      const int32_t payload = packet.data[kSymbolAt] << 8 | packet.data[kSymbolAt + 1];
      const bool isRight = index < k && closing <= (progressive ? k : 0) && payload == packet.length - kSymbolAt - kLengthBytes;
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

napi_value blockHeaders(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blockHeaders", 5);
  const Memory* memory = memoryArgument(arguments, 0);
  const auto count = static_cast<size_t>(arguments.integer(2, "count", 0, memory ? memory->slots : 0));
  const Span<int32_t> handles = arguments.int32s(1, "packets", count);
  const Span<int32_t> out = arguments.int32s(4, "headers", count * (1 + kRunWords));
  Format format;
  if (arguments.failed() || !formatArgument(arguments, 3, *memory, &format)) return nullptr;
  if (!packetsArgument(arguments, *memory, handles, 0, count)) return nullptr;
  const std::vector<Packet>& packets = arguments.state().packets;
  // They were written elsewhere, most of them: what is not waited for one by one is there when it is read.
  for (size_t n = 0; n < count; n++) __builtin_prefetch(packets[n].data);
  uint32_t shape = 0, session = 0, block = 0;
  int32_t* run = out.data + count;
  bool begun = false;
  for (size_t n = 0; n < count; n++) {
    const Packet& packet = packets[n];
    out.data[n] = kNoHeader;
    if (packet.length < kSymbolAt + kLengthBytes) continue;
    const uint32_t first = wordAt(packet.data), sender = wordAt(packet.data + 4), id = wordAt(packet.data + 8);
    int32_t word = format.read(packet, first, sender);
    if (word == kNoHeader) continue;
    if (!begun || (first >> 8 & 0xffff) != shape || sender >> 8 != session || id != block) {
      begun = true;
      shape = first >> 8 & 0xffff;
      session = sender >> 8;
      block = id;
      run[0] = static_cast<int32_t>(shape);
      run[1] = static_cast<int32_t>(session);
      run[2] = static_cast<int32_t>(block);
      run += kRunWords;
      word |= kBegins;
    }
    out.data[n] = word;
    const int32_t skipped = word & kSource ? kSymbolAt : format.repairSymbolAt;
    memory->offset[packet.handle] = static_cast<int32_t>(packet.data - memory->data) + skipped;
    memory->length[packet.handle] = packet.length - skipped;
  }
  return nullptr;
}

}  // namespace penstock
