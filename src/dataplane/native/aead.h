/** Authenticated encryption of packets in place, in batches. */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value aeadOpen(napi_env env, napi_callback_info info);
napi_value aeadSeal(napi_env env, napi_callback_info info);
napi_value aeadOpenPackets(napi_env env, napi_callback_info info);
napi_value aeadSealBytes(napi_env env, napi_callback_info info);
napi_value aeadOpenBytes(napi_env env, napi_callback_info info);

}  // namespace penstock
