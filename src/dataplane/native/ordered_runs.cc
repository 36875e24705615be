/** Packets of block codes that come in their order: their sources, and what is missing of whole blocks, all of a batch in one call. */
#include <algorithm>
#include <optional>

#include "block_headers.h"
#include "block_recovery.h"
#include "crc32c.h"
#include "memory.h"

namespace penstock {

/** What has become of a symbol, and of a block, as block-window.ts has it. */
enum Fate { kUnseen = 0, kSeen = -1, kRecovered = -2, kReplaced = -3 };
enum BlockState : uint8_t { kUnknown = 0, kOpen = 1, kDone = 2 };
static constexpr size_t kMostPackets = 2 * kMaxSymbols;

/** A decoder's window of blocks: the arrays of block-window.ts, one behind the other. */
struct Window {
  static constexpr size_t kSymbols = 4096, kPlaces = 512;
  static constexpr size_t kWords = 3 * kSymbols + 2 * kPlaces + (sizeof(uint16_t) + 6) * kPlaces / sizeof(int32_t);

  int32_t *symbols = nullptr, *sums = nullptr, *shapes = nullptr, *longest = nullptr, *repairBytes = nullptr;
  uint16_t* kept = nullptr;
  uint8_t *state = nullptr, *sources = nullptr, *repairs = nullptr, *closing = nullptr, *top = nullptr, *mixed = nullptr;

  Window() = default;
  explicit Window(int32_t* words)
      : symbols(words),
        sums(symbols + kSymbols),
        shapes(sums + kSymbols),
        longest(shapes + kSymbols),
        repairBytes(longest + kPlaces),
        kept(reinterpret_cast<uint16_t*>(repairBytes + kPlaces)),
        state(reinterpret_cast<uint8_t*>(kept + kPlaces)),
        sources(state + kPlaces),
        repairs(sources + kPlaces),
        closing(repairs + kPlaces),
        top(closing + kPlaces),
        mixed(top + kPlaces) {}
};

/** What a call goes on from, and what it has done: words that ordered-runs.ts shares. */
struct Pass {
  enum {
    kRun, kFirst, kEnd, kMost, kNewest, kPlaces, kReplaces,
    kSent, kBytes, kSources, kRecovered, kRedundant, kSpent, kHeld, kExpected, kLost, kUsual, kShape, kSession, kWords,
  };
};

/** A run of a block's packets, `packets` of them from `first` on, and where its symbols stand. */
struct Job {
  size_t first, packets, sources, wanted, place, base, k, r;
  int32_t longest, repairBytes;
};

/** What became of a run: its packets are taken; all is as it was, it has to be taken packet by packet; or something was thrown. */
enum class Taken { kAll, kNone, kThrown };

/**
 * Runs as they come where nothing is overtaken: whole blocks, sources of one that goes on, the rest of that, and repairs of one whose sources are all there.
 * What it does is what block-run.ts does of each packet.
 */
class OrderedRuns {
 public:
  OrderedRuns(Arguments& arguments, const Memory& memory, BlockCode code)
      : arguments_(arguments), memory_(memory), isRandom_(code == BlockCode::kRandom), rows_(arguments.state().elimination) {}

  Span<int32_t> packets, headers, words, out;
  Window window;

  /** Reads the headers of all packets, in the format at argument `formatAt`, where the words of the first run stand behind them; false after throwing. */
  bool readHeaders(size_t formatAt) {
    const auto count = static_cast<uint32_t>(loadOnce(words.data + Pass::kEnd));
    if (count == 0 || count > packets.length || headers.length / (1 + RunWord::kWords) < count) {
      throwRange(arguments_.env(), "%s: headers has no room for those of the packets, or there are none", arguments_.function());
      return false;
    }
    if (!readBlockHeaders(arguments_, memory_, packets, count, formatAt, headers)) return false;
    words.data[Pass::kRun] = static_cast<int32_t>(count);
    words.data[Pass::kFirst] = 0;
    isRead_ = true;
    return true;
  }

