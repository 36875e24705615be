/** Authenticated encryption of packets in place, in batches, with the backend in use when the key was set. */
#include "aead.h"

#include <string.h>

#include "aead_backend.h"
#include "descriptors.h"
#include "salted.h"

namespace penstock {

static constexpr int kTag = static_cast<int>(kAeadTag);

struct Aead : Descriptor {
  Aead(bool clear, std::unique_ptr<AeadKey> key) : Descriptor(Kind::aead, -1), clear(clear), key(std::move(key)) {}

  /** `length` bytes at `text` behind their header and before their tag; in clear they are associated data, as the header is. */
  AeadMessage message(const uint8_t* nonce, const uint8_t* header, uint8_t* text, int length) const {
    const auto bytes = static_cast<size_t>(length);
    if (clear) return {nonce, text - kSaltedHeader, kSaltedHeader + bytes, text + length, 0, text + length};
    return {nonce, header, kSaltedHeader, text, bytes, text + length};
  }

  const bool clear;
  const std::unique_ptr<AeadKey> key;
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
  Arguments arguments(env, info, "aeadOpen", 3);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const int64_t suite = arguments.integer(1, "suite", 0, 3);
  std::unique_ptr<AeadKey> key = keyArgument(arguments, 2, suite);
  if (!key) return nullptr;
  return adopt(arguments, owner, std::make_unique<Aead>(suite == 3, std::move(key)));
}

napi_value aeadSeal(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadSeal", 7);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  const NumberedArguments given(arguments);
  uint64_t next;
  if (!given.numbered(arguments, &next)) return nullptr;
  Memory* memory = given.memory;
  uint8_t nonce[kAeadNonce] = {};
  uint8_t salted[8];
  memcpy(salted, given.salt.data, sizeof salted);
  int32_t failures = 0;
  for (size_t i = 0; i < given.count; i++) {
    Packet& packet = arguments.state().packets[i];
    if (!memory->settle(&packet)) {
      given.failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    const uint8_t* slot = memory->slot(packet.handle);
    uint8_t* header = packet.data - kSaltedHeader;
    uint8_t* tag = packet.data + packet.length;
    if (packet.data - slot < kSaltedHeader || slot + memory->slotBytes - tag < kTag) {
      given.failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    putBig(nonce + 4, next);
    memcpy(header, salted, sizeof salted);
    memcpy(header + 8, nonce + 4, 8);
    // The counter is spent whether or not the backend succeeds: a nonce is never used twice.
    next++;
    if (!aead->key->seal(aead->message(nonce, header, packet.data, packet.length))) {
      given.failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    memory->offset[packet.handle] = static_cast<int32_t>(header - memory->data);
    memory->length[packet.handle] = packet.length + kSaltedHeader + kTag;
  }
  given.counter.data[0] = static_cast<double>(next);
  return toInteger(env, failures);
}

napi_value aeadOpenPackets(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadOpenPackets", 5);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  const PacketsArguments given(arguments);
  Span<double> counters = arguments.float64s(4, "counters", given.count);
  if (!given.packets(arguments)) return nullptr;
  Memory* memory = given.memory;

  uint8_t nonce[kAeadNonce] = {};
  int32_t opened = 0;
  for (size_t i = 0; i < given.count; i++) {
    const Packet& packet = arguments.state().packets[i];
    counters.data[i] = -1;
    if (packet.length < kSaltedHeader + kTag) continue;
    uint8_t* text = packet.data + kSaltedHeader;
    const int length = packet.length - kSaltedHeader - kTag;
    uint8_t header[kSaltedHeader];
    memcpy(header, packet.data, kSaltedHeader);
    memcpy(nonce + 4, header + 8, 8);
    const uint64_t counter = bigAt(header + 8);
    if (counter >= static_cast<uint64_t>(kCounterEnd)) continue;
    if (!aead->key->open(aead->message(nonce, header, text, length))) continue;
    memory->offset[packet.handle] = static_cast<int32_t>(text - memory->data);
    memory->length[packet.handle] = length;
    counters.data[i] = static_cast<double>(counter);
    opened++;
  }
  return toInteger(env, opened);
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
  napi_value result = nullptr;
  napi_get_boolean(env, given.key->open(given.message), &result);
  return result;
}

}  // namespace penstock
