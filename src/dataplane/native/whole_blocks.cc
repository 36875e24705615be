/** Blocks of which enough has come in one batch: their sources, and what is missing of them, in one call. */
#include <algorithm>
#include <optional>

#include "block_headers.h"
#include "block_recovery.h"
#include "crc32c.h"
#include "memory.h"

namespace penstock {

/** What has become of a symbol, as block-window.ts has it. */
enum Fate { kUnseen = 0, kSeen = -1, kRecovered = -2, kReplaced = -3 };
static constexpr size_t kMostPackets = 2 * kMaxSymbols;

/** Where the words of the first block's run and its packets are; the window that the blocks are of. */
struct Start {
  enum { kRun, kFirst, kPlaces, kReplaces, kWords };
  size_t run, first, places;
  bool replaces;
};

/** A block's packets, `packets` of them from `first` on, and where its symbols stand. */
struct Job {
  size_t first, packets, sources, wanted, base, k, r;
  int32_t repairBytes;
};

class WholeBlocks {
 public:
  WholeBlocks(Arguments& arguments, const Memory& memory, BlockCode code)
      : arguments_(arguments), memory_(memory), isRandom_(code == BlockCode::kRandom), rows_(arguments.state().elimination) {}

  Span<int32_t> packets, headers, symbols, shapes, sums, out;
  Start start;

  /** The block of run `n`, whose packets begin at `first`; false after throwing. */
  bool read(size_t n, size_t first, Job* job) const {
    const int32_t* words = headers.data + start.run + n * RunWord::kWords;
    const auto word = [&](size_t index) { return static_cast<size_t>(static_cast<uint32_t>(loadOnce(words + index))); };
    const size_t shape = word(RunWord::kShape), k = shape >> 8, r = shape & 255;
    const size_t base = (word(RunWord::kBlock) & (start.places - 1)) * (k + r);
    *job = {first, word(RunWord::kPackets), word(RunWord::kSources), word(RunWord::kWanted), base, k, r, loadOnce(words + RunWord::kRepairBytes)};
    const bool isRight = k <= kMaxSymbols && job->packets <= kMostPackets && first + job->packets <= std::min(packets.length, headers.length) &&
                         job->sources >= 1 && job->sources <= job->packets && job->wanted <= k && job->sources <= job->wanted &&
                         base + k + r <= std::min({symbols.length, shapes.length, sums.length}) && job->repairBytes <= memory_.slotBytes &&
                         (job->sources == job->wanted || job->repairBytes >= kLengthBytes);
    if (!isRight) throwRange(arguments_.env(), "%s: block %zu has packets, symbols or sizes that cannot be", arguments_.function(), n);
    return isRight;
  }

  /** Passes block `n` of `count` on; kThrown, or another reason why it is left as it was, below 0. */
  int32_t pass(size_t n, size_t count, const Job& job) {
    const size_t missing = job.wanted - job.sources;
    // It may ask for more now than when it was counted.
    auto taken = job.wanted <= out.length - sent_ ? take(job) : std::nullopt;
    if (!taken) return fail(n);
    if (missing > 0) {
      if (isRandom_ && rows_.empty() && !drawNeeded(n, count, job.first)) return kThrown;
      const int32_t like = taken_[job.packets - 1].handle;
      const Combinations combinations = {rows_.take(isRandom_ ? missing : 0), rows_.stride(), missing};
      int32_t made = recoverBlock(arguments_, memory_, *taken, like, isRandom_ ? &combinations : nullptr);
      if (made == kDependent && taken->repairs() > missing) made = recoverOfAll(n, job, *taken, like);
      if (made == kThrown) return kThrown;
      if (made != static_cast<int32_t>(missing) || !isPossible(job)) return kDependent;
    }
    sendSources(job);
    if (missing > 0) sendMade(job, missing);
    return endRepairs(job) ? 0 : kThrown;
  }

 private:
  int32_t fail(size_t n) const {
    throwRange(arguments_.env(), "%s: block %zu has packets that cannot be", arguments_.function(), n);
    return kThrown;
  }

  /** Recovers block `n`, as recoverBlock does, of which some repairs say nothing new, seldom as that is, with all that it has. */
  __attribute__((noinline, cold)) int32_t recoverOfAll(size_t n, const Job& job, BlockSymbols& taken, int32_t like) {
    rows_.clear();
    if (!addSeeds(n, job, taken.repairs())) return kThrown;
    rows_.draw();
    const Combinations combinations = {rows_.take(taken.repairs()), rows_.stride(), taken.repairs()};
    return recoverBlock(arguments_, memory_, taken, like, &combinations);
  }

