/** The calling thread's CPU: pinning it, having it alone, asking for it, its time; and the clocks. */
#pragma once
#include <node_api.h>

namespace penstock {

/** Remembers the CPUs the process had when the addon was first loaded. */
void rememberAffinity();
/** The calling thread, which ends, needs no CPU any more. */
void forgetAffinity();

napi_value now(napi_env env, napi_callback_info info);
napi_value unixTime(napi_env env, napi_callback_info info);
napi_value readClock(napi_env env, napi_callback_info info);
napi_value affinity(napi_env env, napi_callback_info info);
napi_value usableCpus(napi_env env, napi_callback_info info);
napi_value setAffinity(napi_env env, napi_callback_info info);
napi_value currentCpu(napi_env env, napi_callback_info info);
napi_value threadCpuTime(napi_env env, napi_callback_info info);

}  // namespace penstock
