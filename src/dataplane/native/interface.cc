/** Giving a network interface its mtu, address and routes through rtnetlink. */
#include "interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"

namespace penstock {

namespace {

/** One rtnetlink request with its attributes. */
struct Request {
  nlmsghdr header{};
  uint8_t body[512]{};
};

template <class T>
T* begin(Request& request, uint16_t type, uint16_t flags) {
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof(T));
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  request.header.nlmsg_seq = 1;
  return reinterpret_cast<T*>(request.body);
}

void attribute(Request& request, uint16_t type, const void* data, size_t bytes) {
  auto* at = reinterpret_cast<uint8_t*>(&request) + NLMSG_ALIGN(request.header.nlmsg_len);
  auto* part = reinterpret_cast<rtattr*>(at);
  part->rta_type = type;
  part->rta_len = static_cast<uint16_t>(RTA_LENGTH(bytes));
  memcpy(RTA_DATA(part), data, bytes);
  request.header.nlmsg_len = NLMSG_ALIGN(request.header.nlmsg_len) + RTA_ALIGN(part->rta_len);
}

/** Sends a request and waits for the kernel's verdict: 0 or an errno. */
int ask(int fd, Request& request) {
  if (send(fd, &request, request.header.nlmsg_len, 0) < 0) return errno;
  alignas(nlmsghdr) uint8_t answer[4096];
  const ssize_t size = recv(fd, answer, sizeof answer, 0);
  if (size < 0) return errno;
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  if (static_cast<size_t>(size) < NLMSG_LENGTH(sizeof(nlmsgerr)) || header->nlmsg_type != NLMSG_ERROR) return EPROTO;
  return -reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
}

int setLink(int fd, int index, uint32_t mtu) {
  Request request;
  auto* link = begin<ifinfomsg>(request, RTM_NEWLINK, 0);
  link->ifi_index = index;
  link->ifi_flags = link->ifi_change = IFF_UP;
  attribute(request, IFLA_MTU, &mtu, sizeof mtu);
  return ask(fd, request);
}

const void* bytesOf(const sockaddr_storage& address, size_t* size) {
  if (address.ss_family == AF_INET) {
    *size = 4;
    return &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  }
  *size = 16;
  return &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
}

int addAddress(int fd, int index, const sockaddr_storage& address, int prefix) {
  Request request;
  auto* part = begin<ifaddrmsg>(request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
  part->ifa_family = static_cast<uint8_t>(address.ss_family);
  part->ifa_prefixlen = static_cast<uint8_t>(prefix);
  // Nobody else can hold the address on a device of our own: usable at once.
  part->ifa_flags = address.ss_family == AF_INET6 ? IFA_F_NODAD : 0;
  part->ifa_index = static_cast<uint32_t>(index);
  size_t size = 0;
  const void* bytes = bytesOf(address, &size);
  attribute(request, IFA_LOCAL, bytes, size);
  attribute(request, IFA_ADDRESS, bytes, size);
  return ask(fd, request);
}

/** Whether packets to `address` are taken in by this host. */
bool delivered(int fd, const sockaddr_storage& address) {
  Request request;
  auto* route = begin<rtmsg>(request, RTM_GETROUTE, 0);
  request.header.nlmsg_flags = NLM_F_REQUEST;
  route->rtm_family = static_cast<uint8_t>(address.ss_family);
  size_t size = 0;
  const void* bytes = bytesOf(address, &size);
  route->rtm_dst_len = static_cast<uint8_t>(size * 8);
  attribute(request, RTA_DST, bytes, size);
  alignas(nlmsghdr) uint8_t answer[4096];
  if (send(fd, &request, request.header.nlmsg_len, 0) < 0) return false;
  const ssize_t got = recv(fd, answer, sizeof answer, 0);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  return got >= static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg))) && header->nlmsg_type == RTM_NEWROUTE &&
         reinterpret_cast<const rtmsg*>(NLMSG_DATA(header))->rtm_type == RTN_LOCAL;
}

int addDefaultRoute(int fd, int index, int family) {
  Request request;
  auto* route = begin<rtmsg>(request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
  route->rtm_family = static_cast<uint8_t>(family);
  route->rtm_table = RT_TABLE_MAIN;
  route->rtm_protocol = RTPROT_STATIC;
  route->rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  route->rtm_type = RTN_UNICAST;
  attribute(request, RTA_OIF, &index, sizeof index);
  return ask(fd, request);
}

struct Netlink {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  ~Netlink() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

InterfaceFailure configureInterface(const std::string& name, const std::string& address, int prefix, uint32_t mtu,
                                    bool defaultRoute) {
  sockaddr_storage parsed;
  socklen_t length = 0;
  const std::string where = name + " " + address + "/" + std::to_string(prefix);
  if (!parseAddress(address, 0, &parsed, &length)) return {EINVAL, "inet_pton", where};
  if (prefix < 0 || prefix > (parsed.ss_family == AF_INET ? 32 : 128)) return {EINVAL, "prefix", where};
  Netlink netlink;
  if (netlink.fd < 0) return {errno, "socket", "netlink"};
  const int index = static_cast<int>(if_nametoindex(name.c_str()));
  if (index == 0) return {errno, "if_nametoindex", name};
  if (int error = setLink(netlink.fd, index, mtu)) return {error, "RTM_NEWLINK", name + " mtu " + std::to_string(mtu)};
  if (int error = addAddress(netlink.fd, index, parsed, prefix)) return {error, "RTM_NEWADDR", where};
  // The kernel makes an IPv6 address reachable from a work queue, a moment after the request was answered.
  for (int i = 0; i < 500 && !delivered(netlink.fd, parsed); i++) usleep(1000);
  if (defaultRoute) {
    if (int error = addDefaultRoute(netlink.fd, index, parsed.ss_family)) return {error, "RTM_NEWROUTE", name + " default route"};
  }
  return {};
}

InterfaceState interfaceState(const std::string& name) {
  InterfaceState state;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    ifreq request{};
    memcpy(request.ifr_name, name.data(), name.size());
    if (ioctl(fd, SIOCGIFMTU, &request) == 0) state.mtu = static_cast<uint32_t>(request.ifr_mtu);
    if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) state.up = (request.ifr_flags & IFF_UP) != 0;
    close(fd);
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) < 0) return state;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || name != entry->ifa_name) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage address{};
    memcpy(&address, entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    uint16_t port = 0;
    state.addresses.push_back(formatAddress(address, &port));
  }
  freeifaddrs(list);
  return state;
}

}  // namespace penstock
