/** Asking the resolver of the system, on a thread of its own for each name. */
#pragma once
#include "arguments.h"

namespace penstock {

napi_value hostAsk(napi_env env, napi_callback_info info);

}  // namespace penstock
