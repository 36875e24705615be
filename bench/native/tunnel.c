/* An encrypted tunnel in one thread of plain C: TUN with virtio-net header and TSO, AEAD per packet, UDP GSO and GRO. The bytes of a packet are
 * those that ssl_encrypt makes: a salt and a counter of 8 bytes each, the text, a tag of 16. */
#define _GNU_SOURCE
#include "tunnel_aead.h"
#include "tunnel_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { TRAINS = 4, TRAIN = 65536, MOST_SEGMENTS = 64, MOST_BYTES = 65507, FRAMES = 16, MOST_PACKETS = TRAINS * (MOST_SEGMENTS + 1) };

static int tun, udp;
static struct aead aead, peer;
static uint64_t counter;

struct packet {
  uint8_t *data;
  size_t bytes;
};

static int open_tun(const char *name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK), size = sizeof(struct virtio_net_hdr);
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETVNETHDRSZ, &size) < 0 ||
      ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) < 0) {
    perror(name);
    exit(1);
  }
  return fd;
}

static int open_udp(const char *local, const char *remote, int port) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1, size = 8 << 20;
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}, other = own;
  inet_pton(AF_INET, local, &own.sin_addr);
  inet_pton(AF_INET, remote, &other.sin_addr);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0 || connect(fd, (struct sockaddr *)&other, sizeof other) < 0) {
    perror(local);
    exit(1);
  }
  return fd;
}

/* Sends `bytes` bytes of datagrams, each of `segment` but the last. */
static void send_train(uint8_t *data, size_t bytes, size_t segment) {
  char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
  struct iovec part = {data, bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (segment < bytes) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const uint16_t value = (uint16_t)segment;
    memcpy(CMSG_DATA(header), &value, sizeof value);
  }
  if (sendmsg(udp, &message, 0) < 0 && errno != ECONNREFUSED) perror("sendmsg");
}

/* Seals what stands HEADER bytes behind `out`; returns how long it has become. */
static size_t seal(uint8_t *out, size_t bytes) {
  const uint64_t big = __builtin_bswap64(counter++);
  memset(out, 7, 8);
  memcpy(out + 8, &big, 8);
  aead_seal(&aead, out, (int)bytes);
  return HEADER + bytes + TAG;
}

/* Takes one frame of the device, sends its packets; 0 when there is none. */
static int from_device(void) {
  static uint8_t frame[TRAIN + 256], train[TRAIN + 256];
  struct virtio_net_hdr header;
  struct iovec parts[2] = {{&header, sizeof header}, {frame, sizeof frame}};
  const ssize_t read = readv(tun, parts, 2);
  if (read < (ssize_t)sizeof header) return 0;
  const size_t bytes = (size_t)read - sizeof header;
  if (header.gso_type == VIRTIO_NET_HDR_GSO_NONE) {
    if (header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
      const uint16_t value = (uint16_t)~fold(sum(frame + header.csum_start, bytes - header.csum_start, 0));
      memcpy(frame + header.csum_start + header.csum_offset, &value, sizeof value);
    }
    memcpy(train + HEADER, frame, bytes);
    const size_t length = seal(train, bytes);
    send_train(train, length, length);
    return 1;
  }
  const size_t headers = payload_at(frame, bytes), size = header.gso_size;
  if (headers == 0 || size == 0) return 1;
  const size_t full = HEADER + headers + size + TAG, segments = (bytes - headers + size - 1) / size;
  size_t used = 0, count = 0;
  for (size_t i = 0; i < segments; i++) {
    used += seal(train + used, cut(frame, bytes, headers, size, i, train + used + HEADER));
    if (++count == MOST_SEGMENTS || used + full > MOST_BYTES || i + 1 == segments) {
      send_train(train, used, full);
      used = count = 0;
    }
  }
  return 1;
}

static void write_device(struct iovec *parts, int count) {
  /* EIO: the interface is not up. */
  if (writev(tun, parts, count) < 0 && errno != EAGAIN && errno != EIO) perror("write");
}

