/*
 * All that rely_encoder and rely_decoder have to do for each packet, in plain C for one session without timers or limits: headers, copies of
 * the sources that the window needs, coefficients of RFC 8681, products. What is recovered is compared with what was sent.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "multiply.h"

enum { STEP = 10, LOST = 20, SLOT = 1408, FRONT = 64, SYMBOL = 1280, BATCH = 256, SOURCES = 64 * BATCH, PLACES = 1024, MOST = 256 };

static unsigned char *slots, *ring, *wire;
static int lengths[BATCH], wireLengths[SOURCES + SOURCES / STEP];
static unsigned char *slot(int n) { return slots + (size_t)n * SLOT + FRONT; }
static unsigned char *kept(uint32_t number) { return ring + (size_t)(number % PLACES) * SYMBOL; }

static void put32(unsigned char *at, uint32_t value) {
  value = __builtin_bswap32(value);
  memcpy(at, &value, 4);
}
static uint32_t get32(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return __builtin_bswap32(value);
}

/* TinyMT32 of RFC 8682 as RFC 8681, section 3.6, uses it for m = 8: the lowest byte of each number, unless that is 0. */
static void coefficients(uint32_t seed, int count, unsigned char *out) {
  uint32_t s[4] = {seed, 0x8f7011ee, 0xfc78ff1f, 0x3793fdff};
  for (uint32_t i = 1; i < 8; i++) s[i & 3] ^= i + 1812433253u * (s[(i - 1) & 3] ^ s[(i - 1) & 3] >> 30);
  for (int n = -8; n < count;) {
    uint32_t y = s[3], x = (s[0] & 0x7fffffffu) ^ s[1] ^ s[2];
    x ^= x << 1;
    y ^= y >> 1 ^ x;
    uint32_t odd = 0u - (y & 1);
    s[0] = s[1];
    s[1] = s[2] ^ (odd & 0x8f7011ee);
    s[2] = x ^ y << 10 ^ (odd & 0xfc78ff1f);
    s[3] = y;
    if (n < 0) {
      n++;
      continue;
    }
    uint32_t t = s[0] + (s[2] >> 8);
    out[n] = (unsigned char)(s[3] ^ t ^ ((0u - (t & 1)) & 0x3793fdff));
    n += out[n] != 0;
  }
}

static unsigned char times(unsigned char a, unsigned char b) {
  int product = 0;
  for (int bit = 7; bit >= 0; bit--) {
    product = product << 1 ^ (product & 0x80 ? 0x11d : 0);
    if (b >> bit & 1) product ^= a;
  }
  return (unsigned char)product;
}
static unsigned char table[256][256], inverse[256];

/* Frames `count` sources from slot 0 on; a repair over the newest follows every STEP of them, to `repairs`. */
static int encode(uint32_t first, int count, int bytes, int window, unsigned char *repairs) {
  unsigned char factors[MOST], *sources[MOST];
  int made = 0;
  for (int n = 0; n < count; n++) {
    uint32_t number = first + (uint32_t)n;
    unsigned char *packet = slot(n) - 10;
    put32(packet, 0xb8123456);
    put32(packet + 4, number);
    packet[8] = (unsigned char)(bytes >> 8);
    packet[9] = (unsigned char)bytes;
    memcpy(kept(number), packet + 8, (size_t)bytes + 2);
    if ((number + 1) % STEP != 0) continue;
    int covered = number + 1 < (uint32_t)window ? (int)number + 1 : window;
    uint32_t oldest = number + 1 - (uint32_t)covered;
    unsigned char *repair = repairs + (size_t)made++ * SLOT + FRONT;
    coefficients((uint16_t)(number / STEP), covered, factors);
    for (int i = 0; i < covered; i++) sources[i] = kept(oldest + (uint32_t)i);
    put32(repair - 12, 0xb9123456);
    put32(repair - 8, oldest);
    put32(repair - 4, (uint32_t)covered << 16 | (uint16_t)(number / STEP));
    sum(bytes + 2, covered, factors, sources, repair);
  }
  return made;
}

static uint32_t missing;
static int isMissing;
static uint32_t next;

/* Takes the packets in the first `count` slots; returns how many sources were recovered, each to a slot of its own behind those. */
static int decode(int count, int bytes) {
  unsigned char factors[MOST + 1], *sources[MOST + 1];
  int recovered = 0;
  for (int n = 0; n < count; n++) {
    unsigned char *packet = slot(n);
    uint32_t number = get32(packet + 4);
    if (packet[0] == 0xb8) {
      if (lengths[n] != 10 + (packet[8] << 8 | packet[9])) continue;
      for (; next != number; next++) {
        missing = next;
        isMissing = 1;
      }
      next++;
      memcpy(kept(number), packet + 8, (size_t)lengths[n] - 8);
      continue;
    }
    int covered = packet[8] << 8 | packet[9], known = 0;
    if (!isMissing || missing - number >= (uint32_t)covered) continue;
    coefficients((uint32_t)(packet[10] << 8 | packet[11]), covered, factors);
    const unsigned char *by = table[inverse[factors[missing - number]]];
    for (int i = 0; i < covered; i++) {
      if (number + (uint32_t)i == missing) continue;
      factors[known] = by[factors[i]];
      sources[known++] = kept(number + (uint32_t)i);
    }
    factors[known] = by[1];
    sources[known++] = packet + 12;
    unsigned char *target = slot(BATCH + recovered++);
    sum(bytes + 2, known, factors, sources, target);
    memcpy(kept(missing), target, (size_t)bytes + 2);
    isMissing = 0;
  }
  return recovered;
}

