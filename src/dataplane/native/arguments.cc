/** Reading and checking the arguments of a call from JavaScript, and throwing what is wrong with them. */
#include "arguments.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

namespace penstock {

static bool pending(napi_env env) {
  bool is = false;
  napi_is_exception_pending(env, &is);
  return is;
}

void throwType(napi_env env, const char* format, ...) {
  if (pending(env)) return;
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", text);
}

void throwRange(napi_env env, const char* format, ...) {
  if (pending(env)) return;
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  napi_throw_range_error(env, "ERR_OUT_OF_RANGE", text);
}

/** Whether libuv has a name and words for an error, by which Node.js tells it as well: it has none for EDQUOT, ENOLCK or ESTALE. */
static bool isKnown(int error) {
  switch (-error) {
#define KNOWN(name, words) case UV_##name:
    UV_ERRNO_MAP(KNOWN)
#undef KNOWN
    return true;
  }
  return false;
}

static const char* nameOf(int error) {
#ifdef __GLIBC__
  const char* name = isKnown(error) ? nullptr : strerrorname_np(error);
  if (name) return name;
#endif
  return uv_err_name(-error);
}

static const char* wordsOf(int error) {
  return isKnown(error) ? uv_strerror(-error) : strerror(error);
}

void throwSystem(napi_env env, int error, const char* syscall, const std::string& subject) {
  if (pending(env)) return;
  const char* code = nameOf(error);
  const std::string message = std::string(syscall) + " " + code + " " + subject + ": " + wordsOf(error);
  napi_value failure = nullptr;
  napi_create_error(env, toString(env, code), toString(env, message), &failure);
  napi_set_named_property(env, failure, "errno", toInteger(env, -error));
  napi_set_named_property(env, failure, "syscall", toString(env, syscall));
  napi_throw(env, failure);
}

napi_value toString(napi_env env, const std::string& value) {
  napi_value result = nullptr;
  napi_create_string_utf8(env, value.data(), value.size(), &result);
  return result;
}

Arguments::Arguments(napi_env env, napi_callback_info info, const char* function, size_t count)
    : env_(env), function_(function) {
  size_t given = kMaxArguments;
  void* data = nullptr;
  napi_get_cb_info(env, info, &given, values_, nullptr, &data);
  state_ = static_cast<State*>(data);
  given_ = given;
  if (given < count) {
    throwType(env, "%s: %zu arguments needed, %zu given", function, count, given);
    failed_ = true;
  }
}

void Arguments::type(const char* name, const char* wanted) {
  if (!failed_) throwType(env_, "%s: %s must be %s", function_, name, wanted);
  failed_ = true;
}

void Arguments::range(const char* name, int64_t low, int64_t high, double value) {
  throwRange(env_, "%s: %s must be a whole number from %lld to %lld, not %.17g", function_, name,
             static_cast<long long>(low), static_cast<long long>(high), value);
  failed_ = true;
}

bool Arguments::boolean(size_t index, const char* name) {
  bool value = false;
  if (!failed_ && napi_get_value_bool(env_, values_[index], &value) != napi_ok) type(name, "a boolean");
  return value;
}

bool Arguments::isNull(size_t index) const {
  napi_valuetype kind = napi_undefined;
  napi_typeof(env_, values_[index], &kind);
  return kind == napi_null || kind == napi_undefined;
}

void* Arguments::typedArray(size_t index, const char* name, napi_typedarray_type type_, const char* wanted,
                            size_t atLeast, size_t* length) {
  *length = 0;
  if (failed_) return nullptr;
  napi_typedarray_type found;
  void* data = nullptr;
  if (napi_get_typedarray_info(env_, values_[index], &found, length, &data, nullptr, nullptr) != napi_ok ||
      found != type_) {
    *length = 0;
    type(name, wanted);
    return nullptr;
  }
  if (*length < atLeast) {
    throwRange(env_, "%s: %s has %zu elements, at least %zu are needed", function_, name, *length, atLeast);
    failed_ = true;
    return nullptr;
  }
  return data;
}

Span<uint8_t> Arguments::bytes(size_t index, const char* name, size_t atLeast) {
  Span<uint8_t> span;
  span.data =
      static_cast<uint8_t*>(typedArray(index, name, napi_uint8_array, "a Uint8Array", atLeast, &span.length));
  return span;
}

Span<int32_t> Arguments::int32s(size_t index, const char* name, size_t atLeast) {
  Span<int32_t> span;
  span.data =
      static_cast<int32_t*>(typedArray(index, name, napi_int32_array, "an Int32Array", atLeast, &span.length));
  return span;
}

Span<double> Arguments::float64s(size_t index, const char* name, size_t atLeast) {
  Span<double> span;
  span.data =
      static_cast<double*>(typedArray(index, name, napi_float64_array, "a Float64Array", atLeast, &span.length));
  return span;
}

napi_value Arguments::property(napi_value object, const char* name) {
  if (failed_) return nullptr;
  napi_valuetype kind = napi_undefined;
  napi_typeof(env_, object, &kind);
  napi_value value = nullptr;
  if (kind != napi_object || napi_get_named_property(env_, object, name, &value) != napi_ok) {
    type(name, "a property of an object");
    return nullptr;
  }
  return value;
}

bool Arguments::has(napi_value object, const char* name) {
  napi_value value = property(object, name);
  if (failed_) return false;
  napi_valuetype kind = napi_undefined;
  napi_typeof(env_, value, &kind);
  return kind != napi_undefined && kind != napi_null;
}

double Arguments::propertyNumber(napi_value object, const char* name, double low, double high) {
  napi_value value = property(object, name);
  if (failed_) return low;
  double number = 0;
  if (napi_get_value_double(env_, value, &number) != napi_ok) {
    type(name, "a number");
    return low;
  }
  if (!(number >= low && number <= high) || number != floor(number)) {
    throwRange(env_, "%s: %s must be a whole number from %.0f to %.0f, not %.17g", function_, name, low, high, number);
    failed_ = true;
    return low;
  }
  return number;
}

std::string Arguments::string(size_t index, const char* name, size_t longest) {
  return failed_ ? std::string() : text(values_[index], name, longest);
}

std::string Arguments::propertyString(napi_value object, const char* name, size_t longest) {
  napi_value value = property(object, name);
  return failed_ ? std::string() : text(value, name, longest);
}

std::string Arguments::text(napi_value value, const char* name, size_t longest) {
  size_t size = 0;
  if (napi_get_value_string_utf8(env_, value, nullptr, 0, &size) != napi_ok) {
    type(name, "a string");
    return {};
  }
  if (size > longest) {
    throwRange(env_, "%s: %s is longer than %zu bytes", function_, name, longest);
    failed_ = true;
    return {};
  }
  std::string text(size, '\0');
  napi_get_value_string_utf8(env_, value, &text[0], size + 1, &size);
  if (text.find('\0') != std::string::npos) {
    type(name, "a string without NUL");
    return {};
  }
  return text;
}

bool Arguments::propertyBoolean(napi_value object, const char* name) {
  napi_value value = property(object, name);
  bool is = false;
  if (!failed_ && napi_get_value_bool(env_, value, &is) != napi_ok) type(name, "a boolean");
  return is;
}

}  // namespace penstock
