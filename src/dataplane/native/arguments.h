/** Reading and checking the arguments of a call from JavaScript, and throwing what is wrong with them. */
#pragma once
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

#include <string>

namespace penstock {

struct State;

/** A typed array's elements, valid during the call only. */
template <class T>
struct Span {
  T* data = nullptr;
  size_t length = 0;
};

void throwType(napi_env env, const char* format, ...) __attribute__((format(printf, 2, 3)));
void throwRange(napi_env env, const char* format, ...) __attribute__((format(printf, 2, 3)));
/** Throws an Error with `code`, `errno` (negative, as Node does) and `syscall`; the message names `subject`. */
void throwSystem(napi_env env, int error, const char* syscall, const std::string& subject);

/**
 * The arguments of one call. Every getter checks type and range and throws a JavaScript exception that names the function
 * and the argument; after the first failure the others do nothing and `failed()` is true: the caller returns nullptr.
 */
class Arguments {
 public:
  Arguments(napi_env env, napi_callback_info info, const char* function, size_t count);

  napi_env env() const { return env_; }
  State& state() const { return *state_; }
  const char* function() const { return function_; }
  /** How many arguments there are. */
  size_t given() const { return given_; }
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  napi_value raw(size_t index) const { return values_[index]; }

  double number(size_t index, const char* name) {
    double value = 0;
    if (failed_) return 0;
    if (napi_get_value_double(env_, values_[index], &value) == napi_ok && value == value) return value;
    type(name, "a number");
    return 0;
  }
  /** A whole number in [low, high]. */
  int64_t integer(size_t index, const char* name, int64_t low, int64_t high) {
    const double value = number(index, name);
    if (failed_) return low;
    // Compared first: a conversion is defined for what fits only.
    if (value >= static_cast<double>(low) && value <= static_cast<double>(high)) {
      const auto whole = static_cast<int64_t>(value);
      if (static_cast<double>(whole) == value) return whole;
    }
    range(name, low, high, value);
    return low;
  }
  /** A u32. */
  uint32_t word(size_t index, const char* name) { return static_cast<uint32_t>(integer(index, name, 0, 0xffffffffll)); }
  bool boolean(size_t index, const char* name);
  /** Without NUL, at most `longest` bytes of UTF-8. */
  std::string string(size_t index, const char* name, size_t longest);
  bool isNull(size_t index) const;

  Span<uint8_t> bytes(size_t index, const char* name, size_t atLeast);
  Span<int32_t> int32s(size_t index, const char* name, size_t atLeast);
  Span<double> float64s(size_t index, const char* name, size_t atLeast);

  /** Properties of an options object; `has` is false for undefined and null. */
  bool has(napi_value object, const char* name);
  napi_value property(napi_value object, const char* name);
  double propertyNumber(napi_value object, const char* name, double low, double high);
  std::string propertyString(napi_value object, const char* name, size_t longest);
  bool propertyBoolean(napi_value object, const char* name);

  void type(const char* name, const char* wanted);

 private:
  std::string text(napi_value value, const char* name, size_t longest);
  void range(const char* name, int64_t low, int64_t high, double value);
  void* typedArray(size_t index, const char* name, napi_typedarray_type type, const char* wanted, size_t atLeast,
                   size_t* length);

  static constexpr size_t kMaxArguments = 11;
  size_t given_ = 0;
  napi_env env_;
  State* state_ = nullptr;
  const char* function_;
  bool failed_ = false;
  napi_value values_[kMaxArguments];
};

inline napi_value toNumber(napi_env env, double value) {
  napi_value result = nullptr;
  napi_create_double(env, value, &result);
  return result;
}

inline napi_value toInteger(napi_env env, int32_t value) {
  napi_value result = nullptr;
  napi_create_int32(env, value, &result);
  return result;
}

inline napi_value toBoolean(napi_env env, bool value) {
  napi_value result = nullptr;
  napi_get_boolean(env, value, &result);
  return result;
}

napi_value toString(napi_env env, const std::string& value);

/** Adds a function of `state` to the addon's exports. */
struct Export {
  const char* name;
  napi_callback function;
};

}  // namespace penstock
