/** What is sealed and opened: a message with its nonce, its header and its tag. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace penstock {

constexpr size_t kAeadTag = 16;    // AES-GCM's (NIST SP 800-38D) and ChaCha20-Poly1305's (RFC 8439)
constexpr size_t kAeadNonce = 12;

/** In constant time. */
inline bool sameTag(const uint8_t* a, const uint8_t* b) {
  uint64_t x[2], y[2];
  static_assert(sizeof x == kAeadTag, "two words");
  memcpy(x, a, sizeof x);
  memcpy(y, b, sizeof y);
  return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

/** A message: `bytes` bytes of text, and the 16 bytes of its tag, written or compared. The text is changed in place, unless it is to be sealed `from` elsewhere. */
struct AeadMessage {
  const uint8_t* nonce;
  const uint8_t* associated;
  size_t associatedBytes;
  uint8_t* text;
  size_t bytes;
  uint8_t* tag;
  const uint8_t* from = nullptr;
  const uint8_t* source() const { return from ? from : text; }
};

}  // namespace penstock
