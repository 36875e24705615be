/** Adds regions of packet memory to others by exclusive or. */
#include "xor.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "xor_kernels.h"

namespace penstock {

static constexpr size_t kStep = 4;
static constexpr int64_t kMaxSteps = 65536;
/** Sources added to one sum at once: more would drive their own sums out of the first cache. */
static constexpr size_t kMaxPairs = 64;

/** Places in the slab and bytes, as they come from JavaScript. */
struct Step {
  int32_t target;
  int32_t filled;
  int32_t source;
  int32_t bytes;
};

/** Whether a sum of `filled` bytes is as long as what is added, or has nothing yet. */
static bool isWhole(const Step& step) { return step.filled == step.bytes || step.filled == 0; }

/**
 * Steps that come in twos, a source to one sum and to a second, the first sum being the same throughout, put into `pairs`: how many pairs. Two
 * regions there are the same or apart, which the caller has promised, so only equal places are looked for.
 */
static size_t pairsFrom(const Step* steps, size_t count, const Memory& memory, XorPair* pairs) {
  const Step& first = steps[0];
  size_t n = 0;
  while (n < kMaxPairs && 2 * n + 1 < count) {
    const Step& one = steps[2 * n];
    const Step& other = steps[2 * n + 1];
    if (one.target != first.target || one.bytes != first.bytes || (n > 0 ? one.filled != one.bytes : !isWhole(one))) break;
    if (other.source != one.source || other.bytes != one.bytes || !isWhole(other)) break;
    if (other.target == first.target || one.source == first.target) break;
    pairs[n++] = {memory.data + one.source, memory.data + other.target, other.filled == 0};
  }
  return n;
}

static void addSteps(const XorKernel& kernel, const Memory& memory, const Step* steps, size_t count) {
  XorPair pairs[kMaxPairs];
  for (size_t n = 0; n < count;) {
    const Step& step = steps[n];
    uint8_t* target = memory.data + step.target;
    const auto filled = static_cast<size_t>(step.filled), bytes = static_cast<size_t>(step.bytes);
    const size_t found = pairsFrom(steps + n, count - n, memory, pairs);
    if (found > 0) {
      kernel.addPairs(pairs, found, target, filled == 0, bytes);
      n += 2 * found;
      continue;
    }
    const uint8_t* source = memory.data + step.source;
    kernel.add(target, source, filled < bytes ? filled : bytes);
    if (bytes > filled) memmove(target + filled, source + filled, bytes - filled);
    n++;
  }
}

napi_value xorAdd(napi_env env, napi_callback_info info) {
  static const XorKernel& fastest = xorKernel(64);
  Arguments arguments(env, info, "xorAdd", 3);
  Memory* memory = memoryArgument(arguments, 0);
  const auto count = static_cast<size_t>(arguments.integer(2, "count", 0, kMaxSteps));
  Span<int32_t> words = arguments.int32s(1, "steps", count * kStep);
  if (arguments.failed()) return nullptr;
  const XorKernel* kernel = &fastest;
  if (arguments.given() > 3) kernel = &xorKernel(arguments.integer(3, "widest", 16, 64));
  if (arguments.failed()) return nullptr;
  const auto slab = static_cast<int64_t>(memory->bytes());
  std::vector<int32_t>& checked = arguments.state().lengths;
  if (checked.size() < count * kStep) checked.resize(count * kStep);
  auto* steps = reinterpret_cast<Step*>(checked.data());
  for (size_t n = 0; n < count; n++) {
    const int32_t* word = words.data + n * kStep;
    const Step step = {loadOnce(word), loadOnce(word + 1), loadOnce(word + 2), loadOnce(word + 3)};
    steps[n] = step;
    const int64_t target = step.target, source = step.source, bytes = step.bytes;
    const int64_t most = step.filled > step.bytes ? step.filled : step.bytes;
    if ((step.target | step.filled | step.source | step.bytes) < 0 || target + most > slab || source + bytes > slab) {
      throwRange(env, "xorAdd: step %zu, %d bytes at %d to %d bytes at %d, is not in the slab", n, step.bytes, step.source, step.filled, step.target);
      return nullptr;
    }
  }
  addSteps(*kernel, *memory, steps, count);
  return nullptr;
}

}  // namespace penstock
