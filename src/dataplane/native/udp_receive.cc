/** Receiving batches of datagrams: GRO trains scattered straight into slots, recvmmsg, or one by one. */
#include <errno.h>

#include <algorithm>

#include "clock.h"
#include "syscalls.h"
#include "udp.h"

namespace penstock {

namespace {

constexpr int32_t kMaxSegments = 128;  // UDP_MAX_SEGMENTS since Linux 6.10; 64 before
constexpr int32_t kMaxMessages = 64;
constexpr int32_t kMaxWhole = 8;  // trains that one call takes in one piece
constexpr int kMaxErrors = 16;  // pending socket errors read in one call
/** Packets that are worth a breath of their own, three long trains and more: a call that has them may leave it to the next whether there are more. */
constexpr int32_t kMinPackets = 160;
constexpr int32_t kMaxUnasked = 15;
/** For how long the segments are, when it came, and where to, of both families. */
constexpr size_t kControlBytes = 192;
/** A datagram that the kernel says to have waited for longer counts as arrived now: somebody may have set the clock. */
constexpr int64_t kMaxWaitNs = 20000000;

/** One receive call in progress. */
struct Receive {
  Udp& socket;
  const Memory& memory;
  int32_t* handles;
  const int32_t max;
  /** The run's zero on CLOCK_MONOTONIC. */
  const double origin;
  double* counters;
  const int32_t limit;
  int32_t taken = 0;
  int32_t seen = 0;
  int32_t trains = 0;
  bool damaged = false;
  /** Arrival time of what is being delivered. */
  double now = 0;

  /** The kernel has just handed something over: it had arrived by now. A time read before could be earlier than its arrival. */
  void stamp() { now = static_cast<double>(monotonic()) - origin; }

  /** The same of a datagram that the kernel took in at `taken` on CLOCK_REALTIME. The order of the clocks makes no arrival too early. */
  void stampAt(int64_t taken) {
    const int64_t waited = realtime() - taken;
    stamp();
    if (waited > 0 && waited <= kMaxWaitNs) now -= static_cast<double>(waited);
  }

  /** How many trains there is a place for, and no more than make `enough`. */
  int32_t trainsUntil(int32_t enough) const {
    const int32_t longest = std::max(socket.longest, 1);
    const int32_t missing = std::max(enough - trains, (kMinPackets - taken + longest - 1) / longest);
    return std::max(1, std::min({kMaxWhole, (max - taken) / longest, missing}));
  }

  /** Who sent what came with `header`, as a record; the socket answers it from where it came to. */
  void writeSender(const sockaddr_storage& from, msghdr& header, uint8_t* remote) const {
    writeRemote(from, remote);
    if (socket.answers) socket.answers->heard(remote, header);
  }

  /** Takes one free slot; -1 when there is none or the stack is damaged. */
  int32_t pop() {
    const int32_t count = memory.freeCount();
    if (count < 0) damaged = true;
    if (count <= 0) return -1;
    const int32_t handle = memory.freeAt(count, 0);
    if (handle < 0) {
      damaged = true;
      return -1;
    }
    memory.free[0] = count - 1;
    return handle;
  }

  void deliver(int32_t handle, int32_t size, const uint8_t* remote) {
    memory.admit(handle, size, now, remote);
    handles[taken++] = handle;
    counters[kReceivedBytes] += size;
  }

  /** Copies one datagram into a slot of its own, or counts why not. */
  void copy(const uint8_t* from, size_t size, const uint8_t* remote) {
    if (size > static_cast<size_t>(limit)) {
      counters[kOversize]++;
      return;
    }
    const int32_t handle = pop();
    if (handle < 0) {
      counters[kNoSlot]++;
      return;
    }
    memcpy(memory.fresh(handle), from, size);
    deliver(handle, static_cast<int32_t>(size), remote);
  }

  /** Datagrams of `segment` bytes lying one after the other; what `max` leaves no place for is kept for the next call. */
  void copyTrain(const uint8_t* from, size_t bytes, size_t segment, const uint8_t* remote) {
    size_t at = 0;
    do {
      if (taken == max || damaged) {
        Spill& spill = socket.spills.emplace_back(Spill{{from + at, from + bytes}, 0, segment, {}});
        memcpy(spill.remote, remote, kRemoteBytes);
        setSpilled(&socket, true);
        return;
      }
      const size_t size = std::min(segment, bytes - at);
      copy(from + at, size, remote);
      seen++;
      at += size;
    } while (at < bytes);
  }

