/** Connections and their listeners: byte streams and frames over TCP, packets over SOCK_SEQPACKET. */
#pragma once
#include <node_api.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "descriptors.h"
#include "memory.h"

namespace penstock {

/** What a packet is on a connection: a piece of the stream, a frame with its length before it, or a packet of the kernel's. */
enum class Framing : uint8_t { stream, frames, packets };

struct Connection : Descriptor {
  Connection(int fd, Framing framing, int32_t longest)
      : Descriptor(Kind::connection, fd), framing(framing), longest(longest) {}
  const Framing framing;
  /** Most bytes of a packet received. */
  const int32_t longest;
  /** Remote record of the peer, zero where it has no IP address. */
  uint8_t remote[kRemoteBytes] = {};
  /** Of frames: bytes `[restAt, rest.size())` were read and are not given out yet. */
  std::vector<uint8_t> rest;
  size_t restAt = 0;
  /** Bytes of the first packet of the next send, its frame's header included, that the kernel has already. */
  size_t sent = 0;
  /** Why nothing more can be received: an errno, ENODATA at the end of the stream. */
  int over = 0;
};

struct Listener : Descriptor {
  Listener(int fd, Framing framing, int32_t longest)
      : Descriptor(Kind::listener, fd), framing(framing), longest(longest) {}
  /** Takes the file of its path away, unless it is somebody else's by now. */
  ~Listener() override;
  const Framing framing;
  const int32_t longest;
  /** The file it is bound to; empty where there is none. */
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
};

napi_value tcpListen(napi_env env, napi_callback_info info);
napi_value tcpConnect(napi_env env, napi_callback_info info);
napi_value tcpAddress(napi_env env, napi_callback_info info);
napi_value unixListen(napi_env env, napi_callback_info info);
napi_value unixConnect(napi_env env, napi_callback_info info);
napi_value unixPeer(napi_env env, napi_callback_info info);
napi_value listenerAccept(napi_env env, napi_callback_info info);
napi_value connectionConnected(napi_env env, napi_callback_info info);
napi_value connectionRemote(napi_env env, napi_callback_info info);
napi_value connectionReset(napi_env env, napi_callback_info info);
napi_value connectionReceive(napi_env env, napi_callback_info info);
napi_value connectionSend(napi_env env, napi_callback_info info);

/** TCP_NODELAY, and how soon a peer that is gone is noticed. */
void tuneTcp(int fd, Framing framing);

}  // namespace penstock
