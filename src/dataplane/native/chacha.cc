/** The ChaCha stream cipher over packets in place, in batches: the portable kernel, the choice of kernel, the calls from JavaScript. */
#include "chacha.h"

#include <openssl/crypto.h>
#include <string.h>

#include <atomic>

#include "descriptors.h"
#include "salted.h"

namespace penstock {

static constexpr size_t kKey = 32;
static constexpr size_t kNonce = 12;
static constexpr size_t kConstant = 16;

static uint32_t littleAt(const uint8_t* from) {
  return static_cast<uint32_t>(from[0]) | static_cast<uint32_t>(from[1]) << 8 | static_cast<uint32_t>(from[2]) << 16 |
         static_cast<uint32_t>(from[3]) << 24;
}

static uint32_t turned(uint32_t x, int by) { return x << by | x >> (32 - by); }

/** RFC 8439, section 2.1. */
static void quarter(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
  a += b, d = turned(d ^ a, 16);
  c += d, b = turned(b ^ c, 12);
  a += b, d = turned(d ^ a, 8);
  c += d, b = turned(b ^ c, 7);
}

static void encryptPortable(const ChachaKey& key, const ChachaLanes& lanes) {
  for (size_t lane = 0; lane < lanes.count; lane++) {
    uint32_t first[16], v[16];
    memcpy(first, key.words, sizeof first);
    first[12] = lanes.counter[lane];
    first[14] = lanes.nonce1[lane];
    first[15] = lanes.nonce2[lane];
    memcpy(v, first, sizeof v);
    for (int round = 0; round < key.rounds; round += 2) {
      for (int i = 0; i < 4; i++) quarter(v[i], v[4 + i], v[8 + i], v[12 + i]);
      for (int i = 0; i < 4; i++) quarter(v[i], v[4 + (i + 1) % 4], v[8 + (i + 2) % 4], v[12 + (i + 3) % 4]);
    }
    uint8_t stream[kChachaBlock];
    for (int i = 0; i < 16; i++) {
      const uint32_t word = v[i] + first[i];
      for (int byte = 0; byte < 4; byte++) stream[4 * i + byte] = static_cast<uint8_t>(word >> (8 * byte));
    }
    chachaMask(lanes.data[lane], stream, lanes.length[lane]);
  }
}

static const ChachaKernel portable = {"portable", encryptPortable, [] { return true; }};

static const ChachaKernel* kernelAt(size_t index) {
  return index < chachaArchKernelCount ? &chachaArchKernels[index] : &portable;
}

static const ChachaKernel* fastest() {
  size_t index = 0;
  while (!kernelAt(index)->supported()) index++;
  return kernelAt(index);
}

static std::atomic<const ChachaKernel*>& current() {
  static std::atomic<const ChachaKernel*> kernel{fastest()};
  return kernel;
}

napi_value chachaKernels(napi_env env, napi_callback_info) {
  napi_value list = nullptr;
  napi_create_array(env, &list);
  uint32_t length = 0;
  for (size_t i = 0; i <= chachaArchKernelCount; i++) {
    if (kernelAt(i)->supported()) napi_set_element(env, list, length++, toString(env, kernelAt(i)->name));
  }
  return list;
}

napi_value chachaKernel(napi_env env, napi_callback_info) { return toString(env, current().load()->name); }

napi_value chachaUse(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "chachaUse", 1);
  const std::string name = arguments.string(0, "kernel", 63);
  if (arguments.failed()) return nullptr;
  for (size_t i = 0; i <= chachaArchKernelCount; i++) {
    if (name == kernelAt(i)->name && kernelAt(i)->supported()) {
      current().store(kernelAt(i));
      return nullptr;
    }
  }
  throwRange(env, "chachaUse: this CPU has no kernel \"%s\"", name.c_str());
  return nullptr;
}

struct Chacha : Descriptor {
  Chacha() : Descriptor(Kind::chacha, -1) {}
  ~Chacha() override { OPENSSL_cleanse(&key, sizeof key); }
  ChachaKey key;
  uint8_t nonce[kNonce];
};

