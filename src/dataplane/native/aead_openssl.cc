/** Authenticated encryption with the OpenSSL that Node itself exports: EVP, a context per key and direction that only gets a new nonce. */
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "aead_backend.h"

namespace penstock {

/** Looked up by name once for the process. */
static const EVP_CIPHER* cipherOf(AeadSuite suite) {
  static const EVP_CIPHER* const fetched[kAeadSuites] = {
      EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr),
      EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr),
      EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr),
  };
  return fetched[static_cast<size_t>(suite)];
}

class EvpKey : public AeadKey {
 public:
  EvpKey() : seal_(EVP_CIPHER_CTX_new()), open_(EVP_CIPHER_CTX_new()) {}
  ~EvpKey() override {
    // Wipes the key schedule (OPENSSL_cleanse) before freeing it.
    EVP_CIPHER_CTX_free(seal_);
    EVP_CIPHER_CTX_free(open_);
  }
  EvpKey(const EvpKey&) = delete;
  EvpKey& operator=(const EvpKey&) = delete;

  bool set(const EVP_CIPHER* cipher, const uint8_t* key) {
    return cipher && seal_ && open_ && EVP_EncryptInit_ex(seal_, cipher, nullptr, key, nullptr) == 1 &&
           EVP_DecryptInit_ex(open_, cipher, nullptr, key, nullptr) == 1;
  }

  bool seal(const AeadMessage& m) override {
    int size = 0;
    return EVP_EncryptInit_ex(seal_, nullptr, nullptr, nullptr, m.nonce) == 1 &&
           (m.associatedBytes == 0 ||
            EVP_EncryptUpdate(seal_, nullptr, &size, m.associated, static_cast<int>(m.associatedBytes)) == 1) &&
           (m.bytes == 0 || EVP_EncryptUpdate(seal_, m.text, &size, m.source(), static_cast<int>(m.bytes)) == 1) &&
           EVP_EncryptFinal_ex(seal_, m.tag, &size) == 1 &&
           EVP_CIPHER_CTX_ctrl(seal_, EVP_CTRL_AEAD_GET_TAG, kAeadTag, m.tag) == 1;
  }

 private:
  bool decrypt(const AeadMessage& m) override {
    int size = 0;
    uint8_t rest[kAeadTag];
    return EVP_DecryptInit_ex(open_, nullptr, nullptr, nullptr, m.nonce) == 1 &&
           (m.associatedBytes == 0 ||
            EVP_DecryptUpdate(open_, nullptr, &size, m.associated, static_cast<int>(m.associatedBytes)) == 1) &&
           (m.bytes == 0 || EVP_DecryptUpdate(open_, m.text, &size, m.text, static_cast<int>(m.bytes)) == 1) &&
           EVP_CIPHER_CTX_ctrl(open_, EVP_CTRL_AEAD_SET_TAG, kAeadTag, m.tag) == 1 &&
           EVP_DecryptFinal_ex(open_, rest, &size) == 1;  // compares in constant time
  }

  EVP_CIPHER_CTX* seal_;
  EVP_CIPHER_CTX* open_;
};

static std::unique_ptr<AeadKey> evpKey(AeadSuite suite, const uint8_t* key) {
  auto made = std::make_unique<EvpKey>();
  if (!made->set(cipherOf(suite), key)) return nullptr;
  return made;
}

const AeadBackend opensslAead = {
    "openssl",
    [] { return std::string(OpenSSL_version(OPENSSL_VERSION_STRING)); },
    []() -> const AeadObstacle* { return nullptr; },
    evpKey,
};

}  // namespace penstock
