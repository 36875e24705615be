/** Hearing that whoever reads a pipe or socket has gone, without writing into it. */
#pragma once
#include "arguments.h"

namespace penstock {

napi_value watchHangup(napi_env env, napi_callback_info info);

}  // namespace penstock
