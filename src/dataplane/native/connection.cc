/** What connections of all kinds have in common: being accepted, their state, taking and sending batches of packets. */
#include "connection.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "address.h"
#include "receiving.h"

namespace penstock {

namespace {

/** A frame: u32 length, big-endian, then as many bytes. */
constexpr size_t kFrameHeader = 4;
constexpr size_t kMaxFrame = 65535;
constexpr size_t kReadBytes = 2 * kTrainBytes;
constexpr int32_t kMaxPieces = 64;
constexpr size_t kMaxSent = 256;

bool wouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
}

struct Receive : Receiving {
  Receive(const ReceiveArguments& given, Connection& connection, State& state)
      : Receiving(given), connection(connection), state(state) {}
  Connection& connection;
  State& state;

  /** What follows from a read that gave `size`; true when there is something to look at. */
  bool got(ssize_t size) {
    if (size > 0) return true;
    if (size == 0) connection.over = ENODATA;
    else if (!wouldBlock(errno)) connection.over = errno;
    return false;
  }

  /** Reads pieces of the stream straight into slots; without a free slot nothing is read. */
  void stream() {
    iovec parts[kMaxPieces];
    int32_t slots[kMaxPieces];
    const auto piece = static_cast<size_t>(std::min(connection.longest, memory.room()));
    while (taken < max) {
      int32_t count = 0;
      for (; count < std::min(max - taken, kMaxPieces); count++) {
        slots[count] = freeSlot(count);
        if (slots[count] < 0) break;
        parts[count] = {memory.fresh(slots[count]), piece};
      }
      if (count == 0 || damaged) return;
      const ssize_t size = readv(connection.fd, parts, count);
      if (size < 0 && errno == EINTR) continue;
      if (!got(size)) return;
      stamp();
      auto left = static_cast<size_t>(size);
      for (int32_t i = 0; left > 0; i++) {
        const size_t bytes = std::min(left, piece);
        deliver(slots[i], bytes, connection.remote);
        left -= bytes;
      }
      if (static_cast<size_t>(size) < piece * static_cast<size_t>(count)) return;
    }
  }

  /** Gives out the whole frames at the front of `bytes`; how many bytes they took. */
  size_t parse(const uint8_t* data, size_t bytes) {
    size_t at = 0;
    while (bytes - at >= kFrameHeader && seen < max && !damaged) {
      const uint8_t* head = data + at;
      const size_t length = static_cast<size_t>(head[0]) << 24 | static_cast<size_t>(head[1]) << 16 |
                            static_cast<size_t>(head[2]) << 8 | head[3];
      if (length == 0 || length > kMaxFrame) {
        counters[kMalformed]++;
        connection.over = EPROTO;
        return bytes;
      }
      if (bytes - at - kFrameHeader < length) break;
      frame(head + kFrameHeader, length);
      at += kFrameHeader + length;
    }
    return at;
  }

  void frame(const uint8_t* data, size_t length) {
    seen++;
    if (length > static_cast<size_t>(std::min(connection.longest, memory.room()))) {
      counters[kOversize]++;
      return;
    }
    const int32_t handle = freeSlot(0);
    if (handle < 0) {
      if (!damaged) counters[kNoSlot]++;
      return;
    }
    memcpy(memory.fresh(handle), data, length);
    deliver(handle, length, connection.remote);
  }

  /** Whether the rest begins with something to give out: a whole frame, or a length that none can have. */
  bool restReady() const {
    const size_t bytes = connection.rest.size() - connection.restAt;
    if (bytes < kFrameHeader) return false;
    const uint8_t* head = connection.rest.data() + connection.restAt;
    const size_t length = static_cast<size_t>(head[0]) << 24 | static_cast<size_t>(head[1]) << 16 |
                          static_cast<size_t>(head[2]) << 8 | head[3];
    return length == 0 || length > kMaxFrame || bytes - kFrameHeader >= length;
  }

