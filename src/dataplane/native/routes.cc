/** Hearing from the kernel that addresses, routes or interfaces of the machine have changed (rtnetlink(7)); what, is not read. */
#include "routes.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "descriptors.h"

namespace penstock {

namespace {

constexpr uint32_t group(int number) { return 1u << (number - 1); }

constexpr uint32_t kGroups = group(RTNLGRP_LINK) | group(RTNLGRP_IPV4_IFADDR) | group(RTNLGRP_IPV4_ROUTE) | group(RTNLGRP_IPV4_RULE) |
                             group(RTNLGRP_IPV6_IFADDR) | group(RTNLGRP_IPV6_ROUTE) | group(RTNLGRP_IPV6_RULE);

/** Room for what is told, bytes; the kernel gives twice as much. What does not fit is lost, and that is told too (ENOBUFS). */
constexpr int kRoomBytes = 4096;

/** Messages cleared in one call: more than there is room for, less than could hold a thread up. */
constexpr int kMostCleared = 256;

}  // namespace

napi_value routesOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "routesOpen", 1);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) {
    throwSystem(env, errno, "socket", "netlink");
    return nullptr;
  }
  auto routes = std::make_unique<Descriptor>(Kind::routes, fd);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kRoomBytes, sizeof kRoomBytes);
  sockaddr_nl local{};
  local.nl_family = AF_NETLINK;
  local.nl_groups = kGroups;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&local), sizeof local) < 0) {
    throwSystem(env, errno, "bind", "netlink");
    return nullptr;
  }
  return adopt(arguments, owner, std::move(routes));
}

napi_value routesClear(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "routesClear", 1);
  Lease<Descriptor> routes(arguments, 0, "routes", Kind::routes, false);
  if (!routes) return nullptr;
  uint8_t byte;
  for (int i = 0; i < kMostCleared; i++) {
    if (recv(routes->fd, &byte, sizeof byte, MSG_DONTWAIT) < 0 && errno != ENOBUFS && errno != EINTR) break;
  }
  return nullptr;
}

}  // namespace penstock
