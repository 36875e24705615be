/** Waiting for descriptors (epoll) and for other threads (eventfd). */
#include "poller.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "descriptors.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

namespace penstock {

struct Poller : Descriptor {
  explicit Poller(int fd) : Descriptor(Kind::poller, fd), watched(std::make_shared<Watches>()) {}
  ~Poller() override {
    std::lock_guard<std::mutex> lock(watchMutex);
    watched->closed = true;
  }
  std::shared_ptr<Watches> watched;
};

napi_value eventOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "eventOpen", 1);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) {
    throwSystem(env, errno, "eventfd", "event");
    return nullptr;
  }
  return adopt(arguments, owner, std::make_unique<Descriptor>(Kind::event, fd));
}

napi_value eventSignal(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "eventSignal", 1);
  Lease<Descriptor> event(arguments, 0, "event", Kind::event, false);
  if (!event) return nullptr;
  const uint64_t one = 1;
  // EAGAIN: the counter is full, so it is signalled already.
  if (write(event->fd, &one, sizeof one) < 0 && errno != EAGAIN) throwSystem(env, errno, "write", "event");
  return nullptr;
}

napi_value eventClear(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "eventClear", 1);
  Lease<Descriptor> event(arguments, 0, "event", Kind::event, false);
  if (!event) return nullptr;
  uint64_t count;
  if (read(event->fd, &count, sizeof count) < 0 && errno != EAGAIN) throwSystem(env, errno, "read", "event");
  return nullptr;
}

napi_value pollerOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "pollerOpen", 1);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) {
    throwSystem(env, errno, "epoll_create1", "poller");
    return nullptr;
  }
  return adopt(arguments, owner, std::make_unique<Poller>(fd));
}

static bool watchable(Arguments& arguments, const Descriptor& source) {
  switch (source.kind) {
    case Kind::event:
    case Kind::udp:
    case Kind::tun:
    case Kind::routes:
    case Kind::listener:
    case Kind::connection: return true;
    default: break;
  }
  throwType(arguments.env(), "%s: source %d must be a socket, a device or an event", arguments.function(), source.handle);
  return false;
}

napi_value pollerAdd(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "pollerAdd", 3);
  Lease<Poller> poller(arguments, 0, "poller", Kind::poller, false);
  Lease<Descriptor> source(arguments, 1, "source", Kind::any, false);
  const int64_t token = arguments.integer(2, "token", 0, INT_MAX);
  if (arguments.failed() || !watchable(arguments, *source)) return nullptr;
  std::lock_guard<std::mutex> lock(watchMutex);
  if (source->watches && !source->watches->closed) {
    throwSystem(env, EEXIST, "epoll_ctl", "source " + std::to_string(source->handle) + " (one poller each)");
    return nullptr;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(token);
  if (epoll_ctl(poller->fd, EPOLL_CTL_ADD, source->fd, &event) < 0) {
    throwSystem(env, errno, "epoll_ctl", "source " + std::to_string(source->handle));
    return nullptr;
  }
  poller->watched->list.push_back({source->handle, static_cast<int32_t>(token), true, false, source->spilled});
  if (source->spilled) poller->watched->spilled.fetch_add(1);
  source->watches = poller->watched;
  return nullptr;
}

static Watches::Watch* find(Arguments& arguments, Poller& poller, Descriptor& source) {
  if (source.watches == poller.watched) {
    for (auto& watch : poller.watched->list) {
      if (watch.handle == source.handle) return &watch;
    }
  }
  throwSystem(arguments.env(), ENOENT, "epoll_ctl", "source " + std::to_string(source.handle) + " is not watched");
  return nullptr;
}

napi_value pollerRemove(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "pollerRemove", 2);
  Lease<Poller> poller(arguments, 0, "poller", Kind::poller, false);
  Lease<Descriptor> source(arguments, 1, "source", Kind::any, false);
  if (arguments.failed()) return nullptr;
  std::lock_guard<std::mutex> lock(watchMutex);
  Watches::Watch* watch = find(arguments, *poller, *source);
  if (!watch) return nullptr;
  if (epoll_ctl(poller->fd, EPOLL_CTL_DEL, source->fd, nullptr) < 0) {
    throwSystem(env, errno, "epoll_ctl", "source " + std::to_string(source->handle));
    return nullptr;
  }
  if (watch->spilled) poller->watched->spilled.fetch_sub(1);
  auto& list = poller->watched->list;
  list.erase(list.begin() + (watch - list.data()));
  source->watches.reset();
  return nullptr;
}

/**
 * Reading or writing of a source is watched from now on, or no longer; with neither nothing is reported of it at all. It stays in the kernel's set,
 * which may have no room for it later (ENOMEM, ENOSPC).
 */
