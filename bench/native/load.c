// The client side of the API benches, cheap enough not to be what is measured:
//   load rest PORT CONNECTIONS SECONDS CPU < request    keeps one request under way on each connection; prints the count
//   load sse  PORT CLIENTS CPU request-file             opens event streams; prints "ready", then takes "expect N" lines and
//                                                       answers each with "got N" once N more events came
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char request[65536];
static size_t request_length;
static char buffer[1 << 18];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static int dial(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) fail("socket");
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (write(fd, request, request_length) != (ssize_t)request_length) fail("write");
  return fd;
}

static void watch(int poll, int fd, int index) {
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
}

// The length of the whole answer whose beginning is in the buffer; 0: its head is not complete.
static size_t answer_length(const char *text, size_t length) {
  const char *end = memmem(text, length, "\r\n\r\n", 4);
  if (end == NULL) return 0;
  const char *field = strcasestr(text, "\r\ncontent-length:");
  if (field == NULL || field > end) {
    fprintf(stderr, "an answer without content-length\n");
    exit(1);
  }
  return (end - text) + 4 + strtoul(field + 17, NULL, 10);
}

static void rest(int port, int connections, double seconds) {
  int poll = epoll_create1(0);
  int *fds = malloc(connections * sizeof *fds);
  size_t *got = calloc(connections, sizeof *got);
  for (int i = 0; i < connections; i++) watch(poll, fds[i] = dial(port), i);
  // Every answer of one route is as long as the first.
  size_t length = 0;
  unsigned long answers = 0;
  struct epoll_event events[256];
  double begun = now(), end = begun + seconds;
  while (now() < end) {
    int ready = epoll_wait(poll, events, 256, 100);
    for (int e = 0; e < ready; e++) {
      int i = events[e].data.u32;
      ssize_t bytes = read(fds[i], buffer, sizeof buffer - 1);
      if (bytes <= 0) fail("the server closed a connection");
      if (length == 0) {
        buffer[bytes] = 0;
        if (strncmp(buffer, "HTTP/1.1 200", 12) != 0) {
          fprintf(stderr, "unexpected answer: %.200s\n", buffer);
          exit(1);
        }
        length = answer_length(buffer, bytes);
        if (length == 0) fail("the first answer came in pieces");
      }
      got[i] += bytes;
      if (got[i] < length) continue;
      got[i] -= length;
      answers++;
      if (write(fds[i], request, request_length) != (ssize_t)request_length) fail("write");
    }
  }
  printf("{\"answers\": %lu, \"seconds\": %.6f}\n", answers, now() - begun);
}

static const char PATTERN[] = "data:";

static void sse(int port, int clients) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int poll = epoll_create1(0);
  int *fds = malloc(clients * sizeof *fds);
  // How much of PATTERN each stream's last bytes hold, for events cut between two reads.
  unsigned char *matched = calloc(clients, 1);
  char *opened = calloc(clients, 1);
  int open = 0, dialled = 0;
  unsigned long seen = 0, wanted = 0;
  watch(poll, 0, -1);
  struct epoll_event events[256];
  char command[64];
  for (;;) {
    // At most 64 streams are being opened at once: the backlog of a listening socket is short.
    while (dialled < clients && dialled - open < 64) {
      watch(poll, fds[dialled] = dial(port), dialled);
      dialled++;
    }
    int ready = epoll_wait(poll, events, 256, -1);
    for (int e = 0; e < ready; e++) {
      int i = (int)events[e].data.u32;
      if (i < 0) {
        ssize_t bytes = read(0, command, sizeof command - 1);
        if (bytes <= 0) exit(0);
        command[bytes] = 0;
        unsigned long count;
        if (sscanf(command, "expect %lu", &count) == 1) wanted += count;
        continue;
      }
      ssize_t bytes = read(fds[i], buffer, sizeof buffer);
      if (bytes <= 0) fail("the server closed a stream");
      if (!opened[i] && memmem(buffer, bytes, ": ready", 7) != NULL) {
        opened[i] = 1;
        if (++open == clients) {
          puts("ready");
          fflush(stdout);
        }
      }
      unsigned char state = matched[i];
      const char *at = buffer, *end = buffer + bytes;
      while (at < end) {
        if (state == 0 && (at = memchr(at, 'd', end - at)) == NULL) break;
        if (*at == PATTERN[state]) {
          state++;
          at++;
          if (state == 5) {
            seen++;
            state = 0;
          }
        } else if (state == 0) at++;
        else state = 0;
      }
      matched[i] = state;
    }
    if (wanted > 0 && seen >= wanted) {
      printf("got %lu\n", wanted);
      fflush(stdout);
      seen -= wanted;
      wanted = 0;
    }
  }
}

int main(int count, char **arguments) {
  if (count == 6 && strcmp(arguments[1], "rest") == 0) {
    request_length = fread(request, 1, sizeof request, stdin);
    pin(atoi(arguments[5]));
    rest(atoi(arguments[2]), atoi(arguments[3]), atof(arguments[4]));
    return 0;
  }
  if (count == 6 && strcmp(arguments[1], "sse") == 0) {
    FILE *file = fopen(arguments[5], "r");
    if (file == NULL) fail(arguments[5]);
    request_length = fread(request, 1, sizeof request, file);
    fclose(file);
    pin(atoi(arguments[4]));
    sse(atoi(arguments[2]), atoi(arguments[3]));
    return 0;
  }
  fprintf(stderr, "see the head of load.c\n");
  return 2;
}
