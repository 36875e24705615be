/* Sealing and opening one packet in place with a library chosen at run time: OpenSSL's EVP, or ipsec-mb, loaded when asked for. */
#pragma once
#include <dlfcn.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<intel-ipsec-mb.h>)
#define LINUX /* without it the header does not align the keys that the library loads */
#include <intel-ipsec-mb.h>
#define HAS_IPSEC_MB 1
#endif

enum { TAG = 16, NONCE = 12, HEADER = 16, KEY = 32 };

struct aead {
  EVP_CIPHER_CTX *seal, *open;
#ifdef HAS_IPSEC_MB
  IMB_MGR *mb;
  struct gcm_key_data gcm;
#endif
  int chacha, none;
  uint8_t key[KEY];
};

static void fail(const char *what) {
  fprintf(stderr, "tunnel: %s\n", what);
  exit(1);
}

static void check(int ok) {
  if (!ok) fail("OpenSSL failed");
}

#ifdef HAS_IPSEC_MB
static void aead_ipsec_mb(struct aead *aead) {
  const char *name = IMB_VERSION_NUM < IMB_VERSION(2, 0, 0) ? "libIPSec_MB.so.1" : "libIPSec_MB.so.2";
  void *library = dlopen(name, RTLD_NOW);
  if (!library) fail("libIPSec_MB is missing: apt-get install libipsec-mb-dev");
  IMB_MGR *(*allocate)(uint64_t) = dlsym(library, "alloc_mb_mgr");
  void (*initialize)(IMB_MGR *, IMB_ARCH *) = dlsym(library, "init_mb_mgr_auto");
  if (!allocate || !initialize || !(aead->mb = allocate(0))) fail("libIPSec_MB is not one that this program knows");
  initialize(aead->mb, NULL);
  if (!aead->chacha) IMB_AES128_GCM_PRE(aead->mb, aead->key, &aead->gcm);
}
#endif

/*
 * Every byte of the key is `fill`; suite aes-128-gcm or chacha20-poly1305, library openssl, ipsec-mb, or none: packets of the same lengths that are
 * neither encrypted nor authenticated. Ends the program when there is no such library.
 */
static void aead_init(struct aead *aead, const char *suite, const char *library, uint8_t fill) {
  const EVP_CIPHER *cipher = EVP_get_cipherbyname(suite);
  if (!cipher) fail("no such suite");
  aead->chacha = strcmp(suite, "chacha20-poly1305") == 0;
  memset(aead->key, fill, sizeof aead->key);
  aead->none = strcmp(library, "none") == 0;
  if (aead->none) return;
  if (strcmp(library, "ipsec-mb") == 0) {
#ifdef HAS_IPSEC_MB
    aead_ipsec_mb(aead);
    return;
#else
    fail("built without intel-ipsec-mb.h: apt-get install libipsec-mb-dev, and remove bench/.build/tunnel");
#endif
  }
  aead->seal = EVP_CIPHER_CTX_new();
  aead->open = EVP_CIPHER_CTX_new();
  check(EVP_EncryptInit_ex(aead->seal, cipher, NULL, aead->key, NULL) == 1);
  check(EVP_DecryptInit_ex(aead->open, cipher, NULL, aead->key, NULL) == 1);
}

/* The counter is the last 8 of the header's bytes, and of the nonce's. */
static void aead_nonce(const uint8_t *header, uint8_t *nonce) {
  memset(nonce, 0, NONCE - 8);
  memcpy(nonce + NONCE - 8, header + HEADER - 8, 8);
}

#ifdef HAS_IPSEC_MB
static void aead_run_mb(struct aead *aead, int sealing, const uint8_t *header, uint8_t *text, int bytes, uint8_t *tag) {
  uint8_t nonce[NONCE];
  aead_nonce(header, nonce);
  if (aead->chacha) {
    struct chacha20_poly1305_context_data context;
    IMB_CHACHA20_POLY1305_INIT(aead->mb, aead->key, &context, nonce, header, HEADER);
    if (sealing) {
      IMB_CHACHA20_POLY1305_ENC_UPDATE(aead->mb, aead->key, &context, text, text, (uint64_t)bytes);
      IMB_CHACHA20_POLY1305_ENC_FINALIZE(aead->mb, &context, tag, TAG);
    } else {
      IMB_CHACHA20_POLY1305_DEC_UPDATE(aead->mb, aead->key, &context, text, text, (uint64_t)bytes);
      IMB_CHACHA20_POLY1305_DEC_FINALIZE(aead->mb, &context, tag, TAG);
    }
    return;
  }
  struct gcm_context_data context;
  if (sealing) {
    IMB_AES128_GCM_ENC(aead->mb, &aead->gcm, &context, text, text, (uint64_t)bytes, nonce, header, HEADER, tag, TAG);
  } else {
    IMB_AES128_GCM_DEC(aead->mb, &aead->gcm, &context, text, text, (uint64_t)bytes, nonce, header, HEADER, tag, TAG);
  }
}
#endif

/* Encrypts `bytes` bytes behind a header in place and writes the tag behind them. */
static void aead_seal(struct aead *aead, uint8_t *header, int bytes) {
  uint8_t *text = header + HEADER, nonce[NONCE];
  if (aead->none) {
    memset(text + bytes, 0, TAG);
    return;
  }
#ifdef HAS_IPSEC_MB
  if (aead->mb) {
    aead_run_mb(aead, 1, header, text, bytes, text + bytes);
    return;
  }
#endif
  int size;
  aead_nonce(header, nonce);
  check(EVP_EncryptInit_ex(aead->seal, NULL, NULL, NULL, nonce) == 1);
  check(EVP_EncryptUpdate(aead->seal, NULL, &size, header, HEADER) == 1);
  check(EVP_EncryptUpdate(aead->seal, text, &size, text, bytes) == 1);
  check(EVP_EncryptFinal_ex(aead->seal, text + bytes, &size) == 1);
  check(EVP_CIPHER_CTX_ctrl(aead->seal, EVP_CTRL_AEAD_GET_TAG, TAG, text + bytes) == 1);
}

/* Decrypts the `bytes` bytes between header and tag in place; whether the tag holds. */
static int aead_open(struct aead *aead, uint8_t *header, int bytes) {
  uint8_t *text = header + HEADER, nonce[NONCE], rest[TAG];
  if (aead->none) return 1;
#ifdef HAS_IPSEC_MB
  if (aead->mb) {
    aead_run_mb(aead, 0, header, text, bytes, rest);
    return memcmp(rest, text + bytes, TAG) == 0;
  }
#endif
  int size;
  aead_nonce(header, nonce);
  check(EVP_DecryptInit_ex(aead->open, NULL, NULL, NULL, nonce) == 1);
  check(EVP_DecryptUpdate(aead->open, NULL, &size, header, HEADER) == 1);
  check(EVP_DecryptUpdate(aead->open, text, &size, text, bytes) == 1);
  check(EVP_CIPHER_CTX_ctrl(aead->open, EVP_CTRL_AEAD_SET_TAG, TAG, text + bytes) == 1);
  return EVP_DecryptFinal_ex(aead->open, rest, &size) == 1;
}
