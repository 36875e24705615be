/**
 * Packets that the kernel forwards from a TUN device with offload to one without (a network namespace of this process's own, `unshare -n`); says as JSON
 * which of them have come, with which identifications, and whether their checksums are right. Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { Packets } from '../../dist/src/dataplane/engine/packets.js'
import { native } from '../../dist/src/dataplane/native/native.js'
import { IO_COUNTERS } from '../../dist/src/dataplane/native/socket-calls.js'

const SECOND = 1e9
/** The identification of each packet; all may be fragmented on their way. */
const SENT = JSON.parse(process.argv[2])

writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
// The source is a neighbour of the first device.
for (const which of ['all', 'default']) writeFileSync(`/proc/sys/net/ipv4/conf/${which}/rp_filter`, '0')

const owner = native.ownerOpen()
const packets = new Packets({ slots: 64, mtu: 1500 })
const memory = native.memoryOpen(packets)
const open = (name, address, offload) =>
  native.tunOpen(owner, { kind: 'tun', name, address, prefix: 24, mtu: 1500, defaultRoute: false, offload })
const from = open('from', '10.99.1.1', true)
const to = open('to', '10.99.2.1', false)
// Of IPv6 nothing is said there.
execFileSync('ip', ['link', 'set', 'to', 'addrgenmode', 'none'])

function sum(words) {
  let total = words.reduce((sum, word) => sum + word, 0)
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16)
  return ~total & 0xffff
}
const words = (bytes) => Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readUInt16BE(2 * i))
const isRight = (bytes) =>
  sum(words(bytes.subarray(0, 20))) === 0 && sum([...words(bytes.subarray(12)), 17, 1008]) === 0

/** A UDP packet of 1,000 bytes of payload whose first says which it is. */
function packet(index, id) {
  const bytes = Buffer.alloc(1028)
  bytes.set([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 99, 1, 2, 10, 99, 2, 2])
  bytes.writeUInt16BE(bytes.length, 2)
  bytes.writeUInt16BE(id, 4)
  bytes.writeUInt16BE(sum(words(bytes.subarray(0, 20))), 10)
  bytes.writeUInt16BE(7, 20)
  bytes.writeUInt16BE(9, 22)
  bytes.writeUInt16BE(1008, 24)
  bytes[28] = index
  bytes.writeUInt16BE(sum([...words(bytes.subarray(12)), 17, 1008]), 26)
  return bytes
}

const counters = new Float64Array(IO_COUNTERS.length)
const handles = Int32Array.from(SENT, (id, index) => {
  const bytes = packet(index, id)
  const handle = packets.allocate()
  packets.data.set(bytes, packets.append(handle, bytes.length))
  return handle
})
native.tunSend(from, memory, handles, 0, handles.length, counters)

const poller = native.pollerOpen(owner)
native.pollerAdd(poller, to, 1)
const ready = new Int32Array(1)
const taken = new Int32Array(64)
const came = []
while (came.length < SENT.length && native.pollerWait(poller, 20 * SECOND, ready) > 0) {
  const count = native.tunReceive(to, memory, taken, taken.length, 0, counters)
  for (const handle of taken.subarray(0, count)) {
    const at = packets.offset[handle]
    const bytes = Buffer.from(packets.data.buffer, packets.data.byteOffset + at, packets.length[handle])
    if (bytes[0] === 0x45 && bytes[9] === 17) came.push([bytes[28], bytes.readUInt16BE(4), isRight(bytes)])
    packets.release(handle)
  }
}
native.ownerRelease(owner)
console.log(JSON.stringify(came))
