/** CRC-32C (Castagnoli): the SSE 4.2 instruction where the CPU has it, else a table. */
#include "crc32c.h"

#include <string.h>

#include "memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock {

struct CrcTable {
  uint32_t of[256];
  CrcTable() {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
      of[i] = crc;
    }
  }
};
static const CrcTable table;

static uint32_t byTable(uint32_t crc, const uint8_t* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) crc = crc >> 8 ^ table.of[(crc ^ data[i]) & 255];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t byInstruction(uint32_t seed, const uint8_t* data, size_t bytes) {
  uint64_t crc = seed;
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto short_ = static_cast<uint32_t>(crc);
  for (; bytes; bytes--) short_ = _mm_crc32_u8(short_, *data++);
  return short_;
}

static const bool hasInstruction = __builtin_cpu_supports("sse4.2");
static uint32_t compute(uint32_t crc, const uint8_t* data, size_t bytes) {
  return hasInstruction ? byInstruction(crc, data, bytes) : byTable(crc, data, bytes);
}
#else
static uint32_t compute(uint32_t crc, const uint8_t* data, size_t bytes) { return byTable(crc, data, bytes); }
#endif

uint32_t crcOf(const uint8_t* data, size_t bytes) { return ~compute(0xffffffffu, data, bytes); }

napi_value crc32c(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "crc32c", 3);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  const auto slab = static_cast<int64_t>(memory->bytes());
  const int64_t at = arguments.integer(1, "at", 0, slab);
  const int64_t bytes = arguments.integer(2, "bytes", 0, slab - at);
  if (arguments.failed()) return nullptr;
  return toNumber(env, crcOf(memory->data + at, static_cast<size_t>(bytes)));
}

}  // namespace penstock