napi_value chachaOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "chachaOpen", 5);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  Span<uint8_t> key = arguments.bytes(1, "key", kKey);
  Span<uint8_t> nonce = arguments.bytes(2, "nonce", kNonce);
  Span<uint8_t> constant = arguments.bytes(3, "constant", kConstant);
  const int64_t rounds = arguments.integer(4, "rounds", 8, 20);
  if (arguments.failed()) return nullptr;
  if (rounds % 2) {
    throwRange(env, "chachaOpen: rounds must be even, not %d", static_cast<int>(rounds));
    return nullptr;
  }
  auto chacha = std::make_unique<Chacha>();
  for (size_t i = 0; i < 4; i++) chacha->key.words[i] = littleAt(constant.data + 4 * i);
  for (size_t i = 0; i < 8; i++) chacha->key.words[4 + i] = littleAt(key.data + 4 * i);
  memcpy(chacha->nonce, nonce.data, kNonce);
  chacha->key.words[12] = 0;
  for (size_t i = 0; i < 3; i++) chacha->key.words[13 + i] = littleAt(chacha->nonce + 4 * i);
  chacha->key.rounds = static_cast<int>(rounds);
  return adopt(arguments, owner, std::move(chacha));
}

/** Gathers blocks, of one packet after the other, until there are as many as a kernel takes. */
class Gathering {
 public:
  explicit Gathering(const Chacha& chacha) : chacha_(chacha), kernel_(*current().load(std::memory_order_relaxed)) {
    memset(&lanes_, 0, sizeof lanes_);
  }

  /** `length` bytes at `data`, which stay as they are until `finish`, with the nonce of the packet `counter`. */
  void add(uint64_t counter, uint8_t* data, size_t length) {
    uint8_t nonce[8];
    putBig(nonce, counter ^ bigAt(chacha_.nonce + 4));
    const uint32_t nonce1 = littleAt(nonce), nonce2 = littleAt(nonce + 4);
    for (uint32_t block = 0; length > 0; block++) {
      const size_t part = length < kChachaBlock ? length : kChachaBlock;
      const size_t lane = lanes_.count++;
      lanes_.counter[lane] = block;
      lanes_.nonce1[lane] = nonce1;
      lanes_.nonce2[lane] = nonce2;
      lanes_.data[lane] = data;
      lanes_.length[lane] = static_cast<uint8_t>(part);
      data += part;
      length -= part;
      if (lanes_.count == kChachaLanes) finish();
    }
  }

  void finish() {
    if (lanes_.count > 0) kernel_.encrypt(chacha_.key, lanes_);
    lanes_.count = 0;
  }

 private:
  const Chacha& chacha_;
  const ChachaKernel& kernel_;
  ChachaLanes lanes_;
};

napi_value chachaEncrypt(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "chachaEncrypt", 7);
  Lease<Chacha> chacha(arguments, 0, "chacha", Kind::chacha, true);
  const Span<uint8_t> salt = arguments.bytes(4, "salt", kSalt);
  const NumberedArguments given(arguments, 5);
  uint64_t next;
  if (!given.numbered(arguments, &next)) return nullptr;
  Memory* memory = given.memory;
  int32_t failures = 0;
  Gathering gathering(*chacha);
  for (size_t i = 0; i < given.count; i++) {
    Packet& packet = arguments.state().packets[i];
    uint8_t* slot = memory->slot(packet.handle);
    if (!memory->settle(&packet) || packet.data - slot < kSaltedHeader || packet.data + packet.length > slot + memory->slotBytes) {
      given.failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    uint8_t* header = packet.data - kSaltedHeader;
    memcpy(header, salt.data, kSalt);
    putBig(header + kSalt, next);
    gathering.add(next++, packet.data, static_cast<size_t>(packet.length));
    memory->offset[packet.handle] = static_cast<int32_t>(header - memory->data);
    memory->length[packet.handle] = packet.length + kSaltedHeader;
  }
  gathering.finish();
  given.counter.data[0] = static_cast<double>(next);
  return toInteger(env, failures);
}

napi_value chachaDecrypt(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "chachaDecrypt", 5);
  Lease<Chacha> chacha(arguments, 0, "chacha", Kind::chacha, true);
  const PacketsArguments given(arguments);
  Span<int32_t> failed = arguments.int32s(4, "failed", given.count);
  if (!given.packets(arguments)) return nullptr;
  Memory* memory = given.memory;

  int32_t failures = 0;
  Gathering gathering(*chacha);
  for (size_t i = 0; i < given.count; i++) {
    const Packet& packet = arguments.state().packets[i];
    const uint64_t counter = packet.length < kSaltedHeader ? ~0ull : bigAt(packet.data + 8);
    if (counter >= static_cast<uint64_t>(kCounterEnd)) {
      failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    uint8_t* text = packet.data + kSaltedHeader;
    gathering.add(counter, text, static_cast<size_t>(packet.length - kSaltedHeader));
    memory->offset[packet.handle] = static_cast<int32_t>(text - memory->data);
    memory->length[packet.handle] = packet.length - kSaltedHeader;
  }
  gathering.finish();
  return toInteger(env, failures);
}

}  // namespace penstock
