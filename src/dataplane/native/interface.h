/** Giving a network interface its mtu, address and routes through rtnetlink. */
#pragma once
#include <stdint.h>
#include <sys/socket.h>

#include <string>
#include <vector>

namespace penstock {

struct InterfaceFailure {
  int error = 0;
  const char* syscall = "";
  std::string subject;
};

/** What an interface was given and is to keep; `index` is the kernel's number of it, which stays when its name is changed. */
struct KeptInterface {
  int index = 0;
  sockaddr_storage address{};
  int prefix = 0;
  bool defaultRoute = false;
};

/**
 * Sets mtu and address, brings the interface up and, when asked, makes it the default route of the address's family. `error` is
 * 0 on success, and then `kept` says what was given.
 */
InterfaceFailure configureInterface(const std::string& name, const std::string& address, int prefix, uint32_t mtu,
                                    bool defaultRoute, KeptInterface* kept);

/**
 * Gives a TAP interface, whose open /dev/net/tun is `device`, the hardware address that it has each time it is made under this name and with this address in
 * this network namespace until the machine is started anew: neighbours that know it reach the interface also after a restart of what made it, where
 * one drawn at random would be looked for in vain until their entry is out of date, a minute for Linux. Where it cannot be made it stays the kernel's.
 */
void giveLastingHardwareAddress(int device, const std::string& name, const std::string& address);

/** What has become of an address or a route that is kept; negative: the errno with which putting it back was refused. */
enum Kept { kThere = 0, kPutBack = 1, kPutBehind = 2 };

struct Upkeep {
  /** Something could be found out. */
  bool known = false;
  /** It is in the network namespace of this process. */
  bool present = false;
  bool up = false;
  int address = kThere;
  /** `kPutBehind`: there is a route of somebody else's with the same metric. */
  int defaultRoute = kThere;
};

/**
 * Looks, and gives the interface again what it lacks while it is up: one that is set down loses its routes, and its IPv6 addresses. `device`: its open
 * /dev/net/tun. `kept.index` becomes that of now: one that was in another network namespace may come back under another.
 */
Upkeep keepInterface(int device, const std::string& name, KeptInterface* kept);

/**
 * How many packets that this machine sent through the interface behind an open /dev/net/tun nobody has read: its statistics have them as dropped under
 * TX. Negative where that is not known, in another network namespace for one. `index`: the number that it had when last looked. Waits for no lock of the
 * kernel's: what netlink says of an interface waits for whoever changes any.
 */
double droppedAtInterface(int device, const std::string& name, int index);

/** Name of the interface through which UDP datagrams from `own` to `peer`, of one family, leave this machine by its routes; empty: not known, or they stay. */
std::string udpLeavesThrough(const sockaddr_storage& own, const sockaddr_storage& peer);

struct InterfaceState {
  /** The errno of why nothing could be found out, else 0. */
  int error = 0;
  uint32_t mtu = 0;
  bool up = false;
  std::vector<std::string> addresses;
};

/** What the interface is like now. */
InterfaceState interfaceState(const std::string& name);

}  // namespace penstock
