// What the ciphers for AVX-512 touch and leave: all they are given lies at the end or beginning of pages, with nothing around them that can
// be read or written; then, unless told `edges`, vector registers are looked at, and the stack is searched for keys. Prints a line for each
// thing that is wrong.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <initializer_list>

#include "aes_gcm.h"
#include "chacha_poly1305.h"

using namespace penstock;

static constexpr size_t kPage = 4096;

/** Of RFC 8439, section 2.8.2, whose one-time key is known. */
static const uint8_t key[32] = {0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
                                0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f};
static const uint8_t nonce[12] = {0x07, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47};
static const uint8_t oneTime[32] = {0x7b, 0xac, 0x2b, 0x25, 0x2d, 0xb4, 0x47, 0xaf, 0x09, 0xb6, 0x7a, 0x55, 0xa4, 0xe9, 0x55, 0x84,
                                    0x0a, 0xe1, 0xd6, 0x73, 0x10, 0x75, 0xd9, 0xeb, 0x2a, 0x93, 0x75, 0x78, 0x3e, 0xd5, 0x53, 0xff};

static const char* const names[] = {"AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};
static AesGcmKey keys[2];

static void seal(int suite, const AeadMessage& m) { suite == 0 ? aes128GcmSeal(keys[0], m) : suite == 1 ? aes256GcmSeal(keys[1], m) : chachaPolySeal(key, m); }
static bool open(int suite, const AeadMessage& m) { return suite == 0 ? aes128GcmOpen(keys[0], m) : suite == 1 ? aes256GcmOpen(keys[1], m) : chachaPolyOpen(key, m); }

/** Pages between two that cannot be touched. */
class Pages {
 public:
  explicit Pages(size_t count) : bytes_(count * kPage) {
    auto* all = static_cast<uint8_t*>(mmap(nullptr, bytes_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    begin_ = all + kPage;
    mprotect(begin_, bytes_, PROT_READ | PROT_WRITE);
  }
  /** The first or the last `bytes` bytes, written with those of `from`. */
  uint8_t* put(size_t bytes, bool last, const uint8_t* from) const {
    uint8_t* at = last ? begin_ + bytes_ - bytes : begin_;
    memcpy(at, from, bytes);
    return at;
  }

 private:
  size_t bytes_;
  uint8_t* begin_;
};

static void atEdges() {
  static uint8_t noise[3 * kPage];
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = static_cast<uint8_t>(i * 31 ^ i >> 8);
  const Pages texts(3), sources(3), headers(3), nonces(1), tags(1), given(1);
  const auto run = [&](size_t bytes, size_t header, bool last) {
    for (int suite = 0; suite < 3; suite++) {
      const AeadMessage message = {nonces.put(sizeof nonce, last, nonce), headers.put(header, last, noise), header, texts.put(bytes, last, noise), bytes, tags.put(kAeadTag, last, noise)};
      AeadMessage apart = message;
      apart.from = sources.put(bytes, last, noise);
      seal(suite, apart);
      if (!open(suite, message) || memcmp(message.text, noise, bytes) != 0) printf("%s: %zu bytes with a header of %zu\n", names[suite], bytes, header);
    }
  };
  for (const bool last : {false, true}) {
    for (int i = 0; i < 2; i++) aesGcmPrepare(&keys[i], given.put(i == 0 ? 16 : 32, last, key), i == 0 ? 16 : 32);
    for (size_t bytes = 0; bytes < 300; bytes++) {
      for (const size_t header : {size_t{0}, size_t{1}, size_t{16}, size_t{20}}) run(bytes, header, last);
      run(100, bytes, last);
    }
    for (size_t bytes = 300; bytes < 3 * kPage; bytes += 61) {
      run(bytes, 16, last);
      run(1, bytes, last);
    }
  }
  uint8_t tag[kAeadTag];
  for (int suite = 0; suite < 3; suite++) seal(suite, {nonce, nullptr, 0, nullptr, 0, tag});
}

alignas(64) static uint8_t registers[32][64];
static uint8_t stack[16 * kPage];

/** Nothing of earlier calls is found. */
__attribute__((noinline)) static void cleanStack() {
  uint8_t below[sizeof stack];
  memset(below, 0xcc, sizeof below);
  asm volatile("" ::"r"(below) : "memory");
}

__attribute__((noinline, target("avx512f"))) static void look() {
  asm volatile(
      ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n"
      "vmovdqu64 %%zmm\\i, 64*\\i(%0)\n"
      ".endr" ::"r"(registers)
      : "memory");
  const volatile uint8_t* end = static_cast<uint8_t*>(__builtin_frame_address(0));
  for (size_t i = 0; i < sizeof stack; i++) stack[i] = end[static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(sizeof stack)];
}

static bool onStack(const void* secret, size_t bytes) { return memmem(stack, sizeof stack, secret, bytes) != nullptr; }

/** Tells what `call` left: `what` it did to `bytes` bytes. */
template <typename Call>
static void leavesNothing(const char* name, const char* what, size_t bytes, const Call& call) {
  cleanStack();
  call();
  look();
  for (int i = 0; i < 32; i++) {
    for (const uint8_t byte : registers[i]) {
      if (byte == 0) continue;
      printf("%s: %s %zu bytes leaves something in register %d\n", name, what, bytes, i);
      break;
    }
  }
  bool found = onStack(key, 16) || onStack(key + 16, 16);
  for (const AesGcmKey& expanded : keys) {
    // The first round key is the key.
    for (int round = 1; round < (&expanded == keys ? 11 : 15); round++) found = found || onStack(expanded.round[round], 16);
  }
  // Poly1305's: as it was made, which for long texts the compiler has on the stack as a part of the key stream, and the lowest limb.
  if (bytes < 700) found = found || onStack(oneTime, 16) || onStack(oneTime + 16, 16);
  uint64_t limb;
  memcpy(&limb, oneTime, sizeof limb);
  limb &= 0x0ffffffc0fffffff & ((1ull << 44) - 1);
  if (found || onStack(&limb, sizeof limb)) printf("%s: %s %zu bytes leaves a key on the stack\n", name, what, bytes);
}

static void behind() {
  static uint8_t text[9000], header[16], tag[kAeadTag];
  for (int i = 0; i < 2; i++) leavesNothing(names[i], "preparing", i == 0 ? 16 : 32, [i] { aesGcmPrepare(&keys[i], key, i == 0 ? 16 : 32); });
  for (int suite = 0; suite < 3; suite++) {
    for (const size_t bytes : {0, 40, 300, 600, 1200, 1472, 9000}) {
      const AeadMessage message = {nonce, header, sizeof header, text, bytes, tag};
      leavesNothing(names[suite], "sealing", bytes, [&] { seal(suite, message); });
      leavesNothing(names[suite], "opening", bytes, [&] { open(suite, message); });
    }
  }
}

int main(int argc, char** argv) {
  if (!aesGcmSupported() || !chachaPolySupported()) return 2;
  atEdges();
  if (argc < 2 || strcmp(argv[1], "edges") != 0) behind();
  return 0;
}
