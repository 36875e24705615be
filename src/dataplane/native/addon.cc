/** What JavaScript sees of the addon: one table of functions, and the state of the environment that loaded it. */
#include <node_api.h>

#include "aead.h"
#include "aead_backend.h"
#include "affinity.h"
#include "block_headers.h"
#include "block_recovery.h"
#include "chacha.h"
#include "connection.h"
#include "checksum.h"
#include "crc32c.h"
#include "descriptors.h"
#include "elimination.h"
#include "files.h"
#include "gf256.h"
#include "hangup.h"
#include "host_names.h"
#include "memory.h"
#include "poller.h"
#include "routes.h"
#include "sliding_window.h"
#include "tun.h"
#include "udp.h"
#include "xor.h"

namespace penstock {

static const Export kExports[] = {
    {"now", now},
    {"unixTime", unixTime},
    {"readClock", readClock},
    {"ownerOpen", ownerOpen},
    {"ownerRelease", ownerRelease},
    {"openDescriptors", openDescriptors},
    {"memoryOpen", memoryOpen},
    {"memoryClose", memoryClose},
    {"giveBackPages", giveBackPages},
    {"bytesToCacheLine", bytesToCacheLine},
    {"trimHeap", trimHeap},
    {"hasAddressSpace", hasAddressSpace},
    {"eventOpen", eventOpen},
    {"eventSignal", eventSignal},
    {"eventClear", eventClear},
    {"pollerOpen", pollerOpen},
    {"pollerAdd", pollerAdd},
    {"pollerRemove", pollerRemove},
    {"pollerWatchWrite", pollerWatchWrite},
    {"pollerWatchRead", pollerWatchRead},
    {"pollerWait", pollerWait},
    {"udpOpen", udpOpen},
    {"udpAddress", udpAddress},
    {"udpTune", udpTune},
    {"udpFollow", udpFollow},
    {"udpLeave", udpLeave},
    {"udpDropped", udpDropped},
    {"udpLeavesBy", udpLeavesBy},
    {"routesOpen", routesOpen},
    {"routesClear", routesClear},
    {"interfaceIndex", interfaceIndex},
    {"interfaceName", interfaceName},
    {"udpReceive", udpReceive},
    {"udpSend", udpSend},
    {"tunOpen", tunOpen},
    {"tunState", tunState},
    {"tunKeep", tunKeep},
    {"tunDropped", tunDropped},
    {"tunReceive", tunReceive},
    {"tunSend", tunSend},
    {"tcpListen", tcpListen},
    {"tcpConnect", tcpConnect},
    {"tcpAddress", tcpAddress},
    {"unixListen", unixListen},
    {"unixConnect", unixConnect},
    {"unixPeer", unixPeer},
    {"listenerAccept", listenerAccept},
    {"connectionConnected", connectionConnected},
    {"connectionRemote", connectionRemote},
    {"connectionReset", connectionReset},
    {"connectionReceive", connectionReceive},
    {"connectionSend", connectionSend},
    {"close", closeHandle},
    {"closeOnExec", closeOnExec},
    {"lockOpen", lockOpen},
    {"fileReserve", fileReserve},
    {"fileRequireShared", fileRequireShared},
    {"affinity", affinity},
    {"usableCpus", usableCpus},
    {"setAffinity", setAffinity},
    {"currentCpu", currentCpu},
    {"threadCpuTime", threadCpuTime},
    {"gfKernels", gfKernels},
    {"gfKernel", gfKernel},
    {"gfUse", gfUse},
    {"gfMatrixMultiply", gfMatrixMultiply},
    {"gfMultiplyRows", gfMultiplyRows},
    {"gfMultiplyPackets", gfMultiplyPackets},
    {"gfRandomMultiply", gfRandomMultiply},
    {"gfRandomPackets", gfRandomPackets},
    {"gfRecover", gfRecover},
    {"gfRecoverRandom", gfRecoverRandom},
    {"gfSolve", gfSolve},
    {"blockFrame", blockFrame},
    {"packetsCopy", packetsCopy},
    {"blockHeaders", blockHeaders},
    {"blocksPass", blocksPass},
    {"xorAdd", xorAdd},
    {"slidingOpen", slidingOpen},
    {"slidingClose", slidingClose},
    {"slidingGrow", slidingGrow},
    {"slidingKeep", slidingKeep},
    {"slidingEncode", slidingEncode},
    {"slidingTake", slidingTake},
    {"slidingResolve", slidingResolve},
    {"slidingRead", slidingRead},
    {"slidingMatches", slidingMatches},
    {"slidingDrop", slidingDrop},
    {"slidingForget", slidingForget},
    {"slidingReset", slidingReset},
    {"aeadBackends", aeadBackends},
    {"aeadBackend", aeadBackend},
    {"aeadUse", aeadUse},
    {"aeadOpen", aeadOpen},
    {"aeadSeal", aeadSeal},
    {"aeadOpenPackets", aeadOpenPackets},
    {"aeadSealBytes", aeadSealBytes},
    {"aeadOpenBytes", aeadOpenBytes},
    {"chachaKernels", chachaKernels},
    {"chachaKernel", chachaKernel},
    {"chachaUse", chachaUse},
    {"chachaOpen", chachaOpen},
    {"chachaEncrypt", chachaEncrypt},
    {"chachaDecrypt", chachaDecrypt},
    {"crc32c", crc32c},
    {"onesSumOf", onesSumOf},
    {"watchHangup", watchHangup},
    {"hostAsk", hostAsk},
};

static napi_value initialise(napi_env env, napi_value exports) {
  rememberAffinity();
  keepLittleFreed();
  auto* state = new State;
  // The references a forgotten memory still holds go with the environment.
  napi_set_instance_data(env, state, [](napi_env, void* data, void*) {
    delete static_cast<State*>(data);
    forgetAffinity();
  }, nullptr);
  for (const Export& entry : kExports) {
    napi_value function = nullptr;
    if (napi_create_function(env, entry.name, NAPI_AUTO_LENGTH, entry.function, state, &function) != napi_ok ||
        napi_set_named_property(env, exports, entry.name, function) != napi_ok) {
      napi_throw_error(env, nullptr, "penstock: the addon's functions could not be made");
      return nullptr;
    }
  }
  return exports;
}

}  // namespace penstock

NAPI_MODULE_INIT() { return penstock::initialise(env, exports); }
