/** Blocks of which enough has come in one batch: their sources, and what is missing of them, in one call. */
#include <algorithm>

#include "block_recovery.h"
#include "memory.h"

namespace penstock {

/** What has become of a symbol, as block-window.ts has it. */
enum Fate { kUnseen = 0, kSeen = -1, kRecovered = -2, kReplaced = -3 };
static constexpr int32_t kLengthBytes = 2;

/** A block's packets, `packets` of them from `first` on, and where its symbols stand. */
struct Job {
  enum { kFirst, kPackets, kSources, kWanted, kRepairBytes, kBase, kSourceCount, kReplaces, kWords };
  size_t first, packets, sources, wanted, base, k;
  int32_t repairBytes;
  bool replaces;
};

class WholeBlocks {
 public:
  WholeBlocks(Arguments& arguments, const Memory& memory, BlockCode code) : arguments_(arguments), memory_(memory), code_(code) {}

  Span<int32_t> packets, headers, jobs, symbols, shapes, out;

  /** The block of a job, or false after throwing. */
  bool read(size_t n, Job* job) const {
    size_t word[Job::kWords];
    for (size_t i = 0; i < Job::kWords; i++) {
      const int32_t value = loadOnce(jobs.data + n * Job::kWords + i);
      if (value < 0) return fail(n);
      word[i] = static_cast<size_t>(value);
    }
    *job = {word[Job::kFirst], word[Job::kPackets], word[Job::kSources], word[Job::kWanted], word[Job::kBase], word[Job::kSourceCount],
            static_cast<int32_t>(word[Job::kRepairBytes]), word[Job::kReplaces] != 0};
    const bool isRight = job->first + job->packets <= std::min(packets.length, headers.length) && job->sources >= 1 &&
                         job->sources <= job->packets && job->wanted <= job->k && job->sources <= job->wanted && job->k <= kMaxSymbols &&
                         job->base + job->k <= std::min(symbols.length, shapes.length) && job->repairBytes <= memory_.slotBytes &&
                         (job->sources == job->wanted || job->repairBytes >= kLengthBytes);
    return isRight || fail(n);
  }

  /** Passes a block on; kThrown, or another reason why it is left as it was, below 0. */
  int32_t pass(size_t n, const Job& job) {
    size_t repairs = 0;
    int32_t longest = 0;
    if (!place(n, job, &repairs, &longest)) return kThrown;
    const size_t missing = job.wanted - job.sources;
    if (missing > 0) {
      const int32_t* entries = symbols.data + job.base;
      const int32_t like = loadOnce(packets.data + job.first + job.packets - 1);
      const int32_t count = recoverBlock(arguments_, memory_, code_, {entries, entries + job.k, repairs, job.wanted, job.repairBytes, like});
      if (count == kThrown) return kThrown;
      if (count != static_cast<int32_t>(missing) || !isPossible(job, longest)) {
        clear(job);
        return kDependent;
      }
    }
    send(job, missing);
    return 0;
  }

  size_t sent() const { return sent_; }

 private:
  bool fail(size_t n) const {
    throwRange(arguments_.env(), "%s: block %zu has packets, symbols or sizes that cannot be", arguments_.function(), n);
    return false;
  }

  /** Puts the packets where their symbols stand; false after throwing. */
  bool place(size_t n, const Job& job, size_t* repairs, int32_t* longest) {
    const int32_t shape = static_cast<int32_t>(static_cast<uint32_t>(job.repairBytes) << 8 | static_cast<uint32_t>(job.wanted));
    for (size_t at = 0; at < job.packets; at++) {
      const int32_t handle = loadOnce(packets.data + job.first + at);
      const auto index = static_cast<size_t>(loadOnce(headers.data + job.first + at) & 255);
      Packet packet;
      if (!memory_.packet(handle, &packet) || packet.length < kLengthBytes) return fail(n);
      const bool isSource = at < job.sources;
      const size_t symbol = job.base + (isSource ? index : job.k + index);
      if ((isSource && index >= job.wanted) || symbol >= std::min(symbols.length, shapes.length)) return fail(n);
      symbols.data[symbol] = handle + 1;
      if (isSource) {
        *longest = std::max(*longest, packet.length);
      } else {
        shapes.data[symbol] = shape;
        *repairs = std::max(*repairs, index + 1);
      }
    }
    return true;
  }

