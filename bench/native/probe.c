/* Sends datagrams at a steady pace and says how much longer than a delay each took, by the kernel's own receive time. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 1000000

static long long errors[MOST];

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const long long x = *(const long long *)a, y = *(const long long *)b;
  return x < y ? -1 : x > y;
}

/* usage: probe TARGET_PORT SINK_PORT PACKETS INTERVAL_US DELAY_US CPU; prints {"packets":…,"early":…,"p50":…,"p99":…}, times
 * in ns beyond the delay, from before the send to the kernel's stamp of the datagram that came back. */
int main(int argc, char **argv) {
  if (argc < 7) {
    fprintf(stderr, "usage: probe TARGET_PORT SINK_PORT PACKETS INTERVAL_US DELAY_US CPU\n");
    return 2;
  }
  const long packets = atol(argv[3]) < MOST ? atol(argv[3]) : MOST;
  const long long interval = atoll(argv[4]) * 1000, delay = atoll(argv[5]) * 1000;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(atoi(argv[6]), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
  prctl(PR_SET_TIMERSLACK, 1);
  int out = socket(AF_INET, SOCK_DGRAM, 0), in = socket(AF_INET, SOCK_DGRAM, 0), on = 1, size = 4 << 20;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in from = to;
  from.sin_port = htons(atoi(argv[2]));
  setsockopt(in, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(in, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  if (bind(in, (struct sockaddr *)&from, sizeof from) < 0 || connect(out, (struct sockaddr *)&to, sizeof to) < 0) {
    perror("probe");
    return 1;
  }
  long sent = 0, got = 0, early = 0;
  long long due = now(), last = due;
  /* A second without an answer after the last one is sent: what is missing then is lost. */
  while (got < packets && (sent < packets || now() - last < 1000000000)) {
    if (sent < packets && now() >= due) {
      char payload[100] = {0};
      last = now();
      memcpy(payload, &last, sizeof last);
      if (send(out, payload, sizeof payload, 0) < 0) perror("send");
      sent++;
      due += interval;
      if (due < last) due = last + interval;
    }
    long long left = sent < packets ? due - now() : 100000000;
    struct timespec wait = {0, left > 0 ? left % 1000000000 : 0};
    struct pollfd ready = {in, POLLIN, 0};
    ppoll(&ready, 1, &wait, NULL);
    for (;;) {
      char payload[256], control[128];
      struct iovec iov = {payload, sizeof payload};
      struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
      if (recvmsg(in, &message, MSG_DONTWAIT) < (ssize_t)sizeof(long long)) break;
      long long before;
      memcpy(&before, payload, sizeof before);
      for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SO_TIMESTAMPNS) continue;
        struct timespec at;
        memcpy(&at, CMSG_DATA(part), sizeof at);
        const long long error = at.tv_sec * 1000000000ll + at.tv_nsec - before - delay;
        if (error < 0) early++;
        if (got < MOST) errors[got++] = error;
      }
    }
  }
  qsort(errors, got, sizeof *errors, ascending);
  printf("{\"packets\":%ld,\"early\":%ld,\"p50\":%lld,\"p99\":%lld}\n", got, early, got ? errors[got / 2] : 0,
         got ? errors[got * 99 / 100] : 0);
}