  void takeSpills() {
    if (socket.spilled) stamp();
    while (socket.spilled && taken < max && !damaged) {
      Spill& spill = socket.spills.front();
      const size_t size = std::min(spill.segment, spill.bytes.size() - spill.at);
      copy(spill.bytes.data() + spill.at, size, spill.remote);
      seen++;
      spill.at += size;
      if (spill.at < spill.bytes.size()) continue;
      socket.spills.pop_front();
      if (socket.spills.empty()) setSpilled(&socket, false);
    }
  }
};

enum class Next { go, stop, enough, error };

/** What to do after a failed receive: read a pending error away, or stop. */
Next afterError(Receive& receive, int* errors) {
  if (errno == EINTR) return Next::go;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return Next::stop;
  if (errno == EBADF || errno == ENOTSOCK || errno == EFAULT || errno == EINVAL) return Next::error;
  receive.counters[kSocketErrors]++;
  receive.counters[kSocketErrno] = errno;
  return ++*errors < kMaxErrors ? Next::go : Next::stop;
}

/** No slot at all: reads `receive.max` datagrams away, so that the socket does not stay readable for ever. */
Next discard(Receive& receive, State& state) {
  int errors = 0;
  while (receive.seen < receive.max) {
    const ssize_t size = recv(receive.socket.fd, state.overflow.get(), kTrainBytes, MSG_DONTWAIT);
    if (size < 0) {
      const Next next = afterError(receive, &errors);
      if (next == Next::go) continue;
      return next;
    }
    receive.seen++;
    receive.counters[kNoSlot]++;
  }
  return Next::stop;
}

int32_t segmentOf(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == IPPROTO_UDP && part->cmsg_type == UDP_GRO) {
      int size;
      memcpy(&size, CMSG_DATA(part), sizeof size);
      return size;
    }
  }
  return 0;
}

/** When the kernel took in what `message` brought, ns on CLOCK_REALTIME; 0: it does not say. Of a train that is its first datagram. */
int64_t takenAt(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
      timespec time;
      memcpy(&time, CMSG_DATA(part), sizeof time);
      return nanoseconds(time);
    }
  }
  return 0;
}

/** Learns from a train of `size` bytes what the next will be like. */
void predict(Udp& socket, int32_t segment, int32_t segments, int32_t size, bool misfit) {
  socket.longest = std::max(segments, socket.longest - 1);
  socket.goesOn = segments >= static_cast<int32_t>(kMaxMessageSegments) || size > kMaxMessageBytes - segment;
  if (segments > 1) {
    socket.predicted = segment;
    // As long as the last but one: of frames that are longer than a train, long ones and short ones come in turn.
    socket.trainSegments = socket.lastSegments;
    socket.lastSegments = segments;
    socket.singles = 0;
  } else if (socket.predicted > 0 && (misfit || ++socket.singles > 8)) {
    socket.predicted = 0;
  }
}

/**
 * Gives out what was received with `header` in one piece into the train `whole`, which nobody else has: `size` bytes. False when none of them lies there
 * any more: they were copied, wait with the socket, or the bookkeeping is damaged.
 */
