/** Finding and checking libIPSec_MB: what is not exactly what was expected is not used. */
#include "ipsec_mb.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utility>

namespace penstock {

#if defined(__x86_64__)

/** Of versions 2 and 1. */
static constexpr const char* kLibraries[] = {"libIPSec_MB.so.2", "libIPSec_MB.so.1"};

__attribute__((format(printf, 2, 3))) static std::unique_ptr<AeadObstacle> obstacle(const char* code, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return std::make_unique<AeadObstacle>(AeadObstacle{code, text});
}

static ImbManager* (*allocate)(uint64_t flags);
static void (*initialise)(ImbManager*, int32_t* architecture);
static int (*errorOf)(ImbManager*);
static void (*release)(ImbManager*);

template <class Function>
static bool find(void* library, const char* name, Function* to) {
  *to = reinterpret_cast<Function>(dlsym(library, name));
  return *to != nullptr;
}

static ImbManager* openManager() {
  ImbManager* manager = allocate(0);
  if (!manager) return nullptr;
  initialise(manager, nullptr);
  if (errorOf(manager) == 0) return manager;
  release(manager);
  return nullptr;
}

/** Whether every function that is called through the table lies in the library itself. */
static bool pointsInto(const ImbManager& table, const void* inLibrary) {
  const void* const called[] = {
      reinterpret_cast<void*>(table.getNextJob),    reinterpret_cast<void*>(table.submitJobUnchecked),
      reinterpret_cast<void*>(table.flushJob),      reinterpret_cast<void*>(table.gcm128Encrypt),
      reinterpret_cast<void*>(table.gcm256Encrypt), reinterpret_cast<void*>(table.gcm128Decrypt),
      reinterpret_cast<void*>(table.gcm256Decrypt), reinterpret_cast<void*>(table.gcm128Prepare),
      reinterpret_cast<void*>(table.gcm256Prepare),
  };
  Dl_info library, place;
  if (dladdr(inLibrary, &library) == 0) return false;
  for (const void* function : called) {
    if (dladdr(function, &place) == 0 || place.dli_fbase != library.dli_fbase) return false;
  }
  return true;
}

/** The library in the file `name`. */
static IpsecMb load(const char* name) {
  IpsecMb found;
  // Never closed: keys and managers point into it until the process ends.
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    found.obstacle = obstacle("missing", "%s", dlerror());
    return found;
  }
  unsigned (*versionNumber)();
  const char* (*versionText)();
  size_t (*managerBytes)();
  if (!find(library, "imb_get_version", &versionNumber) || !find(library, "imb_get_version_str", &versionText)) {
    found.obstacle = obstacle("version", "%s does not say its version", name);
    return found;
  }
  found.version = versionText();
  const unsigned version = versionNumber();
  if (version < kImbFirst || version >= kImbEnd) {
    found.obstacle = obstacle("version", "%s is version %s; 1.1 to 2.0 are known", name, versionText());
    return found;
  }
  if (!find(library, "alloc_mb_mgr", &allocate) || !find(library, "init_mb_mgr_auto", &initialise) ||
      !find(library, "imb_get_errno", &errorOf) || !find(library, "free_mb_mgr", &release) ||
      !find(library, "imb_get_mb_mgr_size", &managerBytes) || managerBytes() < sizeof(ImbManager)) {
    found.obstacle = obstacle("version", "%s %s lacks functions that its version has", name, versionText());
    return found;
  }
  ImbManager* manager = openManager();
  if (!manager) {
    found.obstacle = obstacle("failed", "%s %s could not be initialised", name, versionText());
    return found;
  }
  constexpr uint64_t cpu = kImbAes | kImbCarrylessMultiply | kImbAvx2;
  if ((manager->features & cpu) != cpu) {
    found.obstacle = obstacle("cpu", "this CPU has no AES, PCLMULQDQ or AVX2, without which OpenSSL is faster");
  } else if (!(manager->features & kImbSafeData)) {
    found.obstacle = obstacle("version", "%s %s was built without SAFE_DATA: it leaves keys in memory", name, versionText());
  } else if (!pointsInto(*manager, reinterpret_cast<void*>(versionNumber))) {
    found.obstacle = obstacle("version", "the table of functions of %s %s is not where its version has it", name, versionText());
  }
  if (found.obstacle) {
    release(manager);
    return found;
  }
  found.functions = manager;
  found.open = openManager;
  found.close = release;
  return found;
}

IpsecMb loadIpsecMb() {
  IpsecMb best;
  for (const char* name : kLibraries) {
    IpsecMb found = load(name);
    if (!found.obstacle) return found;
    // What is there says more than that another is not; where none is, that is said of each.
    const bool isMissing = strcmp(found.obstacle->code, "missing") == 0;
    if (!best.obstacle || (!isMissing && strcmp(best.obstacle->code, "missing") == 0)) {
      best = std::move(found);
    } else if (isMissing && strcmp(best.obstacle->code, "missing") == 0) {
      best.obstacle->text += "; " + found.obstacle->text;
    }
  }
  return best;
}

#else

IpsecMb loadIpsecMb() {
  IpsecMb found;
  found.obstacle = std::make_unique<AeadObstacle>(AeadObstacle{"cpu", "it is used on x86-64 only"});
  return found;
}

#endif

}  // namespace penstock
