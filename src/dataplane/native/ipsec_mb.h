/** Finding and checking libIPSec_MB. */
#pragma once
#include <string>

#include "aead_backend.h"
#include "ipsec_mb_abi.h"

namespace penstock {

/** The library as it was found, for the whole life of the process. */
struct IpsecMb {
  /** Null when it can be used. */
  std::unique_ptr<AeadObstacle> obstacle;
  std::string version;
  /** Its table of functions, and nothing else: it runs no jobs, so all threads may read it. */
  const ImbManager* functions = nullptr;
  /** A manager to run jobs with, for one thread at a time; null without memory. */
  ImbManager* (*open)() = nullptr;
  void (*close)(ImbManager*) = nullptr;
};

/** Loads the library and checks it: version, CPU, that its table points into it, errors of its own. Known vectors are the backend's. */
IpsecMb loadIpsecMb();

}  // namespace penstock
