/** Sending batches of datagrams: UDP_SEGMENT groups through sendmmsg, plain sendmmsg, or one by one. */
#include <errno.h>

#include <algorithm>

#include "syscalls.h"
#include "udp.h"

namespace penstock {

namespace {

/** For how long the segments are, and where it is sent from. */
constexpr size_t kControlBytes = CMSG_SPACE(sizeof(uint16_t)) + kSourceControlBytes;
constexpr unsigned kMaxMessages = 1024;

enum class Sent { yes, refused, blocked };

struct Send {
  Udp& socket;
  const Memory& memory;
  State& state;
  double* counters;
  /** Those to be sent. */
  const int32_t* handles;
  /** How many of `state.groups` there are. */
  size_t groups = 0;
  /** Why the last packet was refused for good. */
  int refusal = 0;

  /**
   * Checks the packets and lays out their messages in one pass: with UDP_SEGMENT, neighbours of equal size (the last may be
   * shorter) and equal destination are a group. Packets that still lie side by side, as a train that was passed on does, are
   * one piece to the kernel. Throws and returns false when a handle is no packet.
   */
  bool layOut(Arguments& arguments, size_t from, size_t count) {
    const bool join = socket.backend == kLinux && !socket.gsoRefused;
    const bool connected = socket.connected;
    // A copy of its own, which nothing that is written below can be part of, stays in registers.
    const Memory memory = this->memory;
    const int32_t* const handles = this->handles;
    // Behind the last ones that are complete. What is open is kept in registers: group `first`.., piece `begin`..`end`.
    SendGroup* group = state.groups.data();
    iovec* piece = state.iovecs.data();
    const iovec* const pieces = piece;
    uint32_t first = 0;
    uint32_t firstPiece = 0;
    uint8_t* begin = nullptr;
    uint8_t* end = nullptr;
    const uint8_t* remote = nullptr;
    int32_t size = 0;  // of the open group's packets, 0 when none is open
    int32_t room = 0;  // bytes it still takes
    int32_t segment = 0;  // size of its first packet
    const auto completePiece = [&] { *piece++ = {begin, static_cast<size_t>(end - begin)}; };
    const auto completeGroup = [&](uint32_t next) {
      completePiece();
      const auto nextPiece = static_cast<uint32_t>(piece - pieces);
      *group++ = {first, next - first, firstPiece, nextPiece - firstPiece, segment};
      first = next;
      firstPiece = nextPiece;
    };
    for (uint32_t i = 0; i < count;) {
      Packet it;
      const int32_t handle = loadOnce(handles + i);
      if (!memory.packet(handle, &it)) {
        throwPacket(arguments, memory, from + i, handle);
        return false;
      }
      const int32_t length = it.length;
      if (length > 0 && length <= size && length <= room && i - first < kMaxMessageSegments &&
          (connected || sameRemote(remote, memory.remoteOf(handle)))) {
        if (it.data != end) {
          completePiece();
          begin = it.data;
        }
        room -= length;
        if (length < size) size = 0;
      } else {
        if (i > 0) completeGroup(i);
        begin = it.data;
        remote = memory.remoteOf(handle);
        segment = length;
        size = join ? length : 0;
        room = kMaxMessageBytes - length;
      }
      end = it.data + length;
      i++;
      if (!connected || length == 0 || length != size) continue;
      // Of a train that is passed on the others need no more than this.
      const size_t places = std::min<size_t>(count - i, kMaxMessageSegments - (i - first));
      const size_t more = memory.following(handles + i, places, it, room);
      i += static_cast<uint32_t>(more);
      end += more * static_cast<size_t>(length);
      room -= static_cast<int32_t>(more) * length;
    }
    if (count > 0) completeGroup(static_cast<uint32_t>(count));
    groups = static_cast<size_t>(group - state.groups.data());
    return true;
  }

