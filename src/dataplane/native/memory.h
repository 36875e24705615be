/** A run's packet memory as the addon sees it: checked slots, the free stack, and what a thread keeps between calls. */
#pragma once
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <unordered_map>
#include <vector>

#include "arguments.h"
#include "block_recovery.h"
#include "cauchy.h"
#include "elimination.h"
#include "known_packets.h"
#include "word_runs.h"

namespace penstock {

constexpr size_t kRemoteBytes = 32;
constexpr size_t kOrdinalByte = 1;

/** The arrays are shared with JavaScript, which may write them at any time: every value is loaded once, then checked. */
inline int32_t loadOnce(const int32_t* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }

constexpr size_t kTrainBytes = 65536;

struct Memory {
  int32_t id = 0;
  napi_ref reference = nullptr;
  uint8_t* data = nullptr;
  int32_t* offset = nullptr;
  int32_t* length = nullptr;
  double* arrival = nullptr;
  uint8_t* remote = nullptr;
  double* client = nullptr;
  int32_t* free = nullptr;
  int32_t* train = nullptr;
  int32_t* trainReferences = nullptr;
  int32_t* trainFree = nullptr;
  int32_t slots = 0;
  int32_t trains = 0;
  int32_t slotBytes = 0;
  int32_t headroom = 0;
  int32_t tailroom = 0;

  int32_t room() const { return slotBytes - headroom - tailroom; }
  size_t slotsEnd() const { return static_cast<size_t>(slots) * static_cast<size_t>(slotBytes); }
  size_t bytes() const { return slotsEnd() + static_cast<size_t>(trains) * kTrainBytes; }
  uint8_t* trainAt(int32_t index) const { return data + slotsEnd() + static_cast<size_t>(index) * kTrainBytes; }
  uint8_t* fresh(int32_t handle) const {
    return data + static_cast<size_t>(handle) * static_cast<size_t>(slotBytes) + headroom;
  }
  uint8_t* slot(int32_t handle) const {
    return data + static_cast<size_t>(handle) * static_cast<size_t>(slotBytes);
  }
  uint8_t* remoteOf(int32_t handle) const { return remote + static_cast<size_t>(handle) * kRemoteBytes; }

  /** The train that a packet lies in, -1 for its own slot; not checked. */
  int32_t trainOf(int32_t handle) const { return trainIn(train, handle); }
  static int32_t trainIn(const int32_t* train, int32_t handle) {
    return static_cast<int32_t>(static_cast<uint32_t>(loadOnce(train + handle)) - 1u);
  }
  void putInTrain(int32_t handle, int32_t index) const { train[handle] = index + 1; }

  /** Looks a packet up; false when the handle, its offset or its length lead outside of its slot. */
  bool packet(int32_t handle, Packet* out) const {
    if (handle < 0 || handle >= slots) return false;
    const int32_t index = trainOf(handle);
    if (index >= trains) return false;
    const auto begin = static_cast<uint64_t>(index < 0 ? slot(handle) - data : trainAt(index) - data);
    const uint64_t room = index < 0 ? static_cast<uint64_t>(slotBytes) : kTrainBytes;
    // A negative number is more than any room.
    const auto at = static_cast<uint64_t>(static_cast<int64_t>(loadOnce(offset + handle)));
    const auto size = static_cast<uint64_t>(static_cast<int64_t>(loadOnce(length + handle)));
    if (at - begin > room || size > room - (at - begin)) return false;
    out->data = data + at;
    out->length = static_cast<int32_t>(size);
    out->handle = handle;
    return true;
  }

  /** Reads the word in front of a packet, big-endian, of which only that is checked that it lies in the slab; false where it does not. */
  bool wordBefore(int32_t handle, size_t size, uint32_t* word) const {
    if (static_cast<uint32_t>(handle) >= static_cast<uint32_t>(slots)) return false;
    // Less than a word from the beginning is more than any slab has.
    const uint32_t at = static_cast<uint32_t>(loadOnce(offset + handle)) - sizeof *word;
    if (at > size - sizeof *word) return false;
    memcpy(word, data + at, sizeof *word);
    *word = __builtin_bswap32(*word);
    return true;
  }