static void byteOf(unsigned char *payload, int bytes, uint32_t number) {
  for (int i = 0; i < bytes; i++) payload[i] = (unsigned char)(number * 31 + (uint32_t)i * 7 + (number >> 8) * (uint32_t)i);
}

/* usage: rely BYTES MILLISECONDS WINDOW; {"encoder": …, "decoder": …}, ns per source, payloads of BYTES. */
int main(int argc, char **argv) {
  int bytes = argc > 1 ? atoi(argv[1]) : 0, window = argc > 3 ? atoi(argv[3]) : 0;
  double milliseconds = argc > 2 ? atof(argv[2]) : 0;
  if (bytes < 1 || bytes > SYMBOL - 64 || window < STEP || window > MOST || milliseconds <= 0) {
    fprintf(stderr, "usage: rely BYTES MILLISECONDS WINDOW\n");
    return 2;
  }
  prepare();
  for (int a = 0; a < 256; a++) {
    for (int b = 0; b < 256; b++) {
      table[a][b] = times((unsigned char)a, (unsigned char)b);
      if (table[a][b] == 1) inverse[a] = (unsigned char)b;
    }
  }
  slots = aligned_alloc(64, (size_t)2 * BATCH * SLOT);
  ring = aligned_alloc(64, (size_t)PLACES * SYMBOL + 256);
  wire = aligned_alloc(64, (size_t)(SOURCES + SOURCES / STEP) * SLOT);
  memset(slots, 0, (size_t)2 * BATCH * SLOT);
  memset(ring, 0, (size_t)PLACES * SYMBOL + 256);
  unsigned char *repairs = slots + (size_t)BATCH * SLOT;
  int arriving = 0;
  for (uint32_t first = 0; first < SOURCES; first += BATCH) {
    for (int n = 0; n < BATCH; n++) byteOf(slot(n), bytes, first + (uint32_t)n);
    encode(first, BATCH, bytes, window, repairs);
    int made = 0;
    for (int n = 0; n < BATCH; n++) {
      uint32_t number = first + (uint32_t)n;
      if (number % LOST != LOST / 2) {
        wireLengths[arriving] = bytes + 10;
        memcpy(wire + (size_t)arriving++ * SLOT, slot(n) - 10, (size_t)bytes + 10);
      }
      if ((number + 1) % STEP != 0) continue;
      wireLengths[arriving] = bytes + 14;
      memcpy(wire + (size_t)arriving++ * SLOT, repairs + (size_t)made++ * SLOT + FRONT - 12, (size_t)bytes + 14);
    }
  }
  double encoding = 0, decoding = 0, sources = 0, decoded = 0;
  while (encoding < milliseconds * 1e6) {
    double start = now();
    encode((uint32_t)window + (uint32_t)sources, BATCH, bytes, window, repairs);
    encoding += now() - start;
    sources += BATCH;
  }
  unsigned char wanted[SYMBOL];
  while (decoding < milliseconds * 1e6) {
    next = 0;
    isMissing = 0;
    int total = 0;
    for (int at = 0; at < arriving;) {
      int count = 0;
      for (; count < BATCH && at < arriving; count++, at++) {
        memcpy(slot(count), wire + (size_t)at * SLOT, (size_t)wireLengths[at]);
        lengths[count] = wireLengths[at] - (slot(count)[0] == 0xb8 ? 0 : 4);
      }
      double start = now();
      int recovered = decode(count, bytes);
      decoding += now() - start;
      for (int n = 0; n < recovered; n++) {
        byteOf(wanted, bytes, LOST / 2 + (uint32_t)(total + n) * LOST);
        if (memcmp(slot(BATCH + n) + 2, wanted, (size_t)bytes) == 0) continue;
        fprintf(stderr, "source %d was not recovered as it was sent\n", LOST / 2 + (total + n) * LOST);
        return 1;
      }
      total += recovered;
    }
    if (total < SOURCES / LOST) {
      fprintf(stderr, "%d of %d sources were recovered\n", total, SOURCES / LOST);
      return 1;
    }
    decoded += SOURCES;
  }
  printf("{\"encoder\":%.3f,\"decoder\":%.3f}\n", encoding / sources, decoding / decoded);
  return 0;
}
