/** What Node.js has no call for: a kernel lock on a file, room for a file on its disk, whether it can be shared, and descriptors that no child gets. */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value closeOnExec(napi_env env, napi_callback_info info);
napi_value lockOpen(napi_env env, napi_callback_info info);
napi_value fileReserve(napi_env env, napi_callback_info info);
napi_value fileRequireShared(napi_env env, napi_callback_info info);

}  // namespace penstock