  void frames() {
    auto& rest = connection.rest;
    if (restReady()) {
      stamp();
      connection.restAt += parse(rest.data() + connection.restAt, rest.size() - connection.restAt);
    }
    uint8_t* data = state.linear.get();
    // A rest without a whole frame is shorter than the longest, so that there is always room to read.
    while (seen < max && !damaged && connection.over == 0 && !restReady()) {
      const size_t before = rest.size() - connection.restAt;
      const ssize_t size = read(connection.fd, data + before, kReadBytes - before);
      if (size < 0 && errno == EINTR) continue;
      if (!got(size)) break;
      stamp();
      if (before > 0) memcpy(data, rest.data() + connection.restAt, before);
      const size_t bytes = before + static_cast<size_t>(size);
      const size_t used = parse(data, bytes);
      rest.assign(data + used, data + bytes);
      connection.restAt = 0;
      if (bytes < kReadBytes) break;
    }
    if (connection.over != 0) return;
    setSpilled(&connection, restReady());
  }

  void packets() {
    while (seen < max) {
      const int32_t handle = freeSlot(0);
      if (damaged) return;
      const int32_t limit = std::min(connection.longest, memory.room());
      iovec part{handle < 0 ? state.overflow.get() : memory.fresh(handle), static_cast<size_t>(limit)};
      if (handle < 0) part.iov_len = kTrainBytes;
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      const ssize_t size = recvmsg(connection.fd, &message, MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (!got(size)) return;
      seen++;
      if (handle < 0) {
        counters[kNoSlot]++;
      } else if (message.msg_flags & MSG_TRUNC) {
        counters[kOversize]++;
      } else {
        stamp();
        deliver(handle, static_cast<size_t>(size), connection.remote);
      }
    }
  }

  void all() {
    if (connection.over == 0) {
      if (connection.framing == Framing::stream) stream();
      else if (connection.framing == Framing::frames) frames();
      else packets();
    }
    // The end is told by the next call when this one has packets to give.
    if (connection.over != 0) setSpilled(&connection, taken > 0);
  }
};

struct Send {
  Connection& connection;
  State& state;
  size_t count;
  double* counters;
  size_t done = 0;
  int error = 0;

  size_t header() const { return connection.framing == Framing::frames ? kFrameHeader : 0; }
  size_t bytesOf(size_t index) const { return header() + static_cast<size_t>(state.packets[index].length); }
  bool sendable(size_t index) const {
    const int32_t length = state.packets[index].length;
    return connection.framing != Framing::frames || (length > 0 && length <= static_cast<int32_t>(kMaxFrame));
  }

  /** Sends as one message what comes next; false when the kernel takes no more. */
  bool some() {
    uint8_t headers[kMaxSent][kFrameHeader];
    iovec parts[2 * kMaxSent];
    size_t used = 0;
    size_t bytes = 0;
    size_t skip = connection.sent;
    const size_t end = std::min(count, done + kMaxSent);
    for (size_t i = done; i < end && sendable(i); i++) {
      const Packet& packet = state.packets[i];
      if (header() > 0) {
        uint8_t* head = headers[i - done];
        head[0] = head[1] = 0;
        head[2] = static_cast<uint8_t>(packet.length >> 8);
        head[3] = static_cast<uint8_t>(packet.length);
        const size_t cut = std::min(skip, kFrameHeader);
        parts[used++] = {head + cut, kFrameHeader - cut};
        skip -= cut;
      }
      const size_t cut = std::min(skip, static_cast<size_t>(packet.length));
      parts[used++] = {packet.data + cut, static_cast<size_t>(packet.length) - cut};
      bytes += bytesOf(i);
      skip = 0;
    }
    bytes -= std::min(bytes, connection.sent);
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = used;
    const ssize_t size = sendmsg(connection.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) {
      if (errno == EINTR) return true;
      if (wouldBlock(errno)) counters[kSendBlocked]++;
      else error = errno;
      return false;
    }
    size_t left = connection.sent + static_cast<size_t>(size);
    while (done < end && sendable(done) && left >= bytesOf(done)) left -= bytesOf(done++);
    connection.sent = left;
    if (static_cast<size_t>(size) == bytes) return true;
    counters[kSendBlocked]++;
    return false;
  }

