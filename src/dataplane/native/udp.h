/** UDP sockets: opening them, and taking and sending batches of datagrams. */
#pragma once
#include <netinet/in.h>

#include <deque>
#include <memory>
#include <vector>

#include "address.h"
#include "answering_address.h"
#include "descriptors.h"
#include "memory.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace penstock {

/** Segments of a UDP_SEGMENT message at most (UDP_MAX_SEGMENTS before Linux 6.10), and bytes: the longest UDP payload over IPv4. */
constexpr uint32_t kMaxMessageSegments = 64;
constexpr int32_t kMaxMessageBytes = 65507;

/** Datagrams of `segment` bytes each, the last may be shorter, from `at` on, and who sent them. */
struct Spill {
  std::vector<uint8_t> bytes;
  size_t at;
  size_t segment;
  uint8_t remote[kRemoteBytes];
};

enum Backend { kGeneric = 0, kLinuxNoGro = 1, kLinux = 2 };

struct Udp : Descriptor {
  explicit Udp(int fd) : Descriptor(Kind::udp, fd) {}

  int backend = kGeneric;
  int family = AF_INET;
  bool connected = false;
  /** The kernel chose the address when the socket was connected: `udpFollow` has it choose again. */
  bool follows = false;
  /** Whom the socket is connected to. */
  sockaddr_storage remote{};
  socklen_t remoteLength = 0;
  /** The interface it is bound to; empty: none. */
  std::string interface;
  /** The group it was opened to join; AF_UNSPEC: none. */
  sockaddr_storage group{};
  /** What others than the peer send is kept out by a filter. */
  bool filtered = false;
  int32_t mtu = 0;
  /** Packets carry the time at which the kernel took them in, where it says so, and not that of the call that brought them. */
  bool arrivalTimes = false;
  /** Trains may be taken in one piece. */
  bool trains = true;

  /**
   * Segment size of the last train, 0 while datagrams come alone; how many segments it had; how many the next will
   * have; singles since.
   */
  int32_t predicted = 0;
  int32_t lastSegments = 0;
  int32_t trainSegments = 0;
  int32_t singles = 0;
  /** Segments of the longest train lately: one less with each train that is shorter. */
  int32_t longest = 0;
  /** The last train was as long as one can be. */
  bool goesOn = false;

  /** How many trains the last call found that asked until nothing was left, and how many calls have not asked since. */
  int32_t trainsWaiting = 0;
  int32_t unasked = 0;

  /** What came in trains that had more segments than the last call could take. */
  std::deque<Spill> spills;

  /** Of one that is asked at a port of all addresses of the machine; null: the kernel's choice is right. */
  std::unique_ptr<AnsweringAddresses> answers;

  /** Set once the device refused UDP_SEGMENT (EIO: it cannot checksum). */
  bool gsoRefused = false;
};

/** SO_BINDTODEVICE, where `name` is not empty; false: errno says why not. */
bool bindToInterface(int fd, const std::string& name);
/** At any address of the machine's; `port` 0: one of the kernel's choice. False: errno says why not. */
bool bindToPort(int fd, int family, uint16_t port);

napi_value udpOpen(napi_env env, napi_callback_info info);
napi_value udpAddress(napi_env env, napi_callback_info info);
napi_value interfaceIndex(napi_env env, napi_callback_info info);
napi_value interfaceName(napi_env env, napi_callback_info info);
napi_value udpTune(napi_env env, napi_callback_info info);
napi_value udpLeave(napi_env env, napi_callback_info info);
napi_value udpFollow(napi_env env, napi_callback_info info);
napi_value udpDropped(napi_env env, napi_callback_info info);
napi_value udpLeavesBy(napi_env env, napi_callback_info info);
napi_value udpReceive(napi_env env, napi_callback_info info);
napi_value udpSend(napi_env env, napi_callback_info info);

}  // namespace penstock
