/** The headers of block codes' packets. */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value blockHeaders(napi_env env, napi_callback_info info);

}  // namespace penstock
