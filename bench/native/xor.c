/* Two-dimensional parity as a plain loop: each source is added to the sums of its row and column. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOT = 2048, MOST = 64 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static void add(uint8_t *restrict to, const uint8_t *restrict from, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] ^= from[i];
}

/* One block: the first source of a line is copied, the others are added. */
static void block(uint8_t *slab, int columns, int rows, int bytes) {
  uint8_t *sums = slab + (size_t)columns * rows * SLOT;
  for (int i = 0; i < columns * rows; i++) {
    const uint8_t *source = slab + (size_t)i * SLOT;
    uint8_t *row = sums + (size_t)(i / columns) * SLOT, *column = sums + (size_t)(rows + i % columns) * SLOT;
    if (i % columns == 0)
      memcpy(row, source, (size_t)bytes);
    else
      add(row, source, bytes);
    if (i < columns)
      memcpy(column, source, (size_t)bytes);
    else
      add(column, source, bytes);
  }
}

/* usage: xor BYTES MILLISECONDS COLUMNS ROWS; prints ns per source packet. */
int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int bytes = atoi(argv[1]), columns = atoi(argv[3]), rows = atoi(argv[4]);
  double milliseconds = atof(argv[2]);
  if (bytes < 1 || bytes > SLOT || columns < 1 || columns > MOST || rows < 1 || rows > MOST) return 2;
  size_t size = ((size_t)columns * rows + columns + rows) * SLOT;
  uint8_t *slab = aligned_alloc(64, size);
  for (size_t i = 0; i < size; i++) slab[i] = (uint8_t)rand();
  long calls = 0;
  double start = now(), end = start + milliseconds * 1e6, stop = start;
  while (stop < end) {
    for (int i = 0; i < 8; i++) {
      block(slab, columns, rows, bytes);
      /* The compiler must not find that one block is as good as eight. */
      __asm__ volatile("" : : "r"(slab) : "memory");
    }
    calls += 8;
    stop = now();
  }
  printf("{\"ns\":%.3f}\n", (stop - start) / calls / (columns * rows));
  free(slab);
  return 0;
}
