/* Sends numbered datagrams at a steady pace and says how many of them came to another port, and how late, all by one clock. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#define MOST 10000000

struct stamp {
  long long sent;
  long long number;
};

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const long long x = *(const long long *)a, y = *(const long long *)b;
  return x < y ? -1 : x > y;
}

/* usage: stream TARGET_PORT SINK_PORT PACKETS INTERVAL_US BYTES EXTRA; EXTRA packets before and after those are sent and not
 * counted. Prints {"sent":…,"lost":…,"repeated":…,"reordered":…,"p50":…,"p99":…,"p999":…}: a packet that came behind a later one is reordered,
 * times are ns from before the send until the packet was read. */
int main(int argc, char **argv) {
  if (argc < 7) {
    fprintf(stderr, "usage: stream TARGET_PORT SINK_PORT PACKETS INTERVAL_US BYTES EXTRA\n");
    return 2;
  }
  const long packets = atol(argv[3]) < MOST ? atol(argv[3]) : MOST, extra = atol(argv[6]), all = packets + 2 * extra;
  const long long interval = atoll(argv[4]) * 1000;
  const size_t bytes = atol(argv[5]);
  char payload[2048] = {0}, received[2048];
  if (bytes < sizeof(struct stamp) || bytes > sizeof payload) {
    fprintf(stderr, "stream: BYTES is %zu to %zu\n", sizeof(struct stamp), sizeof payload);
    return 2;
  }
  long long *delays = malloc(packets * sizeof *delays);
  char *came = calloc(packets, 1);
  if (!delays || !came) return 1;
  prctl(PR_SET_TIMERSLACK, 1);
  int out = socket(AF_INET, SOCK_DGRAM, 0), in = socket(AF_INET, SOCK_DGRAM, 0), size = 4 << 20;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in from = to;
  from.sin_port = htons(atoi(argv[2]));
  setsockopt(in, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  /* Not connected: what nobody listens to yet is lost, not an error of the next send. */
  if (bind(in, (struct sockaddr *)&from, sizeof from) < 0) {
    perror("stream: bind");
    return 1;
  }
  long sent = 0, got = 0, repeated = 0, reordered = 0;
  long long due = now(), last = due, highest = -1;
  /* Two seconds after the last one was sent, what is missing is lost. */
  while (sent < all || now() - last < 2000000000) {
    while (sent < all && now() >= due) {
      struct stamp stamp = {now(), sent++};
      memcpy(payload, &stamp, sizeof stamp);
      if (sendto(out, payload, bytes, 0, (struct sockaddr *)&to, sizeof to) < 0) perror("stream: send");
      last = stamp.sent;
      due += interval;
    }
    const long long left = sent < all ? due - now() : 100000000;
    struct timespec wait = {0, left > 0 ? left : 0};
    struct pollfd ready = {in, POLLIN, 0};
    ppoll(&ready, 1, &wait, NULL);
    while (recv(in, received, sizeof received, MSG_DONTWAIT) == (ssize_t)bytes) {
      struct stamp stamp;
      memcpy(&stamp, received, sizeof stamp);
      const long long number = stamp.number - extra;
      if (number < 0 || number >= packets) continue;
      if (came[number]) {
        repeated++;
        continue;
      }
      came[number] = 1;
      delays[got++] = now() - stamp.sent;
      if (number < highest) reordered++;
      else highest = number;
    }
  }
  qsort(delays, got, sizeof *delays, ascending);
  printf("{\"sent\":%ld,\"lost\":%ld,\"repeated\":%ld,\"reordered\":%ld", packets, packets - got, repeated, reordered);
  printf(",\"p50\":%lld,\"p99\":%lld,\"p999\":%lld}\n", got ? delays[got / 2] : 0, got ? delays[got * 99 / 100] : 0,
         got ? delays[got * 999 / 1000] : 0);
}
