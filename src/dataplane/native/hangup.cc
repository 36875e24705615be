/**
 * Hearing that whoever reads a pipe or socket has gone, without writing into it: epoll tells of EPOLLERR and EPOLLHUP unasked, and the
 * loop of the calling thread watches the epoll. The descriptor itself is left alone: the loop would make it non-blocking, for all processes
 * that share it.
 */
#include "hangup.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

namespace penstock {

struct Watch {
  napi_env env;
  napi_ref callback;
  napi_async_cleanup_hook_handle cleanup;
  int epoll;
  bool closing;
  uv_poll_t poll;
};

static void finish(Watch* watch) {
  if (watch->closing) return;
  watch->closing = true;
  uv_poll_stop(&watch->poll);
  uv_close(reinterpret_cast<uv_handle_t*>(&watch->poll), [](uv_handle_t* handle) {
    auto* watch = static_cast<Watch*>(handle->data);
    close(watch->epoll);
    // Last: the environment may be waiting for nothing else.
    const napi_async_cleanup_hook_handle cleanup = watch->cleanup;
    delete watch;
    napi_remove_async_cleanup_hook(cleanup);
  });
}

/** The reader is gone, once. */
static void gone(uv_poll_t* poll, int, int) {
  auto* watch = static_cast<Watch*>(poll->data);
  const napi_env env = watch->env;
  napi_handle_scope scope;
  if (watch->closing || napi_open_handle_scope(env, &scope) != napi_ok) return;
  napi_value callback = nullptr;
  napi_value global = nullptr;
  napi_get_reference_value(env, watch->callback, &callback);
  napi_get_global(env, &global);
  napi_delete_reference(env, watch->callback);
  finish(watch);
  // What it throws is an uncaught exception, as from any callback of the loop.
  if (napi_make_callback(env, nullptr, global, callback, 0, nullptr, nullptr) == napi_pending_exception) {
    napi_value error;
    if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}

napi_value watchHangup(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "watchHangup", 2);
  const int fd = static_cast<int>(arguments.integer(0, "fd", 0, INT_MAX));
  if (arguments.failed()) return nullptr;
  napi_valuetype type;
  if (napi_typeof(env, arguments.raw(1), &type) != napi_ok || type != napi_function) {
    arguments.type("callback", "a function");
    return nullptr;
  }
  struct stat status;
  if (fstat(fd, &status) < 0) {
    throwSystem(env, errno, "fstat", "descriptor " + std::to_string(fd));
    return nullptr;
  }
  const bool has = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  if (!has) return toBoolean(env, false);

  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
    const int error = errno;
    if (epoll >= 0) close(epoll);
    throwSystem(env, error, "epoll_ctl", "descriptor " + std::to_string(fd));
    return nullptr;
  }
  uv_loop_t* loop = nullptr;
  auto* watch = new Watch{env, nullptr, nullptr, epoll, false, {}};
  watch->poll.data = watch;
  const int error = napi_get_uv_event_loop(env, &loop) == napi_ok ? uv_poll_init(loop, &watch->poll, epoll) : UV_EINVAL;
  if (error != 0) {
    close(epoll);
    delete watch;
    throwSystem(env, -error, "uv_poll_init", "descriptor " + std::to_string(fd));
    return nullptr;
  }
  napi_create_reference(env, arguments.raw(1), 1, &watch->callback);
  napi_add_async_cleanup_hook(
      env, [](napi_async_cleanup_hook_handle, void* data) { finish(static_cast<Watch*>(data)); }, watch, &watch->cleanup);
  uv_poll_start(&watch->poll, UV_READABLE, gone);
  uv_unref(reinterpret_cast<uv_handle_t*>(&watch->poll));
  return toBoolean(env, true);
}

}  // namespace penstock
