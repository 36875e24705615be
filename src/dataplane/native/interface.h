/** Giving a network interface its mtu, address and routes through rtnetlink. */
#pragma once
#include <stdint.h>

#include <string>

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

}  // namespace penstock
