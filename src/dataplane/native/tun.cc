/** TUN and TAP devices: opening them, and taking and sending batches of packets. */
#include "tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "descriptors.h"
#include "interface.h"
#include "receiving.h"
#include "segments.h"

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

namespace penstock {

namespace {

constexpr size_t kFrameBytes = kTrainBytes + 256;
constexpr int32_t kMaxJoined = 128;

struct Tun : Descriptor {
  explicit Tun(int fd) : Descriptor(Kind::tun, fd) {}
  ~Tun() override {
    // What was found is left as it was.
    if (!found || !vnet || fd < 0) return;
    ioctl(fd, TUNSETOFFLOAD, 0);
    if (headerBytes > 0) ioctl(fd, TUNSETVNETHDRSZ, &headerBytes);
  }
  std::string name;
  bool vnet = false;
  /** Somebody else made the interface, to last (TUNSETPERSIST). */
  bool found = false;
  /** What it was given, of an interface that was not found; of one that was, its number only. */
  KeptInterface kept;
  /** Length of the virtio-net header before this run, of an interface that was found. */
  int headerBytes = 0;
  /** The kernel takes and gives UDP GSO frames (Linux 6.2). */
  bool uso = false;
  std::unique_ptr<uint8_t[]> buffer{new uint8_t[kFrameBytes]};
  /** The frame being cut; kept over calls while it has packets left. */
  Frame frame;
};

struct Receive : Receiving {
  Receive(const ReceiveArguments& given, Tun& device) : Receiving(given), device(device) {}
  Tun& device;

  /** Cuts packets off the frame in hand until it or `max` is used up. */
  void cut() {
    Frame& frame = device.frame;
    while (frame.next < frame.segments && taken < max && !damaged) {
      const size_t index = frame.next++;
      const size_t bytes = segmentBytes(frame, index);
      seen++;
      if (bytes > static_cast<size_t>(memory.room())) {
        counters[kOversize]++;
        continue;
      }
      const int32_t handle = freeSlot(0);
      if (handle < 0) {
        counters[kNoSlot]++;
        continue;
      }
      writeSegment(frame, index, memory.fresh(handle));
      deliver(handle, bytes, nullptr);
    }
    setSpilled(&device, frame.next < frame.segments);
  }

  /** Reads frames until the device is empty or `max` is reached; 0 or the errno that ended it. */
  int all(State& state) {
    if (device.spilled) stamp();
    cut();
    while (taken < max && seen < max && !damaged) {
      ssize_t size;
      if (device.vnet) {
        VnetHeader vnet;
        iovec parts[2] = {{&vnet, sizeof vnet}, {device.buffer.get(), kFrameBytes}};
        size = readv(device.fd, parts, 2);
        if (size >= 0) {
          if (size < static_cast<ssize_t>(sizeof vnet)) {
            counters[kMalformed]++;
            seen++;
            continue;
          }
          stamp();
          device.frame = openFrame(vnet, device.buffer.get(), static_cast<size_t>(size) - sizeof vnet);
          if (device.frame.segments == 0) {
            counters[kMalformed]++;
            seen++;
          }
          cut();
          continue;
        }
      } else {
        const int32_t handle = freeSlot(0);
        if (damaged) return 0;
        const size_t room = handle < 0 ? 0 : static_cast<size_t>(memory.room());
        iovec parts[2] = {{handle < 0 ? nullptr : memory.fresh(handle), room}, {state.overflow.get(), kTrainBytes}};
        size = handle < 0 ? readv(device.fd, parts + 1, 1) : readv(device.fd, parts, 2);
        if (size >= 0) {
          seen++;
          if (handle < 0) {
            counters[kNoSlot]++;
          } else if (static_cast<size_t>(size) > room) {
            counters[kOversize]++;
          } else {
            stamp();
            deliver(handle, static_cast<size_t>(size), nullptr);
          }
          continue;
        }
      }
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
    }
    return 0;
  }
};

struct Send {
  Tun& device;
  const Packet* packets;
  double* counters;

  enum class Sent { yes, refused, blocked };

  /** Writes one frame made of `parts`. */
  Sent frame(const iovec* parts, int count) {
    for (;;) {
      if (writev(device.fd, parts, count) >= 0) return Sent::yes;
      if (errno == EINTR) continue;
      const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
      return full ? Sent::blocked : Sent::refused;
    }
  }

  /** The kernel has refused a packet for good (errno). */
  void refuse() {
    counters[kSendErrors]++;
    counters[kSendErrno] = errno;
  }

  Sent single(const Packet& packet) {
    if (packet.length == 0) {
      // To write(2) nothing is no error, and no packet either.
      errno = EINVAL;
      return Sent::refused;
    }
    VnetHeader vnet{};
    const iovec parts[2] = {{&vnet, sizeof vnet}, {packet.data, static_cast<size_t>(packet.length)}};
    return device.vnet ? frame(parts, 2) : frame(parts + 1, 1);
  }