  /** Fills in the message header of a group; false when there is no address to send it to. */
  bool message(size_t slot, const SendGroup& group) {
    msghdr& header = state.messages[slot].msg_hdr;
    header = {};
    const in6_addr* source = nullptr;
    if (!socket.connected) {
      const int32_t first = loadOnce(handles + group.first);
      if (first < 0 || first >= memory.slots) return false;
      header.msg_namelen = readRemote(memory.remoteOf(first), socket.family, &state.names[slot]);
      if (header.msg_namelen == 0) return false;
      header.msg_name = &state.names[slot];
      if (socket.answers) source = socket.answers->of(memory.remoteOf(first));
    }
    uint8_t* const control = &state.controls[slot * kControlBytes];
    size_t used = 0;
    header.msg_iov = &state.iovecs[group.piece];
    header.msg_iovlen = group.pieces;
    if (group.packets > 1) {
      auto* part = reinterpret_cast<cmsghdr*>(control);
      part->cmsg_level = IPPROTO_UDP;
      part->cmsg_type = UDP_SEGMENT;
      part->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const uint16_t segment = static_cast<uint16_t>(group.size);
      memcpy(CMSG_DATA(part), &segment, sizeof segment);
      used = CMSG_SPACE(sizeof segment);
    }
    if (source) used += AnsweringAddresses::fillIn(*source, control + used);
    header.msg_control = used > 0 ? control : nullptr;
    header.msg_controllen = used;
    return true;
  }

  void refuse(size_t packets, int error) {
    counters[kSendErrors] += static_cast<double>(packets);
    counters[kSendErrno] = error;
  }

  /** The network has reported an error of an earlier datagram. */
  void reported(int error) {
    counters[kSocketErrors]++;
    counters[kSocketErrno] = error;
  }

  /** Why a packet has no address to be sent to. */
  int unaddressed(int32_t handle) const {
    const bool known = handle >= 0 && handle < memory.slots && memory.remoteOf(handle)[0] != 0;
    return known ? EAFNOSUPPORT : EDESTADDRREQ;
  }

  /** Has a message that names where it is sent from name nothing; false when it does not. */
  bool strip(msghdr* header, const SendGroup& group) const {
    const size_t rest = group.packets > 1 ? CMSG_SPACE(sizeof(uint16_t)) : 0;
    if (!socket.answers || header->msg_controllen <= rest) return false;
    header->msg_controllen = rest;
    if (rest == 0) header->msg_control = nullptr;
    return true;
  }

  /** The machine has lost the address from which the peer of `group` was answered. */
  void forget(const SendGroup& group) const {
    // Read again: it may be another by now, or none.
    const int32_t first = loadOnce(handles + group.first);
    if (first >= 0 && first < memory.slots) socket.answers->forget(memory.remoteOf(first));
  }

  Sent refused(int error) {
    refusal = error;
    return Sent::refused;
  }

  /** Sends one packet by itself, retrying once after an error that an earlier datagram left behind. */
  Sent single(size_t index, bool retried) {
    sockaddr_storage name;
    alignas(cmsghdr) uint8_t control[kSourceControlBytes];
    Packet it;
    if (!memory.packet(loadOnce(handles + index), &it)) return refused(EFAULT);
    iovec piece{it.data, static_cast<size_t>(it.length)};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (!socket.connected) {
      const uint8_t* const remote = memory.remoteOf(it.handle);
      header.msg_namelen = readRemote(remote, socket.family, &name);
      if (header.msg_namelen == 0) return refused(unaddressed(it.handle));
      header.msg_name = &name;
      const in6_addr* const source = socket.answers ? socket.answers->of(remote) : nullptr;
      if (source) {
        header.msg_controllen = AnsweringAddresses::fillIn(*source, control);
        header.msg_control = control;
      }
    }
    bool fromAny = false;
    bool doubted = false;
    for (;;) {
      const ssize_t sent = sendmsg(socket.fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (doubted && (sent >= 0 || errno != EMSGSIZE)) {
        reported(EMSGSIZE);
        doubted = false;
      }
      if (sent >= 0) {
        if (fromAny) socket.answers->forget(memory.remoteOf(it.handle));
        return Sent::yes;
      }
      if (errno == EINTR) continue;
      if (blocked()) return Sent::blocked;
      if (header.msg_control && mayLackSource()) {
        header.msg_control = nullptr;
        header.msg_controllen = 0;
        fromAny = true;
        continue;
      }
      if (!doubted && mayBeOld()) {
        doubted = true;
        continue;
      }
      if (!leftover() || retried) return refused(errno);
      reported(errno);
      retried = true;
    }
  }

  /** The machine may have lost the address that was to be sent from. */
  static bool mayLackSource() { return errno == EINVAL || errno == ENETUNREACH || errno == EADDRNOTAVAIL; }
  static bool blocked() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM; }
  /** ICMP errors are reported to a connected socket at the next send, which is then not carried out. */
  bool leftover() const {
    if (!socket.connected) return false;
    return errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH || errno == EHOSTDOWN || errno == EACCES ||
           errno == ENONET || errno == ENOPROTOOPT || errno == EPROTO;
  }
  /** A router may have found an earlier datagram too long, which is told once as well: what the kernel says of this one it says again. */
  bool mayBeOld() const { return socket.connected && errno == EMSGSIZE; }

