/* A delay in plain C: every datagram leaves a fixed time after it was received, and nothing else is done. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RING 65536
#define LARGEST 256

static struct {
  long long due;
  ssize_t bytes;
  char data[LARGEST];
} ring[RING];

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* usage: delay LISTEN_PORT TARGET_PORT MICROSECONDS [spin]; until killed. With "spin" it never sleeps. */
int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: delay LISTEN_PORT TARGET_PORT MICROSECONDS [spin]\n");
    return 2;
  }
  const long long delay = atoll(argv[3]) * 1000;
  const int spin = argc > 4 && strcmp(argv[4], "spin") == 0;
  int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in to = from;
  to.sin_port = htons(atoi(argv[2]));
  if (bind(in, (struct sockaddr *)&from, sizeof from) < 0 || connect(out, (struct sockaddr *)&to, sizeof to) < 0) {
    perror("delay");
    return 1;
  }
  prctl(PR_SET_TIMERSLACK, 1);
  unsigned first = 0, next = 0;
  for (;;) {
    struct pollfd ready = {in, POLLIN, 0};
    struct timespec wait = {0, 0};
    if (!spin && first != next) {
      long long left = ring[first % RING].due - now();
      if (left > 0) wait = (struct timespec){left / 1000000000, left % 1000000000};
    }
    ppoll(&ready, 1, !spin && first == next ? NULL : &wait, NULL);
    while (next - first < RING) {
      ssize_t bytes = recv(in, ring[next % RING].data, LARGEST, MSG_DONTWAIT);
      if (bytes < 0) break;
      ring[next % RING].bytes = bytes;
      ring[next % RING].due = now() + delay;
      next++;
    }
    while (first != next && ring[first % RING].due <= now()) {
      if (send(out, ring[first % RING].data, ring[first % RING].bytes, 0) < 0) perror("send");
      first++;
    }
  }
}