  /** How many packets from `from` on are one flow's next bytes, with right checksums. */
  size_t run(size_t from, size_t count, Flow* first) const {
    if (!device.vnet || from + 1 >= count) return 1;
    const Packet& head = packets[from];
    *first = readFlow(head.data, static_cast<size_t>(head.length));
    if (first->payload == 0 || first->ends || (first->udp && !device.uso)) return 1;
    size_t bytes = static_cast<size_t>(head.length);
    size_t length = 1;
    while (from + length < count && length < kMaxJoined) {
      const Packet& packet = packets[from + length];
      const Flow flow = readFlow(packet.data, static_cast<size_t>(packet.length));
      if (!continues(*first, head.data, flow, packet.data, length) || bytes + flow.payload > 65535) break;
      if (length == 1 && !checksumsHold(*first, head.data, static_cast<size_t>(head.length))) break;
      if (!checksumsHold(flow, packet.data, static_cast<size_t>(packet.length))) break;
      bytes += flow.payload;
      length++;
      if (flow.ends || flow.payload < first->payload) break;
    }
    return length;
  }

  Sent joined(size_t from, size_t length, const Flow& first) {
    uint8_t headers[128];
    iovec parts[kMaxJoined + 2];
    size_t payload = 0;
    for (size_t i = 0; i < length; i++) {
      const Packet& packet = packets[from + i];
      const size_t bytes = static_cast<size_t>(packet.length) - first.headers;
      parts[i + 2] = {packet.data + first.headers, bytes};
      payload += bytes;
    }
    VnetHeader vnet = joinHeaders(first, packets[from].data, packets[from + length - 1].data, payload, headers);
    parts[0] = {&vnet, sizeof vnet};
    parts[1] = {headers, first.headers};
    return frame(parts, static_cast<int>(length) + 2);
  }

  size_t all(size_t count) {
    size_t done = 0;
    while (done < count) {
      Flow first;
      const size_t length = run(done, count, &first);
      Sent sent = length > 1 ? joined(done, length, first) : single(packets[done]);
      if (length > 1 && sent == Sent::refused) {
        // The device takes no such frame: its packets go one by one.
        for (size_t i = 0; i < length; i++) {
          sent = single(packets[done]);
          if (sent == Sent::blocked) break;
          if (sent == Sent::refused) refuse();
          done++;
        }
        if (sent != Sent::blocked) continue;
      }
      if (sent == Sent::blocked) {
        counters[kSendBlocked]++;
        return done;
      }
      if (sent == Sent::refused) refuse();
      done += length;
    }
    return done;
  }
};

}  // namespace

napi_value tunOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tunOpen", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  napi_value options = arguments.raw(1);
  const std::string kind = arguments.propertyString(options, "kind", 8);
  const std::string name = arguments.propertyString(options, "name", IFNAMSIZ - 1);
  const std::string address = arguments.propertyString(options, "address", 128);
  const int prefix = static_cast<int>(arguments.propertyNumber(options, "prefix", 0, 128));
  const auto mtu = static_cast<uint32_t>(arguments.propertyNumber(options, "mtu", 68, 65535));
  const bool defaultRoute = arguments.propertyBoolean(options, "defaultRoute");
  const bool offload = arguments.propertyBoolean(options, "offload");
  if (!arguments.failed() && kind != "tun" && kind != "tap") arguments.type("kind", "'tun' or 'tap'");
  if (arguments.failed()) return nullptr;

  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    throwSystem(env, errno, "open", "/dev/net/tun");
    return nullptr;
  }
  auto device = std::make_unique<Tun>(fd);
  device->vnet = offload && kind == "tun";
  ifreq request{};
  request.ifr_flags = static_cast<short>((kind == "tun" ? IFF_TUN : IFF_TAP) | IFF_NO_PI | (device->vnet ? IFF_VNET_HDR : 0));
  memcpy(request.ifr_name, name.data(), name.size());
  if (ioctl(fd, TUNSETIFF, &request) < 0) {
    throwSystem(env, errno, "TUNSETIFF", name + (errno == EPERM ? " (CAP_NET_ADMIN is needed)" : ""));
    return nullptr;
  }
  device->name = request.ifr_name;
  ifreq kept{};
  device->found = ioctl(fd, TUNGETIFF, &kept) == 0 && (kept.ifr_flags & IFF_PERSIST) != 0;
  if (device->vnet) {
    if (device->found && ioctl(fd, TUNGETVNETHDRSZ, &device->headerBytes) < 0) device->headerBytes = 0;
    const int size = sizeof(VnetHeader);
    const unsigned base = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
    if (ioctl(fd, TUNSETVNETHDRSZ, &size) < 0) {
      throwSystem(env, errno, "TUNSETVNETHDRSZ", device->name);
      return nullptr;
    }
    device->uso = ioctl(fd, TUNSETOFFLOAD, base | TUN_F_USO4 | TUN_F_USO6) == 0;
    if (!device->uso && ioctl(fd, TUNSETOFFLOAD, base) < 0) {
      throwSystem(env, errno, "TUNSETOFFLOAD", device->name);
      return nullptr;
    }
  } else if (device->found && ioctl(fd, TUNSETOFFLOAD, 0) < 0) {
    // It outlasts who set it, a process that was killed or a virtual machine: the kernel would hand over long packets without their checksums.
    throwSystem(env, errno, "TUNSETOFFLOAD", device->name);
    return nullptr;
  }
  if (device->found) {
    device->kept.index = static_cast<int>(if_nametoindex(device->name.c_str()));
    return adopt(arguments, owner, std::move(device));
  }
  if (kind == "tap") giveLastingHardwareAddress(fd, device->name, address);
  const InterfaceFailure failure = configureInterface(device->name, address, prefix, mtu, defaultRoute, &device->kept);
  if (failure.error) {
    throwSystem(env, failure.error, failure.syscall, failure.subject);
    return nullptr;
  }
  return adopt(arguments, owner, std::move(device));
}