  /** Draws as many combinations of block `n`, whose packets begin at `first`, and of those behind it as each misses sources; false after throwing. */
  bool drawNeeded(size_t n, size_t count, size_t first) {
    Job job;
    for (; n < count && rows_.hasRoom(); n++, first += job.packets) {
      if (!read(n, first, &job) || !addSeeds(n, job, job.wanted - job.sources)) return false;
    }
    rows_.draw();
    return true;
  }

  /** Adds the combinations of the first `count` repairs of block `n`; false after throwing. */
  bool addSeeds(size_t n, const Job& job, size_t count) {
    const size_t from = job.first + job.sources;
    const size_t bytes = memory_.bytes();
    for (size_t at = from; at < from + count; at++) {
      uint32_t seed;
      if (at >= job.first + job.packets || !memory_.wordBefore(loadOnce(packets.data + at), bytes, &seed)) {
        fail(n);
        return false;
      }
      rows_.add(seed, job.wanted);
    }
    return true;
  }

  /** Takes the packets of a job; nothing where they cannot be those of a block. */
  std::optional<BlockSymbols> take(const Job& job) {
    // Nobody else sees these: they stay in registers.
    BlockSymbols blockSymbols(arguments_.state(), job.wanted, std::max(job.repairBytes, kLengthBytes));
    taken_ = arguments_.state().received.find(memory_.id, packets.data, job.first, job.first + job.packets);
    if (!taken_ && lookUp(memory_, packets.data + job.first, job.packets, lookedUp_) < job.packets) return std::nullopt;
    if (!taken_) taken_ = lookedUp_;
    const int32_t *const handles = packets.data + job.first, *const words = headers.data + job.first;
    int32_t longest = 0;
    size_t next = 0;
    for (size_t at = 0; at < job.sources; at++) {
      const Packet& packet = taken_[at];
      const auto index = static_cast<size_t>(loadOnce(words + at) & 255);
      if (packet.handle != loadOnce(handles + at) || packet.length < kLengthBytes || index < next || index >= job.wanted) return std::nullopt;
      next = index + 1;
      longest = std::max(longest, packet.length);
      blockSymbols.addSource(index, packet);
    }
    blockSymbols.endSources();
    top_ = next;
    longest_ = longest;
    next = 0;
    for (size_t at = job.sources; at < job.packets; at++) {
      const Packet& packet = taken_[at];
      const auto index = static_cast<size_t>(loadOnce(words + at) & 255);
      if (packet.handle != loadOnce(handles + at) || packet.length < kLengthBytes || index < next || index >= job.r) return std::nullopt;
      next = index + 1;
      repairs_[at - job.sources] = static_cast<uint8_t>(index);
      blockSymbols.addRepair(index, packet);
    }
    return blockSymbols;
  }

  /** Repairs are as long as their block's longest symbol: where that cannot be, what was made goes. */
  bool isPossible(const Job& job) {
    int32_t longest = longest_;
    const RecoveryScratch& made = arguments_.state().recovery;
    for (size_t m = 0; m < made.erasures.count; m++) {
      const uint8_t* symbol = made.made[m].symbol;
      payloads_[m] = symbol[0] << 8 | symbol[1];
      longest = std::max(longest, kLengthBytes + payloads_[m]);
    }
    if (longest == job.repairBytes) return true;
    for (size_t m = 0; m < made.erasures.count; m++) memory_.release(made.made[m].handle);
    return false;
  }

  /** Puts the payloads of a block's sources behind what is sent, and notes that they have come. */
  void sendSources(const Job& job) {
    int32_t* const sent = out.data + sent_;
    int32_t *const offset = memory_.offset, *const length = memory_.length;
    const uint8_t* const data = memory_.data;
    for (size_t at = 0; at < job.sources; at++) {
      const Packet packet = taken_[at];
      offset[packet.handle] = static_cast<int32_t>(packet.data - data) + kLengthBytes;
      length[packet.handle] = packet.length - kLengthBytes;
      sent[at] = packet.handle;
    }
    sent_ += job.sources;
    std::fill_n(symbols.data + job.base, job.wanted, kSeen);
    std::fill_n(symbols.data + job.base + job.wanted, job.k + job.r - job.wanted, kUnseen);
  }

