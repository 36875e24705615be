/** What does authenticated encryption: backends, the keys they make, and which of them is in use. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <string>

#include "aead_message.h"

namespace penstock {

enum class AeadSuite : uint8_t { aes128Gcm, aes256Gcm, chacha20Poly1305 };
constexpr size_t kAeadSuites = 3;

constexpr size_t aeadKeyBytes(AeadSuite suite) { return suite == AeadSuite::aes128Gcm ? 16 : 32; }

/** A key of one suite. One thread at a time; wiped when it is destroyed. */
class AeadKey {
 public:
  virtual ~AeadKey() = default;
  /** False when the backend failed: then the message is not to be used. */
  virtual bool seal(const AeadMessage& message) = 0;
  /** False when the tag is not the message's, or the backend failed: then the text is zeros. */
  bool open(const AeadMessage& message) { return decrypt(message) || wipe(message); }

 private:
  /** As `open`, but may leave anything in the text. */
  virtual bool decrypt(const AeadMessage& message) = 0;
  /** Zeros for a text that is not authentic: false. */
  static bool wipe(const AeadMessage& message);
};

/** Why a backend cannot be used; programs read the code, people the text. */
struct AeadObstacle {
  const char* code;
  std::string text;
};

struct AeadBackend {
  const char* name;
  /** '' where there is nothing to ask. */
  std::string (*version)();
  /** Null where it can be used. The first call looks, which takes some milliseconds; all give the same answer. */
  const AeadObstacle* (*obstacle)();
  /** `key` has the bytes of its suite and is copied; null when the backend refuses. Only where there is no obstacle. */
  std::unique_ptr<AeadKey> (*key)(AeadSuite suite, const uint8_t* key);
};

extern const AeadBackend avx512Aead;
extern const AeadBackend ipsecMbAead;
extern const AeadBackend opensslAead;

/** The one that keys are made with from now on: the fastest that can be used, unless one was chosen. */
const AeadBackend& aeadBackendInUse();

/** What is wrong with keys of `make`: '' when they pass known vectors and agree with OpenSSL at many lengths. */
std::string aeadVectorsProblem(std::unique_ptr<AeadKey> (*make)(AeadSuite suite, const uint8_t* key));

napi_value aeadBackends(napi_env env, napi_callback_info info);
napi_value aeadBackend(napi_env env, napi_callback_info info);
napi_value aeadUse(napi_env env, napi_callback_info info);

}  // namespace penstock
