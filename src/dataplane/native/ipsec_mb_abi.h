/**
 * What the addon uses of Intel's Multi-Buffer Crypto for IPsec, libIPSec_MB, declared here so that neither its header nor the library is
 * needed to build. The headers of versions 1.1, 1.3 and 2.0 lay these out alike; those of 1.2, 1.4 and 1.5, between them, have not been compared, nor later
 * ones, which are refused.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace penstock {

constexpr unsigned imbVersion(unsigned major, unsigned minor, unsigned patch) { return major << 16 | minor << 8 | patch; }
constexpr unsigned kImbFirst = imbVersion(1, 1, 0);
constexpr unsigned kImbEnd = imbVersion(2, 1, 0);

/** Bits of `ImbManager::features`. */
constexpr uint64_t kImbAes = 1ull << 1;
constexpr uint64_t kImbCarrylessMultiply = 1ull << 2;
constexpr uint64_t kImbAvx2 = 1ull << 6;
/** Keys and intermediate values are cleared from registers and stack. */
constexpr uint64_t kImbSafeData = 1ull << 14;

constexpr int32_t kImbCompleted = 3;
constexpr int32_t kImbCipherChacha20Poly1305 = 19;
constexpr int32_t kImbHashChacha20Poly1305 = 29;
constexpr int32_t kImbEncrypt = 1;
constexpr int32_t kImbDecrypt = 2;
constexpr int32_t kImbCipherThenHash = 1;
constexpr int32_t kImbHashThenCipher = 2;

/** struct gcm_key_data and gcm_context_data, opaque, with room to spare. */
struct alignas(64) ImbGcmKey {
  uint8_t data[2048];
};
struct alignas(64) ImbGcmContext {
  uint8_t data[256];
};

/** The beginning of IMB_JOB. */
struct ImbJob {
  const void* encryptKeys;
  const void* decryptKeys;
  uint64_t keyBytes;
  const uint8_t* from;
  uint8_t* to;
  uint64_t cipherOffset;
  uint64_t cipherBytes;
  uint64_t hashOffset;
  uint64_t hashBytes;
  const uint8_t* nonce;
  uint64_t nonceBytes;
  uint8_t* tag;
  uint64_t tagBytes;
  const uint8_t* associated;
  uint64_t associatedBytes;
  void* context;
  int32_t status;
  int32_t cipher;
  int32_t direction;
  int32_t hash;
  int32_t order;
};

/** Key, context, to, from, bytes, nonce of 12 bytes, associated data and its bytes, tag and its bytes; decryption writes the tag too. */
using ImbGcm = void (*)(const ImbGcmKey*, ImbGcmContext*, uint8_t*, const uint8_t*, uint64_t, const uint8_t*, const uint8_t*, uint64_t,
                        uint8_t*, uint64_t);
using ImbGcmPrepare = void (*)(const void* key, ImbGcmKey*);

/** The beginning of IMB_MGR. */
struct ImbManager {
  uint64_t flags;
  uint64_t features;
  uint64_t reserved[5];
  uint32_t architecture;
  int32_t error;
  ImbJob* (*getNextJob)(ImbManager*);
  void* submitJob;
  ImbJob* (*submitJobUnchecked)(ImbManager*);
  void* getCompletedJob;
  ImbJob* (*flushJob)(ImbManager*);
  void* others[19];
  ImbGcm gcm128Encrypt;
  ImbGcm gcm192Encrypt;
  ImbGcm gcm256Encrypt;
  ImbGcm gcm128Decrypt;
  ImbGcm gcm192Decrypt;
  ImbGcm gcm256Decrypt;
  void* gcmInParts[18];
  ImbGcmPrepare gcm128Prepare;
  ImbGcmPrepare gcm192Prepare;
  ImbGcmPrepare gcm256Prepare;
};

}  // namespace penstock
