/** The process-wide table of open sockets, devices, events, pollers and cipher contexts, their handles and their owners. */
#include "descriptors.h"

#include <errno.h>
#include <unistd.h>

#include <deque>
#include <unordered_map>
#include <unordered_set>

namespace penstock {

// A handle is a small positive integer: generation << 14 | index. An index whose generations are used up is never given out
// again, so a stale handle can never name somebody else's descriptor.
static constexpr int kIndexBits = 14;
static constexpr uint32_t kEntries = 1u << kIndexBits;
static constexpr uint32_t kLastGeneration = (1u << (31 - kIndexBits)) - 1;

// state: generation (high 32 bits; 0 while the entry was never used, and in no handle), closing flag, number of threads inside. Entering is one compare-and-swap, no lock.
static constexpr uint64_t kClosing = 1ull << 31;
static constexpr uint64_t kInside = kClosing - 1;

struct Entry {
  std::atomic<uint64_t> state{0};
  Descriptor* object = nullptr;
};

static Entry entries[kEntries];
static std::mutex tableMutex;
static std::deque<uint32_t> freeEntries;
static uint32_t usedEntries = 0;
static std::unordered_map<uint32_t, std::unordered_set<int32_t>> owners;
static uint32_t nextOwner = 1;
static std::atomic<int32_t> open_{0};

std::mutex watchMutex;

static const char* kindName(Kind kind) {
  switch (kind) {
    case Kind::event: return "an event";
    case Kind::poller: return "a poller";
    case Kind::udp: return "a UDP socket";
    case Kind::tun: return "a TUN or TAP device";
    case Kind::routes: return "a watch of routes";
    case Kind::listener: return "a listener";
    case Kind::connection: return "a connection";
    case Kind::aead: return "an AEAD context";
    case Kind::chacha: return "a ChaCha context";
    case Kind::lock: return "a file lock";
    default: return "a descriptor";
  }
}

Descriptor::~Descriptor() {
  if (fd >= 0) ::close(fd);
}

static void unwatch(Descriptor* descriptor) {
  std::lock_guard<std::mutex> lock(watchMutex);
  if (!descriptor->watches) return;
  auto& list = descriptor->watches->list;
  for (size_t i = 0; i < list.size(); i++) {
    if (list[i].handle != descriptor->handle) continue;
    if (list[i].spilled) descriptor->watches->spilled.fetch_sub(1);
    list.erase(list.begin() + static_cast<long>(i));
    break;
  }
  descriptor->watches.reset();
}

void setSpilled(Descriptor* descriptor, bool spilled) {
  if (descriptor->spilled == spilled) return;
  std::lock_guard<std::mutex> lock(watchMutex);
  descriptor->spilled = spilled;
  if (!descriptor->watches) return;
  for (auto& watch : descriptor->watches->list) {
    if (watch.handle != descriptor->handle || watch.spilled == spilled) continue;
    watch.spilled = spilled;
    descriptor->watches->spilled.fetch_add(spilled ? 1 : -1);
  }
}

static void destroy(uint32_t index) {
  Entry& entry = entries[index];
  Descriptor* object = entry.object;
  unwatch(object);
  {
    std::lock_guard<std::mutex> lock(tableMutex);
    auto owner = owners.find(object->owner);
    if (owner != owners.end()) owner->second.erase(object->handle);
    entry.object = nullptr;
    const uint64_t generation = entry.state.load() >> 32;
    // Generation stays, the closing flag too: every handle given out so far is stale.
    entry.state.store((generation << 32) | kClosing, std::memory_order_release);
    if (generation < kLastGeneration) freeEntries.push_back(index);
  }
  delete object;
  open_.fetch_sub(1);
}

static bool closeOnce(int32_t handle) {
  if (handle <= 0) return false;
  const uint32_t index = static_cast<uint32_t>(handle) & (kEntries - 1);
  const uint64_t generation = static_cast<uint64_t>(handle) >> kIndexBits;
  Entry& entry = entries[index];
  uint64_t state = entry.state.load(std::memory_order_acquire);
  do {
    if (generation == 0 || state >> 32 != generation || (state & kClosing)) return false;
  } while (!entry.state.compare_exchange_weak(state, state | kClosing, std::memory_order_acq_rel));
  if ((state & kInside) == 0) destroy(index);
  return true;
}

void leave(int32_t handle) {
  const uint32_t index = static_cast<uint32_t>(handle) & (kEntries - 1);
  const uint64_t before = entries[index].state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kClosing) && (before & kInside) == 1) destroy(index);
}

