/* Seals and opens packets in a loop over the addon's own code for AVX-512, called as a function and nothing else: one key, a new nonce per
 * packet, 16 bytes of associated data and a tag of 16, as ipsec_mb.c does over that library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aes_gcm.h"
#include "chacha_poly1305.h"

using namespace penstock;

enum { SLOTS = 256, SLOT = 2048, HEADROOM = 128 };

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* 16 bytes by one store: what is read as one soon after two stores waits until both are in the cache. */
typedef uint64_t Words __attribute__((vector_size(16)));

static void store(unsigned char *to, uint64_t first, uint64_t second) {
  Words words = {first, second};
  memcpy(to, &words, sizeof words);
}

/* usage: avx512 [BYTES] [MILLISECONDS] [aes-128-gcm|aes-256-gcm|chacha20-poly1305]; prints ns per packet for sealing and opening. */
int main(int argc, char **argv) {
  const size_t bytes = argc > 1 ? static_cast<size_t>(atoi(argv[1])) : 1200;
  const double milliseconds = argc > 2 ? atof(argv[2]) : 200;
  const char *suite = argc > 3 ? argv[3] : "aes-128-gcm";
  const int keyBits = strcmp(suite, "aes-128-gcm") == 0 ? 128 : strcmp(suite, "aes-256-gcm") == 0 ? 256 : 0;
  if ((keyBits == 0 && strcmp(suite, "chacha20-poly1305") != 0) || bytes < 1 || bytes > 1800) {
    fprintf(stderr, "usage: avx512 [BYTES] [MILLISECONDS] [SUITE]\n");
    return 2;
  }
  if (!aesGcmSupported() || !chachaPolySupported()) {
    fprintf(stderr, "avx512: this CPU cannot\n");
    return 1;
  }
  static AesGcmKey gcmKey;
  static unsigned char key[32], slab[SLOTS * SLOT];
  alignas(16) unsigned char nonce[16] = {};
  for (int i = 0; i < 32; i++) key[i] = static_cast<unsigned char>(i * 7);
  for (int i = 0; i < SLOTS * SLOT; i++) slab[i] = static_cast<unsigned char>(i * 31);
  if (keyBits != 0) aesGcmPrepare(&gcmKey, key, keyBits / 8);
  double sealing = 0, opening = 0;
  uint64_t counter = 0, opened = 0, packets = 0;
  for (const double end = now() + milliseconds * 1e6; now() < end;) {
    const double start = now();
    for (int i = 0; i < SLOTS; i++) {
      unsigned char *packet = slab + i * SLOT + HEADROOM, *header = packet - 16;
      const uint64_t big = __builtin_bswap64(counter++);
      store(nonce, big << 32, big >> 32);
      store(header, 0x0909090909090909, big);
      const AeadMessage message = {nonce, header, 16, packet, bytes, packet + bytes};
      if (keyBits == 128) aes128GcmSeal(gcmKey, message);
      else if (keyBits == 256) aes256GcmSeal(gcmKey, message);
      else chachaPolySeal(key, message);
    }
    const double middle = now();
    for (int i = 0; i < SLOTS; i++) {
      unsigned char *packet = slab + i * SLOT + HEADROOM;
      const uint64_t big = __builtin_bswap64(opened++);
      store(nonce, big << 32, big >> 32);
      const AeadMessage message = {nonce, packet - 16, 16, packet, bytes, packet + bytes};
      if (!(keyBits == 128 ? aes128GcmOpen(gcmKey, message) : keyBits == 256 ? aes256GcmOpen(gcmKey, message) : chachaPolyOpen(key, message))) {
        fprintf(stderr, "avx512: a tag is wrong\n");
        return 1;
      }
    }
    const double stop = now();
    sealing += middle - start;
    opening += stop - middle;
    packets += SLOTS;
  }
  const double count = static_cast<double>(packets);
  printf("{\"suite\":\"%s\",\"bytes\":%zu,\"sealNs\":%.2f,\"openNs\":%.2f,\"library\":\"penstock\"}\n", suite, bytes, sealing / count, opening / count);
  return 0;
}