  /** Repairs are as long as their block's longest symbol: where that cannot be, what was made goes. */
  bool isPossible(const Job& job, int32_t longest) {
    const RecoveryScratch& made = arguments_.state().recovery;
    for (size_t m = 0; m < made.erasures.count; m++) {
      const uint8_t* symbol = made.made[m].symbol;
      longest = std::max(longest, kLengthBytes + (symbol[0] << 8 | symbol[1]));
    }
    if (longest == job.repairBytes) return true;
    for (size_t m = 0; m < made.erasures.count; m++) memory_.release(made.made[m].handle);
    return false;
  }

  void clear(const Job& job) {
    for (size_t at = 0; at < job.packets; at++) {
      const auto index = static_cast<size_t>(loadOnce(headers.data + job.first + at) & 255);
      const size_t symbol = job.base + (at < job.sources ? index : job.k + index);
      if (symbol >= std::min(symbols.length, shapes.length)) continue;
      symbols.data[symbol] = kUnseen;
      shapes.data[symbol] = 0;
    }
  }

  /** Puts the block's payloads behind what is sent, and gives its repairs back. */
  void send(const Job& job, size_t missing) {
    size_t top = 0;
    for (size_t at = 0; at < job.packets; at++) {
      const int32_t handle = loadOnce(packets.data + job.first + at);
      const auto index = static_cast<size_t>(loadOnce(headers.data + job.first + at) & 255);
      const size_t symbol = job.base + (at < job.sources ? index : job.k + index);
      if (handle < 0 || handle >= memory_.slots || symbol >= symbols.length) continue;
      symbols.data[symbol] = kSeen;
      if (at < job.sources) {
        top = index + 1;
        push(handle);
      } else {
        memory_.release(handle);
      }
    }
    const RecoveryScratch& made = arguments_.state().recovery;
    for (size_t m = 0; m < missing; m++) {
      const auto index = static_cast<size_t>(made.erasures.missing[m]);
      const uint8_t* symbol = made.made[m].symbol;
      const int32_t handle = made.made[m].handle;
      symbols.data[job.base + index] = job.replaces && index < top ? kReplaced : kRecovered;
      memory_.length[handle] = kLengthBytes + (symbol[0] << 8 | symbol[1]);
      push(handle);
    }
  }

  void push(int32_t handle) {
    memory_.offset[handle] += kLengthBytes;
    memory_.length[handle] -= kLengthBytes;
    if (sent_ < out.length) out.data[sent_++] = handle;
  }

  Arguments& arguments_;
  const Memory& memory_;
  const BlockCode code_;
  size_t sent_ = 0;
};

napi_value blocksPass(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blocksPass", 9);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const bool isRandom = arguments.boolean(1, "random");
  const auto count = static_cast<size_t>(arguments.integer(5, "count", 0, memory->slots));
  WholeBlocks blocks(arguments, *memory, isRandom ? BlockCode::kRandom : BlockCode::kCauchy);
  blocks.packets = arguments.int32s(2, "packets", 0);
  blocks.headers = arguments.int32s(3, "headers", 0);
  blocks.jobs = arguments.int32s(4, "blocks", count * Job::kWords);
  blocks.symbols = arguments.int32s(6, "symbols", 0);
  blocks.shapes = arguments.int32s(7, "shapes", 0);
  blocks.out = arguments.int32s(8, "out", 0);
  if (arguments.failed()) return nullptr;
  size_t wanted = 0;
  Job job;
  for (size_t n = 0; n < count; n++) {
    if (!blocks.read(n, &job)) return nullptr;
    wanted += job.wanted;
  }
  if (blocks.out.length < wanted) {
    throwRange(env, "blocksPass: out has %zu elements, at least %zu are needed", blocks.out.length, wanted);
    return nullptr;
  }
  size_t passed = 0;
  for (; passed < count; passed++) {
    if (!blocks.read(passed, &job)) return nullptr;
    const int32_t outcome = blocks.pass(passed, job);
    if (outcome == kThrown) return nullptr;
    if (outcome < 0) break;
  }
  return toInteger(env, static_cast<int32_t>(passed));
}

}  // namespace penstock
