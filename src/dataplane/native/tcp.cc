/** Opening TCP listeners and connections. */
#include <errno.h>
#include <netinet/tcp.h>

#include "address.h"
#include "connection.h"

namespace penstock {

namespace {

constexpr int kBacklog = 1024;
/** Bytes of a stream that are one packet. */
constexpr int32_t kPieceBytes = 1200;
constexpr int32_t kMaxFrame = 65535;
/** A silent peer is asked after so many seconds, then so often, and is gone after so many questions. */
constexpr int kKeepIdle = 30;
constexpr int kKeepInterval = 10;
constexpr int kKeepCount = 3;
/** A frame that nobody has acknowledged for so many milliseconds ends its connection. */
constexpr unsigned kFrameTimeout = 30000;

struct Options {
  sockaddr_storage address{};
  socklen_t length = 0;
  std::string text;
  Framing framing = Framing::stream;
  int32_t longest() const { return framing == Framing::stream ? kPieceBytes : kMaxFrame; }
};

Options readOptions(Arguments& arguments, napi_value object) {
  Options options;
  options.text = arguments.propertyString(object, "address", 128);
  const auto port = static_cast<uint16_t>(arguments.propertyNumber(object, "port", 0, 65535));
  options.framing = arguments.propertyBoolean(object, "framed") ? Framing::frames : Framing::stream;
  if (!arguments.failed() && !parseAddress(options.text, port, &options.address, &options.length)) {
    arguments.type("address", "a numeric IP address");
  }
  options.text += " port " + std::to_string(port);
  return options;
}

int openSocket(const Options& options) {
  return socket(options.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

napi_value toAddress(napi_env env, const sockaddr_storage& address) {
  uint16_t port = 0;
  const std::string text = formatAddress(address, &port);
  napi_value result = nullptr;
  napi_create_object(env, &result);
  napi_set_named_property(env, result, "address", toString(env, text));
  napi_set_named_property(env, result, "port", toInteger(env, port));
  return result;
}

}  // namespace

void tuneTcp(int fd, Framing framing) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A byte sent as urgent data is one of the stream (RFC 6093, section 4); the kernel would keep it aside.
  setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepIdle, sizeof kKeepIdle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepInterval, sizeof kKeepInterval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepCount, sizeof kKeepCount);
  // Not for plain streams: the kernel would end those of a peer that lives and only reads slowly, too.
  if (framing == Framing::frames) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kFrameTimeout, sizeof kFrameTimeout);
}

napi_value tcpListen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tcpListen", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const Options options = readOptions(arguments, arguments.raw(1));
  if (arguments.failed()) return nullptr;
  const int fd = openSocket(options);
  if (fd < 0) {
    throwSystem(env, errno, "socket", options.text);
    return nullptr;
  }
  auto listener = std::make_unique<Listener>(fd, options.framing, options.longest());
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (options.address.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&options.address), options.length) == 0;
  if (!bound || listen(fd, kBacklog) < 0) {
    throwSystem(env, errno, bound ? "listen" : "bind", options.text);
    return nullptr;
  }
  return adopt(arguments, owner, std::move(listener));
}

napi_value tcpConnect(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tcpConnect", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const Options options = readOptions(arguments, arguments.raw(1));
  if (arguments.failed()) return nullptr;
  const int fd = openSocket(options);
  if (fd < 0) {
    throwSystem(env, errno, "socket", options.text);
    return nullptr;
  }
  auto connection = std::make_unique<Connection>(fd, options.framing, options.longest());
  writeRemote(options.address, connection->remote);
  tuneTcp(fd, options.framing);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&options.address), options.length) < 0 && errno != EINPROGRESS) {
    throwSystem(env, errno, "connect", options.text);
    return nullptr;
  }
  return adopt(arguments, owner, std::move(connection));
}

napi_value tcpAddress(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tcpAddress", 1);
  Lease<Descriptor> source(arguments, 0, "socket", Kind::any, false);
  if (!source) return nullptr;
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  const bool known = (source->kind == Kind::listener || source->kind == Kind::connection) &&
                     getsockname(source->fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (!known || (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
    throwType(env, "tcpAddress: socket %d is no TCP listener or connection", source->handle);
    return nullptr;
  }
  return toAddress(env, address);
}

}  // namespace penstock
