/* Prints the metrics of a run from its shared-memory file: cc -O2 -o reader reader.c && ./reader FILE
   The layout is in docs/shared-memory.md. Little-endian machines only. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct header { char magic[8]; uint32_t version, sequence, state, reserved; double time; uint32_t directory, values, count; };

int main(int argc, char** argv) {
  struct stat file;
  int descriptor = argc == 2 ? open(argv[1], O_RDONLY) : -1;
  if (descriptor < 0 || fstat(descriptor, &file) != 0 || file.st_size < 64) return fprintf(stderr, "usage: reader FILE\n"), 2;
  const char* map = mmap(NULL, file.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
  const volatile struct header* header = (const volatile struct header*)map;
  if (map == MAP_FAILED || memcmp(map, "PENSHMEM", 8) != 0 || header->version != 1) return fprintf(stderr, "no metrics yet\n"), 1;
  double values[header->count], time;
  uint32_t before;
  do {
    before = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE);
    memcpy(values, map + header->values, sizeof values);
    time = header->time;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  } while ((before & 1) != 0 || before != header->sequence);
  printf("%s at %.3f\n", header->state == 2 ? "ended" : "running", time / 1e9);
  const char* line = map + 64;
  for (uint32_t i = 0; i < header->count; i++) {
    int length = (int)strcspn(line, "\n");
    printf("%.17g\t%.*s\n", values[i], length, line);
    line += length + 1;
  }
  return 0;
}
