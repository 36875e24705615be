/* Cutting a TCP over IPv4 frame of a TUN device into packets and joining packets into one frame (virtio-net header, RFC 1071 checksums). */
#pragma once
#include <arpa/inet.h>
#include <linux/virtio_net.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>

/* Ones' complement sum in memory order, unfolded. */
static uint64_t sum(const uint8_t *data, size_t bytes, uint64_t total) {
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, 8);
    total += (word & 0xffffffff) + (word >> 32);
  }
  for (; at + 2 <= bytes; at += 2) {
    uint16_t word;
    memcpy(&word, data + at, 2);
    total += word;
  }
  return at < bytes ? total + data[at] : total;
}

static uint16_t fold(uint64_t total) {
  while (total >> 16) total = (total & 0xffff) + (total >> 16);
  return (uint16_t)total;
}

/* The sum of addresses, protocol and length that a TCP checksum begins with. */
static uint64_t pseudo(const uint8_t *packet, size_t length) {
  return sum(packet + 12, 8, htons(IPPROTO_TCP) + (uint64_t)htons((uint16_t)length));
}

static void finish_ip(uint8_t *packet, size_t bytes, int index) {
  struct iphdr *ip = (struct iphdr *)packet;
  ip->tot_len = htons((uint16_t)bytes);
  ip->id = htons((uint16_t)(ntohs(ip->id) + index));
  ip->check = 0;
  ip->check = (uint16_t)~fold(sum(packet, ip->ihl * 4u, 0));
}

/* Where the payload of a packet begins, or 0 when it is not TCP over IPv4 with payload, without options or fragments of IP. */
static size_t payload_at(const uint8_t *packet, size_t bytes) {
  if (bytes < 41 || packet[0] != 0x45 || packet[9] != IPPROTO_TCP || (packet[6] & 0x3f) || packet[7]) return 0;
  const size_t headers = 20 + (packet[32] >> 4) * 4u;
  return headers >= 40 && headers < bytes ? headers : 0;
}

/* Writes segment `index` of a frame of `bytes` bytes with `headers` bytes of headers to `out`; returns its length. */
static size_t cut(const uint8_t *frame, size_t bytes, size_t headers, size_t size, size_t index, uint8_t *out) {
  const size_t at = headers + index * size, rest = bytes - at, payload = rest < size ? rest : size;
  memcpy(out, frame, headers);
  memcpy(out + headers, frame + at, payload);
  finish_ip(out, headers + payload, (int)index);
  struct tcphdr *tcp = (struct tcphdr *)(out + 20);
  tcp->seq = htonl(ntohl(tcp->seq) + (uint32_t)(index * size));
  if (payload < rest) out[33] &= (uint8_t)~(TH_FIN | TH_PUSH);
  if (index > 0) out[33] &= 0x7f; /* CWR */
  const size_t length = headers + payload - 20;
  tcp->check = 0;
  tcp->check = (uint16_t)~fold(sum(out + 20, length, pseudo(out, length)));
  return headers + payload;
}

/* Whether the TCP checksum of a packet holds. */
static int holds(const uint8_t *packet, size_t bytes) {
  return fold(sum(packet, 20, 0)) == 0xffff && fold(sum(packet + 20, bytes - 20, pseudo(packet, bytes - 20))) == 0xffff;
}

/* Whether `next` carries the bytes of a flow that follow `payload` bytes of `first`; `headers` is of both. */
static int follows(const uint8_t *first, const uint8_t *next, size_t headers, size_t payload) {
  const struct tcphdr *a = (const struct tcphdr *)(first + 20), *b = (const struct tcphdr *)(next + 20);
  return first[1] == next[1] && memcmp(first + 6, next + 6, 4) == 0 && memcmp(first + 12, next + 12, 12) == 0 &&
         ntohl(b->seq) == ntohl(a->seq) + payload && memcmp(first + 28, next + 28, 5) == 0 && (next[33] & ~(TH_PUSH | TH_FIN)) == TH_ACK &&
         memcmp(first + 34, next + 34, 2) == 0 && memcmp(first + 38, next + 38, headers - 38) == 0;
}

/* Makes the headers of a frame that joins packets of `size` payload bytes each, `payload` in all; its virtio-net header. */
static struct virtio_net_hdr join(const uint8_t *first, const uint8_t *last, size_t headers, size_t size, size_t payload, uint8_t *out) {
  memcpy(out, first, headers);
  finish_ip(out, headers + payload, 0);
  out[33] |= last[33] & (TH_PUSH | TH_FIN);
  ((struct tcphdr *)(out + 20))->check = fold(pseudo(out, headers + payload - 20));
  return (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                 .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
                                 .hdr_len = (uint16_t)headers,
                                 .gso_size = (uint16_t)size,
                                 .csum_start = 20,
                                 .csum_offset = 16};
}