  /** Reads where to go on; false after throwing. */
  bool begin() {
    const auto word = [&](size_t index) { return static_cast<size_t>(static_cast<uint32_t>(loadOnce(words.data + index))); };
    run_ = word(Pass::kRun);
    first_ = word(Pass::kFirst);
    end_ = word(Pass::kEnd);
    newest_ = static_cast<uint32_t>(loadOnce(words.data + Pass::kNewest));
    places_ = word(Pass::kPlaces);
    replaces_ = word(Pass::kReplaces) != 0;
    const bool isPower = places_ > 0 && (places_ & (places_ - 1)) == 0;
    const bool isRight = isPower && places_ <= Window::kPlaces && first_ < end_ && end_ <= std::min(packets.length, headers.length) && hasWords(run_);
    if (!isRight) throwRange(arguments_.env(), "%s: pass has a run that is not in headers, or places that are no power of two", arguments_.function());
    if (!isRight) return false;
    shape_ = loadOnce(words.data + Pass::kShape);
    session_ = loadOnce(words.data + Pass::kSession);
    return true;
  }

  /** Takes runs, at most as many as is said, until one is not as it should be; false after throwing. */
  bool takeAll() {
    for (auto left = static_cast<uint32_t>(loadOnce(words.data + Pass::kMost)); left > 0 && first_ < end_ && isNext(run_, first_); left--) {
      Job job;
      if (!read(run_, first_, &job)) return false;
      const Taken taken = take(job);
      if (taken == Taken::kThrown) return false;
      if (taken == Taken::kNone) break;
      first_ += job.packets;
      run_ += RunWord::kWords;
    }
    return true;
  }

  /** Says what was done. */
  void end() const {
    const auto say = [&](size_t index, size_t value) { words.data[index] = static_cast<int32_t>(value); };
    say(Pass::kRun, run_);
    say(Pass::kFirst, first_);
    say(Pass::kNewest, newest_);
    say(Pass::kSent, sent_);
    say(Pass::kBytes, bytes_);
    say(Pass::kSources, sources_);
    say(Pass::kRecovered, recovered_);
    say(Pass::kRedundant, redundant_);
    say(Pass::kSpent, spent_);
    words.data[Pass::kHeld] = held_;
    say(Pass::kExpected, expected_);
    say(Pass::kLost, lost_);
    if (usual_ > 0) say(Pass::kUsual, usual_);
  }

 private:
  bool hasWords(size_t run) const { return run <= headers.length && headers.length - run >= RunWord::kWords; }
  /** Whether the run whose words begin at `run` is one of the session, and its first packet is the one at `first`. */
  bool isNext(size_t run, size_t first) const {
    return (loadOnce(headers.data + first) & kBegins) != 0 && loadOnce(headers.data + first) >= 0 && hasWords(run) &&
           loadOnce(headers.data + run + RunWord::kShape) == shape_ && loadOnce(headers.data + run + RunWord::kSession) == session_;
  }

  /** The run whose words begin at `run` and whose packets at `first`; false after throwing. */
  bool read(size_t run, size_t first, Job* job) const {
    const int32_t* words = headers.data + run;
    const auto word = [&](size_t index) { return static_cast<size_t>(static_cast<uint32_t>(loadOnce(words + index))); };
    const auto shape = static_cast<size_t>(static_cast<uint32_t>(shape_));
    const size_t k = shape >> 8, r = shape & 255, place = word(RunWord::kBlock) & (places_ - 1), base = place * (k + r);
    *job = {first, word(RunWord::kPackets), word(RunWord::kSources), word(RunWord::kWanted), place, base, k, r,
            loadOnce(words + RunWord::kLongest), loadOnce(words + RunWord::kRepairBytes)};
    const bool isRight = k >= 1 && k <= kMaxSymbols && job->packets >= 1 && job->packets <= kMostPackets && job->packets <= end_ - first &&
                         job->sources <= job->packets && job->wanted <= k && (job->wanted == 0 || (job->sources >= 1 && job->sources <= job->wanted)) &&
                         base + k + r <= Window::kSymbols && job->repairBytes <= memory_.slotBytes &&
                         (job->sources == job->packets || job->repairBytes >= kLengthBytes);
    if (!isRight) throwRange(arguments_.env(), "%s: the run at %zu has packets, symbols or sizes that cannot be", arguments_.function(), first);
    return isRight;
  }