  /** How many of `count` handles name packets as long as `last` that lie behind it in its train one after the other, `room` bytes of them at most. */
  size_t following(const int32_t* handles, size_t count, const Packet& last, int32_t room) const {
    const int32_t index = trainOf(last.handle);
    if (index < 0 || index >= trains) return 0;
    const int64_t end = trainAt(index) + kTrainBytes - data;
    const int64_t at = last.data + last.length - data;
    const int64_t bytes = std::min<int64_t>(end - at, room);
    if (bytes < last.length) return 0;
    count = std::min(count, static_cast<size_t>(bytes / last.length));
    // Most have slots side by side (`release`): of these each array is looked at by itself.
    const int32_t next = last.handle + 1;
    const size_t neighbours = risingWords(handles, std::min(count, static_cast<size_t>(slots - next)), next, 1);
    size_t n = equalWords(train + next, neighbours, index + 1);
    n = equalWords(length + next, n, last.length);
    n = risingWords(offset + next, n, static_cast<int32_t>(at), last.length);
    if (n < neighbours) return n;
    for (int64_t behind = at + static_cast<int64_t>(n) * last.length; n < count; n++, behind += last.length) {
      const int32_t handle = loadOnce(handles + n);
      if (static_cast<uint32_t>(handle) >= static_cast<uint32_t>(slots) || trainOf(handle) != index || loadOnce(offset + handle) != behind ||
          loadOnce(length + handle) != last.length) {
        break;
      }
    }
    return n;
  }

