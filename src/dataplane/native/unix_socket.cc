/** Opening SOCK_SEQPACKET sockets of the Unix domain: listeners and connections, by path or by abstract name (unix(7)). */
#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "connection.h"

namespace penstock {

namespace {

constexpr int kBacklog = 1024;
/** Bytes of a name: what the kernel's structure holds less one. */
constexpr size_t kMaxName = sizeof(sockaddr_un::sun_path) - 1;

struct Name {
  sockaddr_un address{};
  socklen_t length = 0;
  bool abstract = false;
};

/** `@name` is abstract, all else a path. */
Name toName(const std::string& text) {
  Name name;
  name.address.sun_family = AF_UNIX;
  name.abstract = !text.empty() && text[0] == '@';
  memcpy(name.address.sun_path, text.data(), text.size());
  if (name.abstract) name.address.sun_path[0] = '\0';
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (name.abstract ? 0 : 1));
  return name;
}

const sockaddr* plain(const Name& name) { return reinterpret_cast<const sockaddr*>(&name.address); }

int openSocket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

/** Binds `fd`, in the place of a socket file that nobody listens at any more, as a process leaves that was killed. The call that failed, with errno; nullptr where none did. */
const char* bindAnew(int fd, const Name& name) {
  if (bind(fd, plain(name), name.length) == 0) return nullptr;
  struct stat file;
  if (errno != EADDRINUSE || name.abstract) return "bind";
  if (lstat(name.address.sun_path, &file) < 0 || !S_ISSOCK(file.st_mode)) {
    errno = EADDRINUSE;
    return "bind";
  }
  // Asked with the socket itself, which stays as it was where it is refused: there may be no descriptor for another.
  const int answer = connect(fd, plain(name), name.length) < 0 ? errno : 0;
  if (answer != ECONNREFUSED) {
    const bool lacksMeans = answer == ENFILE || answer == ENOMEM || answer == ENOBUFS;
    errno = lacksMeans ? answer : EADDRINUSE;
    return lacksMeans ? "connect" : "bind";
  }
  if (unlink(name.address.sun_path) < 0 && errno != ENOENT) return "unlink";
  return bind(fd, plain(name), name.length) == 0 ? nullptr : "bind";
}

}  // namespace

napi_value unixListen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "unixListen", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const std::string text = arguments.propertyString(arguments.raw(1), "name", kMaxName);
  const auto mtu = static_cast<int32_t>(arguments.propertyNumber(arguments.raw(1), "mtu", 1, 65535));
  if (arguments.failed()) return nullptr;
  const Name name = toName(text);
  const int fd = openSocket();
  if (fd < 0) {
    throwSystem(env, errno, "socket", text);
    return nullptr;
  }
  auto listener = std::make_unique<Listener>(fd, Framing::packets, mtu);
  // Before it has a name: the file is made with the mode of the socket.
  fchmod(fd, 0600);
  const char* failed = bindAnew(fd, name);
  struct stat file;
  if (!failed && !name.abstract && lstat(text.c_str(), &file) == 0) {
    listener->path = text;
    listener->device = file.st_dev;
    listener->inode = file.st_ino;
  }
  if (!failed && listen(fd, kBacklog) < 0) failed = "listen";
  if (failed) {
    throwSystem(env, errno, failed, text);
    return nullptr;
  }
  return adopt(arguments, owner, std::move(listener));
}

napi_value unixConnect(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "unixConnect", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  napi_value options = arguments.raw(1);
  const std::string text = arguments.propertyString(options, "name", kMaxName);
  const auto mtu = static_cast<int32_t>(arguments.propertyNumber(options, "mtu", 1, 65535));
  const bool named = arguments.has(options, "bind");
  const std::string own = named ? arguments.propertyString(options, "bind", kMaxName) : "";
  if (arguments.failed()) return nullptr;
  const int fd = openSocket();
  if (fd < 0) {
    throwSystem(env, errno, "socket", text);
    return nullptr;
  }
  auto connection = std::make_unique<Connection>(fd, Framing::packets, mtu);
  if (named) {
    const Name name = toName(own);
    if (bind(fd, plain(name), name.length) < 0) {
      throwSystem(env, errno, "bind", own);
      return nullptr;
    }
  }
  const Name server = toName(text);
  if (connect(fd, plain(server), server.length) < 0) {
    throwSystem(env, errno, "connect", text);
    return nullptr;
  }
  return adopt(arguments, owner, std::move(connection));
}

napi_value unixPeer(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "unixPeer", 1);
  Lease<Connection> connection(arguments, 0, "connection", Kind::connection, false);
  if (!connection) return nullptr;
  sockaddr_un address{};
  socklen_t length = sizeof address;
  ucred user{};
  socklen_t size = sizeof user;
  const bool known = connection->framing == Framing::packets &&
                     getpeername(connection->fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
                     getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0;
  if (!known) {
    throwType(env, "unixPeer: connection %d is no connected Unix socket", connection->handle);
    return nullptr;
  }
  const size_t most = sizeof address.sun_path;
  const size_t given = length > offsetof(sockaddr_un, sun_path) ? length - offsetof(sockaddr_un, sun_path) : 0;
  std::string name(address.sun_path, given < most ? given : most);
  if (!name.empty() && name[0] == '\0') name[0] = '@';
  // A path is given with the NUL at its end; an abstract name may have some inside, which no configuration can write.
  else name = name.c_str();
  napi_value result = nullptr;
  napi_create_object(env, &result);
  napi_set_named_property(env, result, "name", toString(env, name));
  napi_set_named_property(env, result, "user", toNumber(env, user.uid));
  return result;
}

}  // namespace penstock
