/** Registering packet memory with a thread, and finding its packets again with every access checked. */
#include "memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace penstock {

static std::atomic<int32_t> nextMemory{1};
static constexpr uintptr_t kCacheLineBytes = 64;

namespace {

/** Reads the typed arrays of a PacketMemory, each once; `failed` once one is not what it must be. */
struct Shape {
  Arguments& arguments;
  napi_value object;
  /** The arrays that were read: a second look at a property may find another one behind it. */
  napi_value holder = nullptr;
  uint32_t held = 0;

  void* array(const char* name, napi_typedarray_type type, const char* wanted, size_t* length) {
    napi_value value = arguments.property(object, name);
    if (arguments.failed()) return nullptr;
    napi_typedarray_type found;
    void* data = nullptr;
    napi_value buffer = nullptr;
    if (napi_get_typedarray_info(arguments.env(), value, &found, length, &data, &buffer, nullptr) != napi_ok ||
        found != type) {
      arguments.type(name, wanted);
      return nullptr;
    }
    // A plain ArrayBuffer can be detached or shrunk behind our back, a shared one cannot.
    bool plain = true;
    if (napi_is_arraybuffer(arguments.env(), buffer, &plain) != napi_ok || plain) {
      arguments.type(name, "over a SharedArrayBuffer");
      return nullptr;
    }
    if (napi_set_element(arguments.env(), holder, held++, value) != napi_ok) {
      arguments.type(name, "an array that can be held");
      return nullptr;
    }
    return data;
  }
};

}  // namespace

/** Advises the system about the pages that lie wholly inside of an array. */
static void advise(void* from, size_t bytes, int advice) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(from) + page - 1) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(from) + bytes) & ~(page - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

/**
 * Packets are nothing to the commands that a process starts. A copy for each of them would be written again page by page by runs that go on, and
 * Linux refuses to copy more of one mapping than there is memory, used or not. What is smaller may share its pages with the heap.
 */
static constexpr size_t kOwnMappingBytes = 1 << 20;

static void keepFromCommands(const Memory& memory, bool kept) {
  if (memory.bytes() >= kOwnMappingBytes) advise(memory.data, memory.bytes(), kept ? MADV_DONTFORK : MADV_DOFORK);
}

napi_value memoryOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "memoryOpen", 1);
  if (arguments.failed()) return nullptr;
  Shape shape{arguments, arguments.raw(0)};
  // A holder of our own: the caller may replace the properties of its object, not of this one.
  napi_create_array(env, &shape.holder);
  Memory memory;
  size_t data = 0, offset = 0, length = 0, arrival = 0, remote = 0, client = 0, free = 0;
  size_t train = 0, trains = 0, trainFree = 0;
  memory.data = static_cast<uint8_t*>(shape.array("data", napi_uint8_array, "a Uint8Array", &data));
  memory.offset = static_cast<int32_t*>(shape.array("offset", napi_int32_array, "an Int32Array", &offset));
  memory.length = static_cast<int32_t*>(shape.array("length", napi_int32_array, "an Int32Array", &length));
  memory.arrival = static_cast<double*>(shape.array("arrival", napi_float64_array, "a Float64Array", &arrival));
  memory.remote = static_cast<uint8_t*>(shape.array("remote", napi_uint8_array, "a Uint8Array", &remote));
  memory.client = static_cast<double*>(shape.array("client", napi_float64_array, "a Float64Array", &client));
  memory.free = static_cast<int32_t*>(shape.array("free", napi_int32_array, "an Int32Array", &free));
  memory.train = static_cast<int32_t*>(shape.array("train", napi_int32_array, "an Int32Array", &train));
  memory.trainReferences =
      static_cast<int32_t*>(shape.array("trainReferences", napi_int32_array, "an Int32Array", &trains));
  memory.trainFree = static_cast<int32_t*>(shape.array("trainFree", napi_int32_array, "an Int32Array", &trainFree));
  const double most = 2147483647.0;
  memory.slotBytes = static_cast<int32_t>(arguments.propertyNumber(shape.object, "slotBytes", 1, most));
  memory.headroom = static_cast<int32_t>(arguments.propertyNumber(shape.object, "headroom", 0, most));
  memory.tailroom = static_cast<int32_t>(arguments.propertyNumber(shape.object, "tailroom", 0, most));
  if (arguments.failed()) return nullptr;

  const char* wrong = nullptr;
  const size_t slots = offset;
  if (slots == 0) wrong = "offset has no elements";
  else if (data != slots * static_cast<size_t>(memory.slotBytes) + trains * kTrainBytes)
    wrong = "data is not slots * slotBytes + trains * 65536 long";
  else if (data > 2147483647u) wrong = "data is longer than 2^31 - 1 bytes";
  else if (length != slots) wrong = "length and offset differ in length";
  else if (arrival != slots) wrong = "arrival and offset differ in length";
  else if (remote != slots * kRemoteBytes) wrong = "remote is not slots * 32 bytes long";
  else if (client != slots) wrong = "client and offset differ in length";
  else if (free != slots + 1) wrong = "free is not slots + 1 long";
  else if (train != slots) wrong = "train and offset differ in length";
  else if (trainFree != trains + 1) wrong = "trainFree is not one longer than trainReferences";
  else if (static_cast<int64_t>(memory.headroom) + memory.tailroom >= memory.slotBytes)
    wrong = "headroom and tailroom leave no room for a packet";
  if (wrong) {
    throwRange(env, "memoryOpen: %s", wrong);
    return nullptr;
  }
  memory.slots = static_cast<int32_t>(slots);
  memory.trains = static_cast<int32_t>(trains);
  if (memory.freeCount() < 0) {
    throwFreeStack(arguments);
    return nullptr;
  }
  if (napi_create_reference(env, shape.holder, 1, &memory.reference) != napi_ok) {
    throwType(env, "memoryOpen: no reference could be made");
    return nullptr;
  }
  keepFromCommands(memory, true);
  memory.id = nextMemory.fetch_add(1);
  arguments.state().memories.push_back(memory);
  return toInteger(env, memory.id);
}

