/** GF(2^8) products of packets: the packets that a block code makes of others, many blocks a call. */
#include <algorithm>

#include "gf256.h"
#include "memory.h"

namespace penstock {

/** A symbol of `bytes` bytes behind `skip` others does not fit a slot. */
static void throwRoom(napi_env env, size_t block, int64_t size, int32_t slotBytes) {
  throwRange(env, "gfMultiplyPackets: block %zu makes packets of %lld bytes, more than a slot of %d holds", block,
             static_cast<long long>(size), slotBytes);
}

/**
 * Checks the sources of a block and puts them into `state.packets` from `at` on; where in their slots its products go, and their
 * bytes, into `state.made`. False after throwing.
 */
static bool takeBlock(Arguments& arguments, const Memory& memory, Span<int32_t> list, size_t first, size_t k, int64_t skip,
                      int64_t bytes, size_t block) {
  State& state = arguments.state();
  Packet* packets = state.packets.data() + block * k;
  int64_t longest = -1;
  int64_t start = memory.headroom;
  for (size_t i = 0; i < k; i++) {
    const int32_t handle = loadOnce(list.data + first + i);
    Packet& packet = packets[i];
    if (!memory.packet(handle, &packet)) {
      throwPacket(arguments, memory, first + i, handle);
      return false;
    }
    if (packet.length < skip) {
      throwRange(arguments.env(), "gfMultiplyPackets: packets[%zu] = %d is shorter than %lld bytes", first + i, handle,
                 static_cast<long long>(skip));
      return false;
    }
    if (packet.length <= longest) continue;
    longest = packet.length;
    const int64_t within = packet.data - memory.slot(handle);
    start = within >= 0 && within < memory.slotBytes ? within : memory.headroom;
  }
  const int64_t symbol = bytes > 0 ? bytes : std::max<int64_t>(longest - skip, 0);
  const int64_t size = skip + symbol;
  if (start + size > memory.slotBytes) start = std::min<int64_t>(memory.headroom, memory.slotBytes - size);
  if (start < 0) {
    throwRoom(arguments.env(), block, size, memory.slotBytes);
    return false;
  }
  state.made[block] = {start, symbol};
  return true;
}

/** Makes packets of the checked sources of a block, handles into `out`; how many, or -1 after throwing. */
static int64_t makeBlock(Arguments& arguments, const Memory& memory, const uint8_t* matrix, int32_t* out, size_t k, size_t m,
                         int64_t skip, int64_t like, size_t block) {
  State& state = arguments.state();
  const Packet* packets = state.packets.data() + block * k;
  const int32_t annotated = like >= 0 ? static_cast<int32_t>(like) : packets[k - 1].handle;
  const auto [start, symbol] = state.made[block];
  const int32_t available = memory.freeCount();
  const size_t count = std::min(m, static_cast<size_t>(std::max(available, 0)));
  for (size_t j = 0; j < count; j++) {
    const int32_t handle = memory.freeAt(available, static_cast<int32_t>(j));
    if (handle < 0) {
      throwFreeStack(arguments);
      return -1;
    }
    uint8_t* at = memory.slot(handle) + start;
    state.targets[j] = at + skip;
    memory.offset[handle] = static_cast<int32_t>(at - memory.data);
    memory.length[handle] = static_cast<int32_t>(skip + symbol);
    memory.annotateAs(handle, annotated);
    out[j] = handle;
  }
  if (count == 0) return 0;
  memory.free[0] = available - static_cast<int32_t>(count);
  bool padded = false;
  for (size_t i = 0; i < k; i++) {
    const int64_t length = std::min<int64_t>(packets[i].length - skip, symbol);
    if (length < symbol) padded = true;
    state.sources[i] = packets[i].data + skip;
    state.lengths[i] = static_cast<int32_t>(length);
  }
  runProduct(state, matrix, k, count, static_cast<size_t>(symbol), padded);
  return static_cast<int64_t>(count);
}

napi_value gfMultiplyPackets(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfMultiplyPackets", 7);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const auto blocks = static_cast<size_t>(arguments.integer(3, "blocks", 0, kMaxRows));
  const auto k = static_cast<size_t>(arguments.integer(4, "k", 1, kMaxRows));
  const auto m = static_cast<size_t>(arguments.integer(5, "m", 0, kMaxRows));
  const int64_t skip = arguments.integer(6, "skip", 0, memory->slotBytes);
  const int64_t bytes = arguments.given() > 7 ? arguments.integer(7, "bytes", 0, memory->slotBytes) : 0;
  const int64_t like = arguments.given() > 8 ? arguments.integer(8, "like", -1, memory->slots - 1) : -1;
  const Span<uint8_t> matrix = arguments.bytes(1, "matrix", k * m);
  const Span<int32_t> list = arguments.int32s(2, "packets", blocks * (k + m));
  if (arguments.failed()) return nullptr;
  if (memory->freeCount() < 0) {
    throwFreeStack(arguments);
    return nullptr;
  }
  State& state = arguments.state();
  reserveProduct(state, k, m);
  if (state.packets.size() < blocks * k) state.packets.resize(blocks * k);
  if (state.made.size() < blocks) state.made.resize(blocks);
  for (size_t block = 0; block < blocks; block++) {
    if (!takeBlock(arguments, *memory, list, block * (k + m), k, skip, bytes, block)) return nullptr;
  }
  int64_t made = 0;
  for (size_t block = 0; block < blocks; block++) {
    const int64_t count = makeBlock(arguments, *memory, matrix.data, list.data + block * (k + m) + k, k, m, skip, like, block);
    if (count < 0) return nullptr;
    made += count;
    if (static_cast<size_t>(count) < m) break;
  }
  return toNumber(env, static_cast<double>(made));
}

}  // namespace penstock