  Taken take(const Job& job) {
    const auto block = static_cast<uint32_t>(loadOnce(headers.data + run_ + RunWord::kBlock));
    const uint32_t ahead = block - newest_;
    const uint8_t state = window.state[job.place];
    if (state == kUnknown) {
      if (ahead > 1 || (ahead == 1 && !canAdvance())) return Taken::kNone;
      const Taken taken = job.wanted > 0 && job.sources < job.k ? takeWhole(job) : takeSources(job, true);
      if (taken == Taken::kAll && ahead == 1) advance(job);
      return taken;
    }
    if (ahead != 0) return Taken::kNone;
    const bool isBegun = window.top[job.place] > 0 && window.sources[job.place] == window.top[job.place] && window.repairs[job.place] == 0;
    if (state == kOpen && isBegun) return takeSources(job, false);
    if (state == kDone && job.sources == 0) return takeRepairs(job);
    return Taken::kNone;
  }

  /** Where the block stands that leaves the window with the next one. */
  size_t leaving() const { return (newest_ + 1 - static_cast<uint32_t>(places_ / 2)) & (places_ - 1); }
  /** Whether nothing has to be given up for the next block. */
  bool canAdvance() const {
    const size_t place = leaving();
    return window.state[place] == kUnknown || (window.state[place] == kDone && window.kept[place] == 0 && window.closing[place] > 0);
  }
  /** The window begins one block later: counts what the one lacked that leaves it. */
  void advance(const Job& job) {
    const size_t place = leaving();
    if (window.state[place] == kDone) {
      const size_t expected = window.closing[place] + job.r, came = static_cast<size_t>(window.sources[place]) + window.repairs[place];
      expected_ += expected;
      lost_ += expected > came ? expected - came : 0;
      usual_ = window.closing[place];
      window.state[place] = kUnknown;
    }
    newest_++;
  }

  /** The block is whole with this, of its first `wanted` sources and the repairs that came. */
  void settle(const Job& job, size_t wanted, size_t sources, size_t top, int32_t longest) {
    const size_t place = job.place, repairs = job.packets - job.sources;
    window.state[place] = kDone;
    window.sources[place] = static_cast<uint8_t>(sources);
    window.repairs[place] = static_cast<uint8_t>(repairs);
    window.kept[place] = 0;
    window.mixed[place] = 0;
    window.top[place] = static_cast<uint8_t>(top);
    window.longest[place] = longest;
    window.closing[place] = static_cast<uint8_t>(wanted);
    window.repairBytes[place] = sources < wanted ? job.repairBytes : longest;
    sources_ += job.sources;
    recovered_ += wanted - sources;
    (sources < wanted ? spent_ : redundant_) += repairs;
  }

  /** A new block of which enough has come. */
  Taken takeWhole(const Job& job) {
    if (job.wanted > out.length - sent_) return noRoom();
    const int32_t outcome = pass(job);
    if (outcome == kThrown) return Taken::kThrown;
    if (outcome < 0) return Taken::kNone;
    settle(job, job.wanted, job.sources, top_, longest_);
    return Taken::kAll;
  }

  /** Looks up the packets of a run into `taken_`; false where one is none, or too short, as one may be that stands between them. */
  bool find(const Job& job) {
    taken_ = arguments_.state().received.find(memory_.id, packets.data, job.first, job.first + job.packets);
    if (!taken_ && lookUp(memory_, packets.data + job.first, job.packets, lookedUp_) < job.packets) return false;
    if (!taken_) taken_ = lookedUp_;
    // Those whose headers this call has read are as they were.
    if (isRead_) return true;
    for (size_t at = 0; at < job.packets; at++) {
      if (taken_[at].handle != loadOnce(packets.data + job.first + at) || taken_[at].length < kLengthBytes) return false;
    }
    return true;
  }

  /** Whether the packets of a run are its sources, from `index` on, one after the other. */
  bool areSources(const Job& job, size_t index) const {
    const int32_t* const words = headers.data + job.first;
    const int32_t first = kSource | static_cast<int32_t>(index);
    return loadOnce(words) == (kBegins | first) && risingWords(words + 1, job.sources - 1, first + 1, 1) == job.sources - 1;
  }