napi_value tunState(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tunState", 1);
  Lease<Tun> device(arguments, 0, "device", Kind::tun, false);
  if (!device) return nullptr;
  const InterfaceState state = interfaceState(device->name);
  napi_value result = nullptr, addresses = nullptr;
  napi_create_object(env, &result);
  napi_set_named_property(env, result, "name", toString(env, device->name));
  napi_set_named_property(env, result, "found", toBoolean(env, device->found));
  napi_set_named_property(env, result, "error", toInteger(env, state.error));
  napi_set_named_property(env, result, "up", toBoolean(env, state.up));
  napi_set_named_property(env, result, "mtu", toInteger(env, static_cast<int32_t>(state.mtu)));
  napi_create_array(env, &addresses);
  for (size_t i = 0; i < state.addresses.size(); i++) {
    napi_set_element(env, addresses, static_cast<uint32_t>(i), toString(env, state.addresses[i]));
  }
  napi_set_named_property(env, result, "addresses", addresses);
  return result;
}

napi_value tunKeep(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tunKeep", 1);
  Lease<Tun> device(arguments, 0, "device", Kind::tun, false);
  if (!device) return nullptr;
  napi_value result = nullptr;
  ifreq now{};
  Upkeep upkeep;
  if (!device->found && ioctl(device->fd, TUNGETIFF, &now) == 0) {
    device->name = now.ifr_name;
    upkeep = keepInterface(device->fd, device->name, &device->kept);
  }
  if (!upkeep.known) {
    napi_get_null(env, &result);
    return result;
  }
  napi_create_object(env, &result);
  napi_set_named_property(env, result, "name", toString(env, device->name));
  napi_set_named_property(env, result, "present", toBoolean(env, upkeep.present));
  napi_set_named_property(env, result, "up", toBoolean(env, upkeep.up));
  napi_set_named_property(env, result, "address", toInteger(env, upkeep.address));
  napi_set_named_property(env, result, "defaultRoute", toInteger(env, upkeep.defaultRoute));
  return result;
}

napi_value tunDropped(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tunDropped", 1);
  Lease<Tun> device(arguments, 0, "device", Kind::tun, false);
  if (!device) return nullptr;
  ifreq now{};
  // By the name of now: it may have been renamed.
  const bool isThere = ioctl(device->fd, TUNGETIFF, &now) == 0;
  return toNumber(env, isThere ? droppedAtInterface(device->fd, now.ifr_name, device->kept.index) : -1);
}

napi_value tunReceive(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tunReceive", 6);
  Lease<Tun> device(arguments, 0, "device", Kind::tun, true);
  const ReceiveArguments given(arguments);
  if (arguments.failed()) return nullptr;
  Receive receive(given, *device);
  const int error = receive.all(arguments.state());
  if (receive.damaged) {
    throwFreeStack(arguments);
    return nullptr;
  }
  if (error == EBADFD && receive.taken == 0) {
    // What libuv has no name for: the file is there, the interface behind it is not.
    throwSystem(env, ENODEV, "read", device->name + " (the interface was deleted while it was in use; a run that starts anew makes it anew)");
    return nullptr;
  }
  if (error && receive.taken == 0) {
    throwSystem(env, error, "read", device->name);
    return nullptr;
  }
  return toInteger(env, receive.taken);
}

napi_value tunSend(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "tunSend", 6);
  Lease<Tun> device(arguments, 0, "device", Kind::tun, true);
  const SendArguments given(arguments);
  if (!given.packets(arguments)) return nullptr;
  const Packet* packets = arguments.state().packets.data();
  Send send{*device, packets, given.counters.data};
  const size_t consumed = send.all(given.count);
  if (!given.memory->release(packets, consumed)) {
    throwFreeStack(arguments);
    return nullptr;
  }
  return toInteger(env, static_cast<int32_t>(consumed));
}

}  // namespace penstock
