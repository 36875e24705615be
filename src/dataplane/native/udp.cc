/** Opening UDP sockets: addresses, backend, buffers, interface and multicast membership. */
#include "udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <net/if.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

namespace penstock {

namespace {

struct Options {
  int backend = kGeneric;
  bool hasLocal = false, hasRemote = false, hasGroup = false;
  sockaddr_storage local{}, remote{}, group{};
  socklen_t localLength = 0, remoteLength = 0, groupLength = 0;
  std::string localText, remoteText, groupText, interface, groupInterface;
  int family = AF_INET;
  int buffer = 0;
  int ttl = -1;
  int32_t mtu = 0;
  bool chosenPort = false;
  bool arrivalTimes = false;
  bool trains = true;
};

bool endpoint(Arguments& arguments, napi_value options, const char* name, sockaddr_storage* out, socklen_t* length,
              std::string* text) {
  if (!arguments.has(options, name)) return false;
  napi_value value = arguments.property(options, name);
  const std::string address = arguments.propertyString(value, "address", 128);
  const auto port = static_cast<uint16_t>(arguments.propertyNumber(value, "port", 0, 65535));
  if (arguments.failed()) return false;
  if (!parseAddress(address, port, out, length)) {
    throwType(arguments.env(), "udpOpen: %s.address \"%s\" is not a numeric IP address", name, address.c_str());
    arguments.fail();
    return false;
  }
  *text = address.find(':') == std::string::npos ? address + ":" + std::to_string(port)
                                                 : "[" + address + "]:" + std::to_string(port);
  return true;
}

Options readOptions(Arguments& arguments, napi_value value) {
  Options options;
  options.backend = static_cast<int>(arguments.propertyNumber(value, "backend", 0, 2));
  options.hasLocal = endpoint(arguments, value, "local", &options.local, &options.localLength, &options.localText);
  options.hasRemote = endpoint(arguments, value, "remote", &options.remote, &options.remoteLength, &options.remoteText);
  const double family = arguments.propertyNumber(value, "family", 4, 6);
  options.mtu = static_cast<int32_t>(arguments.propertyNumber(value, "mtu", 1, 65535));
  if (arguments.has(value, "chosenPort")) options.chosenPort = arguments.propertyBoolean(value, "chosenPort");
  if (arguments.has(value, "arrivalTimes")) options.arrivalTimes = arguments.propertyBoolean(value, "arrivalTimes");
  if (arguments.has(value, "trains")) options.trains = arguments.propertyBoolean(value, "trains");
  if (arguments.has(value, "interface")) options.interface = arguments.propertyString(value, "interface", IFNAMSIZ - 1);
  options.groupInterface = options.interface;
  if (arguments.has(value, "groupInterface"))
    options.groupInterface = arguments.propertyString(value, "groupInterface", IFNAMSIZ - 1);
  if (arguments.has(value, "bufferBytes"))
    options.buffer = static_cast<int>(arguments.propertyNumber(value, "bufferBytes", 0, 1073741823));
  if (arguments.has(value, "multicastTtl"))
    options.ttl = static_cast<int>(arguments.propertyNumber(value, "multicastTtl", 0, 255));
  if (arguments.has(value, "multicastGroup")) {
    options.groupText = arguments.propertyString(value, "multicastGroup", 128);
    options.hasGroup = true;
    if (!arguments.failed() && !parseAddress(options.groupText, 0, &options.group, &options.groupLength)) {
      throwType(arguments.env(), "udpOpen: multicastGroup \"%s\" is not a numeric IP address", options.groupText.c_str());
      arguments.fail();
    }
  }
  if (arguments.failed()) return options;
  options.family = options.hasLocal    ? options.local.ss_family
                   : options.hasRemote ? options.remote.ss_family
                   : family == 6       ? AF_INET6
                                       : AF_INET;
  if (options.hasRemote && options.family == AF_INET6) mapToV6(&options.remote, &options.remoteLength);
  if (options.hasRemote && options.family != options.remote.ss_family) {
    throwType(arguments.env(), "udpOpen: local %s cannot reach remote %s: IPv4 and IPv6", options.localText.c_str(),
              options.remoteText.c_str());
    arguments.fail();
  }
  return options;
}

/** A step of opening: the call that failed and what it was about. */
struct Failure {
  const char* syscall = nullptr;
  std::string subject;
};

/**
 * Else a socket, one that has joined nothing too, hears every group that any socket of the machine has joined, at its port (ip(7)). Where the
 * kernel does not know the option, of IPv6 before Linux 4.20 and where another program stands in for Linux, it hears them.
 */
Failure hearOwnGroupsOnly(int fd, const Options& options) {
  const int off = 0;
  // A socket of IPv6 never hears others' groups of IPv4.
  if (options.family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof off);
  else if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off) < 0 && errno != ENOPROTOOPT)
    return {"setsockopt IP_MULTICAST_ALL", options.localText};
  return {};
}

/**
 * Has routers fragment what is longer than the path MTU over IPv4, also where a socket of IPv6 sends there. The kernel sends a train (UDP_SEGMENT) without DF
 * anyhow and a datagram by itself with it: where ICMP is filtered only the latter would be lost, without a word. Where the kernel does not know the
 * option it stays so.
 */