  /** Sources of a block of which those in front of them have come and nothing else; behind its last one there may be repairs. */
  Taken takeSources(const Job& job, bool isNew) {
    const size_t place = job.place, had = isNew ? 0 : window.top[place], count = had + job.sources, repairs = job.packets - job.sources;
    const bool isWhole = count == job.k;
    if (job.sources == 0 || count > job.k || (repairs > 0 && !isWhole)) return Taken::kNone;
    if (job.sources > out.length - sent_) return noRoom();
    if (!find(job)) return Taken::kNone;
    if (!areSources(job, had)) return Taken::kNone;
    const int32_t longest = std::max(isNew ? 0 : window.longest[place], job.longest);
    if (isWhole) {
      if (!areRepairs(job, longest)) return Taken::kNone;
      if (!isNew && !releaseKept(job)) return damaged();
      sendSources(job);
      std::fill_n(window.symbols + job.base, job.k, kSeen);
      std::fill_n(window.symbols + job.base + job.k, job.r, kUnseen);
      std::fill_n(window.shapes + job.base, job.k + job.r, 0);
      settle(job, job.k, count, count, longest);
      return noteRepairs(job, job.k) ? Taken::kAll : damaged();
    }
    // They are still needed when they have left.
    int32_t copies[kMostPackets];
    const int32_t made = copyPackets(memory_, taken_, job.sources, copies);
    if (made < 0) return damaged();
    if (static_cast<size_t>(made) < job.sources) return memory_.release(copies, static_cast<size_t>(made)) ? Taken::kNone : damaged();
    sendSources(job);
    if (isNew) open(job);
    for (size_t n = 0; n < job.sources; n++) window.symbols[job.base + had + n] = copies[n] + 1;
    window.sources[place] = window.top[place] = static_cast<uint8_t>(count);
    window.longest[place] = longest;
    window.kept[place] = static_cast<uint16_t>(window.kept[place] + made);
    held_ += made;
    sources_ += job.sources;
    return Taken::kAll;
  }

  /** Begins a block of which nothing has come. */
  void open(const Job& job) {
    const size_t place = job.place;
    std::fill_n(window.symbols + job.base, job.k + job.r, kUnseen);
    std::fill_n(window.shapes + job.base, job.k + job.r, 0);
    window.state[place] = kOpen;
    window.repairs[place] = window.closing[place] = window.mixed[place] = 0;
    window.kept[place] = 0;
    window.repairBytes[place] = 0;
  }

  /** Whether the repairs of a run stand in their order and say the same of a block of k sources, of which the longest has `longest` bytes; notes their indices. */
  bool areRepairs(const Job& job, int32_t longest) {
    size_t next = 0;
    for (size_t at = job.sources; at < job.packets; at++) {
      const int32_t word = loadOnce(headers.data + job.first + at) & ~kBegins;
      const auto index = static_cast<size_t>(word & 255);
      if (word >> 8 != static_cast<int32_t>(job.k) || index < next || index >= job.r) return false;
      if (taken_[at].length != job.repairBytes || job.repairBytes < longest) return false;
      next = index + 1;
      repairs_[at - job.sources] = static_cast<uint8_t>(index);
    }
    return true;
  }

  /** Gives back the copies of a block's sources; false where the free stack is damaged. */
  bool releaseKept(const Job& job) {
    int32_t copies[kMaxSymbols];
    size_t count = 0;
    for (size_t n = 0; n < job.k; n++) {
      const int32_t symbol = window.symbols[job.base + n];
      if (symbol > 0) copies[count++] = symbol - 1;
    }
    held_ -= window.kept[job.place];
    return memory_.release(copies, count);
  }

  /** Repairs of a block whose sources have all come. */
  Taken takeRepairs(const Job& job) {
    const size_t place = job.place, base = job.base + job.k;
    if (window.sources[place] != job.k || window.closing[place] != job.k) return Taken::kNone;
    if (!find(job)) return Taken::kNone;
    if (!areRepairs(job, window.longest[place]) || job.repairBytes != window.repairBytes[place]) return Taken::kNone;
    for (size_t n = 0; n < job.packets; n++) {
      if (window.shapes[base + repairs_[n]] != 0) return Taken::kNone;
    }
    window.repairs[place] = static_cast<uint8_t>(window.repairs[place] + job.packets);
    redundant_ += job.packets;
    return noteRepairs(job, job.k) ? Taken::kAll : damaged();
  }