Memory* memoryArgument(Arguments& arguments, size_t index) {
  const double id = arguments.number(index, "memory");
  if (arguments.failed()) return nullptr;
  for (Memory& memory : arguments.state().memories) {
    if (memory.id == id) return &memory;
  }
  throwRange(arguments.env(), "%s: memory %.17g is not open in this thread", arguments.function(), id);
  arguments.fail();
  return nullptr;
}

/**
 * Returns an array's pages to the system; they read as zeros from then on. The buffers themselves live until their isolate collects garbage,
 * and a thread that waits for its next run may not do so for hours.
 */
static void giveBack(void* from, size_t bytes) { advise(from, bytes, MADV_DONTNEED); }

napi_value memoryClose(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "memoryClose", 1);
  Memory* memory = memoryArgument(arguments, 0);
  if (!memory) return nullptr;
  napi_delete_reference(env, memory->reference);
  giveBack(memory->data, memory->bytes());
  giveBack(memory->arrival, static_cast<size_t>(memory->slots) * sizeof(double));
  giveBack(memory->client, static_cast<size_t>(memory->slots) * sizeof(double));
  giveBack(memory->remote, static_cast<size_t>(memory->slots) * kRemoteBytes);
  State& state = arguments.state();
  state.received.clear();
  state.framed.clear();
  const Memory closed = *memory;
  state.memories.erase(state.memories.begin() + (memory - state.memories.data()));
  bool isOpen = false;
  for (const Memory& other : state.memories) isOpen = isOpen || other.data == closed.data;
  if (!isOpen) keepFromCommands(closed, false);
  return nullptr;
}

State::~State() {
  for (const Memory& memory : memories) keepFromCommands(memory, false);
}

napi_value giveBackPages(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "giveBackPages", 1);
  const Span<uint8_t> bytes = arguments.bytes(0, "bytes", 0);
  if (arguments.failed()) return nullptr;
  giveBack(bytes.data, bytes.length);
  return nullptr;
}

napi_value bytesToCacheLine(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "bytesToCacheLine", 1);
  const Span<uint8_t> bytes = arguments.bytes(0, "bytes", 0);
  if (arguments.failed()) return nullptr;
  const uintptr_t past = reinterpret_cast<uintptr_t>(bytes.data) % kCacheLineBytes;
  return toInteger(env, static_cast<int32_t>(past == 0 ? 0 : kCacheLineBytes - past));
}

void keepLittleFreed() {
#ifdef __GLIBC__
  static const bool done = [] {
    // By itself glibc raises both with the largest piece that was ever freed, to 32 and 64 MiB. Each thread's arena, one that has ended as
    // well, would keep as much at its top, where malloc_trim(3) does not look.
    constexpr int kMost = 1 << 20;
    mallopt(M_MMAP_THRESHOLD, kMost);
    mallopt(M_TRIM_THRESHOLD, kMost);
    return true;
  }();
  (void)done;
#endif
}

napi_value trimHeap(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "trimHeap", 0);
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return nullptr;
}

napi_value hasAddressSpace(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "hasAddressSpace", 2);
  const int64_t bytes = arguments.integer(0, "bytes", 1, (1ll << 46) - 1);
  const int64_t writable = arguments.integer(1, "writable", 0, bytes);
  if (arguments.failed()) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return toBoolean(env, false);
  // What can be written counts for RLIMIT_DATA, and as promised where vm.overcommit_memory is 2.
  const bool can = writable == 0 || mprotect(at, writable, PROT_READ | PROT_WRITE) == 0;
  munmap(at, bytes);
  return toBoolean(env, can);
}

void throwPacket(Arguments& arguments, const Memory& memory, size_t index, int32_t handle) {
  throwRange(arguments.env(), "%s: handles[%zu] = %d is no packet: its offset and length must stay in its slot (of %d) or train",
             arguments.function(), index, handle, memory.slots);
  arguments.fail();
}

bool packetsArgument(Arguments& arguments, const Memory& memory, Span<int32_t> handles, size_t from, size_t count) {
  auto& packets = arguments.state().packets;
  if (packets.size() < count) packets.resize(count);
  return packetsArgument(arguments, memory, handles, from, count, packets.data());
}

bool packetsArgument(Arguments& arguments, const Memory& memory, Span<int32_t> handles, size_t from, size_t count, Packet* packets) {
  const size_t found = lookUp(memory, handles.data + from, count, packets);
  if (found == count) return true;
  throwPacket(arguments, memory, from + found, loadOnce(handles.data + from + found));
  return false;
}

void throwFreeStack(Arguments& arguments) {
  throwRange(arguments.env(), "%s: the memory's free stack is damaged (a count or handle out of range)",
             arguments.function());
  arguments.fail();
}

}  // namespace penstock
