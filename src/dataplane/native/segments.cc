/** Cutting a GSO frame of a TUN device into packets, and joining packets of a flow into one: the virtio-net header's offloads. */
#include "segments.h"

#include <string.h>

#include "checksum.h"

namespace penstock {

static constexpr uint8_t kFin = 0x01, kPsh = 0x08, kAck = 0x10, kCwr = 0x80;
static constexpr uint8_t kTcp = 6, kUdp = 17;
static constexpr uint8_t kDontFragment = 0x40;

static uint16_t get16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
static void put16(uint8_t* at, size_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
static uint32_t get32(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 | at[3];
}
static void put32(uint8_t* at, uint32_t value) {
  put16(at, value >> 16);
  put16(at + 2, value & 0xffff);
}

static void store(uint8_t* at, uint16_t value) { memcpy(at, &value, 2); }

static uint64_t pseudo(const uint8_t* data, bool six, uint8_t protocol, size_t length) {
  const uint64_t addresses = six ? onesSumOfFew(data + 8, 32, 0) : onesSumOfFew(data + 12, 8, 0);
  return addresses + onesOfField(protocol) + onesOfField(length) + onesOfField(length >> 16);
}

static void finishIp(uint8_t* data, bool six, size_t bytes) {
  if (six) {
    put16(data + 4, bytes - 40);
    return;
  }
  put16(data + 2, bytes);
  put16(data + 10, 0);
  store(data + 10, static_cast<uint16_t>(~foldOnes(onesSumOfFew(data, static_cast<size_t>(data[0] & 15) * 4, 0))));
}

/**
 * Takes out of the headers of a GSO frame what differs between its packets, and sums the rest up. With `partial` the checksum holds the pseudo-header's
 * sum of the whole frame, which is taken as the kernel has made it: of a packet on a source route, IPv4's or IPv6's, that is with the last
 * destination, and the header has the next.
 */
static void takeFields(Frame* frame, bool partial) {
  uint8_t* data = frame->data;
  uint8_t* header = data + frame->transport;
  uint64_t start;
  if (partial) {
    const size_t length = frame->bytes - frame->transport;
    uint16_t whole;
    memcpy(&whole, header + (frame->udp ? 6 : 16), 2);
    // Less the length: what is taken off a ones' complement sum is added inverted.
    start = whole + onesOfField(~length) + onesOfField(~(length >> 16));
  } else {
    start = pseudo(data, frame->six, frame->udp ? kUdp : kTcp, 0);
  }
  put16(data + (frame->six ? 4 : 2), 0);
  if (!frame->six) {
    frame->id = get16(data + 4);
    put16(data + 4, 0);
    put16(data + 10, 0);
    frame->networkSum = onesSumOfFew(data, static_cast<size_t>(data[0] & 15) * 4, 0);
  }
  if (frame->udp) {
    put32(header + 4, 0);
  } else {
    frame->sequence = get32(header + 4);
    frame->flags = header[13];
    put32(header + 4, 0);
    header[13] = 0;
    put16(header + 16, 0);
  }
  frame->transportSum = onesSumOfFew(header, frame->headers - frame->transport, start);
}

Frame openFrame(const VnetHeader& vnet, uint8_t* data, size_t bytes) {
  Frame frame;
  frame.data = data;
  frame.bytes = bytes;
  const uint8_t type = static_cast<uint8_t>(vnet.gsoType & ~kGsoEcn);
  const bool partial = vnet.flags & kNeedsChecksum;
  if (type == kGsoNone) {
    if (partial) {
      const size_t at = static_cast<size_t>(vnet.checksumStart) + vnet.checksumOffset;
      if (vnet.checksumStart >= bytes || at + 2 > bytes) return frame;
      // The field holds the pseudo-header's sum and is part of what is summed.
      uint16_t checksum = static_cast<uint16_t>(~foldOnes(onesSum(data + vnet.checksumStart, bytes - vnet.checksumStart, 0)));
      if (checksum == 0 && vnet.checksumOffset == 6) checksum = 0xffff;
      store(data + at, checksum);
    }
    frame.segments = 1;
    return frame;
  }
  if (bytes < 20) return frame;
  frame.six = data[0] >> 4 == 6;
  if (!frame.six && data[0] >> 4 != 4) return frame;
  if (frame.six && bytes < 40) return frame;
  if ((type == kGsoTcp4 && frame.six) || (type == kGsoTcp6 && !frame.six)) return frame;
  if (type != kGsoTcp4 && type != kGsoTcp6 && type != kGsoUdp) return frame;
  frame.udp = type == kGsoUdp;
  const size_t least = frame.six ? 40 : static_cast<size_t>(data[0] & 15) * 4;
  if (least < 20) return frame;
  frame.transport = partial ? vnet.checksumStart : least;
  if (frame.transport < least || frame.transport + (frame.udp ? 8 : 20) > bytes) return frame;
  frame.headers = frame.transport + (frame.udp ? 8 : static_cast<size_t>(data[frame.transport + 12] >> 4) * 4);
  if (frame.headers < frame.transport + (frame.udp ? 8 : 20) || frame.headers >= bytes || vnet.gsoSize == 0) return frame;
  frame.gso = true;
  frame.size = vnet.gsoSize;
  frame.segments = (bytes - frame.headers + frame.size - 1) / frame.size;
  takeFields(&frame, partial);
  return frame;
}

size_t segmentBytes(const Frame& frame, size_t index) {
  if (!frame.gso) return frame.bytes;
  const size_t rest = frame.bytes - frame.headers - index * frame.size;
  return frame.headers + (rest < frame.size ? rest : frame.size);
}

void writeSegment(const Frame& frame, size_t index, uint8_t* out) {
  if (!frame.gso) {
    memcpy(out, frame.data, frame.bytes);
    return;
  }
  // Sums are made of values, not read back: what was just written is not there yet for wider reads.
  const size_t bytes = segmentBytes(frame, index);
  const size_t length = bytes - frame.transport;
  memcpy(out, frame.data, frame.headers);
  if (frame.six) {
    put16(out + 4, bytes - 40);
  } else {
    const size_t id = frame.id + index;
    put16(out + 2, bytes);
    put16(out + 4, id);
    store(out + 10, static_cast<uint16_t>(~foldOnes(frame.networkSum + onesOfField(bytes) + onesOfField(id))));
  }
  uint8_t* header = out + frame.transport;
  uint64_t sum = frame.transportSum + onesOfField(length);
  uint8_t* checksum;
  if (frame.udp) {
    put16(header + 4, length);
    sum += onesOfField(length);
    checksum = header + 6;
  } else {
    const uint32_t sequence = frame.sequence + static_cast<uint32_t>(index * frame.size);
    uint8_t flags = frame.flags;
    if (index + 1 < frame.segments) flags &= static_cast<uint8_t>(~(kFin | kPsh));
    if (index > 0) flags &= static_cast<uint8_t>(~kCwr);
    put32(header + 4, sequence);
    header[13] = flags;
    sum += onesOfField(sequence >> 16) + onesOfField(sequence) + onesOfField(flags);
    checksum = header + 16;
  }
  const uint8_t* payload = frame.data + frame.headers + index * frame.size;
  uint16_t value = static_cast<uint16_t>(~foldOnes(copyOnesSum(out + frame.headers, payload, bytes - frame.headers, sum)));
  if (value == 0 && frame.udp) value = 0xffff;
  store(checksum, value);
}

Flow readFlow(const uint8_t* data, size_t bytes) {
  Flow flow;
  if (bytes < 28) return flow;
  flow.six = data[0] >> 4 == 6;
  uint8_t protocol;
  if (flow.six) {
    if (bytes < 48 || static_cast<size_t>(get16(data + 4)) + 40 != bytes) return flow;
    protocol = data[6];
    flow.transport = 40;
  } else {
    // No options, no fragments (MF or an offset), no trailing bytes.
    if (data[0] != 0x45 || get16(data + 2) != bytes || (get16(data + 6) & 0x3fff)) return flow;
    protocol = data[9];
    flow.transport = 20;
  }
  const uint8_t* header = data + flow.transport;
  if (protocol == kUdp) {
    flow.udp = true;
    flow.headers = flow.transport + 8;
    if (get16(header + 4) != bytes - flow.transport || get16(header + 6) == 0) return flow;
  } else if (protocol == kTcp) {
    if (bytes < flow.transport + 20) return flow;
    const uint8_t flags = header[13];
    flow.headers = flow.transport + static_cast<size_t>(header[12] >> 4) * 4;
    if (flow.headers < flow.transport + 20 || (flags & ~(kPsh | kFin)) != kAck || (header[12] & 15)) return flow;
    flow.ends = flags & (kPsh | kFin);
  } else {
    return flow;
  }
  if (bytes > flow.headers) flow.payload = bytes - flow.headers;
  return flow;
}

bool continues(const Flow& first, const uint8_t* a, const Flow& next, const uint8_t* b, size_t count) {
  if (next.payload == 0 || next.payload > first.payload || first.six != next.six || first.udp != next.udp ||
      first.headers != next.headers) {
    return false;
  }
  if (first.six) {
    // Traffic class and flow label; next header, hop limit and addresses.
    if (memcmp(a, b, 4) != 0 || memcmp(a + 6, b + 6, 34) != 0) return false;
  } else if (a[1] != b[1] || memcmp(a + 6, b + 6, 4) != 0 || memcmp(a + 12, b + 12, 8) != 0) {
    return false;  // TOS; DF, TTL, protocol; addresses
  } else if (!(a[6] & kDontFragment) && get16(b + 4) != static_cast<uint16_t>(get16(a + 4) + count)) {
    // Where the kernel cuts them again it numbers them one after the other. By its number a packet is told from others of which
    // fragments are on their way; what is not to be fragmented needs none (RFC 6864).
    return false;
  }
  const uint8_t* left = a + first.transport;
  const uint8_t* right = b + first.transport;
  if (memcmp(left, right, 4) != 0) return false;
  if (first.udp) return true;
  const size_t length = first.headers - first.transport;
  return get32(right + 4) == get32(left + 4) + static_cast<uint32_t>(count * first.payload) &&
         memcmp(left + 8, right + 8, 5) == 0 &&         // acknowledgment, header length
         memcmp(left + 14, right + 14, 2) == 0 &&       // window
         memcmp(left + 18, right + 18, length - 18) == 0;  // urgent pointer, options
}

bool checksumsHold(const Flow& flow, const uint8_t* data, size_t bytes) {
  // A joined frame gets a header checksum of its own: it would pass a damaged header off as a good one.
  if (!flow.six && foldOnes(onesSumOfFew(data, 20, 0)) != 0xffff) return false;
  const size_t length = bytes - flow.transport;
  return foldOnes(onesSum(data + flow.transport, length, pseudo(data, flow.six, flow.udp ? kUdp : kTcp, length))) == 0xffff;
}

VnetHeader joinHeaders(const Flow& first, const uint8_t* firstData, const uint8_t* lastData, size_t payload, uint8_t* out) {
  memcpy(out, firstData, first.headers);
  const size_t bytes = first.headers + payload;
  const size_t length = bytes - first.transport;
  finishIp(out, first.six, bytes);
  uint8_t* header = out + first.transport;
  if (first.udp) {
    put16(header + 4, length);
  } else {
    header[13] |= lastData[first.transport + 13] & (kPsh | kFin);
  }
  const uint16_t offset = first.udp ? 6 : 16;
  store(header + offset, foldOnes(pseudo(out, first.six, first.udp ? kUdp : kTcp, length)));
  return {kNeedsChecksum,
          first.udp   ? kGsoUdp
          : first.six ? kGsoTcp6
                      : kGsoTcp4,
          static_cast<uint16_t>(first.headers),
          static_cast<uint16_t>(first.payload),
          static_cast<uint16_t>(first.transport),
          offset};
}

}  // namespace penstock