Descriptor* enter(Arguments& arguments, size_t position, const char* name, Kind kind, bool alone) {
  const double value = arguments.number(position, name);
  if (arguments.failed()) return nullptr;
  if (value > 0 && value <= 2147483647.0 && value == static_cast<int32_t>(value)) {
    const uint32_t handle = static_cast<uint32_t>(value);
    Entry& entry = entries[handle & (kEntries - 1)];
    const uint64_t generation = handle >> kIndexBits;
    uint64_t state = entry.state.load(std::memory_order_acquire);
    while (generation != 0 && state >> 32 == generation && !(state & kClosing)) {
      if (alone && (state & kInside) != 0) {
        throwType(arguments.env(), "%s: %s %u is in use by another thread", arguments.function(), name, handle);
        arguments.fail();
        return nullptr;
      }
      if (!entry.state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
      Descriptor* object = entry.object;
      if (kind == Kind::any || object->kind == kind) return object;
      throwType(arguments.env(), "%s: %s %u is %s, not %s", arguments.function(), name, handle, kindName(object->kind),
                kindName(kind));
      arguments.fail();
      leave(static_cast<int32_t>(handle));
      return nullptr;
    }
  }
  throwRange(arguments.env(), "%s: %s %.17g is closed or was never opened", arguments.function(), name, value);
  arguments.fail();
  return nullptr;
}

uint32_t ownerArgument(Arguments& arguments, size_t index) {
  const int64_t owner = arguments.integer(index, "owner", 1, 0x7fffffff);
  if (arguments.failed()) return 0;
  std::lock_guard<std::mutex> lock(tableMutex);
  if (owners.count(static_cast<uint32_t>(owner))) return static_cast<uint32_t>(owner);
  throwRange(arguments.env(), "%s: owner %lld was released or never opened", arguments.function(),
             static_cast<long long>(owner));
  arguments.fail();
  return 0;
}

napi_value adopt(Arguments& arguments, uint32_t owner, std::unique_ptr<Descriptor> descriptor) {
  std::unique_lock<std::mutex> lock(tableMutex);
  auto found = owners.find(owner);
  if (found == owners.end()) {
    lock.unlock();
    throwRange(arguments.env(), "%s: owner %u was released meanwhile", arguments.function(), owner);
    return nullptr;
  }
  uint32_t index;
  if (!freeEntries.empty()) {
    index = freeEntries.front();
    freeEntries.pop_front();
  } else if (usedEntries < kEntries) {
    index = usedEntries++;
  } else {
    lock.unlock();
    throwSystem(arguments.env(), EMFILE, arguments.function(), "descriptor table");
    return nullptr;
  }
  Entry& entry = entries[index];
  const uint64_t generation = (entry.state.load() >> 32) + 1;
  Descriptor* object = descriptor.release();
  object->owner = owner;
  object->handle = static_cast<int32_t>(generation << kIndexBits | index);
  found->second.insert(object->handle);
  entry.object = object;
  entry.state.store(generation << 32, std::memory_order_release);
  open_.fetch_add(1);
  const int32_t handle = object->handle;
  lock.unlock();
  return toInteger(arguments.env(), handle);
}

napi_value ownerOpen(napi_env env, napi_callback_info) {
  std::lock_guard<std::mutex> lock(tableMutex);
  const uint32_t owner = nextOwner++;
  owners[owner];
  return toInteger(env, static_cast<int32_t>(owner));
}

napi_value ownerRelease(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "ownerRelease", 1);
  const int64_t owner = arguments.integer(0, "owner", 1, 0x7fffffff);
  if (arguments.failed()) return nullptr;
  std::vector<int32_t> handles;
  {
    std::lock_guard<std::mutex> lock(tableMutex);
    if (owner >= nextOwner) {
      throwRange(env, "ownerRelease: owner %lld was never opened", static_cast<long long>(owner));
      return nullptr;
    }
    auto found = owners.find(static_cast<uint32_t>(owner));
    if (found == owners.end()) return nullptr;
    handles.assign(found->second.begin(), found->second.end());
    owners.erase(found);
  }
  for (int32_t handle : handles) closeOnce(handle);
  return nullptr;
}

napi_value openDescriptors(napi_env env, napi_callback_info) { return toInteger(env, open_.load()); }

napi_value closeHandle(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "close", 1);
  const double handle = arguments.number(0, "handle");
  if (arguments.failed()) return nullptr;
  if (!(handle > 0 && handle <= 2147483647.0) || handle != static_cast<int32_t>(handle) ||
      !closeOnce(static_cast<int32_t>(handle))) {
    throwRange(env, "close: handle %.17g is closed or was never opened", handle);
  }
  return nullptr;
}

}  // namespace penstock
