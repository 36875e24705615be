/** Authenticated encryption of packets in place, in batches, with the backend in use when the key was set. */
#include "aead.h"

#include <string.h>

#include <algorithm>

#include "aead_backend.h"
#include "descriptors.h"
#include "replay_window.h"
#include "salted.h"

namespace penstock {

static constexpr int kTag = static_cast<int>(kAeadTag);
/** Header and tag of an empty text. */
static constexpr int kLeast = kSaltedHeader + kTag;

/** What became of a packet: AEAD_OUTCOMES of native.ts. */
enum class Outcome : uint8_t { opened, forged, replayed, malformed };

/** 16 bytes written by one store: the cipher reads them at once and right away, which after two stores takes until both are in the cache. */
typedef uint64_t Words __attribute__((vector_size(16)));

/** 4 bytes of zeros and a counter as its 8 bytes stand in the header. */
struct alignas(16) Nonce {
  explicit Nonce(uint64_t big) {
    const Words words = {big << 32, big >> 32};
    memcpy(bytes, &words, sizeof words);
  }
  uint8_t bytes[16];
};

/** What a run of a sender has: key and salt, and for its receiver the counters that have come. */
struct Aead : Descriptor {
  Aead(bool clear, std::unique_ptr<AeadKey> key, const uint8_t* salt) : Descriptor(Kind::aead, -1), clear(clear), key(std::move(key)) {
    memcpy(this->salt, salt, sizeof this->salt);
  }

  /** `length` bytes at `text` behind their header and before their tag; in clear they are associated data, as the header is. */
  template <bool Clear>
  static AeadMessage message(const uint8_t* nonce, const uint8_t* header, uint8_t* text, int length, const uint8_t* from = nullptr) {
    const auto bytes = static_cast<size_t>(length);
    if (Clear) return {nonce, text - kSaltedHeader, kSaltedHeader + bytes, text + length, 0, text + length};
    return {nonce, header, kSaltedHeader, text, bytes, text + length, from};
  }

  /** Opens `packet`, which has header and tag, and takes note of its counter. */
  template <bool Clear>
  Outcome open(AeadKey& with, const Memory& memory, Packet packet) {
    // The cipher reads the header where it lies: a copy made just before would not be in the cache yet.
    const uint8_t* header = packet.data;
    const uint64_t counter = bigAt(header + kSalt);
    if (counter >= static_cast<uint64_t>(kCounterEnd)) return Outcome::forged;
    const Nonce nonce(__builtin_bswap64(counter));
    uint8_t* text = packet.data + kSaltedHeader;
    const int length = packet.length - kSaltedHeader - kTag;
    if (!with.open(message<Clear>(nonce.bytes, header, text, length))) return Outcome::forged;
    memory.offset[packet.handle] = static_cast<int32_t>(text - memory.data);
    memory.length[packet.handle] = length;
    return window.accept(counter) ? Outcome::opened : Outcome::replayed;
  }

  /** Opens `count` packets one by one; whether all were. */
  template <bool Clear>
  bool openAll(const Memory& shared, const Packet* packets, size_t count, uint8_t* outcome) {
    // Nobody else sees this one: what is in it is not loaded again after each packet.
    const Memory memory = shared;
    AeadKey& with = *key;
    uint8_t worst = 0;
    for (size_t i = 0; i < count; i++) {
      const Outcome became = packets[i].length < kLeast ? Outcome::malformed : open<Clear>(with, memory, packets[i]);
      outcome[i] = static_cast<uint8_t>(became);
      worst |= outcome[i];
    }
    return worst == static_cast<uint8_t>(Outcome::opened);
  }