  /** Passes a block on; kThrown, or another reason why it is left as it was, below 0. */
  int32_t pass(const Job& job) {
    const size_t missing = job.wanted - job.sources;
    auto taken = symbolsOf(job);
    if (!taken) {
      fail(job);
      return kThrown;
    }
    if (missing > 0) {
      if (isRandom_ && rows_.empty() && !drawNeeded(job)) return kThrown;
      const int32_t like = taken_[job.packets - 1].handle;
      const Combinations combinations = {rows_.take(isRandom_ ? missing : 0), rows_.stride(), missing};
      int32_t made = recoverBlock(arguments_, memory_, *taken, like, isRandom_ ? &combinations : nullptr);
      if (made == kDependent && taken->repairs() > missing) made = recoverOfAll(job, *taken, like);
      if (made == kThrown) return kThrown;
      if (made != static_cast<int32_t>(missing) || !isPossible(job)) return kDependent;
    }
    sendSources(job);
    std::fill_n(window.symbols + job.base, job.wanted, kSeen);
    std::fill_n(window.symbols + job.base + job.wanted, job.k + job.r - job.wanted, kUnseen);
    std::fill_n(window.shapes + job.base, job.k + job.r, 0);
    if (missing > 0) sendMade(job, missing);
    if (noteRepairs(job, job.wanted)) return 0;
    throwFreeStack(arguments_);
    return kThrown;
  }

  Taken fail(const Job& job) const {
    throwRange(arguments_.env(), "%s: the run at %zu has packets that cannot be", arguments_.function(), job.first);
    return Taken::kThrown;
  }
  Taken noRoom() const {
    throwRange(arguments_.env(), "%s: out has %zu elements, which are too few", arguments_.function(), out.length);
    return Taken::kThrown;
  }
  Taken damaged() const {
    throwFreeStack(arguments_);
    return Taken::kThrown;
  }

  /** Recovers a block, as recoverBlock does, of which some repairs say nothing new, seldom as that is, with all that it has. */
  __attribute__((noinline, cold)) int32_t recoverOfAll(const Job& job, BlockSymbols& taken, int32_t like) {
    rows_.clear();
    if (!addSeeds(job, taken.repairs())) return kThrown;
    rows_.draw();
    const Combinations combinations = {rows_.take(taken.repairs()), rows_.stride(), taken.repairs()};
    return recoverBlock(arguments_, memory_, taken, like, &combinations);
  }

  /** Draws as many combinations of the whole block `own` and of those behind it as each misses sources; false after throwing. */
  bool drawNeeded(const Job& own) {
    Job job = own;
    for (size_t run = run_, first = own.first; job.wanted > 0 && rows_.hasRoom();) {
      if (!addSeeds(job, job.wanted - job.sources)) return false;
      run += RunWord::kWords;
      first += job.packets;
      if (first >= end_ || !isNext(run, first)) break;
      if (!read(run, first, &job)) return false;
    }
    rows_.draw();
    return true;
  }

  /** Adds the combinations of the first `count` repairs of a run; false after throwing. */
  bool addSeeds(const Job& job, size_t count) {
    const size_t from = job.first + job.sources;
    const size_t bytes = memory_.bytes();
    for (size_t at = from; at < from + count; at++) {
      uint32_t seed;
      if (at >= job.first + job.packets || !memory_.wordBefore(loadOnce(packets.data + at), bytes, &seed)) {
        fail(job);
        return false;
      }
      rows_.add(seed, job.wanted);
    }
    return true;
  }