  /** How many slots are free; -1 when the stack is damaged. */
  int32_t freeCount() const {
    const int32_t count = loadOnce(free);
    return count < 0 || count > slots ? -1 : count;
  }
  /** What the stack of all of `size` has in `place` for one of them, and the other way around: 0 stands for what is there in the beginning. */
  static int32_t coded(int32_t size, int32_t place, int32_t free) { return free + place - size; }
  static int32_t decoded(int32_t size, int32_t place, int32_t value) {
    return static_cast<int32_t>(static_cast<uint32_t>(value) + static_cast<uint32_t>(size - place));
  }
  /** The handle `depth` below the top of a stack of `count`; -1 when the stack is damaged. */
  int32_t freeAt(int32_t count, int32_t depth) const {
    const int32_t place = count - depth;
    const int32_t handle = decoded(slots, place, loadOnce(free + place));
    return handle < 0 || handle >= slots ? -1 : handle;
  }
  /**
   * How many of the topmost `most` of a stack of `count`, beginning with the top, are neighbours, each with the handle behind the last; 0 when the stack is damaged.
   * `first` is the handle of the top.
   */
  int32_t freeRun(int32_t count, int32_t most, int32_t* first) const {
    *first = freeAt(count, 0);
    if (*first < 0) return 0;
    most = std::min(most, slots - *first);
    const int32_t value = coded(slots, count, *first);
    int32_t run = 1;
    while (run < most && loadOnce(free + count - run) == value) run++;
    return run;
  }
  /** The topmost of the stack of free trains, `most` of them at most; how many, 0 when there is none or the stack is damaged. They stay there until taken. */
  int32_t nextTrains(int32_t* indices, int32_t most) const {
    const int32_t count = loadOnce(trainFree);
    if (count <= 0 || count > trains) return 0;
    const int32_t wanted = std::min(most, count);
    for (int32_t i = 0; i < wanted; i++) {
      const int32_t index = decoded(trains, count - i, loadOnce(trainFree + count - i));
      if (index < 0 || index >= trains) return i;
      indices[i] = index;
    }
    return wanted;
  }
  /** Takes the first `count` of the trains that `nextTrains` named. */
  void takeTrains(int32_t count) const { trainFree[0] = loadOnce(trainFree) - count; }
  /** Gives back a train that no packet lies in; false when the stack is damaged. */
  bool putTrain(int32_t index) const {
    const int32_t count = loadOnce(trainFree);
    if (count < 0 || count >= trains) return false;
    trainFree[count + 1] = coded(trains, count + 1, index);
    trainFree[0] = count + 1;
    return true;
  }
  /** The packet's bytes are no longer in its train; the last one frees it. False when the bookkeeping is damaged. */
  bool leaveTrain(int32_t handle) const {
    const int32_t index = trainOf(handle);
    if (index < 0) return true;
    train[handle] = 0;
    return dropTrain(index, 1);
  }
  /** `packets` packets have left the train. */
  bool dropTrain(int32_t index, int32_t packets) const {
    if (index >= trains) return false;
    // Without a sign: what JavaScript may have written there can be any number.
    const auto references = static_cast<int32_t>(static_cast<uint32_t>(loadOnce(trainReferences + index)) -
                                                 static_cast<uint32_t>(packets));
    trainReferences[index] = references;
    return references != 0 || putTrain(index);
  }
  /** Moves a packet out of its train into its own slot, where it has room to grow; false when it does not fit. */
  bool settle(Packet* packet) const {
    if (trainOf(packet->handle) < 0) return true;
    if (packet->length > slotBytes - headroom) return false;
    uint8_t* to = fresh(packet->handle);
    memcpy(to, packet->data, static_cast<size_t>(packet->length));
    offset[packet->handle] = static_cast<int32_t>(to - data);
    packet->data = to;
    return leaveTrain(packet->handle);
  }
  /**
   * Gives back `count` packets at once, so that they are taken again in this order: of packets that pass through, each batch has the slots of the one before,
   * side by side. False when the bookkeeping is damaged.
   */
  bool release(const Packet* packets, size_t count) const {
    return releaseAll(count, [packets](size_t i) { return packets[i].handle; }, [](size_t, size_t, int32_t) { return size_t{0}; });
  }
  bool release(const int32_t* handles, size_t count) const {
    return releaseAll(count, [handles](size_t i) { return loadOnce(handles + i); },
                      [handles](size_t i, size_t most, int32_t next) { return risingWords(handles + i, most, next, 1); });
  }
  /** `neighbours` says how many from the i-th on, `most` of them at most, are `next`, `next + 1`, and so on, or less. */
  template <class HandleAt, class Neighbours>
  bool releaseAll(size_t count, HandleAt handleAt, Neighbours neighbours) const {
    // Copies, which nothing that is written below can be part of, stay in registers.
    int32_t* const free = this->free;
    int32_t* const train = this->train;
    const int32_t slots = this->slots;
    const auto known = static_cast<uint32_t>(slots);
    const int32_t top = loadOnce(free);
    if (top < 0 || static_cast<size_t>(top) + count > static_cast<size_t>(slots)) return false;
    const int32_t last = top + static_cast<int32_t>(count);
    int32_t leaving = -1;
    int32_t left = 0;
    for (size_t i = 0; i < count;) {
      const int32_t handle = handleAt(i);
      if (static_cast<uint32_t>(handle) >= known) return false;
      const int32_t index = trainIn(train, handle);
      const int32_t place = last - static_cast<int32_t>(i);
      size_t run = 1;
      if (index >= 0) {
        run += neighbours(i + 1, std::min(count - i - 1, static_cast<size_t>(slots - handle - 1)), handle + 1);
        run = 1 + equalWords(train + handle + 1, run - 1, index + 1);
        std::fill_n(train + handle, run, 0);
        if (index != leaving) {
          if (leaving >= 0 && !dropTrain(leaving, left)) return false;
          leaving = index;
          left = 0;
        }
        left += static_cast<int32_t>(run);
      }
      std::fill_n(free + place + 1 - static_cast<int32_t>(run), run, coded(slots, place, handle));
      i += run;
    }
    free[0] = last;
    return leaving < 0 || dropTrain(leaving, left);
  }
  bool release(int32_t handle) const {
    if (!leaveTrain(handle)) return false;
    const int32_t count = loadOnce(free);
    if (count < 0 || count >= slots) return false;
    free[count + 1] = coded(slots, count + 1, handle);
    free[0] = count + 1;
    return true;
  }
  /** Gives `to` the annotations of `from`. */
  void annotateAs(int32_t to, int32_t from) const {
    arrival[to] = arrival[from];
    client[to] = client[from];
    memcpy(remoteOf(to), remoteOf(from), kRemoteBytes);
  }
  /** Makes `handle` a fresh packet of `size` bytes. */
  void admit(int32_t handle, int32_t size, double now, const uint8_t* from) const {
    offset[handle] = handle * slotBytes + headroom;
    length[handle] = size;
    arrival[handle] = now;
    client[handle] = -1;
    if (from) {
      memcpy(remoteOf(handle), from, kRemoteBytes);
    } else {
      memset(remoteOf(handle), 0, kRemoteBytes);
    }
  }
};

/** Indices into the counters a receive or send call adds to: IO_COUNTERS of native.ts. */
enum Counter {
  kOversize,
  kNoSlot,
  kSocketErrors,
  kSendErrors,
  kSendBlocked,
  kMalformed,
  kReceivedBytes,
  kSocketErrno,
  kSendErrno,
  kCounters
};

/** Packets that leave as one message, and the pieces of memory they lie in. */
struct SendGroup {
  uint32_t first;
  uint32_t packets;
  uint32_t piece;
  uint32_t pieces;
  /** Bytes of each packet but the last, which may be shorter. */
  int32_t size;
};

class SlidingWindow;

/**
 * Of a block of packets, its products: where in their slots they begin, bytes of their symbols, whose annotations they get, and of what they are products, some of
 * them shorter or none.
 */
struct ProductPackets {
  int64_t start, symbol;
  int32_t like;
  bool padded;
  const uint8_t* const* sources;
  const int32_t* lengths;
};

/** What one thread (one Node environment) keeps between calls. */
struct State {
  ~State();