bool deliverWhole(Receive& receive, const Memory& memory, int32_t whole, int32_t size, msghdr& header, const sockaddr_storage& from) {
  uint8_t remote[kRemoteBytes];
  receive.writeSender(from, header, remote);
  int32_t segment = segmentOf(header);
  if (segment <= 0 || segment >= size) segment = size;
  const int32_t segments = size > segment ? (size + segment - 1) / segment : 1;
  predict(receive.socket, segment, segments, size, false);
  const int32_t free = memory.freeCount();
  if (free < 0) {
    receive.damaged = true;
    return false;
  }
  // A few packets would keep the whole train from being free; they are copied into their slots.
  const int32_t direct = std::min(segments, std::min(receive.max - receive.taken, free));
  if (segments < 4 || segment > receive.limit || direct < segments) {
    receive.copyTrain(memory.trainAt(whole), static_cast<size_t>(size), static_cast<size_t>(segment), remote);
    return false;
  }
  int32_t* const handles = receive.handles + receive.taken;
  const auto begin = static_cast<int32_t>(memory.trainAt(whole) - memory.data);
  int32_t last = 0;
  for (int32_t done = 0; done < segments;) {
    int32_t handle;
    const int32_t run = memory.freeRun(free - done, segments - done, &handle);
    if (run == 0) {
      receive.damaged = true;
      return false;
    }
    for (int32_t i = 0; i < run; i++) handles[done + i] = handle + i;
    for (int32_t i = 0; i < run; i++) memory.offset[handle + i] = begin + (done + i) * segment;
    std::fill_n(memory.length + handle, run, segment);
    std::fill_n(memory.arrival + handle, run, receive.now);
    std::fill_n(memory.client + handle, run, -1.0);
    std::fill_n(memory.train + handle, run, whole + 1);
    for (int32_t i = 0; i < run; i++) memcpy(memory.remoteOf(handle + i), remote, kRemoteBytes);
    done += run;
    last = handle + run - 1;
  }
  memory.length[last] = size - (segments - 1) * segment;
  memory.trainReferences[whole] = segments;
  memory.free[0] = free - segments;
  receive.taken += segments;
  receive.seen += segments;
  receive.counters[kReceivedBytes] += size;
  return true;
}

/**
 * Takes up to `wanted` trains in one call, each in one piece into a free train of `wholes`; their packets lie in it side by side. What is known of the packets is
 * written when all have come: copying the trains would push it out of the cache again.
 */
Next receiveWhole(Receive& receive, const int32_t* wholes, int32_t wanted, int* errors) {
  // A copy of its own, which nothing that is written below can be part of, stays in registers.
  const Memory memory = receive.memory;
  iovec iov[kMaxWhole];
  mmsghdr messages[kMaxWhole];
  sockaddr_storage from[kMaxWhole];
  alignas(cmsghdr) uint8_t control[kMaxWhole][kControlBytes];
  for (int32_t i = 0; i < wanted; i++) {
    iov[i] = {memory.trainAt(wholes[i]), kTrainBytes};
    msghdr& header = messages[i].msg_hdr;
    header = {};
    header.msg_name = &from[i];
    header.msg_namelen = sizeof from[i];
    header.msg_iov = &iov[i];
    header.msg_iovlen = 1;
    header.msg_control = control[i];
    header.msg_controllen = sizeof control[i];
  }
  const int count = receiveMessages(receive.socket.fd, messages, static_cast<unsigned>(wanted), MSG_DONTWAIT);
  if (count < 0) return afterError(receive, errors);
  receive.stamp();
  receive.trains += count;
  memory.takeTrains(count);
  for (int i = 0; i < count; i++) {
    const auto size = static_cast<int32_t>(messages[i].msg_len);
    if (!deliverWhole(receive, memory, wholes[i], size, messages[i].msg_hdr, from[i])) memory.putTrain(wholes[i]);
  }
  return count < wanted ? Next::stop : Next::go;
}

/**
 * UDP_GRO: one recvmsg brings a train of equal datagrams. Its iovec lays one slot after the other, each as long as the last
 * train's datagrams, so that a train like the last needs no copy; the overflow buffer behind them always holds the rest. A
 * train cut differently is put together and copied: right in any case, and the prediction is mended.
 */
