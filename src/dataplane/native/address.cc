/** Socket addresses between text, the kernel's form and a packet's remote address record. */
#include "address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

namespace penstock {

static const uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool parseAddress(const std::string& text, uint16_t port, sockaddr_storage* out, socklen_t* length) {
  memset(out, 0, sizeof *out);
  auto* four = reinterpret_cast<sockaddr_in*>(out);
  if (inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    *length = sizeof *four;
    return true;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(out);
  memset(out, 0, sizeof *out);
  const size_t percent = text.find('%');
  if (percent != std::string::npos) {
    const std::string scope = text.substr(percent + 1);
    six->sin6_scope_id = if_nametoindex(scope.c_str());
    if (six->sin6_scope_id == 0) six->sin6_scope_id = static_cast<uint32_t>(strtoul(scope.c_str(), nullptr, 10));
    if (six->sin6_scope_id == 0) return false;
  }
  if (inet_pton(AF_INET6, text.substr(0, percent).c_str(), &six->sin6_addr) != 1) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  *length = sizeof *six;
  return true;
}

void mapToV6(sockaddr_storage* address, socklen_t* length) {
  if (address->ss_family != AF_INET) return;
  sockaddr_in four;
  memcpy(&four, address, sizeof four);
  memset(address, 0, sizeof *address);
  auto* six = reinterpret_cast<sockaddr_in6*>(address);
  six->sin6_family = AF_INET6;
  six->sin6_port = four.sin_port;
  memcpy(six->sin6_addr.s6_addr, kMapped, 12);
  memcpy(six->sin6_addr.s6_addr + 12, &four.sin_addr, 4);
  *length = sizeof *six;
}

bool isAnyAddress(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

std::string formatAddress(const sockaddr_storage& address, uint16_t* port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    *port = ntohs(four.sin_port);
    return text;
  }
  auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  *port = ntohs(six.sin6_port);
  if (memcmp(six.sin6_addr.s6_addr, kMapped, 12) == 0) {
    inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text, sizeof text);
    return text;
  }
  inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  std::string result = text;
  char name[IF_NAMESIZE];
  if (six.sin6_scope_id) {
    result += '%';
    result += if_indextoname(six.sin6_scope_id, name) ? name : std::to_string(six.sin6_scope_id);
  }
  return result;
}

void writeRemote(const sockaddr_storage& address, uint8_t* record) {
  memset(record, 0, kRemoteBytes);
  uint16_t port;
  if (address.ss_family == AF_INET) {
    auto& four = reinterpret_cast<const sockaddr_in&>(address);
    record[0] = 4;
    port = ntohs(four.sin_port);
    memcpy(record + 2, &port, 2);
    memcpy(record + 8, &four.sin_addr, 4);
  } else if (address.ss_family == AF_INET6) {
    auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    port = ntohs(six.sin6_port);
    memcpy(record + 2, &port, 2);
    if (memcmp(six.sin6_addr.s6_addr, kMapped, 12) == 0) {
      record[0] = 4;
      memcpy(record + 8, six.sin6_addr.s6_addr + 12, 4);
    } else {
      record[0] = 6;
      memcpy(record + 4, &six.sin6_scope_id, 4);
      memcpy(record + 8, six.sin6_addr.s6_addr, 16);
    }
  }
}

socklen_t readRemote(const uint8_t* record, int family, sockaddr_storage* out) {
  uint16_t port;
  memcpy(&port, record + 2, 2);
  if (record[0] == 4 && family == AF_INET) {
    auto* four = reinterpret_cast<sockaddr_in*>(out);
    memset(four, 0, sizeof *four);
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    memcpy(&four->sin_addr, record + 8, 4);
    return sizeof *four;
  }
  if ((record[0] == 4 || record[0] == 6) && family == AF_INET6) {
    auto* six = reinterpret_cast<sockaddr_in6*>(out);
    memset(six, 0, sizeof *six);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    if (record[0] == 4) {
      memcpy(six->sin6_addr.s6_addr, kMapped, 12);
      memcpy(six->sin6_addr.s6_addr + 12, record + 8, 4);
    } else {
      memcpy(&six->sin6_scope_id, record + 4, 4);
      memcpy(six->sin6_addr.s6_addr, record + 8, 16);
    }
    return sizeof *six;
  }
  return 0;
}

bool sameRemote(const uint8_t* left, const uint8_t* right) {
  if (left[0] != right[0] || memcmp(left + 2, right + 2, 2) != 0) return false;
  if (left[0] == 4) return memcmp(left + 8, right + 8, 4) == 0;
  return memcmp(left + 4, right + 4, 20) == 0;
}

}  // namespace penstock
