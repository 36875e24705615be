/* UDP forwarder in plain C: GRO receive, GSO send, nothing in between. What a data plane without overhead would reach. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
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

static volatile sig_atomic_t ended;
static void end(int signal) {
  (void)signal;
  ended = 1;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return a;
}

/* usage: forward LISTEN_PORT TARGET_PORT [PACKETS]; until killed or PACKETS were forwarded. Prints {"packets":…,"seconds":…,
 * "packetsPerSecond":…} of the time from the first packet on. */
int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: forward LISTEN_PORT TARGET_PORT [PACKETS]\n");
    return 2;
  }
  long wanted = argc > 3 ? atol(argv[3]) : 0;
  int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0), on = 1, size = 8 << 20;
  struct sockaddr_in from = loopback(atoi(argv[1])), to = loopback(atoi(argv[2]));
  setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  if (bind(in, (struct sockaddr *)&from, sizeof from) < 0 || connect(out, (struct sockaddr *)&to, sizeof to) < 0) {
    perror("forward");
    return 1;
  }
  setsockopt(in, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);

  static char buffer[65536];
  long packets = 0;
  double start = 0;
  while (!ended && (!wanted || packets < wanted)) {
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t bytes = recvmsg(in, &message, MSG_DONTWAIT);
    if (bytes < 0) {
      struct pollfd ready = {in, POLLIN, 0};
      if (errno == EAGAIN) poll(&ready, 1, -1);
      continue;
    }
    int segment = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level == IPPROTO_UDP && part->cmsg_type == UDP_GRO) memcpy(&segment, CMSG_DATA(part), sizeof segment);
    }
    iov.iov_len = (size_t)bytes;
    struct msghdr send = {.msg_iov = &iov, .msg_iovlen = 1};
    if (segment > 0 && segment < bytes) {
      send.msg_control = control;
      send.msg_controllen = CMSG_SPACE(sizeof(unsigned short));
      struct cmsghdr *part = CMSG_FIRSTHDR(&send);
      unsigned short value = (unsigned short)segment;
      part->cmsg_level = IPPROTO_UDP;
      part->cmsg_type = UDP_SEGMENT;
      part->cmsg_len = CMSG_LEN(sizeof value);
      memcpy(CMSG_DATA(part), &value, sizeof value);
    }
    sendmsg(out, &send, 0);
    if (start == 0) start = now();
    packets += segment > 0 ? (bytes + segment - 1) / segment : 1;
  }
  double seconds = start ? now() - start : 0;
  printf("{\"packets\":%ld,\"seconds\":%.6f,\"packetsPerSecond\":%.0f}\n", packets, seconds,
         seconds > 0 ? packets / seconds : 0);
  return 0;
}
