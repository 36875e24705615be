/** Copies of packets of unfinished blocks, many in one call: the packets themselves go on, and whoever comes next may change them. */
#include <algorithm>

#include "block_headers.h"
#include "memory.h"

namespace penstock {

/** Where in a slot the copy begins; below 0 where it does not fit. */
static int64_t placeOf(const Memory& memory, const Packet& packet) {
  const int64_t within = packet.data - memory.slot(packet.handle);
  if (within >= 0 && within < memory.slotBytes) return within;
  return packet.length <= memory.slotBytes - memory.headroom ? memory.headroom : -1;
}

int32_t copyPackets(const Memory& memory, const Packet* packets, size_t count, int32_t* copies) {
  const int32_t available = memory.freeCount();
  if (available < 0) return kDamaged;
  const auto most = static_cast<int32_t>(std::min(count, static_cast<size_t>(available)));
  int32_t made = 0;
  for (; made < most; made++) {
    const Packet& packet = packets[made];
    const int32_t copy = memory.freeAt(available, made);
    if (copy < 0) return kDamaged;
    const int64_t place = placeOf(memory, packet);
    if (place < 0) break;
    uint8_t* const at = memory.slot(copy) + place;
    // A damaged free stack may name the packet itself.
    memmove(at, packet.data, static_cast<size_t>(packet.length));
    memory.offset[copy] = static_cast<int32_t>(at - memory.data);
    memory.length[copy] = packet.length;
    memory.annotateAs(copy, packet.handle);
    copies[made] = copy;
  }
  memory.free[0] = available - made;
  return made;
}

napi_value packetsCopy(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "packetsCopy", 5);
  const Memory* memory = memoryArgument(arguments, 0);
  const auto end = static_cast<size_t>(arguments.integer(3, "end", 0, memory ? memory->slots : 0));
  const auto from = static_cast<size_t>(arguments.integer(2, "from", 0, static_cast<int64_t>(end)));
  const Span<int32_t> handles = arguments.int32s(1, "packets", end);
  const Span<int32_t> copies = arguments.int32s(4, "copies", end - from);
  if (arguments.failed() || !packetsArgument(arguments, *memory, handles, from, end - from)) return nullptr;
  const int32_t count = copyPackets(*memory, arguments.state().packets.data(), end - from, copies.data);
  if (count < 0) {
    throwFreeStack(arguments);
    return nullptr;
  }
  return toInteger(env, count);
}

}  // namespace penstock
