/** Which backend does authenticated encryption: the choice for the process, and the calls from JavaScript about it. */
#include "aead_backend.h"

#include <string.h>

#include <atomic>

#include "arguments.h"

namespace penstock {

bool AeadKey::wipe(const AeadMessage& message) {
  memset(message.text, 0, message.bytes);
  return false;
}

/** Fastest first; the last one can always be used. */
static const AeadBackend* const backends[] = {&avx512Aead, &ipsecMbAead, &opensslAead};

/** Null: the fastest. */
static std::atomic<const AeadBackend*> chosen{nullptr};

const AeadBackend& aeadBackendInUse() {
  if (const AeadBackend* backend = chosen.load(std::memory_order_relaxed)) return *backend;
  const AeadBackend* const* first = backends;
  while ((*first)->obstacle()) first++;
  return **first;
}

napi_value aeadBackends(napi_env env, napi_callback_info) {
  napi_value list = nullptr;
  napi_create_array(env, &list);
  uint32_t length = 0;
  for (const AeadBackend* backend : backends) {
    napi_value entry = nullptr;
    napi_create_object(env, &entry);
    napi_set_named_property(env, entry, "name", toString(env, backend->name));
    napi_set_named_property(env, entry, "version", toString(env, backend->version()));
    if (const AeadObstacle* obstacle = backend->obstacle()) {
      napi_value told = nullptr;
      napi_create_object(env, &told);
      napi_set_named_property(env, told, "code", toString(env, obstacle->code));
      napi_set_named_property(env, told, "text", toString(env, obstacle->text));
      napi_set_named_property(env, entry, "obstacle", told);
    }
    napi_set_element(env, list, length++, entry);
  }
  return list;
}

napi_value aeadBackend(napi_env env, napi_callback_info) { return toString(env, aeadBackendInUse().name); }

napi_value aeadUse(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "aeadUse", 1);
  const std::string name = arguments.string(0, "backend", 63);
  if (arguments.failed()) return nullptr;
  if (name == "auto") {
    chosen.store(nullptr);
    return nullptr;
  }
  for (const AeadBackend* backend : backends) {
    if (name != backend->name) continue;
    if (const AeadObstacle* obstacle = backend->obstacle()) {
      throwRange(env, "aeadUse: %s cannot be used: %s", backend->name, obstacle->text.c_str());
    } else {
      chosen.store(backend);
    }
    return nullptr;
  }
  throwRange(env, "aeadUse: there is no backend \"%s\"", name.c_str());
  return nullptr;
}

}  // namespace penstock