  void stream() {
    while (done < count) {
      if (sendable(done)) {
        if (!some()) return;
      } else {
        counters[kSendErrors]++;
        done++;
      }
    }
  }

  void packets() {
    while (done < count) {
      const Packet& packet = state.packets[done];
      const auto length = static_cast<size_t>(packet.length);
      // Nothing at all would read as the end of the stream.
      if (length > 0 && send(connection.fd, packet.data, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno == EINTR) continue;
        if (wouldBlock(errno)) {
          counters[kSendBlocked]++;
          return;
        }
        if (errno != EMSGSIZE) {
          error = errno;
          return;
        }
        counters[kSendErrors]++;
      } else if (length == 0) {
        counters[kSendErrors]++;
      }
      done++;
    }
  }
};

}  // namespace

Listener::~Listener() {
  struct stat now;
  if (path.empty() || lstat(path.c_str(), &now) < 0 || now.st_dev != device || now.st_ino != inode) return;
  unlink(path.c_str());
}

napi_value listenerAccept(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "listenerAccept", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  Lease<Listener> listener(arguments, 1, "listener", Kind::listener, true);
  if (arguments.failed()) return nullptr;
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  const int fd = accept4(listener->fd, reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return toInteger(env, -errno);
  auto connection = std::make_unique<Connection>(fd, listener->framing, listener->longest);
  if (listener->framing != Framing::packets) {
    writeRemote(from, connection->remote);
    tuneTcp(fd, listener->framing);
  }
  return adopt(arguments, owner, std::move(connection));
}

napi_value connectionConnected(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "connectionConnected", 1);
  Lease<Connection> connection(arguments, 0, "connection", Kind::connection, false);
  if (!connection) return nullptr;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) error = errno;
  sockaddr_storage peer;
  length = sizeof peer;
  if (error == 0 && getpeername(connection->fd, reinterpret_cast<sockaddr*>(&peer), &length) < 0) {
    error = errno == ENOTCONN ? EINPROGRESS : errno;
  }
  // Who connects to a port of this machine where nobody listens may be given that very port, and is connected to itself.
  sockaddr_storage own;
  socklen_t bytes = sizeof own;
  if (error == 0 && connection->framing != Framing::packets &&
      getsockname(connection->fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 && bytes == length &&
      memcmp(&own, &peer, length) == 0) {
    error = ECONNREFUSED;
  }
  return toInteger(env, -error);
}

napi_value connectionRemote(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "connectionRemote", 2);
  Lease<Connection> connection(arguments, 0, "connection", Kind::connection, false);
  Span<uint8_t> record = arguments.bytes(1, "record", kRemoteBytes);
  if (arguments.failed()) return nullptr;
  memcpy(record.data, connection->remote, kRemoteBytes);
  return nullptr;
}

napi_value connectionReset(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "connectionReset", 1);
  Lease<Connection> connection(arguments, 0, "connection", Kind::connection, false);
  if (!connection) return nullptr;
  const linger none{1, 0};
  setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  return nullptr;
}

napi_value connectionReceive(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "connectionReceive", 6);
  Lease<Connection> connection(arguments, 0, "connection", Kind::connection, true);
  const ReceiveArguments given(arguments);
  if (arguments.failed()) return nullptr;
  Receive receive(given, *connection, arguments.state());
  receive.all();
  if (receive.damaged) {
    throwFreeStack(arguments);
    return nullptr;
  }
  return toInteger(env, receive.taken > 0 ? receive.taken : -connection->over);
}

napi_value connectionSend(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "connectionSend", 6);
  Lease<Connection> connection(arguments, 0, "connection", Kind::connection, true);
  const SendArguments given(arguments);
  if (!given.packets(arguments)) return nullptr;
  Send send{*connection, arguments.state(), given.count, given.counters.data};
  if (connection->framing == Framing::packets) send.packets();
  else send.stream();
  if (!given.memory->release(arguments.state().packets.data(), send.done)) {
    throwFreeStack(arguments);
    return nullptr;
  }
  return toInteger(env, send.done > 0 ? static_cast<int32_t>(send.done) : -send.error);
}

}  // namespace penstock
