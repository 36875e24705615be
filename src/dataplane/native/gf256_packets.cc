/** GF(2^8) products of packets: the packets that a block code makes of others, many blocks a call. */
#include <algorithm>

#include "block_headers.h"
#include "gf256.h"
#include "memory.h"

namespace penstock {

/** Between the header of a random combination and its symbol. */
static constexpr int64_t kSeedBytes = 4;

/** What the packets of one call have in common. */
struct Shape {
  /** Sources and products of a block. */
  size_t k, m;
  /** Bytes in front of the symbols of the sources, and of the products. */
  int64_t skip, front;
  /** Bytes of a product, 0: as many as the block's longest symbol has. */
  int64_t bytes;
  /** The packet whose annotations the products get, -1: the last source of their block. */
  int64_t like;
  /** The three words of the header of the first product of the first block, JavaScript's; nullptr: headers are the caller's to write. */
  const int32_t* header;
  /** Whether sources are looked up many at once: quicker where their products are drawn, slower where a matrix is there (bench rs and rlnc). */
  bool together;
  /** Whether those that the last call of blockFrame has put into the list are as they were then. */
  bool framed;
};

/** Writes the header of product `j` of a block. */
static void writeHeader(const Shape& shape, uint8_t* at, size_t block, size_t j) {
  const auto word = [&](size_t n) { return static_cast<uint32_t>(loadOnce(shape.header + n)); };
  writeBlockHeader(at, word(0) + static_cast<uint32_t>(j), word(1), word(2) + static_cast<uint32_t>(block));
}

/**
 * Puts into `state.made` what the products of a block are: of symbols of which `longest` is the longest, as the packet that it is part of, the shortest one counts
 * `shortest` bytes and the last one is packet `last`'s. False after throwing.
 */
static bool placeProducts(Arguments& arguments, const Memory& memory, const Shape& shape, size_t block, Packet longest, int32_t shortest, int32_t last,
                          const uint8_t* const* sources, const int32_t* lengths) {
  const int64_t symbol = shape.bytes > 0 ? shape.bytes : longest.length;
  const int64_t size = shape.front + symbol;
  // The symbols of products lie in their slots as the longest one does, so that they find the same room around them.
  const int64_t within = longest.data - shape.skip - memory.slot(longest.handle);
  int64_t start = within >= 0 && within < memory.slotBytes ? within + shape.skip - shape.front : memory.headroom;
  if (start < 0 || start + size > memory.slotBytes) start = std::min<int64_t>(memory.headroom, memory.slotBytes - size);
  if (start < 0) {
    throwRange(arguments.env(), "%s: block %zu makes packets of %lld bytes, more than a slot of %d holds", arguments.function(),
               block, static_cast<long long>(size), memory.slotBytes);
    return false;
  }
  arguments.state().made[block] = {start, symbol, shape.like >= 0 ? static_cast<int32_t>(shape.like) : last, shortest < symbol, sources, lengths};
  return true;
}

/** Checks the sources of a block and puts what its products are into `state.made`. False after throwing. */
static bool takeBlock(Arguments& arguments, const Memory& memory, const int32_t* list, const Shape& shape, size_t block) {
  State& state = arguments.state();
  const size_t first = block * (shape.k + shape.m), k = shape.k;
  const FramedBlock* framed = shape.framed ? state.framed.find(memory.id, list, k + shape.m, k, block) : nullptr;
  if (framed) {
    const FramedBlocks& blocks = state.framed;
    return placeProducts(arguments, memory, shape, block, framed->longest, framed->shortest, framed->last, blocks.symbolsOf(block), blocks.lengthsOf(block));
  }
  Packet* const packets = state.packets.data();
  const size_t found = shape.together ? lookUp(memory, list + first, k, packets) : lookUpOneByOne(memory, list + first, k, packets);
  if (found < k) {
    throwPacket(arguments, memory, first + found, loadOnce(list + first + found));
    return false;
  }
  const uint8_t** const sources = state.sources.data() + block * k;
  int32_t* const lengths = state.lengths.data() + block * k;
  const auto skip = static_cast<int32_t>(shape.skip), most = shape.bytes > 0 ? static_cast<int32_t>(shape.bytes) : memory.slotBytes;
  Packet packet{}, longest{nullptr, -1, 0};
  int32_t shortest = 0x7fffffff;
  for (size_t i = 0; i < k; i++) {
    packet = packets[i];
    if (packet.length < skip) {
      throwRange(arguments.env(), "%s: packets[%zu] = %d is shorter than %d bytes", arguments.function(), first + i, packet.handle, skip);
      return false;
    }
    sources[i] = packet.data + skip;
    lengths[i] = std::min(packet.length - skip, most);
    shortest = std::min(shortest, lengths[i]);
    if (packet.length > longest.length) longest = packet;
  }
  longest = {longest.data + skip, longest.length - skip, longest.handle};
  return placeProducts(arguments, memory, shape, block, longest, shortest, packet.handle, sources, lengths);
}

/** Makes packets of the checked sources of a block, handles into `out`; how many, or -1 after throwing. `multiply` runs their product. */
template <class Multiply>
static int64_t makeBlock(Arguments& arguments, const Memory& memory, int32_t* out, const Shape& shape, size_t block,
                         Multiply multiply) {
  State& state = arguments.state();
  const auto& [start, symbol, like, padded, sources, lengths] = state.made[block];
  const int32_t available = memory.freeCount();
  const size_t count = std::min(shape.m, static_cast<size_t>(std::max(available, 0)));
  for (size_t j = 0; j < count; j++) {
    const int32_t handle = memory.freeAt(available, static_cast<int32_t>(j));
    if (handle < 0) {
      throwFreeStack(arguments);
      return -1;
    }
    uint8_t* at = memory.slot(handle) + start;
    state.targets[j] = at + shape.front;
    memory.offset[handle] = static_cast<int32_t>(at - memory.data);
    memory.length[handle] = static_cast<int32_t>(shape.front + symbol);
    memory.annotateAs(handle, like);
    if (shape.header) writeHeader(shape, at, block, j);
    out[j] = handle;
  }
  if (count == 0) return 0;
  memory.free[0] = available - static_cast<int32_t>(count);
  Product product = {nullptr, 0, shape.k, count, sources, lengths, padded, state.targets.data(), static_cast<size_t>(symbol), nullptr};
  multiply(block, product);
  return static_cast<int64_t>(count);
}

/** The header at argument `index`, with room for which products need `front` bytes in front; nullptr where it is not given. */
static const int32_t* headerArgument(Arguments& arguments, size_t index, int64_t front, int64_t needed) {
  if (arguments.failed() || arguments.given() <= index) return nullptr;
  if (front < needed) {
    throwRange(arguments.env(), "%s: %lld bytes in front of a symbol are too few for a header of %lld", arguments.function(),
               static_cast<long long>(front), static_cast<long long>(needed));
    arguments.fail();
  }
  return arguments.int32s(index, "header", 3).data;
}

/** Whether argument `index` says that packets are known, and the call is one about symbols as blockFrame frames them. */
static bool framedArgument(Arguments& arguments, size_t index, int64_t skip) {
  return !arguments.failed() && arguments.given() > index && arguments.boolean(index, "framed") && skip == kBlockHeaderBytes;
}

/** Makes the packets of all blocks; `multiply(block, product)` gives the product of one its matrix and runs it. */
template <class Multiply>
static napi_value makeBlocks(Arguments& arguments, const Memory& memory, int32_t* list, size_t blocks, const Shape& shape,
                             Multiply multiply) {
  if (memory.freeCount() < 0) {
    throwFreeStack(arguments);
    return nullptr;
  }
  State& state = arguments.state();
  reserveProduct(state, blocks * shape.k, shape.m);
  if (state.made.size() < blocks) state.made.resize(blocks);
  if (state.packets.size() < shape.k) state.packets.resize(shape.k);
  for (size_t block = 0; block < blocks; block++) {
    if (!takeBlock(arguments, memory, list, shape, block)) return nullptr;
  }
  int64_t made = 0;
  for (size_t block = 0; block < blocks; block++) {
    int32_t* out = list + block * (shape.k + shape.m) + shape.k;
    const int64_t count = makeBlock(arguments, memory, out, shape, block, multiply);
    if (count < 0) return nullptr;
    made += count;
    if (static_cast<size_t>(count) < shape.m) break;
  }
  return toNumber(arguments.env(), static_cast<double>(made));
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
  const int32_t* header = headerArgument(arguments, 9, skip, kBlockHeaderBytes);
  const bool framed = framedArgument(arguments, 10, skip) && bytes == 0;
  if (arguments.failed()) return nullptr;
  return makeBlocks(arguments, *memory, list.data, blocks, {k, m, skip, skip, bytes, like, header, false, framed},
                    [&](size_t, Product& product) {
                      product.matrix = matrix.data;
                      product.stride = k;
                      runProduct(arguments.state(), std::move(product));
                    });
}

napi_value gfRandomPackets(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfRandomPackets", 8);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const auto blocks = static_cast<size_t>(arguments.integer(3, "blocks", 0, kMaxRows));
  const auto k = static_cast<size_t>(arguments.integer(4, "k", 1, kMaxColumns));
  const auto m = static_cast<size_t>(arguments.integer(5, "m", 0, kMaxColumns));
  const int64_t skip = arguments.integer(6, "skip", 0, memory->slotBytes);
  const int64_t more = arguments.integer(7, "more", 0, memory->slotBytes);
  const uint32_t seed = arguments.word(1, "seed");
  const Span<int32_t> list = arguments.int32s(2, "packets", blocks * (k + m));
  const int32_t* header = headerArgument(arguments, 8, skip + more, kBlockHeaderBytes + kSeedBytes);
  const bool framed = framedArgument(arguments, 9, skip);
  if (arguments.failed()) return nullptr;
  State& state = arguments.state();
  CombinationRows rows(state.elimination);
  const auto seedOf = [&](size_t n) { return seed + static_cast<uint32_t>(n); };
  return makeBlocks(arguments, *memory, list.data, blocks, {k, m, skip, skip + more, 0, -1, header, true, framed},
                    [&](size_t block, Product& product) {
                      if (rows.empty()) {
                        for (size_t n = block * m; n < blocks * m && (n % m != 0 || rows.hasRoom()); n++) rows.add(seedOf(n), k);
                        rows.draw();
                      }
                      for (size_t j = 0; header && j < product.m; j++) writeWord(state.targets[j] - kSeedBytes, seedOf(block * m + j));
                      product.matrix = rows.take(m);
                      product.stride = rows.stride();
                      gfProduct(std::move(product));
                    });
}

}  // namespace penstock
