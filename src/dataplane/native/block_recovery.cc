/** The missing sources of blocks, by decoding matrices or by elimination, in one product. */
#include "block_recovery.h"

#include <algorithm>

#include "gf256.h"
#include "memory.h"

namespace penstock {

static constexpr int64_t kSeedBytes = 4;

/** Looks which sources are missing and which repairs are at hand, as many as are missing or, of random combinations, all; false after throwing. */
static bool takeErasures(Arguments& arguments, BlockCode code, const LossyBlock& block, size_t* repairs) {
  RecoveryScratch& scratch = arguments.state().recovery;
  Erasures& erasures = scratch.erasures;
  size_t missing = 0, atHand = 0;
  for (size_t i = 0; i < block.wanted; i++) {
    // Which are at hand is anyone's guess: a branch would be mispredicted at every second gap.
    const bool has = loadOnce(block.sources + i) > 0;
    erasures.missing[missing] = static_cast<uint8_t>(i);
    scratch.present[atHand] = static_cast<uint8_t>(i);
    missing += !has;
    atHand += has;
  }
  erasures.k = block.wanted;
  erasures.count = missing;
  const size_t most = code == BlockCode::kRandom ? block.repairCount : missing;
  size_t taken = 0;
  for (size_t j = 0; j < block.repairCount && taken < most; j++) {
    if (loadOnce(block.repairs + j) > 0) erasures.repairs[taken++] = static_cast<uint8_t>(j);
  }
  *repairs = taken;
  if (taken >= missing) return true;
  throwRange(arguments.env(), "%s: %zu symbols are at hand, %zu are needed", arguments.function(), atHand + taken, block.wanted);
  return false;
}

/** Sets the sources of a product, symbols in packets, and knows where in their slots its targets are to lie. */
class ProductSources {
 public:
  ProductSources(Arguments& arguments, const Memory& memory, int64_t bytes)
      : arguments_(arguments),
        memory_(memory),
        sources_(arguments.state().sources.data()),
        lengths_(arguments.state().lengths.data()),
        bytes_(static_cast<int32_t>(bytes)) {}

  /** The packet of an entry, `front` bytes in front of which belong to it; false after throwing. */
  bool lookUp(const int32_t* entry, int64_t front, Packet* packet) const {
    const auto handle = static_cast<int32_t>(static_cast<uint32_t>(loadOnce(entry)) - 1);
    return (memory_.packet(handle, packet) && packet->data - memory_.data >= front) || fail(handle);
  }
  /** Source `i` is the symbol in the packet of an entry; false after throwing. */
  bool set(size_t i, const int32_t* entry) {
    Packet packet;
    if (!lookUp(entry, 0, &packet)) return false;
    put(i, packet);
    return true;
  }
  void put(size_t i, const Packet& packet) {
    sources_[i] = packet.data;
    lengths_[i] = std::min(packet.length, bytes_);
    shortest_ = std::min(shortest_, packet.length);
    if (packet.length <= longest_.length) return;
    longest_ = packet;
  }

  bool padded() const { return shortest_ < bytes_; }
  /** As the longest symbol does, so that what is made finds the same room around it. */
  int64_t start() const {
    const int64_t within = longest_.data - memory_.slot(longest_.handle);
    const int64_t start = within >= 0 && within < memory_.slotBytes ? within : memory_.headroom;
    const int64_t last = memory_.slotBytes - bytes_;
    return start <= last ? start : std::min<int64_t>(memory_.headroom, last);
  }

 private:
  bool fail(int32_t handle) const {
    throwRange(arguments_.env(), "%s: a symbol's entry less 1 = %d is no packet, or there is no seed in front of it", arguments_.function(), handle);
    return false;
  }

