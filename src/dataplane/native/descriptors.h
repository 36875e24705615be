/** The process-wide table of open sockets, devices, events, pollers and cipher contexts, their handles and their owners. */
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "arguments.h"

namespace penstock {

enum class Kind : uint8_t { any, event, poller, udp, tun, routes, listener, connection, aead, chacha, lock };

struct Watches;

/** What a handle stands for. Destroyed by the last thread that leaves it once it was closed. */
struct Descriptor {
  Descriptor(Kind kind, int fd) : kind(kind), fd(fd) {}
  virtual ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  const Kind kind;
  int fd;
  uint32_t owner = 0;
  int32_t handle = 0;
  /** The poller watching this, if any; guarded by `watchMutex`. */
  std::shared_ptr<Watches> watches;
  /** Packets were read from the kernel that the last receive had no place for: readable, whatever epoll says. */
  bool spilled = false;
};

/** What a poller watches; outlives the poller while a watched descriptor still points here. */
struct Watches {
  struct Watch {
    int32_t handle;
    int32_t token;
    bool read;
    bool write;
    bool spilled;
  };
  std::vector<Watch> list;
  std::atomic<int> spilled{0};
  bool closed = false;
};

extern std::mutex watchMutex;

/** Tells the poller that `descriptor` has (or no longer has) packets left over from its last receive. */
void setSpilled(Descriptor* descriptor, bool spilled);

/** Takes over `descriptor`; nullptr result and a thrown error when the owner is unknown or the table full. */
napi_value adopt(Arguments& arguments, uint32_t owner, std::unique_ptr<Descriptor> descriptor);

/** Checks an owner argument; 0 after throwing. */
uint32_t ownerArgument(Arguments& arguments, size_t index);

Descriptor* enter(Arguments& arguments, size_t index, const char* name, Kind kind, bool alone);
void leave(int32_t handle);

/**
 * Holds a descriptor for the duration of a call: it cannot be destroyed meanwhile. With `alone`, two threads never hold it at
 * the same time: the second throws.
 */
template <class T>
class Lease {
 public:
  Lease(Arguments& arguments, size_t index, const char* name, Kind kind, bool alone)
      : object_(static_cast<T*>(enter(arguments, index, name, kind, alone))) {}
  ~Lease() {
    if (object_) leave(object_->handle);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  explicit operator bool() const { return object_ != nullptr; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  T* object_;
};

napi_value ownerOpen(napi_env env, napi_callback_info info);
napi_value ownerRelease(napi_env env, napi_callback_info info);
napi_value openDescriptors(napi_env env, napi_callback_info info);
napi_value closeHandle(napi_env env, napi_callback_info info);

}  // namespace penstock