/* Hands packets to the device, runs of one flow joined. */
static void to_device(const struct packet *packets, size_t count) {
  for (size_t i = 0; i < count;) {
    const struct packet *first = packets + i;
    const size_t headers = payload_at(first->data, first->bytes), size = first->bytes - headers;
    const int joinable = headers > 0 && first->data[33] == TH_ACK && i + 1 < count && holds(first->data, first->bytes);
    struct virtio_net_hdr header = {0};
    uint8_t joined[128];
    struct iovec parts[MOST_PACKETS + 2] = {{&header, sizeof header}, {joined, headers}, {first->data + headers, size}};
    size_t length = 1, payload = size;
    while (joinable && i + length < count) {
      const struct packet *next = first + length;
      const size_t more = next->bytes - headers;
      if (payload_at(next->data, next->bytes) != headers || more > size || headers + payload + more > 65535 ||
          !follows(first->data, next->data, headers, payload) || !holds(next->data, next->bytes)) {
        break;
      }
      parts[2 + length++] = (struct iovec){next->data + headers, more};
      payload += more;
      if (more < size || next->data[33] != TH_ACK) break;
    }
    if (length == 1) {
      parts[1] = (struct iovec){first->data, first->bytes};
      write_device(parts, 2);
    } else {
      header = join(first->data, first[length - 1].data, headers, size, payload, joined);
      write_device(parts, (int)length + 2);
    }
    i += length;
  }
}

/* Takes a train of the socket into `train`, opens its packets; how many are good, or -1 when nothing came. */
static int receive_train(uint8_t *train, struct packet *packets) {
  char control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {train, TRAIN};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  const ssize_t bytes = recvmsg(udp, &message, MSG_DONTWAIT);
  if (bytes < 0) return -1;
  int segment = (int)bytes, good = 0;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) memcpy(&segment, CMSG_DATA(header), sizeof segment);
  }
  for (ssize_t at = 0; at < bytes; at += segment) {
    const int length = (int)(bytes - at < segment ? bytes - at : segment) - HEADER - TAG;
    if (length < 0 || !aead_open(&peer, train + at, length)) continue;
    packets[good++] = (struct packet){train + at + HEADER, (size_t)length};
  }
  return good;
}

static void from_socket(void) {
  static uint8_t trains[TRAINS][TRAIN];
  static struct packet packets[MOST_PACKETS];
  size_t count = 0;
  for (int i = 0; i < TRAINS; i++) {
    const int good = receive_train(trains[i], packets + count);
    if (good < 0) break;
    count += (size_t)good;
  }
  to_device(packets, count);
}

/* usage: tunnel INTERFACE LOCAL REMOTE PORT aes-128-gcm|chacha20-poly1305 openssl|ipsec-mb; prints a line when the interface is there, and runs
 * until killed. LOCAL and REMOTE are IPv4 addresses; the other end has them the other way round. */
int main(int argc, char **argv) {
  if (argc < 7) {
    fprintf(stderr, "usage: tunnel INTERFACE LOCAL REMOTE PORT SUITE LIBRARY\n");
    return 2;
  }
  tun = open_tun(argv[1]);
  udp = open_udp(argv[2], argv[3], atoi(argv[4]));
  /* A key for each direction, so that no nonce has the same key twice. */
  aead_init(&aead, argv[5], argv[6], (uint8_t)ntohl(inet_addr(argv[2])));
  aead_init(&peer, argv[5], argv[6], (uint8_t)ntohl(inet_addr(argv[3])));
  puts("ready");
  fflush(stdout);
  for (;;) {
    struct pollfd ready[2] = {{tun, POLLIN, 0}, {udp, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return 1;
    if (ready[1].revents) from_socket();
    if (ready[0].revents) {
      for (int i = 0; i < FRAMES && from_device(); i++) continue;
    }
  }
}
