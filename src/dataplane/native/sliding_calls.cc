/** The sliding window's calls from JavaScript. */
#include <string.h>

#include "memory.h"
#include "sliding_window.h"

namespace penstock {

static constexpr int64_t kMinPlaces = 64;
static constexpr int64_t kMaxPlaces = 2 * kMaxWindow;
/** A length and 65,535 bytes. */
static constexpr int64_t kMaxSymbol = 65537;
/** First source, how many, key, place, and room, which becomes the bytes. */
static constexpr size_t kRepairWords = 5;
static constexpr int64_t kMaxRepairs = 4096;
static constexpr int64_t kMinNumber = -2147483648ll;
static constexpr int64_t kMaxNumber = 4294967295ll;

/** The window named by the first argument; nullptr after throwing. */
static SlidingWindow* windowArgument(Arguments& arguments) {
  const double id = arguments.number(0, "window");
  if (arguments.failed()) return nullptr;
  const auto& windows = arguments.state().slidingWindows;
  const auto found = id >= 1 && id <= 2147483647.0 ? windows.find(static_cast<int32_t>(id)) : windows.end();
  if (found != windows.end() && found->first == id) return found->second.get();
  throwRange(arguments.env(), "%s: window %.17g is not open in this thread", arguments.function(), id);
  arguments.fail();
  return nullptr;
}

static int32_t sequenceArgument(Arguments& arguments, size_t index) {
  return static_cast<int32_t>(static_cast<uint32_t>(arguments.integer(index, "sequence", kMinNumber, kMaxNumber)));
}

/** A power of two. */
static int32_t placesArgument(Arguments& arguments, size_t index) {
  const int64_t places = arguments.integer(index, "places", kMinPlaces, kMaxPlaces);
  if (!arguments.failed() && (places & (places - 1)) != 0) {
    throwRange(arguments.env(), "%s: places = %lld is no power of two", arguments.function(), static_cast<long long>(places));
    arguments.fail();
  }
  return static_cast<int32_t>(places);
}

static napi_value throwMemory(Arguments& arguments, int32_t places, int32_t bytes) {
  throwRange(arguments.env(), "%s: there is no memory for %d symbols of %d bytes", arguments.function(), places, bytes);
  return nullptr;
}

napi_value slidingOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingOpen", 2);
  const int32_t places = placesArgument(arguments, 0);
  const auto bytes = static_cast<int32_t>(arguments.integer(1, "symbolBytes", 2, kMaxSymbol));
  if (arguments.failed()) return nullptr;
  const int32_t kept = arguments.given() > 2 ? placesArgument(arguments, 2) : places;
  if (!arguments.failed() && kept > places) {
    throwRange(env, "slidingOpen: kept = %d is more than the %d places", kept, places);
    return nullptr;
  }
  if (arguments.failed()) return nullptr;
  auto window = std::make_shared<SlidingWindow>(places, kept, bytes);
  if (!window->hasMemory()) return throwMemory(arguments, places, bytes);
  State& state = arguments.state();
  const int32_t id = ++state.lastSlidingWindow;
  state.slidingWindows.emplace(id, std::move(window));
  return toInteger(env, id);
}

napi_value slidingClose(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingClose", 1);
  if (!windowArgument(arguments)) return nullptr;
  arguments.state().slidingWindows.erase(static_cast<int32_t>(arguments.number(0, "window")));
  return nullptr;
}

napi_value slidingGrow(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingGrow", 2);
  SlidingWindow* window = windowArgument(arguments);
  const int32_t places = placesArgument(arguments, 1);
  if (arguments.failed()) return nullptr;
  if (places < window->places()) {
    throwRange(env, "slidingGrow: places = %d is less than the %d that there are", places, window->places());
    return nullptr;
  }
  return window->grow(places) ? nullptr : throwMemory(arguments, places, window->symbolBytes());
}

/** Checks that `bytes` bytes from `at` on are in the slab and can be a symbol of the window. */
static bool isSymbolPlace(Arguments& arguments, const Memory& memory, const SlidingWindow& window, int64_t at, int64_t bytes) {
  if (bytes >= 2 && bytes <= window.symbolBytes() && at >= 0 && at + bytes <= static_cast<int64_t>(memory.bytes())) return true;
  throwRange(arguments.env(), "%s: %lld bytes at %lld are no symbol of 2 to %d bytes in the slab", arguments.function(),
             static_cast<long long>(bytes), static_cast<long long>(at), window.symbolBytes());
  arguments.fail();
  return false;
}

