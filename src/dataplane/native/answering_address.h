/** Which of the machine's addresses a socket that is bound to all of them answers a peer from: the one at which it was heard. */
#pragma once
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <unordered_map>

#include "memory.h"

namespace penstock {

/** Room for `fillIn`. */
constexpr size_t kSourceControlBytes = CMSG_SPACE(sizeof(in6_pktinfo)) > CMSG_SPACE(sizeof(in_pktinfo)) ? CMSG_SPACE(sizeof(in6_pktinfo))
                                                                                                       : CMSG_SPACE(sizeof(in_pktinfo));

/** Those of one generation, of which there are two. */
constexpr size_t kMaxPeers = 16384;

/**
 * Without it the kernel chooses by the route, and a peer whose socket is connected to another of the addresses never sees the answer. The peers
 * heard or answered last are known, 16,384 of them at least.
 */
class AnsweringAddresses {
 public:
  /** Has the kernel say of each datagram where it came to; false: errno says why not. */
  static bool ask(int fd, int family);

  /** `remote`, a record, was heard where `message`, as received, says. */
  void heard(const uint8_t* remote, msghdr& message);
  /** Where `remote` was heard; null: not known. Of IPv4 it is mapped. */
  const in6_addr* of(const uint8_t* remote);
  /** The machine has the address no more. */
  void forget(const uint8_t* remote);
  /** Writes that a message is to be sent from `from`; the bytes taken of `control`, which is aligned for a cmsghdr. */
  static size_t fillIn(const in6_addr& from, uint8_t* control);

 private:
  /** What of a record says who it is, without the ordinal of a connection: what lies between is 0. */
  using Peer = std::array<uint64_t, 3>;
  struct Hash {
    size_t operator()(const Peer& peer) const {
      uint64_t sum = 0;
      // Fibonacci hashing: neighbours in address or port come far apart.
      for (const uint64_t word : peer) sum = (sum ^ word) * 0x9e3779b97f4a7c15u ^ (sum >> 29);
      return static_cast<size_t>(sum ^ (sum >> 32));
    }
  };
  using Peers = std::unordered_map<Peer, in6_addr, Hash>;

  static_assert(sizeof(Peer) <= kRemoteBytes, "the beginning of a record");

  static Peer peerOf(const uint8_t* remote) {
    Peer peer;
    memcpy(peer.data(), remote, sizeof peer);
    reinterpret_cast<uint8_t*>(peer.data())[kOrdinalByte] = 0;
    return peer;
  }
  void put(const Peer& peer, const in6_addr& local);

  /** Those since the last time that `recent_` was full, and those of before. */
  Peers recent_;
  Peers older_;
  /** The last one heard: of a burst only the first is looked up. */
  Peer last_{};
  in6_addr lastLocal_{};
};

}  // namespace penstock