  /** The symbols of a whole block; nothing where they cannot be those of one. */
  std::optional<BlockSymbols> symbolsOf(const Job& job) {
    // Nobody else sees these: they stay in registers.
    BlockSymbols blockSymbols(arguments_.state(), job.wanted, std::max(job.repairBytes, kLengthBytes));
    if (!find(job)) return std::nullopt;
    const int32_t* const words = headers.data + job.first;
    int32_t longest = 0;
    size_t next = 0;
    for (size_t at = 0; at < job.sources; at++) {
      const auto index = static_cast<size_t>(loadOnce(words + at) & 255);
      if (index < next || index >= job.wanted) return std::nullopt;
      next = index + 1;
      longest = std::max(longest, taken_[at].length);
      blockSymbols.addSource(index, taken_[at]);
    }
    blockSymbols.endSources();
    top_ = next;
    longest_ = longest;
    next = 0;
    for (size_t at = job.sources; at < job.packets; at++) {
      const auto index = static_cast<size_t>(loadOnce(words + at) & 255);
      if (index < next || index >= job.r) return std::nullopt;
      next = index + 1;
      repairs_[at - job.sources] = static_cast<uint8_t>(index);
      blockSymbols.addRepair(index, taken_[at]);
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

  /** Puts the payloads of a run's sources behind what is sent. */
  void sendSources(const Job& job) {
    int32_t* const sent = out.data + sent_;
    int32_t *const offset = memory_.offset, *const length = memory_.length;
    const uint8_t* const data = memory_.data;
    size_t bytes = 0;
    for (size_t at = 0; at < job.sources; at++) {
      const Packet packet = taken_[at];
      offset[packet.handle] = static_cast<int32_t>(packet.data - data) + kLengthBytes;
      length[packet.handle] = packet.length - kLengthBytes;
      bytes += static_cast<size_t>(packet.length - kLengthBytes);
      sent[at] = packet.handle;
    }
    bytes_ += bytes;
    sent_ += job.sources;
  }

  /** The same of those that were recovered, and notes how to know them again that may still come. */
  void sendMade(const Job& job, size_t missing) {
    const RecoveryScratch& made = arguments_.state().recovery;
    for (size_t m = 0; m < missing; m++) {
      const auto index = static_cast<size_t>(made.erasures.missing[m]);
      const auto [handle, symbol] = made.made[m];
      const bool isReplaced = replaces_ && index < top_;
      window.symbols[job.base + index] = isReplaced ? kReplaced : kRecovered;
      if (!isReplaced) window.sums[job.base + index] = static_cast<int32_t>(crcOf(symbol + kLengthBytes, static_cast<size_t>(payloads_[m])));
      memory_.offset[handle] = static_cast<int32_t>(symbol - memory_.data) + kLengthBytes;
      memory_.length[handle] = payloads_[m];
      bytes_ += static_cast<size_t>(payloads_[m]);
      out.data[sent_++] = handle;
    }
  }

  /** Gives the repairs of a run back, and notes that they have come, of a block of `sources` sources; false where the free stack is damaged. */
  bool noteRepairs(const Job& job, size_t sources) {
    const size_t base = job.base + job.k, count = job.packets - job.sources;
    const auto shape = static_cast<int32_t>(static_cast<uint32_t>(job.repairBytes) << 8 | static_cast<uint32_t>(sources));
    for (size_t n = 0; n < count; n++) {
      window.symbols[base + repairs_[n]] = kSeen;
      window.shapes[base + repairs_[n]] = shape;
    }
    return memory_.release(taken_ + job.sources, count);
  }

  Arguments& arguments_;
  const Memory& memory_;
  const bool isRandom_;
  CombinationRows rows_;
  /** Where the next run's words and its packets begin, and where the packets end; the window. */
  size_t run_ = 0, first_ = 0, end_ = 0, places_ = 0;
  uint32_t newest_ = 0;
  int32_t shape_ = 0, session_ = 0;
  bool replaces_ = false, isRead_ = false;
  /** What was done. */
  size_t sent_ = 0, bytes_ = 0, sources_ = 0, recovered_ = 0, redundant_ = 0, spent_ = 0, expected_ = 0, lost_ = 0, usual_ = 0;
  int32_t held_ = 0;
  /** The packets of the block at hand, the index behind its last source, bytes of the longest, and the indices of its repairs. */
  const Packet* taken_ = nullptr;
  Packet lookedUp_[kMostPackets];
  size_t top_ = 0;
  int32_t longest_ = 0;
  uint8_t repairs_[kMaxSymbols];
  /** Bytes of the payloads that were recovered. */
  int32_t payloads_[kMaxSymbols];
};

napi_value blocksPass(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "blocksPass", 7);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const bool isRandom = arguments.boolean(1, "random");
  OrderedRuns runs(arguments, *memory, isRandom ? BlockCode::kRandom : BlockCode::kCauchy);
  runs.packets = arguments.int32s(2, "packets", 0);
  runs.headers = arguments.int32s(3, "headers", 0);
  const Span<int32_t> window = arguments.int32s(4, "window", Window::kWords);
  runs.words = arguments.int32s(5, "pass", Pass::kWords);
  runs.out = arguments.int32s(6, "out", 0);
  if (arguments.failed()) return nullptr;
  runs.window = Window(window.data);
  if (arguments.given() > 7 && !runs.readHeaders(7)) return nullptr;
  if (!runs.begin() || !runs.takeAll()) return nullptr;
  runs.end();
  return nullptr;
}

}  // namespace penstock
