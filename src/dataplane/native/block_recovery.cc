/** The missing sources of blocks, by decoding matrices or by elimination, in one product. */
#include "block_recovery.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gf256.h"
#include "memory.h"

namespace penstock {

BlockSymbols::BlockSymbols(State& state, size_t wanted, int32_t bytes) : scratch_(&state.recovery), bytes_(bytes), wanted_(wanted) {
  reserveProduct(state, kMaxSymbols, kMaxSymbols);
  sources_ = state.sources.data();
  lengths_ = state.lengths.data();
}

int64_t BlockSymbols::start(const Memory& memory) const {
  const int64_t within = longest_.data - memory.slot(longest_.handle);
  const int64_t start = within >= 0 && within < memory.slotBytes ? within : memory.headroom;
  const int64_t last = memory.slotBytes - bytes_;
  return start <= last ? start : std::min<int64_t>(memory.headroom, last);
}

/** Takes packets for what is missing from the free stack, each the target of its row; false after throwing. */
static bool takeSlots(Arguments& arguments, const Memory& memory, const BlockSymbols& symbols, int32_t available, int32_t like) {
  State& state = arguments.state();
  RecoveryScratch& scratch = state.recovery;
  const size_t count = symbols.missing();
  const int64_t start = symbols.start(memory);
  for (size_t m = 0; m < count; m++) {
    const int32_t handle = memory.freeAt(available, static_cast<int32_t>(m));
    if (handle < 0) {
      throwFreeStack(arguments);
      return false;
    }
    uint8_t* at = memory.slot(handle) + start;
    state.targets[scratch.rowOf[m]] = at;
    memory.offset[handle] = static_cast<int32_t>(at - memory.data);
    memory.length[handle] = symbols.bytes();
    memory.annotateAs(handle, like);
    scratch.made[m] = {handle, at};
  }
  memory.free[0] = available - static_cast<int32_t>(count);
  return true;
}

/** The matrix of a block of random combinations, its rows solved; false where they say too little. */
static bool solveMissing(State& state, BlockSymbols& symbols, const Combinations& combinations, Product* product) {
  const Erasures& erasures = state.recovery.erasures;
  uint8_t combined[kMaxSymbols];
  const size_t bytes = (erasures.k + 63) & ~static_cast<size_t>(63);
  const auto [rows, stride, count] = combinations;
  Solution solution = {nullptr, nullptr, state.recovery.rowOf, combined};
  if (!rows || !solve({rows, stride, erasures.k, bytes, erasures.missing, erasures.count}, count, state.elimination, &solution)) return false;
  for (size_t m = 0; m < erasures.count; m++) symbols.replace(m, combined[m]);
  product->matrix = solution.rows;
  product->stride = bytes;
  product->coefficients = solution.coefficients;
  return true;
}

/** The matrix of a block of the Cauchy code. */
static void findMatrix(State& state, BlockSymbols& symbols, Product* product) {
  const DecodingMatrices::Matrix& matrix = state.decodingMatrices.get(state.recovery.erasures);
  for (size_t m = 0; m < state.recovery.erasures.count; m++) {
    symbols.replace(m, m);
    state.recovery.rowOf[m] = static_cast<uint8_t>(m);
  }
  product->matrix = matrix.rows.data();
  product->coefficients = matrix.coefficients.empty() ? nullptr : matrix.coefficients.data();
}

int32_t recoverBlock(Arguments& arguments, const Memory& memory, BlockSymbols& symbols, int32_t like, const Combinations* combinations) {
  State& state = arguments.state();
  const size_t k = symbols.wanted(), count = symbols.missing();
  state.recovery.erasures.k = k;
  state.recovery.erasures.count = count;
  if (symbols.repairs() < count) {
    throwRange(arguments.env(), "%s: %zu symbols are at hand, %zu are needed", arguments.function(), k - count + symbols.repairs(), k);
    return kThrown;
  }
  if (count == 0) return 0;
  const int32_t available = memory.freeCount();
  if (available < 0) {
    throwFreeStack(arguments);
    return kThrown;
  }
  if (static_cast<size_t>(available) < count) return kNoSlots;
  Product product = {nullptr, k, k, count, state.sources.data(), state.lengths.data(), false, state.targets.data(), static_cast<size_t>(symbols.bytes()), nullptr};
  if (!combinations) {
    findMatrix(state, symbols, &product);
  } else if (!solveMissing(state, symbols, *combinations, &product)) {
    return kDependent;
  }
  product.padded = symbols.padded();
  if (!takeSlots(arguments, memory, symbols, available, like)) return kThrown;
  gfProduct(std::move(product));
  return static_cast<int32_t>(count);
}

/** Where the symbols of a block are said to be, as `gfRecover` has it. */
struct Entries {
  const int32_t* at;
  size_t k, r, wanted;
  int32_t bytes;
};

/** Looks which symbols of a block are at hand, and draws the coefficients of the repairs where `rows` are wanted; nothing after throwing. */
static std::optional<BlockSymbols> takeSymbols(Arguments& arguments, const Memory& shared, const Entries& entries, CombinationRows* rows) {
  // Nobody else sees these: they stay in registers.
  BlockSymbols symbols(arguments.state(), entries.wanted, entries.bytes);
  const Memory memory = shared;
  const auto lookUp = [&](size_t n, Packet* packet) {
    const int32_t entry = loadOnce(entries.at + n);
    if (entry <= 0) return 0;
    if (memory.packet(entry - 1, packet)) return 1;
    throwRange(arguments.env(), "%s: a symbol's entry less 1 = %d is no packet", arguments.function(), entry - 1);
    return -1;
  };
  Packet packet;
  for (size_t j = 0; j < entries.r; j++) {
    const int found = lookUp(entries.k + j, &packet);
    if (found < 0) return std::nullopt;
    if (found == 0) continue;
    symbols.addRepair(j, packet);
    uint32_t seed = 0;
    if (rows && !memory.wordBefore(packet.handle, memory.bytes(), &seed)) {
      throwRange(arguments.env(), "%s: packet %d has no seed in front of it", arguments.function(), packet.handle);
      return std::nullopt;
    }
    if (rows) rows->add(seed, entries.wanted);
  }
  // What is looked up next does not wait for what is drawn.
  if (rows) rows->draw();
  for (size_t i = 0; i < entries.wanted; i++) {
    const int found = lookUp(i, &packet);
    if (found < 0) return std::nullopt;
    if (found > 0) symbols.addSource(i, packet);
  }
  symbols.endSources();
  return symbols;
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
  const Span<int32_t> entries = arguments.int32s(1, "symbols", from + k + r);
  const Span<int32_t> made = arguments.int32s(8, "made", 3 * std::min(wanted, r));
  if (arguments.failed()) return nullptr;
  State& state = arguments.state();
  CombinationRows rows(state.elimination);
  CombinationRows* const drawn = code == BlockCode::kRandom ? &rows : nullptr;
  auto symbols = takeSymbols(arguments, *memory, {entries.data + from, k, r, wanted, static_cast<int32_t>(bytes)}, drawn);
  if (!symbols) return nullptr;
  const size_t repairs = symbols->repairs();
  const Combinations combinations = {rows.take(drawn ? repairs : 0), rows.stride(), repairs};
  const int32_t count = recoverBlock(arguments, *memory, *symbols, static_cast<int32_t>(like), drawn ? &combinations : nullptr);
  if (count == kThrown) return nullptr;
  const RecoveryScratch& recovery = state.recovery;
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
