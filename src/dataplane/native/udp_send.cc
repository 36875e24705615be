/** Sending batches of datagrams: UDP_SEGMENT groups through sendmmsg, plain sendmmsg, or one by one. */
#include <errno.h>

#include <algorithm>

#include "udp.h"

namespace penstock {

namespace {

constexpr int32_t kMostSegments = 64;     // UDP_MAX_SEGMENTS before Linux 6.10
constexpr int32_t kMostGroupBytes = 65507;  // the longest UDP payload over IPv4
constexpr size_t kControlBytes = CMSG_SPACE(sizeof(uint16_t));
constexpr unsigned kMostMessages = 1024;

enum class Sent { yes, refused, blocked };

struct Send {
  Udp& socket;
  const Memory& memory;
  State& state;
  double* counters;
  /** First packet and count of each message; a message per packet without UDP_SEGMENT. */
  size_t groups = 0;

  const Packet& packet(size_t index) const { return state.packets[index]; }

  /** How many packets from `from` on may leave as one message. */
  size_t groupAt(size_t from, size_t count) const {
    if (socket.backend != kLinux || socket.gsoRefused) return 1;
    const int32_t size = packet(from).length;
    if (size == 0) return 1;
    const uint8_t* remote = memory.remoteOf(packet(from).handle);
    int32_t bytes = size;
    size_t length = 1;
    while (from + length < count && length < kMostSegments) {
      const Packet& next = packet(from + length);
      if (next.length > size || next.length == 0 || bytes + next.length > kMostGroupBytes) break;
      if (!socket.connected && !sameRemote(remote, memory.remoteOf(next.handle))) break;
      bytes += next.length;
      length++;
      if (next.length < size) break;
    }
    return length;
  }

  /** Lays out the message of `count` packets; false when there is no address to send them to. */
  bool message(size_t slot, size_t from, size_t count) {
    msghdr& header = state.messages[slot].msg_hdr;
    header = {};
    if (!socket.connected) {
      header.msg_namelen = readRemote(memory.remoteOf(packet(from).handle), socket.family, &state.names[slot]);
      if (header.msg_namelen == 0) return false;
      header.msg_name = &state.names[slot];
    }
    // Packets that still lie side by side, as a train that was passed on does, are one piece to the kernel.
    size_t pieces = 0;
    const uint8_t* end = nullptr;
    for (size_t i = from; i < from + count; i++) {
      const Packet& it = packet(i);
      const auto size = static_cast<size_t>(it.length);
      if (it.data == end) {
        state.iovecs[from + pieces - 1].iov_len += size;
      } else {
        state.iovecs[from + pieces++] = {it.data, size};
      }
      end = it.data + size;
    }
    header.msg_iov = &state.iovecs[from];
    header.msg_iovlen = pieces;
    if (count > 1) {
      header.msg_control = &state.controls[slot * kControlBytes];
      header.msg_controllen = kControlBytes;
      auto* part = reinterpret_cast<cmsghdr*>(header.msg_control);
      part->cmsg_level = IPPROTO_UDP;
      part->cmsg_type = UDP_SEGMENT;
      part->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const uint16_t segment = static_cast<uint16_t>(packet(from).length);
      memcpy(CMSG_DATA(part), &segment, sizeof segment);
    }
    return true;
  }

  /** Sends one packet by itself, retrying once after an error that an earlier datagram left behind. */
  Sent single(size_t index, bool retried) {
    sockaddr_storage name;
    socklen_t length = 0;
    const Packet& it = packet(index);
    if (!socket.connected) {
      length = readRemote(memory.remoteOf(it.handle), socket.family, &name);
      if (length == 0) return Sent::refused;
    }
    for (;;) {
      const ssize_t sent = sendto(socket.fd, it.data, static_cast<size_t>(it.length), MSG_DONTWAIT | MSG_NOSIGNAL,
                                  length ? reinterpret_cast<sockaddr*>(&name) : nullptr, length);
      if (sent >= 0) return Sent::yes;
      if (errno == EINTR) continue;
      if (blocked()) return Sent::blocked;
      if (!leftover() || retried) return Sent::refused;
      counters[kSocketErrors]++;
      retried = true;
    }
  }

