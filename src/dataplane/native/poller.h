/** Waiting for descriptors (epoll) and for other threads (eventfd). */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value eventOpen(napi_env env, napi_callback_info info);
napi_value eventSignal(napi_env env, napi_callback_info info);
napi_value eventClear(napi_env env, napi_callback_info info);
napi_value pollerOpen(napi_env env, napi_callback_info info);
napi_value pollerAdd(napi_env env, napi_callback_info info);
napi_value pollerRemove(napi_env env, napi_callback_info info);
napi_value pollerWatchWrite(napi_env env, napi_callback_info info);
napi_value pollerWatchRead(napi_env env, napi_callback_info info);
napi_value pollerWait(napi_env env, napi_callback_info info);

}  // namespace penstock
