#include "answering_address.h"

#include <utility>

namespace penstock {

namespace {

in6_addr mapped(const in_addr& four) {
  in6_addr six{};
  six.s6_addr[10] = six.s6_addr[11] = 0xff;
  memcpy(six.s6_addr + 12, &four, sizeof four);
  return six;
}

/** The address of the machine's that an answer to `message` is sent from; false: there is none to name. */
bool localOf(msghdr& message, in6_addr* local) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      memcpy(&info, CMSG_DATA(part), sizeof info);
      // Not ipi_addr, which may be that of a group or a broadcast.
      if (info.ipi_spec_dst.s_addr == 0) return false;
      *local = mapped(info.ipi_spec_dst);
      return true;
    }
    if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      memcpy(&info, CMSG_DATA(part), sizeof info);
      const in6_addr& six = info.ipi6_addr;
      // Of one of IPv4 the other part says it. An address of the link is chosen by the peer's scope.
      if (IN6_IS_ADDR_V4MAPPED(&six)) continue;
      if (IN6_IS_ADDR_MULTICAST(&six) || IN6_IS_ADDR_LINKLOCAL(&six) || IN6_IS_ADDR_UNSPECIFIED(&six)) return false;
      *local = six;
      return true;
    }
  }
  return false;
}

}  // namespace

bool AnsweringAddresses::ask(int fd, int family) {
  const int on = 1;
  // A socket of IPv6 hears IPv4 too.
  if (setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) < 0) return false;
  return family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) == 0;
}

void AnsweringAddresses::heard(const uint8_t* remote, msghdr& message) {
  in6_addr local;
  if (!localOf(message, &local)) return;
  const Peer peer = peerOf(remote);
  if (peer == last_ && memcmp(&local, &lastLocal_, sizeof local) == 0) return;
  last_ = peer;
  lastLocal_ = local;
  put(peer, local);
}

void AnsweringAddresses::put(const Peer& peer, const in6_addr& local) {
  if (recent_.size() == kMaxPeers && recent_.find(peer) == recent_.end()) {
    older_ = std::move(recent_);
    recent_.clear();
  }
  recent_[peer] = local;
}

const in6_addr* AnsweringAddresses::of(const uint8_t* remote) {
  const Peer peer = peerOf(remote);
  const auto found = recent_.find(peer);
  if (found != recent_.end()) return &found->second;
  const auto before = older_.find(peer);
  if (before == older_.end()) return nullptr;
  const in6_addr local = before->second;
  put(peer, local);
  return &recent_[peer];
}

void AnsweringAddresses::forget(const uint8_t* remote) {
  const Peer peer = peerOf(remote);
  recent_.erase(peer);
  older_.erase(peer);
  last_ = {};
}

size_t AnsweringAddresses::fillIn(const in6_addr& from, uint8_t* control) {
  auto* part = reinterpret_cast<cmsghdr*>(control);
  if (IN6_IS_ADDR_V4MAPPED(&from)) {
    in_pktinfo info{};
    memcpy(&info.ipi_spec_dst, from.s6_addr + 12, sizeof info.ipi_spec_dst);
    part->cmsg_level = IPPROTO_IP;
    part->cmsg_type = IP_PKTINFO;
    part->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(part), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
  }
  in6_pktinfo info{};
  info.ipi6_addr = from;
  part->cmsg_level = IPPROTO_IPV6;
  part->cmsg_type = IPV6_PKTINFO;
  part->cmsg_len = CMSG_LEN(sizeof info);
  memcpy(CMSG_DATA(part), &info, sizeof info);
  return CMSG_SPACE(sizeof info);
}

}  // namespace penstock
