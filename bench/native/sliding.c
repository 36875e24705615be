/* The multiply-adds of a sliding window code over GF(2^8), 0x11D, and nothing else: every `STEP` sources one sum over the newest of them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "multiply.h"

enum { STEP = 10, SLOT = 1280 };

/* usage: sliding BYTES MILLISECONDS WINDOW; {"ns": …} per source. */
int main(int argc, char **argv) {
  int bytes = argc > 1 ? atoi(argv[1]) : 0, window = argc > 3 ? atoi(argv[3]) : 0;
  double milliseconds = argc > 2 ? atof(argv[2]) : 0;
  if (bytes < 1 || bytes > SLOT - 64 || window < 1 || window > 4096 || milliseconds <= 0) {
    fprintf(stderr, "usage: sliding BYTES MILLISECONDS WINDOW\n");
    return 2;
  }
  prepare();
  int places = 2 * window + STEP;
  unsigned char *slab = aligned_alloc(64, (size_t)places * SLOT + 256), *target = aligned_alloc(64, SLOT + 256);
  unsigned char **sources = malloc((size_t)window * sizeof *sources), *factors = malloc((size_t)window);
  for (size_t i = 0; i < (size_t)places * SLOT; i++) slab[i] = (unsigned char)rand();
  for (int i = 0; i < window; i++) factors[i] = (unsigned char)(1 + rand() % 255);
  long repairs = 0;
  int first = 0;
  double start = now(), end = start + milliseconds * 1e6, stop = start;
  while (stop < end) {
    for (int n = 0; n < 16; n++, repairs++) {
      for (int i = 0; i < window; i++) sources[i] = slab + (size_t)((first + i) % places) * SLOT;
      sum(bytes, window, factors, sources, target);
      first = (first + STEP) % places;
    }
    stop = now();
  }
  printf("{\"ns\":%.3f}\n", (stop - start) / repairs / STEP);
  return 0;
}
