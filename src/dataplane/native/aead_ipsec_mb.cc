/** Authenticated encryption with ipsec-mb: AES-GCM by its direct functions, ChaCha20-Poly1305 by jobs, which it does at once. */
#include <openssl/crypto.h>
#include <string.h>

#include "aead_backend.h"
#include "ipsec_mb.h"

namespace penstock {

static const IpsecMb& library();

/** Some functions refuse a null pointer even where there is nothing to read. */
static const uint8_t* associatedOf(const AeadMessage& m) { return m.associatedBytes == 0 ? m.nonce : m.associated; }

class ImbGcmAead : public AeadKey {
 public:
  ImbGcmAead(ImbGcm encrypt, ImbGcm decrypt, ImbGcmPrepare prepare, const uint8_t* key) : encrypt_(encrypt), decrypt_(decrypt) {
    prepare(key, &key_);
  }
  ~ImbGcmAead() override {
    OPENSSL_cleanse(&key_, sizeof key_);
    OPENSSL_cleanse(&context_, sizeof context_);
  }

  bool seal(const AeadMessage& m) override {
    encrypt_(&key_, &context_, m.text, m.source(), m.bytes, m.nonce, associatedOf(m), m.associatedBytes, m.tag, kAeadTag);
    return true;
  }

 private:
  bool decrypt(const AeadMessage& m) override {
    uint8_t tag[kAeadTag];
    decrypt_(&key_, &context_, m.text, m.text, m.bytes, m.nonce, associatedOf(m), m.associatedBytes, tag, kAeadTag);
    return sameTag(tag, m.tag);
  }

  ImbGcmKey key_{};
  ImbGcmContext context_{};
  const ImbGcm encrypt_;
  const ImbGcm decrypt_;
};

struct CloseManager {
  void operator()(ImbManager* manager) const { library().close(manager); }
};

/** What this thread runs jobs with, made when it first needs it; null without memory. */
static ImbManager* ownManager() {
  static thread_local std::unique_ptr<ImbManager, CloseManager> manager;
  if (!manager) manager.reset(library().open());
  return manager.get();
}

class ImbChachaAead : public AeadKey {
 public:
  explicit ImbChachaAead(const uint8_t* key) { memcpy(key_, key, sizeof key_); }
  ~ImbChachaAead() override { OPENSSL_cleanse(key_, sizeof key_); }

  bool seal(const AeadMessage& m) override { return run(m, kImbEncrypt, kImbCipherThenHash, m.tag); }

 private:
  bool decrypt(const AeadMessage& m) override {
    uint8_t tag[kAeadTag];
    return run(m, kImbDecrypt, kImbHashThenCipher, tag) && sameTag(tag, m.tag);
  }

  bool run(const AeadMessage& m, int32_t direction, int32_t order, uint8_t* tag) {
    ImbManager* manager = ownManager();
    if (!manager) return false;
    ImbJob* job = manager->getNextJob(manager);
    job->encryptKeys = key_;
    job->decryptKeys = key_;
    job->keyBytes = sizeof key_;
    job->from = m.source();
    job->to = m.text;
    job->cipherOffset = 0;
    job->cipherBytes = m.bytes;
    job->hashOffset = 0;
    job->hashBytes = m.bytes;
    job->nonce = m.nonce;
    job->nonceBytes = kAeadNonce;
    job->tag = tag;
    job->tagBytes = kAeadTag;
    job->associated = associatedOf(m);
    job->associatedBytes = m.associatedBytes;
    job->context = nullptr;
    job->cipher = kImbCipherChacha20Poly1305;
    job->hash = kImbHashChacha20Poly1305;
    job->direction = direction;
    job->order = order;
    const ImbJob* done = manager->submitJobUnchecked(manager);
    // Nothing of this message may be under way when the next one begins.
    if (!done) done = manager->flushJob(manager);
    return done == job && done->status == kImbCompleted;
  }

  uint8_t key_[32];
};

static std::unique_ptr<AeadKey> keyWith(const ImbManager& table, AeadSuite suite, const uint8_t* key) {
  switch (suite) {
    case AeadSuite::aes128Gcm:
      return std::make_unique<ImbGcmAead>(table.gcm128Encrypt, table.gcm128Decrypt, table.gcm128Prepare, key);
    case AeadSuite::aes256Gcm:
      return std::make_unique<ImbGcmAead>(table.gcm256Encrypt, table.gcm256Decrypt, table.gcm256Prepare, key);
    case AeadSuite::chacha20Poly1305:
      return std::make_unique<ImbChachaAead>(key);
  }
  return nullptr;
}

static std::unique_ptr<AeadKey> imbKey(AeadSuite suite, const uint8_t* key) { return keyWith(*library().functions, suite, key); }

static const IpsecMb& library() {
  static const IpsecMb loaded = loadIpsecMb();
  return loaded;
}

static const AeadObstacle* obstacle() {
  if (library().obstacle) return library().obstacle.get();
  static const AeadObstacle wrong{"answers", aeadVectorsProblem(imbKey)};
  return wrong.text.empty() ? nullptr : &wrong;
}

const AeadBackend ipsecMbAead = {
    "ipsec-mb",
    [] { return library().version; },
    obstacle,
    imbKey,
};

}  // namespace penstock
