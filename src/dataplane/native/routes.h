/** Hearing from the kernel that addresses, routes or interfaces of the machine have changed. */
#pragma once
#include "arguments.h"

namespace penstock {

napi_value routesOpen(napi_env env, napi_callback_info info);
napi_value routesClear(napi_env env, napi_callback_info info);

}  // namespace penstock