  const bool clear;
  const std::unique_ptr<AeadKey> key;
  uint8_t salt[kSalt];
  ReplayWindow window;
};

/** A key of the suite argument; null after throwing. */
static std::unique_ptr<AeadKey> keyArgument(Arguments& arguments, size_t index, int64_t suite) {
  const Span<uint8_t> bytes = arguments.bytes(index, "key", 0);
  if (arguments.failed()) return nullptr;
  const auto cipher = static_cast<AeadSuite>(suite < 3 ? suite : 2);
  const size_t wanted = aeadKeyBytes(cipher);
  if (bytes.length != wanted) {
    throwRange(arguments.env(), "%s: the key has %zu bytes, suite %d needs %zu", arguments.function(), bytes.length,
               static_cast<int>(suite), wanted);
    return nullptr;
  }
  const AeadBackend& backend = aeadBackendInUse();
  std::unique_ptr<AeadKey> key = backend.key(cipher, bytes.data);
  if (!key) {
    const std::string message = std::string(arguments.function()) + ": " + backend.name + " refused the cipher";
    napi_throw_error(arguments.env(), "ERR_CRYPTO_OPERATION_FAILED", message.c_str());
  }
  return key;
}

napi_value aeadOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadOpen", 4);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const int64_t suite = arguments.integer(1, "suite", 0, 3);
  std::unique_ptr<AeadKey> key = keyArgument(arguments, 2, suite);
  if (!key) return nullptr;
  const Span<uint8_t> salt = arguments.bytes(3, "salt", kSalt);
  if (arguments.failed()) return nullptr;
  return adopt(arguments, owner, std::make_unique<Aead>(suite == 3, std::move(key), salt.data));
}

/** Fewer packets are sealed where they lie: the train that they would hold is worth more. */
static constexpr size_t kMinTogether = 16;

/** Free trains, filled with packets side by side as those of one message to the kernel lie best. */
class Filling {
 public:
  explicit Filling(const Memory& memory) : memory_(memory) {}
  ~Filling() { end(); }
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  /** Where the next packet of `bytes` bytes begins; null when it is longer than a train, or no train is free. */
  uint8_t* next(size_t bytes) {
    if (bytes <= left_) return at_;
    end();
    if (bytes > kTrainBytes || memory_.nextTrains(&index_, 1) == 0) return nullptr;
    memory_.takeTrains(1);
    memory_.trainReferences[index_] = 0;
    at_ = memory_.trainAt(index_);
    left_ = kTrainBytes;
    return at_;
  }
  /** What was written there is the packet `handle` from now on, which is in no train any more. */
  void put(int32_t handle, size_t bytes) {
    memory_.putInTrain(handle, index_);
    packets_++;
    at_ += bytes;
    left_ -= bytes;
  }

 private:
  /** The packets written keep the train; without any it is free again. */
  void end() {
    if (index_ >= 0) memory_.dropTrain(index_, -packets_);
    index_ = -1;
    packets_ = 0;
    left_ = 0;
  }

  const Memory& memory_;
  int32_t index_ = -1;
  int32_t packets_ = 0;
  uint8_t* at_ = nullptr;
  size_t left_ = 0;
};

/** Where the header of `packet` goes when it is sealed in its slot; null when it has no room there. */
static uint8_t* headerInSlot(const Memory& memory, Packet* packet) {
  if (!memory.settle(packet)) return nullptr;
  const uint8_t* slot = memory.slot(packet->handle);
  const bool fits = packet->data - slot >= kSaltedHeader && slot + memory.slotBytes - (packet->data + packet->length) >= kTag;
  return fits ? packet->data - kSaltedHeader : nullptr;
}