/** Checks `count` sources, sequence, place and bytes of each, into `sources`; false after throwing. */
static bool takeSources(Arguments& arguments, const Memory& memory, const SlidingWindow& window, Span<int32_t> words, size_t count,
                        std::vector<Source>& sources) {
  sources.clear();
  for (size_t i = 0; i < count; i++) {
    const int32_t at = loadOnce(words.data + 3 * i + 1);
    const int32_t bytes = loadOnce(words.data + 3 * i + 2);
    if (!isSymbolPlace(arguments, memory, window, at, bytes)) return false;
    sources.push_back({loadOnce(words.data + 3 * i), memory.data + at, bytes});
  }
  return true;
}

/** Copies `count` sources; false after throwing, when none is. */
static bool keepSources(Arguments& arguments, const Memory& memory, SlidingWindow& window, Span<int32_t> words, size_t count) {
  std::vector<Source>& sources = window.taken();
  if (!takeSources(arguments, memory, window, words, count, sources)) return false;
  for (const Source& source : sources) window.keep(source.sequence, source.symbol, source.bytes);
  return true;
}

napi_value slidingKeep(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingKeep", 4);
  SlidingWindow* window = windowArgument(arguments);
  const Memory* memory = memoryArgument(arguments, 1);
  const auto count = static_cast<size_t>(arguments.integer(3, "count", 0, kMaxPlaces));
  Span<int32_t> words = arguments.int32s(2, "sources", 3 * count);
  if (arguments.failed()) return nullptr;
  keepSources(arguments, *memory, *window, words, count);
  return nullptr;
}

/** Checks the repairs `from` to `end`, not included, into `repairs`; false after throwing. */
static bool takeRepairs(Arguments& arguments, const Memory& memory, const SlidingWindow& window, Span<int32_t> words, size_t from, size_t end,
                        std::vector<Repair>& repairs) {
  const auto slab = static_cast<int64_t>(memory.bytes());
  repairs.clear();
  for (size_t n = from; n < end; n++) {
    const int32_t* word = words.data + kRepairWords * n;
    const int32_t covered = loadOnce(word + 1);
    const int64_t at = loadOnce(word + 3);
    const int64_t room = loadOnce(word + 4);
    if (covered < 1 || covered > window.places() || covered > kMaxWindow || at < 0 || room < 0 || at + room > slab) {
      throwRange(arguments.env(), "slidingEncode: repairs[%zu] over %d sources with %lld bytes at %lld is none in the slab", n, covered,
                 static_cast<long long>(room), static_cast<long long>(at));
      return false;
    }
    const auto key = static_cast<uint16_t>(loadOnce(word + 2));
    repairs.push_back({loadOnce(word), covered, key, memory.data + at, static_cast<int32_t>(room), 0});
  }
  return true;
}

napi_value slidingEncode(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingEncode", 7);
  SlidingWindow* window = windowArgument(arguments);
  const Memory* memory = memoryArgument(arguments, 1);
  const auto added = static_cast<size_t>(arguments.integer(3, "added", 0, kMaxPlaces));
  const auto from = static_cast<size_t>(arguments.integer(5, "from", 0, kMaxRepairs));
  const auto end = static_cast<size_t>(arguments.integer(6, "end", static_cast<int64_t>(from), kMaxRepairs));
  Span<int32_t> sourceWords = arguments.int32s(2, "sources", 3 * added);
  Span<int32_t> words = arguments.int32s(4, "repairs", kRepairWords * end);
  if (arguments.failed()) return nullptr;
  std::vector<Source>& sources = window->taken();
  std::vector<Repair>& repairs = window->repairs();
  if (!takeSources(arguments, *memory, *window, sourceWords, added, sources)) return nullptr;
  if (!takeRepairs(arguments, *memory, *window, words, from, end, repairs)) return nullptr;
  for (const Source& source : sources) window->refer(source.sequence, source.symbol, source.bytes);
  const Making made = window->make(repairs.data(), repairs.size());
  for (const Source& source : sources) window->settle(source.sequence, sources.back().sequence);
  if (made != Making::kMade) {
    throwRange(env, made == Making::kNotAtHand ? "slidingEncode: a source is not at hand" : "slidingEncode: a source is longer than the room");
    return nullptr;
  }
  for (size_t n = from; n < end; n++) words.data[kRepairWords * n + 4] = repairs[n - from].bytes;
  return nullptr;
}

/** Writes the number of equations, then the sources recovered; returns how many those are, or why there are none. */
static napi_value tell(napi_env env, SlidingWindow& window, Span<int32_t> found, int32_t result) {
  found.data[0] = window.rows();
  if (result > 0) memcpy(found.data + 1, window.found().data(), static_cast<size_t>(result) * sizeof(int32_t));
  return toInteger(env, result);
}