Next takeTrains(Receive& receive, State& state, int32_t enough) {
  Udp& socket = receive.socket;
  const Memory& memory = receive.memory;
  int32_t slots[kMaxSegments];
  int32_t wholes[kMaxWhole];
  iovec iov[kMaxSegments + 1];
  alignas(cmsghdr) uint8_t control[kControlBytes];
  sockaddr_storage from;
  uint8_t remote[kRemoteBytes];
  int errors = 0;
  while (receive.taken < receive.max && receive.seen < receive.max && !receive.damaged) {
    if (receive.trains >= enough && receive.taken >= kMinPackets && !socket.goesOn) return Next::enough;
    const int32_t available = receive.max - receive.taken;
    const bool train = socket.predicted > 0 && socket.predicted <= receive.limit;
    if (train && receive.taken > 0 && available < socket.trainSegments) return Next::stop;
    const int32_t piece = train ? socket.predicted : receive.limit;
    const int32_t free = memory.freeCount();
    if (free < 0) {
      receive.damaged = true;
      return Next::stop;
    }
    const bool whole = socket.trains && train && available >= socket.trainSegments;
    const int32_t wanted = whole ? memory.nextTrains(wholes, receive.trainsUntil(enough)) : 0;
    if (wanted > 0) {
      const Next next = receiveWhole(receive, wholes, wanted, &errors);
      if (next == Next::go) continue;
      return next;
    }
    int32_t want = train ? std::min<int32_t>(kMaxSegments, 65535 / piece + 1) : 1;
    want = std::min(want, std::min(available, free));
    for (int32_t i = 0; i < want; i++) {
      slots[i] = memory.freeAt(free, i);
      if (slots[i] < 0) {
        receive.damaged = true;
        return Next::stop;
      }
      iov[i] = {memory.fresh(slots[i]), static_cast<size_t>(piece)};
    }
    iov[want] = {state.overflow.get(), kTrainBytes};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = iov;
    message.msg_iovlen = static_cast<size_t>(want) + 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t bytes = receiveMessage(socket.fd, &message, MSG_DONTWAIT);
    if (bytes < 0) {
      const Next next = afterError(receive, &errors);
      if (next == Next::go) continue;
      return next;
    }
    receive.trains++;
    receive.writeSender(from, message, remote);
    int32_t segment = segmentOf(message);
    const int32_t size = static_cast<int32_t>(bytes);
    if (segment <= 0 || segment >= size) segment = size;
    const int32_t segments = size > segment ? (size + segment - 1) / segment : 1;
    const int64_t taken = socket.arrivalTimes && segments == 1 ? takenAt(message) : 0;
    if (taken > 0) {
      receive.stampAt(taken);
    } else {
      receive.stamp();
    }

    if (want > 0 && (segments > 1 ? segment == piece : size <= piece)) {
      const int32_t direct = std::min(segments, want);
      memory.free[0] = free - direct;
      for (int32_t i = 0; i < direct; i++) {
        receive.deliver(slots[i], i + 1 < segments ? segment : size - (segments - 1) * segment, remote);
      }
      receive.seen += direct;
      if (segments > want) {
        const size_t rest = static_cast<size_t>(size) - static_cast<size_t>(want) * static_cast<size_t>(segment);
        receive.copyTrain(state.overflow.get(), rest, static_cast<size_t>(segment), remote);
      }
    } else {
      size_t at = 0;
      for (int32_t i = 0; i < want && at < static_cast<size_t>(size); i++) {
        const size_t part = std::min(static_cast<size_t>(piece), static_cast<size_t>(size) - at);
        memcpy(state.linear.get() + at, iov[i].iov_base, part);
        at += part;
      }
      if (at < static_cast<size_t>(size)) memcpy(state.linear.get() + at, state.overflow.get(), size - at);
      receive.copyTrain(state.linear.get(), static_cast<size_t>(size), static_cast<size_t>(segment), remote);
    }

    predict(socket, segment, segments, size, size > piece);
  }
  return Next::stop;
}

/**
 * Asking until nothing is left costs a call that brings nothing. Under load as many trains wait as the time before, so only
 * every sixteenth call asks; what the others leave is read by the next, at once. None ends behind a full train, which goes on in
 * the next: a frame that comes in two batches reaches a TUN device in two pieces.
 */
Next receiveTrains(Receive& receive, State& state) {
  Udp& socket = receive.socket;
  const bool asks = socket.unasked == kMaxUnasked;
  const Next next = takeTrains(receive, state, asks ? receive.max : std::max(socket.trainsWaiting, 1));
  if (next == Next::enough) {
    socket.unasked++;
    return Next::stop;
  }
  socket.trainsWaiting = receive.trains;
  socket.unasked = 0;
  return next;
}