napi_value aeadSeal(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadSeal", 7);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  const NumberedArguments given(arguments, 4);
  const bool together = arguments.boolean(6, "together");
  uint64_t next;
  if (!given.numbered(arguments, &next)) return nullptr;
  Memory* memory = given.memory;
  uint64_t salt;
  memcpy(&salt, aead->salt, sizeof salt);
  int32_t failures = 0;
  const bool fills = together && !aead->clear && given.count >= kMinTogether;
  Filling filling(*memory);
  for (size_t i = 0; i < given.count; i++) {
    Packet& packet = arguments.state().packets[i];
    const int32_t bytes = packet.length + kSaltedHeader + kTag;
    uint8_t* header = fills ? filling.next(static_cast<size_t>(bytes)) : nullptr;
    const bool moves = header != nullptr;
    if (!moves) header = headerInSlot(*memory, &packet);
    if (!header) {
      given.failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    const Words salted = {salt, __builtin_bswap64(next)};
    memcpy(header, &salted, sizeof salted);
    const Nonce nonce(salted[1]);
    // The counter is spent whether or not the backend succeeds: a nonce is never used twice.
    next++;
    uint8_t* text = header + kSaltedHeader;
    const AeadMessage message = aead->clear ? Aead::message<true>(nonce.bytes, header, text, packet.length)
                                            : Aead::message<false>(nonce.bytes, header, text, packet.length, packet.data);
    if (!aead->key->seal(message)) {
      given.failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    memory->offset[packet.handle] = static_cast<int32_t>(header - memory->data);
    memory->length[packet.handle] = bytes;
    if (!moves) continue;
    if (!memory->leaveTrain(packet.handle)) {
      throwFreeStack(arguments);
      return nullptr;
    }
    filling.put(packet.handle, static_cast<size_t>(bytes));
  }
  given.counter.data[0] = static_cast<double>(next);
  return toInteger(env, failures);
}

/** Packets that `aeadOpenPackets` looks up one by one, since those behind them may have another salt, and together from then on. */
static constexpr size_t kFirst = 2, kTogether = 16;

/** Whether a packet may have been sealed with a salt: what is too short to say so may. */
class OfSalt {
 public:
  explicit OfSalt(const uint8_t* salt) { memcpy(&salt_, salt, sizeof salt_); }
  bool operator()(const Packet& packet) const {
    uint64_t begin;
    static_assert(sizeof begin == kSalt && kLeast >= kSalt, "one word");
    if (packet.length < kLeast) return true;
    memcpy(&begin, packet.data, sizeof begin);
    return begin == salt_;
  }

 private:
  uint64_t salt_;
};

napi_value aeadOpenPackets(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadOpenPackets", 6);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  Memory* memory = memoryArgument(arguments, 1);
  const Span<int32_t> handles = arguments.int32s(2, "handles", 0);
  const auto end = static_cast<size_t>(arguments.integer(4, "end", 0, static_cast<int64_t>(handles.length)));
  const auto from = static_cast<size_t>(arguments.integer(3, "from", 0, static_cast<int64_t>(end)));
  const Span<uint8_t> outcome = arguments.bytes(5, "outcome", end);
  if (arguments.failed()) return nullptr;
  auto& packets = arguments.state().packets;
  if (packets.size() < end - from) packets.resize(end - from);
  const OfSalt ofSalt(aead->salt);
  size_t stop = from;
  // So that packets of many senders in turn do not cost a look at all behind them each.
  for (bool goesOn = true; goesOn && stop < end;) {
    const bool begins = stop == from;
    const size_t wanted = std::min(end - stop, begins ? kFirst : kTogether);
    Packet* next = packets.data() + (stop - from);
    const size_t found = (begins ? lookUpOneByOne : lookUp)(*memory, handles.data + stop, wanted, next);
    const size_t own = static_cast<size_t>(std::find_if_not(next, next + found, ofSalt) - next);
    stop += own;
    if (own == found && found < wanted) {
      throwPacket(arguments, *memory, stop, loadOnce(handles.data + stop));
      return nullptr;
    }
    goesOn = own == wanted;
  }
  uint8_t* became = outcome.data + from;
  const bool allOpened = aead->clear ? aead->openAll<true>(*memory, packets.data(), stop - from, became)
                                     : aead->openAll<false>(*memory, packets.data(), stop - from, became);
  const auto at = static_cast<int32_t>(stop);
  return toInteger(env, allOpened ? at : ~at);
}

/** One message of any nonce and associated data: suite, key, nonce, associated data, text with its tag behind it. */
struct BytesArguments {
  explicit BytesArguments(Arguments& arguments)
      : key(keyArgument(arguments, 1, arguments.integer(0, "suite", 0, 2))) {
    if (!key) {
      arguments.fail();
      return;
    }
    const Span<uint8_t> nonce = arguments.bytes(2, "nonce", kAeadNonce);
    const Span<uint8_t> associated = arguments.bytes(3, "associated", 0);
    const Span<uint8_t> bytes = arguments.bytes(4, "bytes", kAeadTag);
    if (arguments.failed()) return;
    uint8_t* tag = bytes.data + bytes.length - kAeadTag;
    message = {nonce.data, associated.data, associated.length, bytes.data, bytes.length - kAeadTag, tag};
  }
  std::unique_ptr<AeadKey> key;
  AeadMessage message;
};

napi_value aeadSealBytes(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadSealBytes", 5);
  const BytesArguments given(arguments);
  if (arguments.failed()) return nullptr;
  if (!given.key->seal(given.message)) napi_throw_error(env, "ERR_CRYPTO_OPERATION_FAILED", "aeadSealBytes: the backend failed");
  return nullptr;
}

napi_value aeadOpenBytes(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadOpenBytes", 5);
  const BytesArguments given(arguments);
  if (arguments.failed()) return nullptr;
  return toBoolean(env, given.key->open(given.message));
}

}  // namespace penstock
