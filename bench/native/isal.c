/* Reed-Solomon encoding and decoding with Intel ISA-L's ec_encode_data, the tables made beforehand. */
#define _GNU_SOURCE
#include <isa-l/erasure_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOT = 2048, MOST = 255 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Nanoseconds of one call, over `milliseconds`. */
static double measure(int bytes, int k, int r, unsigned char *tables, unsigned char **in, unsigned char **out,
                      double milliseconds) {
  long calls = 0;
  double start = now(), end = start + milliseconds * 1e6, stop = start;
  while (stop < end) {
    for (int i = 0; i < 32; i++) ec_encode_data(bytes, k, r, tables, in, out);
    calls += 32;
    stop = now();
  }
  return (stop - start) / calls;
}

static void shape(int k, int r, int bytes, double milliseconds, int last) {
  unsigned char *slab = aligned_alloc(64, (size_t)(k + 2 * r) * SLOT);
  unsigned char *rows[MOST * 2], *out[MOST], *lost[MOST], *kept[MOST];
  for (int i = 0; i < (k + 2 * r) * SLOT; i++) slab[i] = (unsigned char)rand();
  for (int i = 0; i < k + 2 * r; i++) rows[i] = slab + (size_t)i * SLOT;
  unsigned char *matrix = malloc((size_t)(k + r) * k), *part = malloc((size_t)k * k), *inverse = malloc((size_t)k * k);
  unsigned char *tables = malloc((size_t)k * r * 32);
  gf_gen_cauchy1_matrix(matrix, k + r, k);
  ec_init_tables(k, r, matrix + k * k, tables);
  for (int j = 0; j < r; j++) out[j] = rows[k + j];
  double encode = measure(bytes, k, r, tables, rows, out, milliseconds);

  /* The first `losses` source symbols are lost; repair symbols stand in for them. */
  int losses = r < k ? r : k;
  for (int i = 0; i < k; i++) {
    int row = i < losses ? k + i : i;
    memcpy(part + i * k, matrix + row * k, (size_t)k);
    kept[i] = rows[row];
  }
  if (gf_invert_matrix(part, inverse, k) != 0) exit(1);
  ec_init_tables(k, losses, inverse, tables);
  for (int j = 0; j < losses; j++) lost[j] = rows[k + r + j];
  double decode = measure(bytes, k, losses, tables, kept, lost, milliseconds);
  for (int j = 0; j < losses; j++) {
    if (memcmp(lost[j], rows[j], (size_t)bytes) != 0) {
      fprintf(stderr, "isal: the decoded symbols differ\n");
      exit(1);
    }
  }
  printf("{\"k\":%d,\"r\":%d,\"encodeNs\":%.2f,\"decodeNs\":%.2f}%s", k, r, encode / k, decode / k, last ? "" : ",");
  free(slab);
  free(matrix);
  free(part);
  free(inverse);
  free(tables);
}

/* usage: isal [BYTES] [MILLISECONDS] [K R]…; ns per source packet of each shape, {"bytes":…,"shapes":[{k, r, encodeNs, decodeNs}]}. */
int main(int argc, char **argv) {
  static const int usual[][2] = {{8, 2}, {10, 4}, {20, 5}, {50, 10}};
  int bytes = argc > 1 ? atoi(argv[1]) : 1200;
  double milliseconds = argc > 2 ? atof(argv[2]) : 50;
  if (bytes < 1 || bytes > SLOT) {
    fprintf(stderr, "usage: isal [BYTES] [MILLISECONDS] [K R]...\n");
    return 2;
  }
  printf("{\"bytes\":%d,\"shapes\":[", bytes);
  if (argc > 4) {
    for (int i = 3; i + 1 < argc; i += 2) {
      int k = atoi(argv[i]), r = atoi(argv[i + 1]);
      if (k < 1 || r < 1 || k + r > MOST) return 2;
      shape(k, r, bytes, milliseconds, i + 3 >= argc);
    }
  } else {
    for (int i = 0; i < 4; i++) shape(usual[i][0], usual[i][1], bytes, milliseconds, i == 3);
  }
  printf("]}\n");
  return 0;
}
