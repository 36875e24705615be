/* Sums of sources times factors over GF(2^8), 0x11D, as fast as this machine has it: GF2P8AFFINEQB, or Intel ISA-L. */
#include <immintrin.h>
#include <isa-l/erasure_code.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

#if defined(__GFNI__) && defined(__AVX512BW__)
static uint64_t affine[256];

static unsigned char product(unsigned char a, unsigned char b) {
  int sum = 0;
  for (int bit = 7; bit >= 0; bit--) {
    sum = sum << 1 ^ (sum & 0x80 ? 0x11d : 0);
    if (b >> bit & 1) sum ^= a;
  }
  return (unsigned char)sum;
}

/* Multiplication by each element as a matrix of bits, row i in byte 7 - i, which is what GF2P8AFFINEQB takes. */
static void prepare(void) {
  for (int a = 0; a < 256; a++) {
    for (int row = 0; row < 8; row++) {
      uint64_t bits = 0;
      for (int column = 0; column < 8; column++) {
        bits |= (uint64_t)(product((unsigned char)a, (unsigned char)(1 << column)) >> row & 1) << column;
      }
      affine[a] |= bits << (8 * (7 - row));
    }
  }
}

static void sum(int bytes, int window, const unsigned char *factors, unsigned char **sources, unsigned char *target) {
  for (int at = 0; at < bytes; at += 256) {
    __m512i part[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int i = 0; i < window; i++) {
      const __m512i by = _mm512_set1_epi64((long long)affine[factors[i]]);
      for (int u = 0; u < 4; u++) {
        part[u] = _mm512_xor_si512(part[u], _mm512_gf2p8affine_epi64_epi8(_mm512_loadu_si512(sources[i] + at + u * 64), by, 0));
      }
    }
    for (int u = 0; u < 4; u++) _mm512_storeu_si512(target + at + u * 64, part[u]);
  }
}
#else
static unsigned char *tables;
static void prepare(void) { tables = malloc(32 * 4096); }
static void sum(int bytes, int window, unsigned char *factors, unsigned char **sources, unsigned char *target) {
  ec_init_tables(window, 1, factors, tables);
  ec_encode_data(bytes, window, 1, tables, sources, &target);
}
#endif
