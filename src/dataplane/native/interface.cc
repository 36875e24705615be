/** Giving a network interface its mtu, address and routes through rtnetlink. */
#include "interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "address.h"

#ifndef TUNGETDEVNETNS
#define TUNGETDEVNETNS _IO('T', 227)
#endif

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

/** An entry of the routing tables; `type` 0 where there is none. */
struct Route {
  uint8_t type = 0;
  uint8_t prefix = 0;
  uint32_t interface = 0;
  uint32_t metric = 0;
};

/** RTA_IP_PROTO, RTA_SPORT and RTA_DPORT, which headers before Linux 4.18 lack. */
constexpr uint16_t kProtocol = 27, kSourcePort = 28, kPeerPort = 29;

/** Begins the question for the entry that packets to `address` take. */
void askRoute(Request& request, const sockaddr_storage& address) {
  auto* asked = begin<rtmsg>(request, RTM_GETROUTE, 0);
  request.header.nlmsg_flags = NLM_F_REQUEST;
  asked->rtm_family = static_cast<uint8_t>(address.ss_family);
  asked->rtm_flags = RTM_F_FIB_MATCH;
  size_t size = 0;
  const void* bytes = bytesOf(address, &size);
  asked->rtm_dst_len = static_cast<uint8_t>(size * 8);
  attribute(request, RTA_DST, bytes, size);
}

/** The answer to such a question. Reads no table and waits for no lock of the kernel's. */
Route answered(int fd, Request& request) {
  alignas(nlmsghdr) uint8_t answer[4096];
  if (send(fd, &request, request.header.nlmsg_len, 0) < 0) return {};
  const ssize_t got = recv(fd, answer, sizeof answer, 0);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg))) || header->nlmsg_type != RTM_NEWROUTE) return {};
  const auto* found = reinterpret_cast<const rtmsg*>(NLMSG_DATA(header));
  Route route;
  route.type = found->rtm_type;
  route.prefix = found->rtm_dst_len;
  auto left = static_cast<int>(got) - static_cast<int>(NLMSG_LENGTH(sizeof(rtmsg)));
  for (const rtattr* part = RTM_RTA(found); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
    if (RTA_PAYLOAD(part) < sizeof(uint32_t)) continue;
    if (part->rta_type == RTA_OIF) memcpy(&route.interface, RTA_DATA(part), sizeof route.interface);
    if (part->rta_type == RTA_PRIORITY) memcpy(&route.metric, RTA_DATA(part), sizeof route.metric);
  }
  return route;
}

/** The entry that packets to `address` take, of those through the interface `index` where it is not 0. */
Route lookUp(int fd, const sockaddr_storage& address, int index) {
  Request request;
  askRoute(request, address);
  if (index != 0) attribute(request, RTA_OIF, &index, sizeof index);
  return answered(fd, request);
}

/** Whether packets to `address` are taken in by this host. */
bool delivered(int fd, const sockaddr_storage& address) { return lookUp(fd, address, 0).type == RTN_LOCAL; }

/** `flags` beside NLM_F_CREATE: with NLM_F_EXCL any route of the same metric is in its place, with NLM_F_APPEND only one through the interface. */
int addDefaultRoute(int fd, int index, int family, uint16_t flags) {
  Request request;
  auto* route = begin<rtmsg>(request, RTM_NEWROUTE, static_cast<uint16_t>(NLM_F_CREATE | flags));
  route->rtm_family = static_cast<uint8_t>(family);
  route->rtm_table = RT_TABLE_MAIN;
  route->rtm_protocol = RTPROT_STATIC;
  route->rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  route->rtm_type = RTN_UNICAST;
  attribute(request, RTA_OIF, &index, sizeof index);
  return ask(fd, request);
}

/** What the kernel gives a route for which none is named (IP6_RT_PRIO_USER); IPv4 has 0. */
constexpr uint32_t kMetricV6 = 1024;

/** An address for documentation (RFC 5737, RFC 3849), to which a default route leads where there is one. */
sockaddr_storage elsewhere(int family) {
  sockaddr_storage address;
  socklen_t length = 0;
  parseAddress(family == AF_INET ? "192.0.2.1" : "2001:db8::1", 0, &address, &length);
  return address;
}

