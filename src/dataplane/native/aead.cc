/** Authenticated encryption of packets in place, in batches, with the OpenSSL that Node itself exports. */
#include "aead.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "descriptors.h"
#include "memory.h"

namespace penstock {

static constexpr int kHeader = 16;  // salt (8), counter (8)
static constexpr int kTag = 16;     // AES-GCM's (NIST SP 800-38D) and ChaCha20-Poly1305's (RFC 8439)
static constexpr int kNonce = 12;
static constexpr double kCounterEnd = 9007199254740992.0;  // 2^53

struct Aead : Descriptor {
  explicit Aead(bool clear)
      : Descriptor(Kind::aead, -1), clear(clear), seal(EVP_CIPHER_CTX_new()), open(EVP_CIPHER_CTX_new()) {}
  ~Aead() override {
    // Wipes the key schedule (OPENSSL_cleanse) before freeing it.
    EVP_CIPHER_CTX_free(seal);
    EVP_CIPHER_CTX_free(open);
  }

  /** Encrypts the payload, or in clear signs it only: a null output makes it associated data. */
  bool encrypt(uint8_t* data, int length) {
    int size = 0;
    return length == 0 || EVP_EncryptUpdate(seal, clear ? nullptr : data, &size, data, length) == 1;
  }
  bool decrypt(uint8_t* data, int length) {
    int size = 0;
    return length == 0 || EVP_DecryptUpdate(open, clear ? nullptr : data, &size, data, length) == 1;
  }

  const bool clear;
  EVP_CIPHER_CTX* seal;
  EVP_CIPHER_CTX* open;
};

napi_value aeadOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadOpen", 3);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const int64_t suite = arguments.integer(1, "suite", 0, 3);
  Span<uint8_t> key = arguments.bytes(2, "key", 0);
  if (arguments.failed()) return nullptr;
  const EVP_CIPHER* cipher = suite == 0   ? EVP_aes_128_gcm()
                             : suite == 1 ? EVP_aes_256_gcm()
                                          : EVP_chacha20_poly1305();
  const size_t wanted = suite == 0 ? 16 : 32;
  if (key.length != wanted) {
    throwRange(env, "aeadOpen: the key has %zu bytes, suite %d needs %zu", key.length, static_cast<int>(suite), wanted);
    return nullptr;
  }
  auto aead = std::make_unique<Aead>(suite == 3);
  if (!aead->seal || !aead->open || EVP_EncryptInit_ex(aead->seal, cipher, nullptr, key.data, nullptr) != 1 ||
      EVP_DecryptInit_ex(aead->open, cipher, nullptr, key.data, nullptr) != 1) {
    napi_throw_error(env, "ERR_CRYPTO_OPERATION_FAILED", "aeadOpen: OpenSSL refused the cipher");
    return nullptr;
  }
  return adopt(arguments, owner, std::move(aead));
}

static void putCounter(uint8_t* out, uint64_t counter) {
  const uint64_t big = __builtin_bswap64(counter);
  memcpy(out, &big, sizeof big);
}