  static bool blocked() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM; }
  /** ICMP errors are reported at the next send, which is then not carried out. */
  static bool leftover() {
    return errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH || errno == EHOSTDOWN ||
           errno == ENOPROTOOPT || errno == EPROTO;
  }

  /** Sends packets [from, from+count) singly; how many were consumed. Fewer: the kernel's buffer is full. */
  size_t singly(size_t from, size_t count, bool retried) {
    for (size_t i = 0; i < count; i++) {
      const Sent sent = single(from + i, retried);
      if (sent == Sent::blocked) {
        counters[kSendBlocked]++;
        return i;
      }
      if (sent == Sent::refused) counters[kSendErrors]++;
    }
    return count;
  }

  /** Sends the first `count` packets; how many were consumed. */
  size_t all(size_t count) {
    if (socket.backend == kGeneric) return singly(0, count, false);
    size_t done = 0;
    while (done < count) {
      // Lay out messages up to one that has no address.
      groups = 0;
      size_t next = done;
      size_t unaddressed = 0;
      while (next < count && groups < kMostMessages) {
        const size_t length = groupAt(next, count);
        if (!message(groups, next, length)) {
          unaddressed = length;
          break;
        }
        state.groups[groups++] = static_cast<int32_t>(length);
        next += length;
      }
      size_t sent = 0;
      bool retried = false;
      while (sent < groups) {
        const int result = sendmmsg(socket.fd, &state.messages[sent], static_cast<unsigned>(groups - sent),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
        if (result > 0) {
          for (int i = 0; i < result; i++) done += static_cast<size_t>(state.groups[sent++]);
          retried = false;
          continue;
        }
        const size_t length = static_cast<size_t>(state.groups[sent]);
        if (errno == EINTR) continue;
        if (blocked()) {
          counters[kSendBlocked]++;
          return done;
        }
        if (leftover() && !retried) {
          counters[kSocketErrors]++;
          retried = true;
          continue;
        }
        // A path MTU below the segment size, or a device that cannot checksum, refuses the group but not its packets.
        if (length > 1 && (errno == EIO || errno == EINVAL || errno == EMSGSIZE || errno == EOPNOTSUPP)) {
          if (errno == EIO) socket.gsoRefused = true;
          const size_t consumed = singly(done, length, retried);
          done += consumed;
          if (consumed < length) return done;
        } else {
          counters[kSendErrors] += static_cast<double>(length);
          done += length;
        }
        sent++;
        retried = false;
      }
      counters[kSendErrors] += static_cast<double>(unaddressed);
      done += unaddressed;
    }
    return done;
  }
};

}  // namespace

napi_value udpSend(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpSend", 6);
  Lease<Udp> socket(arguments, 0, "socket", Kind::udp, true);
  Memory* memory = memoryArgument(arguments, 1);
  Span<int32_t> handles = arguments.int32s(2, "handles", 0);
  const auto from = static_cast<size_t>(arguments.integer(3, "from", 0, static_cast<int64_t>(handles.length)));
  const auto count = static_cast<size_t>(arguments.integer(4, "count", 0, static_cast<int64_t>(handles.length - from)));
  Span<double> counters = arguments.float64s(5, "counters", kCounters);
  if (arguments.failed() || !packetsArgument(arguments, *memory, handles, from, count)) return nullptr;

  State& state = arguments.state();
  const size_t messages = std::min<size_t>(count, kMostMessages);
  if (state.iovecs.size() < count) state.iovecs.resize(count);
  if (state.messages.size() < messages) {
    state.messages.resize(messages);
    state.names.resize(messages);
    state.groups.resize(messages);
    state.controls.resize(messages * kControlBytes);
  }
  Send send{*socket, *memory, state, counters.data};
  const size_t consumed = send.all(count);
  if (!memory->release(state.packets.data(), consumed)) {
    throwFreeStack(arguments);
    return nullptr;
  }
  return toInteger(env, static_cast<int32_t>(consumed));
}

}  // namespace penstock
