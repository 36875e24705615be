/** ChaCha20-Poly1305 (RFC 8439) on processors with AVX-512 and its IFMA, one message at a time. */
#pragma once
#include "aead_message.h"

namespace penstock {

constexpr size_t kChachaPolyKey = 32;

/** Whether this processor and its operating system have what the functions below need. */
bool chachaPolySupported();
void chachaPolySeal(const uint8_t* key, const AeadMessage& message);
/** Decrypts; false when the tag is not the message's. */
bool chachaPolyOpen(const uint8_t* key, const AeadMessage& message);

}  // namespace penstock