  std::vector<Memory> memories;
  /** The packets of the send in hand. */
  std::vector<Packet> packets;
  /** Those whose headers were read last. */
  KnownPackets received;
  /** Those that were framed last. */
  FramedBlocks framed;
  std::vector<iovec> iovecs;
  std::vector<mmsghdr> messages;
  std::vector<sockaddr_storage> names;
  std::vector<uint8_t> controls;
  std::vector<SendGroup> groups;
  std::vector<int32_t> lengths;
  std::vector<const uint8_t*> sources;
  std::vector<uint8_t*> targets;
  std::vector<ProductPackets> made;
  /** The last matrix multiplied by, and its coefficients as bit matrices. */
  std::vector<uint8_t> matrix;
  size_t matrixK = 0;
  std::vector<uint64_t> coefficients;
  EliminationScratch elimination;
  DecodingMatrices decodingMatrices;
  RecoveryScratch recovery;
  std::unordered_map<int32_t, std::shared_ptr<SlidingWindow>> slidingWindows;
  int32_t lastSlidingWindow = 0;
  /** Where bytes go that no slot was predicted for, and where a mispredicted train is put together again. */
  std::unique_ptr<uint8_t[]> overflow{new uint8_t[kTrainBytes]};
  std::unique_ptr<uint8_t[]> linear{new uint8_t[2 * kTrainBytes]};
};

/** The memory named by argument `index`; nullptr after throwing. */
Memory* memoryArgument(Arguments& arguments, size_t index);

/** Looks up `count` packets, as `Memory::packet` does each; how many there are in front of the first that is none. */
size_t lookUp(const Memory& memory, const int32_t* handles, size_t count, Packet* packets);

/** The same without vectors. */
size_t lookUpOneByOne(const Memory& memory, const int32_t* handles, size_t count, Packet* packets);

/** Throws that `handles[index]` is no packet. */
void throwPacket(Arguments& arguments, const Memory& memory, size_t index, int32_t handle);

/**
 * Checks `handles[from..from+count)` and puts their places into `state().packets`; throws and returns false when one leads
 * outside of its slot.
 */
bool packetsArgument(Arguments& arguments, const Memory& memory, Span<int32_t> handles, size_t from, size_t count);

/** The same with a place for them. */
bool packetsArgument(Arguments& arguments, const Memory& memory, Span<int32_t> handles, size_t from, size_t count, Packet* packets);

/** Throws what a damaged free stack deserves. */
void throwFreeStack(Arguments& arguments);

napi_value memoryOpen(napi_env env, napi_callback_info info);
napi_value memoryClose(napi_env env, napi_callback_info info);
napi_value giveBackPages(napi_env env, napi_callback_info info);
napi_value bytesToCacheLine(napi_env env, napi_callback_info info);
napi_value trimHeap(napi_env env, napi_callback_info info);
napi_value hasAddressSpace(napi_env env, napi_callback_info info);

/** Has glibc keep little of what the threads of this process have freed, from now on; once for a process. */
void keepLittleFreed();

}  // namespace penstock