int keepAddress(int fd, const KeptInterface& kept) {
  const int bits = kept.address.ss_family == AF_INET ? 32 : 128;
  const Route route = lookUp(fd, kept.address, 0);
  if (route.type == RTN_LOCAL && route.prefix == bits && route.interface == static_cast<uint32_t>(kept.index)) return kThere;
  const int error = addAddress(fd, kept.index, kept.address, kept.prefix);
  if (error == EEXIST) return kThere;
  return error ? -error : kPutBack;
}

int keepDefaultRoute(int fd, const KeptInterface& kept) {
  const int family = kept.address.ss_family;
  const Route route = lookUp(fd, elsewhere(family), kept.index);
  const uint32_t metric = family == AF_INET ? 0 : kMetricV6;
  if (route.type == RTN_UNICAST && route.prefix == 0 && route.interface == static_cast<uint32_t>(kept.index) &&
      route.metric == metric) {
    return kThere;
  }
  int error = addDefaultRoute(fd, kept.index, family, NLM_F_EXCL);
  if (error == 0) return kPutBack;
  // The one that is there is the interface's own, or somebody else's, which stays and stays in front.
  if (error == EEXIST) error = addDefaultRoute(fd, kept.index, family, NLM_F_APPEND);
  if (error == EEXIST) return kThere;
  return error ? -error : kPutBehind;
}

/** Whether the interface behind an open /dev/net/tun is in the network namespace of this process; false also where the kernel does not say (before 5.8). */
bool isInOwnNamespace(int device) {
  const int fd = ioctl(device, TUNGETDEVNETNS);
  if (fd < 0) return false;
  struct stat its{}, own{};
  const bool same = fstat(fd, &its) == 0 && stat("/proc/thread-self/ns/net", &own) == 0 && its.st_dev == own.st_dev && its.st_ino == own.st_ino;
  close(fd);
  return same;
}

/** What tells this network namespace from all others, of other machines and of earlier starts of this one too; empty: not known. */
std::string ownNamespace() {
  char boot[64] = "";
  FILE* file = fopen("/proc/sys/kernel/random/boot_id", "re");
  const bool isRead = file && fgets(boot, sizeof boot, file);
  if (file) fclose(file);
  struct stat own{};
  if (!isRead || stat("/proc/thread-self/ns/net", &own) < 0) return "";
  return boot + std::to_string(own.st_ino);
}