void letRoutersFragment(int fd) {
  const int never = IP_PMTUDISC_DONT;
  setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof never);
}

Failure joinGroup(int fd, const Options& options) {
  const unsigned interface = options.groupInterface.empty() ? 0 : if_nametoindex(options.groupInterface.c_str());
  // Without it the routes would say on which.
  if (!interface && !options.groupInterface.empty()) return {"if_nametoindex", options.groupInterface};
  if (options.group.ss_family == AF_INET) {
    ip_mreqn request{};
    request.imr_multiaddr = reinterpret_cast<const sockaddr_in&>(options.group).sin_addr;
    request.imr_ifindex = static_cast<int>(interface);
    if (!interface && options.hasLocal && options.local.ss_family == AF_INET) {
      const in_addr local = reinterpret_cast<const sockaddr_in&>(options.local).sin_addr;
      // Bound to a unicast address: that interface is meant. Bound to the group or to any: the routing table decides.
      if (!IN_MULTICAST(ntohl(local.s_addr))) request.imr_address = local;
    }
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) < 0)
      return {"setsockopt IP_ADD_MEMBERSHIP", options.groupText};
    if ((interface || request.imr_address.s_addr) &&
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request) < 0)
      return {"setsockopt IP_MULTICAST_IF", options.groupInterface};
    return {};
  }
  ipv6_mreq request{};
  request.ipv6mr_multiaddr = reinterpret_cast<const sockaddr_in6&>(options.group).sin6_addr;
  const uint32_t scope = reinterpret_cast<const sockaddr_in6&>(options.group).sin6_scope_id;
  request.ipv6mr_interface = interface ? interface : scope;
  if (setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request) < 0)
    return {"setsockopt IPV6_JOIN_GROUP", options.groupText};
  if (request.ipv6mr_interface && setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &request.ipv6mr_interface,
                                             sizeof request.ipv6mr_interface) < 0)
    return {"setsockopt IPV6_MULTICAST_IF", options.groupInterface};
  return {};
}

void setBuffer(int fd, int forced, int plain, int bytes) {
  // The FORCE twin needs CAP_NET_ADMIN; the plain one is silently capped by net.core.*mem_max.
  if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) < 0)
    setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
}

void setBuffers(int fd, int bytes) {
  setBuffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
  setBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

/** The call that failed; null when none did. */
const char* setMulticastTtl(int fd, int family, int ttl) {
  if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &ttl, sizeof ttl) < 0)
    return "setsockopt IPV6_MULTICAST_HOPS";
  if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl) < 0 && family == AF_INET)
    return "setsockopt IP_MULTICAST_TTL";
  return nullptr;
}

Failure configure(int fd, const Options& options, int* backend) {
  const int on = 1, off = 0;
  if (options.family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
    return {"setsockopt IPV6_V6ONLY", options.localText};
  if (options.hasGroup && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
    return {"setsockopt SO_REUSEADDR", options.localText};
  if (!bindToInterface(fd, options.interface)) return {"setsockopt SO_BINDTODEVICE", options.interface};
  if (options.buffer > 0) setBuffers(fd, options.buffer);
  if (options.ttl >= 0) {
    const char* syscall = setMulticastTtl(fd, options.family, options.ttl);
    if (syscall) return {syscall, options.localText};
  }
  letRoutersFragment(fd);
  Failure failure = hearOwnGroupsOnly(fd, options);
  if (failure.syscall) return failure;
  if (options.hasLocal ? bind(fd, reinterpret_cast<const sockaddr*>(&options.local), options.localLength) < 0
                       : !bindToPort(fd, options.family, 0))
    return {"bind", options.localText};
  if (options.hasGroup) {
    failure = joinGroup(fd, options);
    if (failure.syscall) return failure;
  }
  if (options.hasRemote &&
      connect(fd, reinterpret_cast<const sockaddr*>(&options.remote), options.remoteLength) < 0)
    return {"connect", options.remoteText};
  *backend = options.backend;
  if (options.backend == kLinux) {
    int segment = 0;
    socklen_t size = sizeof segment;
    const bool gso = getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, &size) == 0;
    const bool gro = gso && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    if (!gro) *backend = kLinuxNoGro;
  }
  return {};
}

}  // namespace

bool bindToInterface(int fd, const std::string& name) {
  return name.empty() ||
         setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name.c_str(), static_cast<socklen_t>(name.size())) == 0;
}

bool bindToPort(int fd, int family, uint16_t port) {
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);
  // Both families have it at the same place.
  reinterpret_cast<sockaddr_in&>(any).sin_port = htons(port);
  return bind(fd, reinterpret_cast<const sockaddr*>(&any), family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) == 0;
}

