/** Known answers, which keys of a backend have to give before packets are trusted to them. */
#include <string.h>

#include <vector>

#include "aead_backend.h"

namespace penstock {

struct Vector {
  const char* name;
  AeadSuite suite;
  const char* key;
  const char* nonce;
  const char* associated;
  const char* text;
  const char* sealed;
  const char* tag;
};

static const char kPlain[] =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";

// Test cases 4 and 16 of McGrew and Viega, "The Galois/Counter Mode of Operation"; RFC 8439, section 2.8.2.
static const Vector kVectors[] = {
    {"AES-128-GCM", AeadSuite::aes128Gcm, "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2", kPlain,
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
     "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {"AES-256-GCM", AeadSuite::aes256Gcm, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2", kPlain,
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    {"ChaCha20-Poly1305", AeadSuite::chacha20Poly1305,
     "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", "070000004041424344454647",
     "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a20496620"
     "4920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c"
     "2073756e73637265656e20776f756c642062652069742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"
     "1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
     "3ff4def08e4b7a9de576d26586cec64b6116",
     "1ae10b594f09e26a7e902ecbd0600691"},
};

static std::vector<uint8_t> bytesOf(const char* hex) {
  const auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::vector<uint8_t> bytes(strlen(hex) / 2);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<uint8_t>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return bytes;
}

static bool zeros(const std::vector<uint8_t>& bytes) {
  for (const uint8_t byte : bytes) {
    if (byte != 0) return false;
  }
  return true;
}

/** Seals as the vector says, opens again, and refuses a wrong tag with nothing left of the text. */
static bool passes(AeadKey& key, const Vector& vector) {
  const std::vector<uint8_t> nonce = bytesOf(vector.nonce), associated = bytesOf(vector.associated);
  const std::vector<uint8_t> plain = bytesOf(vector.text), sealed = bytesOf(vector.sealed), known = bytesOf(vector.tag);
  std::vector<uint8_t> text = plain, tag(kAeadTag);
  const AeadMessage message = {nonce.data(), associated.data(), associated.size(), text.data(), text.size(), tag.data()};
  if (!key.seal(message) || text != sealed || tag != known) return false;
  if (!key.open(message) || text != plain) return false;
  text = sealed;
  tag[kAeadTag - 1] ^= 1;
  return !key.open(message) && zeros(text);
}

/** Whether both make the same of texts of many lengths: kernels have a path of their own for short ones and for what is left over. */
static bool agrees(AeadKey& key, AeadKey& other) {
  // Longer than what kernels add up before they reduce, and than 255 blocks, where a counter carries.
  constexpr size_t longest = 4608;
  const std::vector<uint8_t> nonce(kAeadNonce, 0x5a);
  std::vector<uint8_t> plain(longest);
  for (size_t i = 0; i < longest; i++) plain[i] = static_cast<uint8_t>(i * 31);
  for (size_t bytes = 0; bytes <= longest; bytes += bytes < 66 ? 1 : 97) {
    std::vector<uint8_t> text(plain), same(plain), tag(kAeadTag), sameTag(kAeadTag);
    const AeadMessage message = {nonce.data(), plain.data(), bytes % 33, text.data(), bytes, tag.data()};
    const AeadMessage expected = {nonce.data(), plain.data(), bytes % 33, same.data(), bytes, sameTag.data()};
    if (!key.seal(message) || !other.seal(expected) || text != same || tag != sameTag) return false;
    if (!key.open(message) || text != plain) return false;
    // From elsewhere the same, and what lies there stays.
    const std::vector<uint8_t> from(plain);
    AeadMessage apart = message;
    apart.from = from.data();
    memset(text.data(), 0xee, bytes);
    if (!key.seal(apart) || text != same || tag != sameTag || from != plain) return false;
  }
  return true;
}

std::string aeadVectorsProblem(std::unique_ptr<AeadKey> (*make)(AeadSuite suite, const uint8_t* key)) {
  for (const Vector& vector : kVectors) {
    const std::vector<uint8_t> bytes = bytesOf(vector.key);
    const std::unique_ptr<AeadKey> key = make(vector.suite, bytes.data());
    const std::unique_ptr<AeadKey> reference = opensslAead.key(vector.suite, bytes.data());
    if (!key || !reference || !passes(*key, vector) || !agrees(*key, *reference)) {
      return std::string("it gives wrong answers to known vectors of ") + vector.name;
    }
  }
  return {};
}

}  // namespace penstock