/** recvmmsg: up to 64 datagrams a call, each into a slot of its own. */
Next receiveSeveral(Receive& receive) {
  const Memory& memory = receive.memory;
  int32_t slots[kMaxMessages];
  iovec iov[kMaxMessages];
  mmsghdr messages[kMaxMessages];
  sockaddr_storage names[kMaxMessages];
  alignas(cmsghdr) uint8_t control[kMaxMessages][kControlBytes];
  uint8_t remote[kRemoteBytes];
  int errors = 0;
  while (receive.seen < receive.max) {
    const int32_t free = memory.freeCount();
    if (free < 0) {
      receive.damaged = true;
      return Next::stop;
    }
    const int32_t want = std::min(std::min(receive.max - receive.seen, free), kMaxMessages);
    if (want == 0) return Next::go;
    for (int32_t i = 0; i < want; i++) {
      slots[i] = memory.freeAt(free, i);
      if (slots[i] < 0) {
        receive.damaged = true;
        return Next::stop;
      }
      iov[i] = {memory.fresh(slots[i]), static_cast<size_t>(receive.limit)};
      messages[i] = {};
      messages[i].msg_hdr.msg_name = &names[i];
      messages[i].msg_hdr.msg_namelen = sizeof names[i];
      messages[i].msg_hdr.msg_iov = &iov[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      if (!receive.socket.answers) continue;
      messages[i].msg_hdr.msg_control = control[i];
      messages[i].msg_hdr.msg_controllen = sizeof control[i];
    }
    const int count = receiveMessages(receive.socket.fd, messages, static_cast<unsigned>(want), MSG_DONTWAIT);
    if (count < 0) {
      const Next next = afterError(receive, &errors);
      if (next == Next::go) continue;
      return next;
    }
    receive.stamp();
    memory.free[0] = free - count;
    for (int i = 0; i < count; i++) {
      receive.seen++;
      if (messages[i].msg_hdr.msg_flags & MSG_TRUNC) {
        receive.counters[kOversize]++;
        memory.release(slots[i]);
        continue;
      }
      receive.writeSender(names[i], messages[i].msg_hdr, remote);
      receive.deliver(slots[i], static_cast<int32_t>(messages[i].msg_len), remote);
    }
    if (count < want) return Next::stop;
  }
  return Next::stop;
}

/** recvmsg, one datagram a call. */
Next receiveSingles(Receive& receive) {
  const Memory& memory = receive.memory;
  uint8_t remote[kRemoteBytes];
  int errors = 0;
  while (receive.seen < receive.max) {
    const int32_t handle = receive.pop();
    if (handle < 0) return receive.damaged ? Next::stop : Next::go;
    sockaddr_storage from;
    alignas(cmsghdr) uint8_t control[kControlBytes];
    iovec iov{memory.fresh(handle), static_cast<size_t>(receive.limit)};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(receive.socket.fd, &message, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 || size > receive.limit) memory.release(handle);
    if (size < 0) {
      const Next next = afterError(receive, &errors);
      if (next == Next::go) continue;
      return next;
    }
    receive.seen++;
    if (size > receive.limit) {
      receive.counters[kOversize]++;
      continue;
    }
    receive.stamp();
    receive.writeSender(from, message, remote);
    receive.deliver(handle, static_cast<int32_t>(size), remote);
  }
  return Next::stop;
}

}  // namespace

napi_value udpReceive(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "udpReceive", 6);
  Lease<Udp> socket(arguments, 0, "socket", Kind::udp, true);
  Memory* memory = memoryArgument(arguments, 1);
  Span<int32_t> handles = arguments.int32s(2, "handles", 1);
  const int64_t max = arguments.integer(3, "max", 1, static_cast<int64_t>(handles.length));
  const double origin = arguments.number(4, "origin");
  Span<double> counters = arguments.float64s(5, "counters", kCounters);
  if (arguments.failed()) return nullptr;

  State& state = arguments.state();
  Receive receive{*socket,        *memory, handles.data, static_cast<int32_t>(max), origin, counters.data,
                  std::min(socket->mtu, memory->room())};
  receive.takeSpills();
  Next next = Next::stop;
  if (receive.taken < receive.max && !receive.damaged) {
    if (socket->backend == kLinux) {
      next = receiveTrains(receive, state);
    } else {
      next = socket->backend == kLinuxNoGro ? receiveSeveral(receive) : receiveSingles(receive);
      if (next == Next::go) next = discard(receive, state);
    }
  }
  if (receive.damaged) {
    throwFreeStack(arguments);
  } else if (next == Next::error && receive.taken == 0) {
    throwSystem(env, errno, "recvmsg", "socket " + std::to_string(socket->handle));
  }
  return arguments.failed() ? nullptr : toInteger(env, receive.taken);
}

}  // namespace penstock
