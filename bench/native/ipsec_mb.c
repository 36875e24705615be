/* Seals and opens packets in a C loop over ipsec-mb, by its own header: one key, a new nonce per packet, 16 bytes of associated data and a
 * tag of 16. AES-GCM by the direct functions, ChaCha20-Poly1305 by unchecked jobs, which are done at once. */
#define _GNU_SOURCE
#define LINUX
#include <intel-ipsec-mb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 256, SLOT = 2048, HEADROOM = 128 };

static IMB_MGR *manager;
static struct gcm_key_data gcmKey;
static struct gcm_context_data gcmContext;
static unsigned char key[32];
static int keyBits;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* 16 bytes by one store: what is read as one soon after two stores waits until both are in the cache. */
typedef uint64_t Words __attribute__((vector_size(16)));

static void store(unsigned char *to, uint64_t first, uint64_t second) {
  Words words = {first, second};
  memcpy(to, &words, sizeof words);
}

/* 4 zeros and the counter. */
static void number(unsigned char *nonce, uint64_t big) { store(nonce, big << 32, big >> 32); }

static void check(int ok) {
  if (!ok) {
    fprintf(stderr, "ipsec_mb: the library failed\n");
    exit(1);
  }
}

static void chacha(unsigned char *packet, int bytes, const unsigned char *nonce, unsigned char *tag, IMB_CIPHER_DIRECTION direction) {
  IMB_JOB *job = IMB_GET_NEXT_JOB(manager);
  job->cipher_direction = direction;
  job->chain_order = direction == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
  job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
  job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
  job->enc_keys = key;
  job->dec_keys = key;
  job->key_len_in_bytes = 32;
  job->u.CHACHA20_POLY1305.aad = packet - 16;
  job->u.CHACHA20_POLY1305.aad_len_in_bytes = 16;
  job->src = packet;
  job->dst = packet;
  job->iv = nonce;
  job->iv_len_in_bytes = 12;
  job->cipher_start_src_offset_in_bytes = 0;
  job->hash_start_src_offset_in_bytes = 0;
  job->msg_len_to_cipher_in_bytes = (uint64_t)bytes;
  job->msg_len_to_hash_in_bytes = (uint64_t)bytes;
  job->auth_tag_output = tag;
  job->auth_tag_output_len_in_bytes = 16;
  job = IMB_SUBMIT_JOB_NOCHECK(manager);
  check(job && job->status == IMB_STATUS_COMPLETED);
}

static void seal(unsigned char *packet, int bytes, const unsigned char *nonce) {
  unsigned char *tag = packet + bytes;
  if (keyBits == 128) IMB_AES128_GCM_ENC(manager, &gcmKey, &gcmContext, packet, packet, bytes, nonce, packet - 16, 16, tag, 16);
  else if (keyBits == 256) IMB_AES256_GCM_ENC(manager, &gcmKey, &gcmContext, packet, packet, bytes, nonce, packet - 16, 16, tag, 16);
  else chacha(packet, bytes, nonce, tag, IMB_DIR_ENCRYPT);
}

static void open(unsigned char *packet, int bytes, const unsigned char *nonce) {
  unsigned char tag[16];
  unsigned char differs = 0;
  if (keyBits == 128) IMB_AES128_GCM_DEC(manager, &gcmKey, &gcmContext, packet, packet, bytes, nonce, packet - 16, 16, tag, 16);
  else if (keyBits == 256) IMB_AES256_GCM_DEC(manager, &gcmKey, &gcmContext, packet, packet, bytes, nonce, packet - 16, 16, tag, 16);
  else chacha(packet, bytes, nonce, tag, IMB_DIR_DECRYPT);
  for (int i = 0; i < 16; i++) differs |= tag[i] ^ packet[bytes + i];
  check(differs == 0);
}

/* usage: ipsec_mb [BYTES] [MILLISECONDS] [aes-128-gcm|aes-256-gcm|chacha20-poly1305]; prints ns per packet for sealing and opening. */
int main(int argc, char **argv) {
  int bytes = argc > 1 ? atoi(argv[1]) : 1200;
  double milliseconds = argc > 2 ? atof(argv[2]) : 200;
  const char *suite = argc > 3 ? argv[3] : "aes-128-gcm";
  keyBits = strcmp(suite, "aes-128-gcm") == 0 ? 128 : strcmp(suite, "aes-256-gcm") == 0 ? 256 : 0;
  if ((keyBits == 0 && strcmp(suite, "chacha20-poly1305") != 0) || bytes < 1 || bytes > 1800) {
    fprintf(stderr, "usage: ipsec_mb [BYTES] [MILLISECONDS] [SUITE]\n");
    return 2;
  }
  manager = alloc_mb_mgr(0);
  check(manager != NULL);
  init_mb_mgr_auto(manager, NULL);
  check(imb_get_errno(manager) == 0);
  static unsigned char slab[SLOTS * SLOT];
  unsigned char nonce[16] = {0};
  for (int i = 0; i < 32; i++) key[i] = (unsigned char)(i * 7);
  for (int i = 0; i < SLOTS * SLOT; i++) slab[i] = (unsigned char)(i * 31);
  if (keyBits == 128) IMB_AES128_GCM_PRE(manager, key, &gcmKey);
  if (keyBits == 256) IMB_AES256_GCM_PRE(manager, key, &gcmKey);
  double sealing = 0, opening = 0;
  uint64_t counter = 0, opened = 0, packets = 0;
  for (double end = now() + milliseconds * 1e6; now() < end;) {
    double start = now();
    for (int i = 0; i < SLOTS; i++) {
      unsigned char *packet = slab + i * SLOT + HEADROOM, *header = packet - 16;
      uint64_t big = __builtin_bswap64(counter++);
      number(nonce, big);
      store(header, 0x0909090909090909, big);
      seal(packet, bytes, nonce);
    }
    double middle = now();
    for (int i = 0; i < SLOTS; i++) {
      uint64_t big = __builtin_bswap64(opened++);
      number(nonce, big);
      open(slab + i * SLOT + HEADROOM, bytes, nonce);
    }
    double stop = now();
    sealing += middle - start;
    opening += stop - middle;
    packets += SLOTS;
  }
  printf("{\"suite\":\"%s\",\"bytes\":%d,\"sealNs\":%.2f,\"openNs\":%.2f,\"library\":\"%s\"}\n", suite, bytes, sealing / packets,
         opening / packets, imb_get_version_str());
  free_mb_mgr(manager);
  return 0;
}
