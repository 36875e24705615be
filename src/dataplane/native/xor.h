/** Sums of byte regions by exclusive or. */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value xorAdd(napi_env env, napi_callback_info info);

}  // namespace penstock
