/** Authenticated encryption by penstock's own code, on processors that compute on vectors of 64 bytes. */
#include <openssl/crypto.h>
#include <string.h>

#include "aead_backend.h"
#include "aes_gcm.h"
#include "chacha_poly1305.h"

namespace penstock {

template <AeadSuite Suite, auto Seal, auto Open>
class VectorGcmKey : public AeadKey {
 public:
  explicit VectorGcmKey(const uint8_t* key) { aesGcmPrepare(&key_, key, aeadKeyBytes(Suite)); }
  ~VectorGcmKey() override { OPENSSL_cleanse(&key_, sizeof key_); }

  bool seal(const AeadMessage& m) override {
    Seal(key_, m);
    return true;
  }

 private:
  bool decrypt(const AeadMessage& m) override { return Open(key_, m); }

  AesGcmKey key_;
};

class VectorChachaKey : public AeadKey {
 public:
  explicit VectorChachaKey(const uint8_t* key) { memcpy(key_, key, sizeof key_); }
  ~VectorChachaKey() override { OPENSSL_cleanse(key_, sizeof key_); }

  bool seal(const AeadMessage& m) override {
    chachaPolySeal(key_, m);
    return true;
  }

 private:
  bool decrypt(const AeadMessage& m) override { return chachaPolyOpen(key_, m); }

  uint8_t key_[kChachaPolyKey];
};

static std::unique_ptr<AeadKey> vectorKey(AeadSuite suite, const uint8_t* key) {
  switch (suite) {
    case AeadSuite::aes128Gcm:
      return std::make_unique<VectorGcmKey<AeadSuite::aes128Gcm, aes128GcmSeal, aes128GcmOpen>>(key);
    case AeadSuite::aes256Gcm:
      return std::make_unique<VectorGcmKey<AeadSuite::aes256Gcm, aes256GcmSeal, aes256GcmOpen>>(key);
    case AeadSuite::chacha20Poly1305:
      return std::make_unique<VectorChachaKey>(key);
  }
  return nullptr;
}

static const AeadObstacle* obstacle() {
  static const AeadObstacle cpu{"cpu", "this CPU has no AVX-512 with VAES, VPCLMULQDQ and IFMA"};
  if (!aesGcmSupported() || !chachaPolySupported()) return &cpu;
  static const AeadObstacle wrong{"answers", aeadVectorsProblem(vectorKey)};
  return wrong.text.empty() ? nullptr : &wrong;
}

const AeadBackend avx512Aead = {
    "avx512",
    [] { return std::string(); },
    obstacle,
    vectorKey,
};

}  // namespace penstock
