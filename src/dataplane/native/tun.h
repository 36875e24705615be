/** TUN and TAP devices: opening them, and taking and sending batches of packets. */
#pragma once
#include <node_api.h>

namespace penstock {

napi_value tunOpen(napi_env env, napi_callback_info info);
napi_value tunState(napi_env env, napi_callback_info info);
napi_value tunKeep(napi_env env, napi_callback_info info);
napi_value tunDropped(napi_env env, napi_callback_info info);
napi_value tunReceive(napi_env env, napi_callback_info info);
napi_value tunSend(napi_env env, napi_callback_info info);

}  // namespace penstock