struct Netlink {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  ~Netlink() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

InterfaceFailure configureInterface(const std::string& name, const std::string& address, int prefix, uint32_t mtu,
                                    bool defaultRoute, KeptInterface* kept) {
  sockaddr_storage& parsed = kept->address;
  socklen_t length = 0;
  const std::string where = name + " " + address + "/" + std::to_string(prefix);
  if (!parseAddress(address, 0, &parsed, &length)) return {EINVAL, "inet_pton", where};
  if (prefix < 0 || prefix > (parsed.ss_family == AF_INET ? 32 : 128)) return {EINVAL, "prefix", where};
  Netlink netlink;
  if (netlink.fd < 0) return {errno, "socket", "netlink"};
  const int index = static_cast<int>(if_nametoindex(name.c_str()));
  if (index == 0) return {errno, "if_nametoindex", name};
  kept->index = index;
  kept->prefix = prefix;
  kept->defaultRoute = defaultRoute;
  if (int error = setLink(netlink.fd, index, mtu)) return {error, "RTM_NEWLINK", name + " mtu " + std::to_string(mtu)};
  if (int error = addAddress(netlink.fd, index, parsed, prefix)) return {error, "RTM_NEWADDR", where};
  // The kernel makes an IPv6 address reachable from a work queue, a moment after the request was answered.
  for (int i = 0; i < 500 && !delivered(netlink.fd, parsed); i++) usleep(1000);
  if (defaultRoute) {
    const int error = addDefaultRoute(netlink.fd, index, parsed.ss_family, NLM_F_EXCL);
    if (error) return {error, "RTM_NEWROUTE", name + " default route"};
  }
  return {};
}

void giveLastingHardwareAddress(int device, const std::string& name, const std::string& address) {
  const std::string place = ownNamespace();
  if (place.empty()) return;
  const std::string what = place + "\n" + name + "\n" + address;
  uint8_t digest[EVP_MAX_MD_SIZE];
  if (EVP_Digest(what.data(), what.size(), digest, nullptr, EVP_sha256(), nullptr) != 1) return;
  // One host's, and locally administered (IEEE 802).
  digest[0] = static_cast<uint8_t>((digest[0] & ~1) | 2);
  ifreq request{};
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  memcpy(request.ifr_hwaddr.sa_data, digest, 6);
  ioctl(device, SIOCSIFHWADDR, &request);
}

Upkeep keepInterface(int device, const std::string& name, KeptInterface* kept) {
  Upkeep upkeep;
  Netlink netlink;
  if (netlink.fd < 0) return upkeep;
  const uint32_t index = if_nametoindex(name.c_str());
  upkeep.known = index != 0 || errno == ENODEV;
  if (index == 0) return upkeep;
  // Under another number it has come back from another namespace, or this is one of the same name and it is still there.
  if (static_cast<int>(index) != kept->index && !isInOwnNamespace(device)) return upkeep;
  kept->index = static_cast<int>(index);
  ifreq request{};
  memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  upkeep.known = ioctl(netlink.fd, SIOCGIFFLAGS, &request) == 0;
  if (!upkeep.known) return upkeep;
  upkeep.present = true;
  upkeep.up = (request.ifr_flags & IFF_UP) != 0;
  if (!upkeep.up) return upkeep;
  upkeep.address = keepAddress(netlink.fd, *kept);
  if (kept->defaultRoute) upkeep.defaultRoute = keepDefaultRoute(netlink.fd, *kept);
  return upkeep;
}

double droppedAtInterface(int device, const std::string& name, int index) {
  // One of the same name may be here while it is elsewhere.
  if (static_cast<int>(if_nametoindex(name.c_str())) != index && !isInOwnNamespace(device)) return -1;
  // That of this thread's namespace, which /sys need not be.
  FILE* table = fopen("/proc/thread-self/net/dev", "re");
  if (!table) return -1;
  double dropped = -1;
  char line[512];
  while (dropped < 0 && fgets(line, sizeof line, table)) {
    const char* own = line + strspn(line, " ");
    if (strncmp(own, name.c_str(), name.size()) != 0 || own[name.size()] != ':') continue;
    // Eight figures of what is received, then bytes, packets, errors and drops of what is sent.
    unsigned long long figure = 0;
    if (sscanf(own + name.size() + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &figure) == 1) dropped = static_cast<double>(figure);
  }
  fclose(table);
  return dropped;
}

std::string udpLeavesThrough(const sockaddr_storage& own, const sockaddr_storage& peer) {
  Netlink netlink;
  if (netlink.fd < 0) return "";
  Request request;
  askRoute(request, peer);
  size_t size = 0;
  const void* source = bytesOf(own, &size);
  attribute(request, RTA_SRC, source, size);
  reinterpret_cast<rtmsg*>(request.body)->rtm_src_len = static_cast<uint8_t>(size * 8);
  // Rules of routing may go by these; a kernel older than such rules does not read them (before 4.18).
  const uint8_t protocol = IPPROTO_UDP;
  attribute(request, kProtocol, &protocol, sizeof protocol);
  attribute(request, kSourcePort, &reinterpret_cast<const sockaddr_in&>(own).sin_port, sizeof(in_port_t));
  attribute(request, kPeerPort, &reinterpret_cast<const sockaddr_in&>(peer).sin_port, sizeof(in_port_t));
  const Route route = answered(netlink.fd, request);
  char name[IF_NAMESIZE];
  return route.type == RTN_UNICAST && if_indextoname(route.interface, name) ? name : "";
}

InterfaceState interfaceState(const std::string& name) {
  InterfaceState state;
  ifaddrs* list = nullptr;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || getifaddrs(&list) < 0) {
    state.error = errno;
    if (fd >= 0) close(fd);
    return state;
  }
  ifreq request{};
  memcpy(request.ifr_name, name.data(), name.size());
  if (ioctl(fd, SIOCGIFMTU, &request) == 0) state.mtu = static_cast<uint32_t>(request.ifr_mtu);
  if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) state.up = (request.ifr_flags & IFF_UP) != 0;
  close(fd);
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
