/** Keeping a connected UDP socket at the address from which the machine sends to its peer: the kernel chooses it once, when the socket is connected. */
#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "interface.h"
#include "udp.h"

namespace penstock {

namespace {

/** Where a filter finds the IP header; its offset 0 is the UDP header's. */
constexpr uint32_t kIpHeader = static_cast<uint32_t>(SKF_NET_OFF);
constexpr size_t kMostInstructions = 16;

struct Filter {
  sock_filter code[kMostInstructions];
  uint16_t length = 0;

  void load(uint16_t size, uint32_t at) { code[length++] = BPF_STMT(static_cast<uint16_t>(BPF_LD | BPF_ABS | size), at); }
  /** What was loaded is `value`, or the packet is dropped by the last instruction, `drop`. */
  void expect(uint32_t value, uint16_t drop) {
    const auto skipped = static_cast<uint8_t>(drop - length - 1);
    code[length++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
  }
};

/** Takes what comes from `peer`. A socket that is not connected for a moment would take what anybody sends. */
Filter heardFrom(const sockaddr_storage& peer) {
  uint8_t record[kRemoteBytes];
  writeRemote(peer, record);
  const bool four = record[0] == 4;
  const uint32_t words = four ? 1 : 4;
  const auto drop = static_cast<uint16_t>(3 + 2 + 2 * words + 1);
  Filter filter;
  filter.load(BPF_B, kIpHeader);
  filter.code[filter.length++] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0);
  filter.expect(four ? 0x40 : 0x60, drop);
  filter.load(BPF_H, 0);
  uint16_t port;
  memcpy(&port, record + 2, sizeof port);
  filter.expect(port, drop);
  for (uint32_t i = 0; i < words; i++) {
    uint32_t word;
    memcpy(&word, record + 8 + 4 * i, sizeof word);
    filter.load(BPF_W, kIpHeader + (four ? 12 : 8) + 4 * i);
    filter.expect(ntohl(word), drop);
  }
  filter.code[filter.length++] = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
  filter.code[filter.length++] = BPF_STMT(BPF_RET | BPF_K, 0);
  return filter;
}

bool sameAddress(const sockaddr_storage& left, const sockaddr_storage& right) {
  if (left.ss_family != right.ss_family) return false;
  if (left.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(left).sin_addr.s_addr == reinterpret_cast<const sockaddr_in&>(right).sin_addr.s_addr;
  const auto& one = reinterpret_cast<const sockaddr_in6&>(left);
  const auto& other = reinterpret_cast<const sockaddr_in6&>(right);
  return one.sin6_scope_id == other.sin6_scope_id && memcmp(&one.sin6_addr, &other.sin6_addr, sizeof one.sin6_addr) == 0;
}

/** How far packets from or to an address get: not at all, within the machine, on the link, farther. */
int reach(const sockaddr_storage& address) {
  uint8_t record[kRemoteBytes];
  writeRemote(address, record);
  in6_addr six;
  memcpy(&six, record + 8, sizeof six);
  // One of IPv4 fills the first bytes; unspecified, it has none either.
  if (IN6_IS_ADDR_UNSPECIFIED(&six)) return 0;
  if (record[0] == 4) return record[8] == 127 ? 1 : 3;
  return IN6_IS_ADDR_LOOPBACK(&six) ? 1 : IN6_IS_ADDR_LINKLOCAL(&six) ? 2 : 3;
}

bool addressOf(int fd, sockaddr_storage* address) {
  socklen_t length = sizeof *address;
  return getsockname(fd, reinterpret_cast<sockaddr*>(address), &length) == 0;
}

/** The address with an IPv4 one that is written as IPv6 as what it is; `out` may be `address`. */
bool unmapped(const sockaddr_storage& address, sockaddr_storage* out) {
  uint8_t record[kRemoteBytes];
  writeRemote(address, record);
  return readRemote(record, record[0] == 4 ? AF_INET : AF_INET6, out) > 0;
}

bool connectTo(int fd, const Udp& socket) {
  return connect(fd, reinterpret_cast<const sockaddr*>(&socket.remote), socket.remoteLength) == 0;
}

/** The address that the kernel would give the socket now, and 0; or why no way leads to the peer, an errno. */
int choose(const Udp& socket, sockaddr_storage* address) {
  const int fd = ::socket(socket.family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  if (fd < 0) return errno;
  const int off = 0;
  if (socket.family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const bool chosen = bindToInterface(fd, socket.interface) && connectTo(fd, socket) && addressOf(fd, address);
  const int error = chosen ? 0 : errno;
  close(fd);
  return error;
}

/** Connects the socket anew, at the port it has where that is possible; 0 or an errno. What waits in it stays; of what comes meanwhile the peer's is taken. */
int reconnect(Udp& socket, uint16_t port) {
  const int fd = socket.fd;
  if (!socket.filtered) {
    Filter filter = heardFrom(socket.remote);
    const sock_fprog program{filter.length, filter.code};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0) return errno;
    socket.filtered = true;
  }
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (connect(fd, &nobody, sizeof nobody) < 0) return errno;
  // The kernel has forgotten the interface, and a port that it had chosen itself.
  const int error = bindToInterface(fd, socket.interface) ? 0 : errno;
  sockaddr_storage own{};
  // Refused where somebody has got the port in between: connecting brings another.
  if (addressOf(fd, &own) && reinterpret_cast<const sockaddr_in&>(own).sin_port == 0) bindToPort(fd, socket.family, port);
  if (error) return error;
  if (!connectTo(fd, socket)) return errno;
  // The way may lead through another device.
  socket.gsoRefused = false;
  return 0;
}

/** Of the machine, not of the way: there was no descriptor, memory or port to find out with. */
bool isShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == EAGAIN; }

/** The interface that the socket is bound to may have been renamed: by its name others are bound to it, and the socket itself when it is connected anew. */
void takeName(Udp& socket) {
  if (socket.interface.empty()) return;
  char name[IF_NAMESIZE];
  socklen_t length = sizeof name;
  if (getsockopt(socket.fd, SOL_SOCKET, SO_BINDTODEVICE, name, &length) == 0 && length > 1) socket.interface = name;
}

int32_t follow(Udp& socket) {
  if (!socket.follows) return 0;
  takeName(socket);
  sockaddr_storage own{}, chosen{};
  if (!addressOf(socket.fd, &own)) return -errno;
  // Not connected, and filtered until it is: the last attempt has failed half way.
  const bool adrift = isAnyAddress(own);
  // Only now: whatever was on its way to the socket before it was connected again has passed the filter.
  if (socket.filtered && !adrift && setsockopt(socket.fd, SOL_SOCKET, SO_DETACH_FILTER, nullptr, 0) == 0) socket.filtered = false;
  int error = choose(socket, &chosen);
  if (error) return isShortage(error) ? 1 : -error;
  if (sameAddress(own, chosen)) return 0;
  // A route may outlast the addresses of its interface, and IPv6 has one of the link before the others are usable: the kernel chooses what is left.
  if (reach(chosen) < reach(socket.remote)) return -ENETUNREACH;
  error = reconnect(socket, ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port));
  return error ? -error : 1;
}

}  // namespace

napi_value udpFollow(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpFollow", 1);
  Lease<Udp> socket(arguments, 0, "socket", Kind::udp, true);
  if (!socket) return nullptr;
  return toInteger(env, follow(*socket));
}

napi_value udpLeavesBy(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpLeavesBy", 1);
  Lease<Udp> socket(arguments, 0, "socket", Kind::udp, true);
  if (!socket) return nullptr;
  sockaddr_storage own{}, peer{};
  if (!socket->connected || !addressOf(socket->fd, &own) || isAnyAddress(own)) return toString(env, "");
  if (!socket->interface.empty()) return toString(env, socket->interface);
  return toString(env, unmapped(own, &own) && unmapped(socket->remote, &peer) ? udpLeavesThrough(own, peer) : "");
}

}  // namespace penstock