napi_value aeadSeal(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadSeal", 7);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  Memory* memory = memoryArgument(arguments, 1);
  Span<int32_t> handles = arguments.int32s(2, "handles", 0);
  const auto count = static_cast<size_t>(arguments.integer(3, "count", 0, static_cast<int64_t>(handles.length)));
  Span<uint8_t> salt = arguments.bytes(4, "salt", 8);
  Span<double> counter = arguments.float64s(5, "counter", 1);
  Span<int32_t> failed = arguments.int32s(6, "failed", count);
  if (arguments.failed() || !packetsArgument(arguments, *memory, handles, 0, count)) return nullptr;
  const double first = counter.data[0];
  if (!(first >= 0 && first + static_cast<double>(count) < kCounterEnd) ||
      first != static_cast<double>(static_cast<uint64_t>(first))) {
    throwRange(env, "aeadSeal: counter %.17g is used up or no whole number below 2^53", first);
    return nullptr;
  }

  uint64_t next = static_cast<uint64_t>(first);
  uint8_t nonce[kNonce] = {};
  uint8_t salted[8];
  memcpy(salted, salt.data, sizeof salted);
  int32_t failures = 0;
  for (size_t i = 0; i < count; i++) {
    Packet& packet = arguments.state().packets[i];
    if (!memory->settle(&packet)) {
      failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    const uint8_t* slot = memory->slot(packet.handle);
    uint8_t* header = packet.data - kHeader;
    uint8_t* tag = packet.data + packet.length;
    if (packet.data - slot < kHeader || slot + memory->slotBytes - tag < kTag) {
      failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    putCounter(nonce + 4, next);
    memcpy(header, salted, sizeof salted);
    memcpy(header + 8, nonce + 4, 8);
    int size = 0;
    // The counter is spent whether or not OpenSSL succeeds: a nonce is never used twice.
    next++;
    if (EVP_EncryptInit_ex(aead->seal, nullptr, nullptr, nullptr, nonce) != 1 ||
        EVP_EncryptUpdate(aead->seal, nullptr, &size, header, kHeader) != 1 ||
        !aead->encrypt(packet.data, packet.length) ||
        EVP_EncryptFinal_ex(aead->seal, tag, &size) != 1 ||
        EVP_CIPHER_CTX_ctrl(aead->seal, EVP_CTRL_AEAD_GET_TAG, kTag, tag) != 1) {
      failed.data[failures++] = static_cast<int32_t>(i);
      continue;
    }
    memory->offset[packet.handle] = static_cast<int32_t>(header - memory->data);
    memory->length[packet.handle] = packet.length + kHeader + kTag;
  }
  counter.data[0] = static_cast<double>(next);
  return toInteger(env, failures);
}

napi_value aeadOpenPackets(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadOpenPackets", 5);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  Memory* memory = memoryArgument(arguments, 1);
  Span<int32_t> handles = arguments.int32s(2, "handles", 0);
  const auto count = static_cast<size_t>(arguments.integer(3, "count", 0, static_cast<int64_t>(handles.length)));
  Span<double> counters = arguments.float64s(4, "counters", count);
  if (arguments.failed() || !packetsArgument(arguments, *memory, handles, 0, count)) return nullptr;

  uint8_t nonce[kNonce] = {};
  uint8_t rest[kTag];
  int32_t opened = 0;
  for (size_t i = 0; i < count; i++) {
    const Packet& packet = arguments.state().packets[i];
    counters.data[i] = -1;
    if (packet.length < kHeader + kTag) continue;
    uint8_t* text = packet.data + kHeader;
    const int length = packet.length - kHeader - kTag;
    uint8_t header[kHeader];
    memcpy(header, packet.data, kHeader);
    memcpy(nonce + 4, header + 8, 8);
    uint64_t counter;
    memcpy(&counter, header + 8, sizeof counter);
    counter = __builtin_bswap64(counter);
    if (counter >= static_cast<uint64_t>(kCounterEnd)) continue;
    int size = 0;
    if (EVP_DecryptInit_ex(aead->open, nullptr, nullptr, nullptr, nonce) != 1 ||
        EVP_DecryptUpdate(aead->open, nullptr, &size, header, kHeader) != 1 ||
        !aead->decrypt(text, length) ||
        EVP_CIPHER_CTX_ctrl(aead->open, EVP_CTRL_AEAD_SET_TAG, kTag, text + length) != 1 ||
        EVP_DecryptFinal_ex(aead->open, rest, &size) != 1) {
      continue;
    }
    memory->offset[packet.handle] = static_cast<int32_t>(text - memory->data);
    memory->length[packet.handle] = length;
    counters.data[i] = static_cast<double>(counter);
    opened++;
  }
  return toInteger(env, opened);
}

}  // namespace penstock