  /** Sends packets [from, from+count) singly; how many were consumed. Fewer: the kernel's buffer is full. */
  size_t singly(size_t from, size_t count, bool retried) {
    for (size_t i = 0; i < count; i++) {
      const Sent sent = single(from + i, retried && i == 0);
      if (sent == Sent::blocked) {
        counters[kSendBlocked]++;
        return i;
      }
      if (sent == Sent::refused) refuse(1, refusal);
    }
    return count;
  }

  /** Sends what was laid out; how many of the `count` packets were consumed. */
  size_t all(size_t count) {
    if (socket.backend == kGeneric || count == 1) return singly(0, count, false);
    size_t done = 0;
    size_t next = 0;
    while (next < groups) {
      // Headers up to a group that has no address.
      size_t ready = 0;
      while (next + ready < groups && ready < kMaxMessages && message(ready, state.groups[next + ready])) ready++;
      size_t sent = 0;
      bool retried = false;
      bool doubted = false;
      bool stripped = false;
      while (sent < ready) {
        const int result = sendMessages(socket.fd, &state.messages[sent], static_cast<unsigned>(ready - sent),
                                        MSG_DONTWAIT | MSG_NOSIGNAL);
        if (doubted && (result > 0 || errno != EMSGSIZE)) {
          reported(EMSGSIZE);
          doubted = false;
        }
        if (result > 0) {
          if (stripped) forget(state.groups[next + sent]);
          stripped = false;
          for (int i = 0; i < result; i++) done += state.groups[next + sent++].packets;
          retried = false;
          continue;
        }
        const size_t length = state.groups[next + sent].packets;
        if (errno == EINTR) continue;
        if (blocked()) {
          counters[kSendBlocked]++;
          return done;
        }
        if (mayLackSource() && strip(&state.messages[sent].msg_hdr, state.groups[next + sent])) {
          stripped = true;
          continue;
        }
        if (!doubted && mayBeOld()) {
          doubted = true;
          continue;
        }
        if (leftover() && !retried) {
          reported(errno);
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
          refuse(length, errno);
          done += length;
        }
        sent++;
        retried = false;
        doubted = false;
        stripped = false;
      }
      next += ready;
      if (next < groups && ready < kMaxMessages) {
        const SendGroup& group = state.groups[next++];
        refuse(group.packets, unaddressed(loadOnce(handles + group.first)));
        done += group.packets;
      }
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
  if (arguments.failed()) return nullptr;

  State& state = arguments.state();
  const size_t messages = std::min<size_t>(count, kMaxMessages);
  if (state.iovecs.size() < count) state.iovecs.resize(count);
  if (state.groups.size() < count) state.groups.resize(count);
  if (state.messages.size() < messages) {
    state.messages.resize(messages);
    state.names.resize(messages);
    state.controls.resize(messages * kControlBytes);
  }
  Send send{*socket, *memory, state, counters.data, handles.data + from};
  if (!send.layOut(arguments, from, count)) return nullptr;
  const size_t consumed = send.all(count);
  if (!memory->release(send.handles, consumed)) {
    throwFreeStack(arguments);
    return nullptr;
  }
  return toInteger(env, static_cast<int32_t>(consumed));
}

}  // namespace penstock
