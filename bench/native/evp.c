/* Seals and opens packets in a C loop over OpenSSL's EVP: one context, a new nonce per packet, 16 bytes of associated data and a
 * tag of 16, or neither with a cipher that does not authenticate. */
#define _GNU_SOURCE
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 256, SLOT = 2048, HEADROOM = 128 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static void check(int ok) {
  if (!ok) {
    fprintf(stderr, "evp: OpenSSL failed\n");
    exit(1);
  }
}

/* Zeros, and the counter in the last 8 of `length` bytes. */
static void nonceOf(uint64_t counter, unsigned char *nonce, int length) {
  uint64_t big = __builtin_bswap64(counter);
  memset(nonce, 0, length - 8);
  memcpy(nonce + length - 8, &big, 8);
}

/* usage: evp [BYTES] [MILLISECONDS] [aes-128-gcm|aes-256-gcm|chacha20-poly1305|chacha20]; prints ns per packet
 * for sealing and opening. */
int main(int argc, char **argv) {
  int bytes = argc > 1 ? atoi(argv[1]) : 1200;
  double milliseconds = argc > 2 ? atof(argv[2]) : 200;
  const char *suite = argc > 3 ? argv[3] : "aes-128-gcm";
  const EVP_CIPHER *cipher = EVP_get_cipherbyname(suite);
  if (!cipher || bytes < 1 || bytes > 1800) {
    fprintf(stderr, "usage: evp [BYTES] [MILLISECONDS] [SUITE]\n");
    return 2;
  }
  static unsigned char slab[SLOTS * SLOT];
  unsigned char key[32], nonce[16], rest[16];
  int authenticates = (EVP_CIPHER_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0;
  int nonceBytes = EVP_CIPHER_iv_length(cipher);
  for (int i = 0; i < 32; i++) key[i] = (unsigned char)(i * 7);
  for (int i = 0; i < SLOTS * SLOT; i++) slab[i] = (unsigned char)(i * 31);
  EVP_CIPHER_CTX *seal = EVP_CIPHER_CTX_new(), *open = EVP_CIPHER_CTX_new();
  check(EVP_EncryptInit_ex(seal, cipher, NULL, key, NULL) == 1);
  check(EVP_DecryptInit_ex(open, cipher, NULL, key, NULL) == 1);
  double sealing = 0, opening = 0;
  uint64_t counter = 0, opened = 0, packets = 0;
  int size;
  for (double end = now() + milliseconds * 1e6; now() < end;) {
    double start = now();
    for (int i = 0; i < SLOTS; i++) {
      unsigned char *packet = slab + i * SLOT + HEADROOM, *header = packet - 16;
      nonceOf(counter++, nonce, nonceBytes);
      memset(header, 9, 8);
      memcpy(header + 8, nonce + nonceBytes - 8, 8);
      check(EVP_EncryptInit_ex(seal, NULL, NULL, NULL, nonce) == 1);
      if (authenticates) check(EVP_EncryptUpdate(seal, NULL, &size, header, 16) == 1);
      check(EVP_EncryptUpdate(seal, packet, &size, packet, bytes) == 1);
      check(EVP_EncryptFinal_ex(seal, packet + bytes, &size) == 1);
      if (authenticates) check(EVP_CIPHER_CTX_ctrl(seal, EVP_CTRL_AEAD_GET_TAG, 16, packet + bytes) == 1);
    }
    double middle = now();
    for (int i = 0; i < SLOTS; i++) {
      unsigned char *packet = slab + i * SLOT + HEADROOM, *header = packet - 16;
      nonceOf(opened++, nonce, nonceBytes);
      check(EVP_DecryptInit_ex(open, NULL, NULL, NULL, nonce) == 1);
      if (authenticates) check(EVP_DecryptUpdate(open, NULL, &size, header, 16) == 1);
      check(EVP_DecryptUpdate(open, packet, &size, packet, bytes) == 1);
      if (authenticates) check(EVP_CIPHER_CTX_ctrl(open, EVP_CTRL_AEAD_SET_TAG, 16, packet + bytes) == 1);
      check(EVP_DecryptFinal_ex(open, rest, &size) == 1);
    }
    double stop = now();
    sealing += middle - start;
    opening += stop - middle;
    packets += SLOTS;
  }
  printf("{\"suite\":\"%s\",\"bytes\":%d,\"sealNs\":%.2f,\"openNs\":%.2f,\"openssl\":\"%s\"}\n", suite, bytes,
         sealing / packets, opening / packets, OpenSSL_version(OPENSSL_VERSION_STRING));
  return 0;
}