  Arguments& arguments_;
  const Memory& memory_;
  const uint8_t** const sources_;
  int32_t* const lengths_;
  const int32_t bytes_;
  int32_t shortest_ = 0x7fffffff;
  Packet longest_{nullptr, -1, 0};
};

/** Takes packets for what is missing from the free stack, each the target of its row; false after throwing. */
static bool takeSlots(Arguments& arguments, const Memory& memory, const LossyBlock& block, int32_t available, int64_t start,
                      const uint8_t* rowOf) {
  State& state = arguments.state();
  const size_t count = state.recovery.erasures.count;
  for (size_t m = 0; m < count; m++) {
    const int32_t handle = memory.freeAt(available, static_cast<int32_t>(m));
    if (handle < 0) {
      throwFreeStack(arguments);
      return false;
    }
    uint8_t* at = memory.slot(handle) + start;
    state.targets[rowOf[m]] = at;
    memory.offset[handle] = static_cast<int32_t>(at - memory.data);
    memory.length[handle] = static_cast<int32_t>(block.bytes);
    memory.annotateAs(handle, block.like);
    state.recovery.made[m] = {handle, at};
  }
  memory.free[0] = available - static_cast<int32_t>(count);
  return true;
}

/**
 * The matrix of a block of random combinations: each source in its column, in those of missing ones the repairs that replace them. Returns
 * 0, kDependent or kThrown.
 */
static int32_t solveMissing(Arguments& arguments, const Memory& memory, const LossyBlock& block, size_t repairs, ProductSources& sources,
                            Product* product) {
  State& state = arguments.state();
  RecoveryScratch& scratch = state.recovery;
  const Erasures& erasures = scratch.erasures;
  std::vector<uint8_t>& matrix = state.elimination.matrix;
  product->stride = (erasures.k + 63) & ~static_cast<size_t>(63);
  if (matrix.size() < repairs * product->stride) matrix.resize(repairs * product->stride);
  product->matrix = matrix.data();
  for (size_t n = 0; n < repairs; n++) {
    if (!sources.lookUp(block.repairs + erasures.repairs[n], kSeedBytes, scratch.combinations + n)) return kThrown;
    uint32_t seed;
    memcpy(&seed, scratch.combinations[n].data - kSeedBytes, sizeof seed);
    scratch.seeds[n] = __builtin_bswap32(seed);
  }
  randomRows(scratch.seeds, repairs, matrix.data(), product->stride, erasures.k);
  uint8_t combined[kMaxSymbols];
  if (!solveInPlace(matrix.data(), product->stride, product->stride, repairs, erasures.missing, erasures.count, scratch.rowOf, combined)) {
    return kDependent;
  }
  for (size_t m = 0; m < erasures.count; m++) sources.put(erasures.missing[m], scratch.combinations[combined[m]]);
  return 0;
}

/** The matrix of a block of the Cauchy code: its sources in ascending order, then the repairs. */
static bool findMatrix(State& state, const LossyBlock& block, ProductSources& sources, Product* product) {
  const Erasures& erasures = state.recovery.erasures;
  const size_t atHand = erasures.k - erasures.count;
  for (size_t n = 0; n < erasures.count; n++) {
    if (!sources.set(atHand + n, block.repairs + erasures.repairs[n])) return false;
    state.recovery.rowOf[n] = static_cast<uint8_t>(n);
  }
  const DecodingMatrices::Matrix& matrix = state.decodingMatrices.get(erasures);
  product->matrix = matrix.rows.data();
  product->coefficients = matrix.coefficients.empty() ? nullptr : matrix.coefficients.data();
  return true;
}

int32_t recoverBlock(Arguments& arguments, const Memory& memory, BlockCode code, const LossyBlock& block) {
  State& state = arguments.state();
  RecoveryScratch& scratch = state.recovery;
  size_t repairs = 0;
  if (!takeErasures(arguments, code, block, &repairs)) return kThrown;
  const size_t count = scratch.erasures.count, wanted = block.wanted;
  if (count == 0) return 0;
  const int32_t available = memory.freeCount();
  if (available < 0) {
    throwFreeStack(arguments);
    return kThrown;
  }
  if (static_cast<size_t>(available) < count) return kNoSlots;
  reserveProduct(state, wanted, count);
  ProductSources sources(arguments, memory, block.bytes);
  Product product = {nullptr, wanted, wanted, count, nullptr, nullptr, false, nullptr, static_cast<size_t>(block.bytes), nullptr};
  const bool isRandom = code == BlockCode::kRandom;
  if (isRandom) {
    const int32_t outcome = solveMissing(arguments, memory, block, repairs, sources, &product);
    if (outcome != 0) return outcome;
  } else if (!findMatrix(state, block, sources, &product)) {
    return kThrown;
  }
  for (size_t n = 0; n < wanted - count; n++) {
    const size_t i = scratch.present[n];
    if (!sources.set(isRandom ? i : n, block.sources + i)) return kThrown;
  }
  product.padded = sources.padded();
  if (!takeSlots(arguments, memory, block, available, sources.start(), scratch.rowOf)) return kThrown;
  productByLine(state, product);
  return static_cast<int32_t>(count);
}

static napi_value recover(Arguments& arguments, BlockCode code, int64_t mostSymbols) {
  const Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const auto from = static_cast<size_t>(arguments.integer(2, "from", 0, 0x7fffffff));
  const auto k = static_cast<size_t>(arguments.integer(3, "k", 1, kMaxSymbols));
  const auto r = static_cast<size_t>(arguments.integer(4, "r", 0, std::min(kMaxSymbols, mostSymbols - static_cast<int64_t>(k))));
  const auto wanted = static_cast<size_t>(arguments.integer(5, "wanted", 1, static_cast<int64_t>(k)));
  const int64_t bytes = arguments.integer(6, "bytes", 2, memory->slotBytes);
  const int64_t like = arguments.integer(7, "like", 0, memory->slots - 1);
  const Span<int32_t> symbols = arguments.int32s(1, "symbols", from + k + r);
  const Span<int32_t> made = arguments.int32s(8, "made", 3 * std::min(wanted, r));
  if (arguments.failed()) return nullptr;
  const int32_t* sources = symbols.data + from;
  const int32_t count = recoverBlock(arguments, *memory, code, {sources, sources + k, r, wanted, bytes, static_cast<int32_t>(like)});
  if (count == kThrown) return nullptr;
  const RecoveryScratch& recovery = arguments.state().recovery;
  for (int32_t m = 0; m < count; m++) {
    made.data[3 * m] = recovery.erasures.missing[m];
    made.data[3 * m + 1] = recovery.made[m].handle;
    made.data[3 * m + 2] = recovery.made[m].symbol[0] << 8 | recovery.made[m].symbol[1];
  }
  return toInteger(arguments.env(), count);
}

napi_value gfRecover(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfRecover", 9);
  return recover(arguments, BlockCode::kCauchy, kMaxSymbols);
}

napi_value gfRecoverRandom(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "gfRecoverRandom", 9);
  return recover(arguments, BlockCode::kRandom, 2 * kMaxSymbols);
}

}  // namespace penstock
