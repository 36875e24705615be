/* Load for the forwarding benches: floods a UDP port on loopback with GSO trains and drains the port they come back on. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static int bound(int port) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  int size = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0) {
    perror("bind");
    exit(1);
  }
  return fd;
}

/* Takes what is there, at most `trains` super-packets; returns how many datagrams of `size` bytes that was. */
static long drain(int fd, char *buffer, int size, int trains) {
  long got = 0;
  for (int i = 0; i < trains; i++) {
    ssize_t n = recv(fd, buffer, 65536, 0);
    if (n <= 0) break;
    got += (n + size - 1) / size;
  }
  return got;
}

/* usage: flood TARGET_PORT SINK_PORT SECONDS SIZE CPU [WINDOW]; prints {"sent":…,"received":…,"seconds":…,"total":…}: the first
 * three of the time after warm-up, total all that was received. At most WINDOW datagrams are under way, so that a slow forwarder is kept busy rather than drowned. */
int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: flood TARGET_PORT SINK_PORT SECONDS SIZE CPU [WINDOW]\n");
    return 2;
  }
  int target = atoi(argv[1]), sink = atoi(argv[2]), size = atoi(argv[4]), cpu = atoi(argv[5]);
  double seconds = atof(argv[3]);
  long window = argc > 6 ? atol(argv[6]) : 1500;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  int in = bound(sink), out = bound(0), on = 1;
  setsockopt(in, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(target), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  connect(out, (struct sockaddr *)&to, sizeof to);
  setsockopt(out, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size);
  int train = 65507 / size;
  if (train > 64) train = 64;
  static char payload[65536], buffer[65536];
  memset(payload, 0x55, sizeof payload);
  long sent = 0, received = 0, total = 0, under_way = 0;
  double start = now(), warm = start + 0.3, end = warm + seconds, progress = start;
  int counting = 0;
  for (;;) {
    double t = now();
    if (!counting && t >= warm) {
      counting = 1;
      sent = received = 0;
    }
    if (t >= end) break;
    if (under_way + train <= window) {
      if (send(out, payload, (size_t)size * train, 0) > 0) {
        sent += train;
        under_way += train;
      }
    }
    long got = drain(in, buffer, size, 8);
    if (got > 0) {
      received += got;
      total += got;
      under_way -= got;
      if (under_way < 0) under_way = 0;
      progress = t;
    } else if (t - progress > 0.005) {
      under_way = 0; /* what is missing was dropped on the way */
      progress = t;
    }
  }
  printf("{\"sent\":%ld,\"received\":%ld,\"seconds\":%.6f,\"total\":%ld}\n", sent, received, now() - warm, total);
  return 0;
}
