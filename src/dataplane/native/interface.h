/** Giving a network interface its mtu, address and routes through rtnetlink. */
#pragma once
#include <stdint.h>

#include <string>
#include <vector>

namespace penstock {

struct InterfaceFailure {
  int error = 0;
  const char* syscall = "";
  std::string subject;
};

/**
 * Sets mtu and address, brings the interface up and, when asked, makes it the default route of the address's family. `error` is
 * 0 on success.
 */
InterfaceFailure configureInterface(const std::string& name, const std::string& address, int prefix, uint32_t mtu,
                                    bool defaultRoute);

struct InterfaceState {
  uint32_t mtu = 0;
  bool up = false;
  std::vector<std::string> addresses;
};

/** What the interface is like now; what cannot be found out stays as above. */
InterfaceState interfaceState(const std::string& name);

}  // namespace penstock