  /** The same of those that were recovered, and notes how to know them again that may still come. */
  void sendMade(const Job& job, size_t missing) {
    const RecoveryScratch& made = arguments_.state().recovery;
    for (size_t m = 0; m < missing; m++) {
      const auto index = static_cast<size_t>(made.erasures.missing[m]);
      const auto [handle, symbol] = made.made[m];
      const bool isReplaced = start.replaces && index < top_;
      symbols.data[job.base + index] = isReplaced ? kReplaced : kRecovered;
      if (!isReplaced) sums.data[job.base + index] = static_cast<int32_t>(crcOf(symbol + kLengthBytes, static_cast<size_t>(payloads_[m])));
      memory_.offset[handle] = static_cast<int32_t>(symbol - memory_.data) + kLengthBytes;
      memory_.length[handle] = payloads_[m];
      out.data[sent_++] = handle;
    }
  }

  /** Gives a block's repairs back, and notes that they have come; false after throwing. */
  bool endRepairs(const Job& job) {
    const size_t base = job.base + job.k, count = job.packets - job.sources;
    std::fill_n(shapes.data + job.base, job.k + job.r, 0);
    const auto shape = static_cast<int32_t>(static_cast<uint32_t>(job.repairBytes) << 8 | static_cast<uint32_t>(job.wanted));
    for (size_t n = 0; n < count; n++) {
      symbols.data[base + repairs_[n]] = kSeen;
      shapes.data[base + repairs_[n]] = shape;
    }
    if (memory_.release(taken_ + job.sources, count)) return true;
    throwFreeStack(arguments_);
    return false;
  }

  Arguments& arguments_;
  const Memory& memory_;
  const bool isRandom_;
  CombinationRows rows_;
  size_t sent_ = 0;
  /** The packets of the block at hand, the index behind its last source, bytes of the longest, and the indices of its repairs. */
  const Packet* taken_ = nullptr;
  Packet lookedUp_[kMostPackets];
  size_t top_ = 0;
  int32_t longest_ = 0;
  uint8_t repairs_[kMaxSymbols];
  /** Bytes of the payloads that were recovered. */
  int32_t payloads_[kMaxSymbols];
};

/** The start at argument `index`; false after throwing. */
static bool startArgument(Arguments& arguments, size_t index, size_t runs, size_t words, Start* start) {
  const Span<int32_t> given = arguments.int32s(index, "start", Start::kWords);
  if (arguments.failed()) return false;
  size_t word[Start::kWords];
  for (size_t n = 0; n < Start::kWords; n++) word[n] = static_cast<size_t>(static_cast<uint32_t>(loadOnce(given.data + n)));
  const size_t places = word[Start::kPlaces];
  const bool isPower = places > 0 && (places & (places - 1)) == 0;
  if (!isPower || word[Start::kRun] > words || runs * RunWord::kWords > words - word[Start::kRun]) {
    throwRange(arguments.env(), "%s: start has a run that is not in headers, or places that are no power of two", arguments.function());
    return false;
  }
  *start = {word[Start::kRun], word[Start::kFirst], places, word[Start::kReplaces] != 0};
  return true;
}

napi_value blocksPass(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blocksPass", 10);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const bool isRandom = arguments.boolean(1, "random");
  const auto count = static_cast<size_t>(arguments.integer(5, "count", 0, memory->slots));
  WholeBlocks blocks(arguments, *memory, isRandom ? BlockCode::kRandom : BlockCode::kCauchy);
  blocks.packets = arguments.int32s(2, "packets", 0);
  blocks.headers = arguments.int32s(3, "headers", 0);
  blocks.symbols = arguments.int32s(6, "symbols", 0);
  blocks.shapes = arguments.int32s(7, "shapes", 0);
  blocks.sums = arguments.int32s(8, "sums", 0);
  blocks.out = arguments.int32s(9, "out", 0);
  if (arguments.failed() || !startArgument(arguments, 4, count, blocks.headers.length, &blocks.start)) return nullptr;
  Job job;
  size_t payloads = 0;
  for (size_t n = 0, first = blocks.start.first; n < count; n++, first += job.packets) {
    if (!blocks.read(n, first, &job)) return nullptr;
    payloads += job.wanted;
  }
  if (blocks.out.length < payloads) {
    throwRange(env, "blocksPass: out has %zu elements, at least %zu are needed", blocks.out.length, payloads);
    return nullptr;
  }
  size_t passed = 0;
  for (size_t first = blocks.start.first; passed < count; passed++, first += job.packets) {
    // Looked at again: it may be another one by now.
    if (!blocks.read(passed, first, &job)) return nullptr;
    const int32_t outcome = blocks.pass(passed, count, job);
    if (outcome == kThrown) return nullptr;
    if (outcome < 0) break;
  }
  return toInteger(env, static_cast<int32_t>(passed));
}

}  // namespace penstock
