/** Authenticated encryption of packets in place, in batches, with the OpenSSL that Node itself exports. */
#include "aead.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "descriptors.h"
#include "salted.h"

namespace penstock {

static constexpr int kTag = 16;     // AES-GCM's (NIST SP 800-38D) and ChaCha20-Poly1305's (RFC 8439)
static constexpr int kNonce = 12;

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

napi_value aeadSeal(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadSeal", 7);
  Lease<Aead> aead(arguments, 0, "aead", Kind::aead, true);
  const NumberedArguments given(arguments);
  uint64_t next;
  if (!given.numbered(arguments, &next)) return nullptr;
  Memory* memory = given.memory;
  uint8_t nonce[kNonce] = {};
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
    int size = 0;
    // The counter is spent whether or not OpenSSL succeeds: a nonce is never used twice.
    next++;
    if (EVP_EncryptInit_ex(aead->seal, nullptr, nullptr, nullptr, nonce) != 1 ||
        EVP_EncryptUpdate(aead->seal, nullptr, &size, header, kSaltedHeader) != 1 ||
        !aead->encrypt(packet.data, packet.length) ||
        EVP_EncryptFinal_ex(aead->seal, tag, &size) != 1 ||
        EVP_CIPHER_CTX_ctrl(aead->seal, EVP_CTRL_AEAD_GET_TAG, kTag, tag) != 1) {
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

  uint8_t nonce[kNonce] = {};
  uint8_t rest[kTag];
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
    int size = 0;
    if (EVP_DecryptInit_ex(aead->open, nullptr, nullptr, nullptr, nonce) != 1 ||
        EVP_DecryptUpdate(aead->open, nullptr, &size, header, kSaltedHeader) != 1 ||
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
