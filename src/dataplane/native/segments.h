/** Cutting a GSO frame of a TUN device into packets, and joining packets of a flow into one: the virtio-net header's offloads. */
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace penstock {

/** struct virtio_net_hdr (virtio 1.2, 5.1.6), native byte order as TUN gives it. */
struct VnetHeader {
  uint8_t flags;
  uint8_t gsoType;
  uint16_t headerLength;
  uint16_t gsoSize;
  uint16_t checksumStart;
  uint16_t checksumOffset;
};
static_assert(sizeof(VnetHeader) == 10, "virtio_net_hdr without num_buffers");

constexpr uint8_t kNeedsChecksum = 1;
constexpr uint8_t kGsoNone = 0, kGsoTcp4 = 1, kGsoTcp6 = 4, kGsoUdp = 5, kGsoEcn = 0x80;

/** A frame being cut. `segments` is 0 when it could not be understood. */
struct Frame {
  uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t segments = 0;
  size_t next = 0;
  bool six = false;
  bool udp = false;
  bool gso = false;
  size_t transport = 0;
  size_t headers = 0;
  size_t size = 0;
  /** What differs between the packets of a GSO frame, as its headers had it; there the fields are 0. */
  uint16_t id = 0;
  uint32_t sequence = 0;
  uint8_t flags = 0;
  /** Sums of the IPv4 header, and of the pseudo-header and the transport header, without those fields. */
  uint64_t networkSum = 0;
  uint64_t transportSum = 0;
};

/** Checks a frame. When it is no GSO frame its checksum is completed in place, else its headers become what its packets share. */
Frame openFrame(const VnetHeader& vnet, uint8_t* data, size_t bytes);
/** How long packet `index` is. */
size_t segmentBytes(const Frame& frame, size_t index);
/** Writes packet `index`, complete with lengths, IP id, TCP sequence and flags, and checksums. */
void writeSegment(const Frame& frame, size_t index, uint8_t* out);

/** What decides whether packets can be joined. `payload` is 0 for a packet that cannot. */
struct Flow {
  bool six = false;
  bool udp = false;
  size_t transport = 0;
  size_t headers = 0;
  size_t payload = 0;
  bool ends = false;  // PSH or FIN: nothing may follow
};

Flow readFlow(const uint8_t* data, size_t bytes);
/** Whether `next` continues a run of `count` packets that `first` began. Checksums are not looked at. */
bool continues(const Flow& first, const uint8_t* firstData, const Flow& next, const uint8_t* nextData, size_t count);
/** Whether the checksums of the transport header and of an IPv4 header are right. */
bool checksumsHold(const Flow& flow, const uint8_t* data, size_t bytes);
/**
 * Writes the headers of the joined frame: those of `first` with the lengths of `payload` bytes, the last packet's PSH and FIN, the
 * IP checksum, and the pseudo-header's sum in place of the transport checksum. Returns the virtio header to go in front.
 */
VnetHeader joinHeaders(const Flow& first, const uint8_t* firstData, const uint8_t* lastData, size_t payload, uint8_t* out);

}  // namespace penstock