static napi_value watch(napi_env env, napi_callback_info info, const char* function, bool Watches::Watch::*what) {
  Arguments arguments(env, info, function, 3);
  Lease<Poller> poller(arguments, 0, "poller", Kind::poller, false);
  Lease<Descriptor> source(arguments, 1, "source", Kind::any, false);
  const bool on = arguments.boolean(2, "on");
  if (arguments.failed()) return nullptr;
  std::lock_guard<std::mutex> lock(watchMutex);
  Watches::Watch* watch = find(arguments, *poller, *source);
  if (!watch || watch->*what == on) return nullptr;
  Watches::Watch wanted = *watch;
  wanted.*what = on;
  epoll_event event{};
  event.events = (wanted.read ? EPOLLIN : 0u) | (wanted.write ? EPOLLOUT : 0u);
  event.data.u64 = static_cast<uint64_t>(watch->token);
  // Of a source in the set the kernel reports errors and the end of the peer, wanted or not: here once, which pollerWait passes over.
  if (event.events == 0) event.events = EPOLLONESHOT;
  if (epoll_ctl(poller->fd, EPOLL_CTL_MOD, source->fd, &event) < 0) {
    throwSystem(env, errno, "epoll_ctl", "source " + std::to_string(source->handle));
    return nullptr;
  }
  *watch = wanted;
  return nullptr;
}

napi_value pollerWatchWrite(napi_env env, napi_callback_info info) {
  return watch(env, info, "pollerWatchWrite", &Watches::Watch::write);
}

napi_value pollerWatchRead(napi_env env, napi_callback_info info) {
  return watch(env, info, "pollerWatchRead", &Watches::Watch::read);
}

/** epoll_wait with nanoseconds: epoll_pwait2 (Linux 5.11) or, without it, milliseconds rounded up. `timeout` < 0: for ever. */
static int wait(int fd, epoll_event* events, int most, int64_t timeout) {
  static std::atomic<bool> nanoseconds{true};
  if (timeout != 0 && nanoseconds.load(std::memory_order_relaxed)) {
    timespec time{static_cast<time_t>(timeout / 1000000000), static_cast<long>(timeout % 1000000000)};
    const long count = syscall(SYS_epoll_pwait2, fd, events, most, timeout < 0 ? nullptr : &time, nullptr, 0);
    // EPERM: what some containers' seccomp filters say to a call they do not know.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(count);
    nanoseconds.store(false, std::memory_order_relaxed);
  }
  int milliseconds = -1;
  if (timeout >= 0) {
    const int64_t rounded = (timeout + 999999) / 1000000;
    milliseconds = rounded > INT_MAX ? INT_MAX : static_cast<int>(rounded);
  }
  return epoll_wait(fd, events, most, milliseconds);
}

/** Takes out of `events` those of sources of which neither reading nor writing is watched; how many are left. */
static int withoutUnwatched(const Watches& watched, epoll_event* events, int count) {
  int left = 0;
  for (int i = 0; i < count; i++) {
    bool kept = (events[i].events & (EPOLLIN | EPOLLOUT)) != 0;
    if (!kept) {
      std::lock_guard<std::mutex> lock(watchMutex);
      for (const auto& watch : watched.list) {
        kept = kept || (watch.token == static_cast<int32_t>(events[i].data.u64) && (watch.read || watch.write));
      }
    }
    if (kept) events[left++] = events[i];
  }
  return left;
}

napi_value pollerWait(napi_env env, napi_callback_info info) {
  constexpr int kMaxReady = 256;
  Arguments arguments(env, info, "pollerWait", 3);
  Lease<Poller> poller(arguments, 0, "poller", Kind::poller, false);
  const double wanted = arguments.number(1, "timeoutNs");
  Span<int32_t> ready = arguments.int32s(2, "ready", 1);
  if (arguments.failed()) return nullptr;
  int64_t timeout = wanted < 0 ? -1 : wanted > 9e18 ? -1 : static_cast<int64_t>(ceil(wanted));
  bool spilled = poller->watched->spilled.load() > 0;
  if (spilled) {
    std::lock_guard<std::mutex> lock(watchMutex);
    spilled = false;
    for (const auto& watch : poller->watched->list) spilled = spilled || (watch.spilled && watch.read);
  }
  if (spilled) timeout = 0;
  if (timeout != 0) {
    // The default slack of 50 us is added to every sleep of a thread; a run asks for less by waiting here.
    static thread_local bool slack = false;
    if (!slack) slack = prctl(PR_SET_TIMERSLACK, 1) == 0;
  }

  epoll_event events[kMaxReady];
  const int most = ready.length < kMaxReady ? static_cast<int>(ready.length) : kMaxReady;
  const int64_t deadline = timeout > 0 ? monotonic() + timeout : 0;
  int count;
  for (;;) {
    count = wait(poller->fd, events, most, timeout);
    if (count >= 0) break;
    if (errno != EINTR) {
      throwSystem(env, errno, "epoll_wait", "poller");
      return nullptr;
    }
    if (timeout > 0) {
      timeout = deadline - monotonic();
      if (timeout < 0) timeout = 0;
    }
  }
  count = withoutUnwatched(*poller->watched, events, count);
  for (int i = 0; i < count; i++) {
    const int32_t token = static_cast<int32_t>(events[i].data.u64);
    ready.data[i] = events[i].events & ~static_cast<uint32_t>(EPOLLOUT) ? token : -token - 1;
  }
  if (spilled) {
    std::lock_guard<std::mutex> lock(watchMutex);
    for (const auto& watch : poller->watched->list) {
      if (!watch.spilled || !watch.read) continue;
      int at = 0;
      while (at < count && static_cast<int32_t>(events[at].data.u64) != watch.token) at++;
      if (at < count) {
        ready.data[at] = watch.token;
      } else if (count < most) {
        events[count].data.u64 = static_cast<uint64_t>(watch.token);
        ready.data[count++] = watch.token;
      }
    }
  }
  return toInteger(env, count);
}

}  // namespace penstock