static Span<int32_t> foundArgument(Arguments& arguments, size_t index) {
  return arguments.int32s(index, "found", 1 + static_cast<size_t>(kMaxWindow));
}

napi_value slidingTake(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingTake", 10);
  SlidingWindow* window = windowArgument(arguments);
  const Memory* memory = memoryArgument(arguments, 1);
  const auto added = static_cast<size_t>(arguments.integer(3, "added", 0, kMaxPlaces));
  Span<int32_t> words = arguments.int32s(2, "sources", 3 * added);
  const int32_t first = sequenceArgument(arguments, 4);
  const auto count = static_cast<int32_t>(arguments.integer(5, "count", 1, kMaxWindow));
  const auto key = static_cast<uint16_t>(arguments.integer(6, "key", 0, 65535));
  const int64_t at = arguments.integer(7, "at", 0, kMaxNumber);
  const int64_t bytes = arguments.integer(8, "bytes", 0, kMaxSymbol);
  Span<int32_t> found = foundArgument(arguments, 9);
  if (arguments.failed() || !isSymbolPlace(arguments, *memory, *window, at, bytes)) return nullptr;
  if (count > window->places()) {
    throwRange(env, "slidingTake: count = %d is more than the window's %d places", count, window->places());
    return nullptr;
  }
  if (!keepSources(arguments, *memory, *window, words, added)) return nullptr;
  return tell(env, *window, found, window->take(first, count, key, memory->data + at, static_cast<int32_t>(bytes)));
}

napi_value slidingResolve(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingResolve", 6);
  SlidingWindow* window = windowArgument(arguments);
  const Memory* memory = memoryArgument(arguments, 1);
  const int32_t sequence = sequenceArgument(arguments, 2);
  const int64_t at = arguments.integer(3, "at", 0, kMaxNumber);
  const int64_t bytes = arguments.integer(4, "bytes", 0, kMaxSymbol);
  Span<int32_t> found = foundArgument(arguments, 5);
  if (arguments.failed() || !isSymbolPlace(arguments, *memory, *window, at, bytes)) return nullptr;
  return tell(env, *window, found, window->resolve(sequence, memory->data + at, static_cast<int32_t>(bytes)));
}

napi_value slidingRead(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingRead", 5);
  SlidingWindow* window = windowArgument(arguments);
  const Memory* memory = memoryArgument(arguments, 1);
  const int32_t sequence = sequenceArgument(arguments, 2);
  if (arguments.failed()) return nullptr;
  const auto slab = static_cast<int64_t>(memory->bytes());
  const int64_t at = arguments.integer(3, "at", 0, slab);
  const int64_t room = arguments.integer(4, "room", 0, slab - at);
  if (arguments.failed()) return nullptr;
  int32_t bytes = 0;
  const uint8_t* symbol = window->symbol(sequence, &bytes);
  if (symbol && bytes <= room) memcpy(memory->data + at, symbol, static_cast<size_t>(bytes));
  return toInteger(env, bytes);
}

napi_value slidingMatches(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingMatches", 5);
  SlidingWindow* window = windowArgument(arguments);
  const Memory* memory = memoryArgument(arguments, 1);
  const int32_t sequence = sequenceArgument(arguments, 2);
  const int64_t at = arguments.integer(3, "at", 0, kMaxNumber);
  const int64_t bytes = arguments.integer(4, "bytes", 0, kMaxSymbol);
  if (arguments.failed() || !isSymbolPlace(arguments, *memory, *window, at, bytes)) return nullptr;
  int32_t known = 0;
  const uint8_t* symbol = window->symbol(sequence, &known);
  const bool differs = symbol && (known != bytes || memcmp(symbol, memory->data + at, static_cast<size_t>(bytes)) != 0);
  return toBoolean(env, !differs);
}

napi_value slidingDrop(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingDrop", 2);
  SlidingWindow* window = windowArgument(arguments);
  const int32_t sequence = sequenceArgument(arguments, 1);
  if (!arguments.failed()) window->drop(sequence);
  return nullptr;
}

napi_value slidingForget(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingForget", 2);
  SlidingWindow* window = windowArgument(arguments);
  const int32_t sequence = sequenceArgument(arguments, 1);
  if (arguments.failed()) return nullptr;
  window->forget(sequence);
  return toInteger(env, window->rows());
}

napi_value slidingReset(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "slidingReset", 1);
  SlidingWindow* window = windowArgument(arguments);
  if (window) window->reset();
  return nullptr;
}

}  // namespace penstock