napi_value udpOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpOpen", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const Options options = readOptions(arguments, arguments.raw(1));
  if (arguments.failed()) return nullptr;
  const int fd = socket(options.family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  if (fd < 0) {
    throwSystem(env, errno, "socket", options.localText);
    return nullptr;
  }
  auto udp = std::make_unique<Udp>(fd);
  const Failure failure = configure(fd, options, &udp->backend);
  if (failure.syscall) {
    throwSystem(env, errno, failure.syscall, failure.subject);
    return nullptr;
  }
  udp->family = options.family;
  udp->connected = options.hasRemote;
  udp->follows = options.hasRemote && (!options.hasLocal || isAnyAddress(options.local));
  udp->remote = options.remote;
  udp->remoteLength = options.remoteLength;
  udp->interface = options.interface;
  udp->group = options.group;
  udp->mtu = options.mtu;
  // A kernel that has no such times is no reason not to open: packets carry the time of the call then.
  const int on = 1;
  udp->arrivalTimes = options.arrivalTimes && setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0;
  udp->trains = options.trains;
  // One at a port of the kernel's choice answers nobody: it asks, and sends from where the way begins.
  const bool isAsked = options.hasLocal && !options.chosenPort && isAnyAddress(options.local) &&
                       reinterpret_cast<const sockaddr_in&>(options.local).sin_port != 0;
  if (isAsked && !options.hasRemote && AnsweringAddresses::ask(fd, options.family)) udp->answers = std::make_unique<AnsweringAddresses>();
  return adopt(arguments, owner, std::move(udp));
}

napi_value udpTune(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpTune", 3);
  Lease<Udp> udp(arguments, 0, "socket", Kind::udp, false);
  const auto buffer = static_cast<int>(arguments.integer(1, "bufferBytes", 1, 1073741823));
  const auto ttl = static_cast<int>(arguments.integer(2, "multicastTtl", 0, 255));
  if (!udp || arguments.failed()) return nullptr;
  setBuffers(udp->fd, buffer);
  const char* syscall = setMulticastTtl(udp->fd, udp->family, ttl);
  if (syscall) throwSystem(env, errno, syscall, "socket");
  return nullptr;
}

napi_value udpLeave(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpLeave", 2);
  Lease<Udp> udp(arguments, 0, "socket", Kind::udp, false);
  const auto interface = static_cast<int>(arguments.integer(1, "interface", 1, INT32_MAX));
  if (!udp || arguments.failed()) return nullptr;
  // Refused where the socket is in no such group: what was to be is so.
  if (udp->group.ss_family == AF_INET) {
    ip_mreqn request{};
    request.imr_multiaddr = reinterpret_cast<const sockaddr_in&>(udp->group).sin_addr;
    request.imr_ifindex = interface;
    setsockopt(udp->fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &request, sizeof request);
  } else if (udp->group.ss_family == AF_INET6) {
    ipv6_mreq request{};
    request.ipv6mr_multiaddr = reinterpret_cast<const sockaddr_in6&>(udp->group).sin6_addr;
    request.ipv6mr_interface = static_cast<unsigned>(interface);
    setsockopt(udp->fd, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &request, sizeof request);
  }
  return nullptr;
}

napi_value interfaceIndex(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "interfaceIndex", 1);
  const std::string name = arguments.string(0, "name", IFNAMSIZ - 1);
  if (arguments.failed()) return nullptr;
  const unsigned index = if_nametoindex(name.c_str());
  // It needs a descriptor to find out with.
  if (index == 0 && errno != ENODEV) throwSystem(env, errno, "if_nametoindex", name);
  return toInteger(env, static_cast<int32_t>(index));
}

napi_value interfaceName(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "interfaceName", 1);
  const auto index = static_cast<unsigned>(arguments.integer(0, "index", 0, INT32_MAX));
  if (arguments.failed()) return nullptr;
  char name[IF_NAMESIZE];
  if (if_indextoname(index, name)) return toString(env, name);
  if (errno != ENXIO) throwSystem(env, errno, "if_indextoname", "interface " + std::to_string(index));
  return toString(env, "");
}

napi_value udpDropped(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpDropped", 1);
  Lease<Udp> udp(arguments, 0, "socket", Kind::udp, false);
  if (!udp) return nullptr;
  uint32_t figures[SK_MEMINFO_VARS]{};
  socklen_t length = sizeof figures;
  const bool isSaid = getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, figures, &length) == 0 && length > SK_MEMINFO_DROPS * sizeof *figures;
  return toNumber(env, isSaid ? figures[SK_MEMINFO_DROPS] : -1.0);
}

napi_value udpAddress(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpAddress", 1);
  Lease<Udp> udp(arguments, 0, "socket", Kind::udp, true);
  if (!udp) return nullptr;
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(udp->fd, reinterpret_cast<sockaddr*>(&address), &length) < 0) {
    throwSystem(env, errno, "getsockname", "socket");
    return nullptr;
  }
  uint16_t port = 0;
  const std::string text = formatAddress(address, &port);
  napi_value result = nullptr;
  napi_create_object(env, &result);
  napi_set_named_property(env, result, "address", toString(env, text));
  napi_set_named_property(env, result, "port", toInteger(env, port));
  napi_set_named_property(env, result, "backend", toInteger(env, udp->backend));
  return result;
}

}  // namespace penstock
