/** Socket addresses between text, the kernel's form and a packet's remote address record. */
#pragma once
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include <string>

namespace penstock {

/** Reads a numeric address (IPv6 with an optional %scope); false when it is none. `length` gets the structure's size. */
bool parseAddress(const std::string& text, uint16_t port, sockaddr_storage* out, socklen_t* length);
/** ::ffff:a.b.c.d of an IPv4 address. */
void mapToV6(sockaddr_storage* address, socklen_t* length);
/** 0.0.0.0 or ::. */
bool isAnyAddress(const sockaddr_storage& address);
/** The numeric address (v4-mapped ones as IPv4) and port. */
std::string formatAddress(const sockaddr_storage& address, uint16_t* port);

/** Writes the 32-byte record of native.ts (`REMOTE_BYTES`); v4-mapped addresses become family 4. */
void writeRemote(const sockaddr_storage& address, uint8_t* record);
/** Reads a record for a socket of `family`; the structure's size, or 0 when there is no address the socket can send to. */
socklen_t readRemote(const uint8_t* record, int family, sockaddr_storage* out);
/** Whether two records name the same address and port. */
bool sameRemote(const uint8_t* left, const uint8_t* right);

}  // namespace penstock
