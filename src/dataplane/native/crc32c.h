/** CRC-32C (Castagnoli), as iSCSI and SCTP compute it (RFC 3720 appendix B.4, RFC 9260 appendix A). */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

namespace penstock {

/** The CRC of `bytes` bytes. */
uint32_t crcOf(const uint8_t* data, size_t bytes);

napi_value crc32c(napi_env env, napi_callback_info info);

}  // namespace penstock
