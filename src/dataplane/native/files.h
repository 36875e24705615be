/** What Node.js has no call for: a kernel lock on a file, and room for a file on its disk. */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value lockOpen(napi_env env, napi_callback_info info);
napi_value fileReserve(napi_env env, napi_callback_info info);

}  // namespace penstock
