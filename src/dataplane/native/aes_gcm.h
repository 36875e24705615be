/** AES-GCM (NIST SP 800-38D) on processors with AVX-512, VAES and VPCLMULQDQ, which compute four blocks by one instruction. */
#pragma once
#include "aead_message.h"

namespace penstock {

/** Blocks that are hashed before their sum is reduced: those of a text of 1,520 bytes, its header and its lengths. */
constexpr size_t kGcmBlocks = 97;
constexpr size_t kGcmBlock = 16;

/** What is computed from a key once. Whoever has one wipes it. */
struct alignas(64) AesGcmKey {
  /** Each key four times, as the blocks of a vector need it: then none is kept in registers, nor on the stack. */
  uint8_t round[15][4 * kGcmBlock];
  /** Powers of the hash key, the highest first, so that those of blocks in a row lie in a row; zeros behind the first power for what a vector has beyond the last block. */
  uint8_t power[kGcmBlocks + 4][kGcmBlock];
  /** Of each power the sum of its halves (Karatsuba). */
  uint8_t halves[kGcmBlocks + 4][kGcmBlock];

  /** Where the first copy of the word `i` of all round keys is. */
  uint8_t* word(size_t i) { return round[i / 4] + i % 4 * 4; }
};

/** Whether this processor and its operating system have what the functions below need. */
bool aesGcmSupported();
/** `bytes` is 16 for AES-128 and 32 for AES-256. */
void aesGcmPrepare(AesGcmKey* key, const uint8_t* from, size_t bytes);
void aes128GcmSeal(const AesGcmKey& key, const AeadMessage& message);
void aes256GcmSeal(const AesGcmKey& key, const AeadMessage& message);
/** Decrypts; false when the tag is not the message's, which is found out last. */
bool aes128GcmOpen(const AesGcmKey& key, const AeadMessage& message);
bool aes256GcmOpen(const AesGcmKey& key, const AeadMessage& message);

}  // namespace penstock
