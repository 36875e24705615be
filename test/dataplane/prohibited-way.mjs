/**
 * One connected socket whose packets a router refuses to forward, all or those that are too long for the way from there (network namespaces of this
 * process's own, `unshare -n -m`), sent one after the other, each once it is known what has become of the one before; says as JSON what was counted.
 * Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import { Packets } from '../../dist/src/dataplane/engine/packets.js'
import { native } from '../../dist/src/dataplane/native/native.js'
import { IO_COUNTERS } from '../../dist/src/dataplane/native/socket-calls.js'

const SIX = process.argv[2] === '6'
/** Lengths of packets, those of a call with commas between: the first is too long. */
const NARROW = process.argv[3]
const [NEAR, ROUTER, PEER] = SIX
  ? ['2001:db8:1::1', '2001:db8:1::2', '2001:db8:2::1']
  : ['192.0.2.1', '192.0.2.2', '198.51.100.1']
const CALLS = NARROW ? NARROW.split(' ').map((call) => call.split(',').map(Number)) : Array(5).fill([100])
/** How many calls the router answers. */
const ANSWERED = NARROW ? 1 : 5
const SECOND = 1e9

const ip = (...words) => execFileSync('ip', [SIX ? '-6' : '-4', ...words.join(' ').split(' ')], { stdio: 'pipe' })
const bits = SIX ? '64 nodad' : 24
ip('netns add router')
ip('link add cable type veth peer name cable netns router')
ip('link set cable up')
ip('-n router link set cable up')
ip(`address add ${NEAR}/${bits} dev cable`)
ip(`-n router address add ${ROUTER}/${bits} dev cable`)
const [forwards, limit] = SIX
  ? ['net.ipv6.conf.all.forwarding=1', 'net.ipv6.icmp.ratelimit=0']
  : ['net.ipv4.ip_forward=1', 'net.ipv4.icmp_ratelimit=0']
ip(`netns exec router sysctl -w ${forwards} ${limit}`)
if (NARROW) {
  ip('-n router link add narrow mtu 1300 type veth peer name far')
  for (const end of ['narrow', 'far']) ip(`-n router link set ${end} up`)
}
ip(`-n router route add ${NARROW ? `${PEER} dev narrow` : `prohibit ${PEER}`}`)
ip(`route add ${PEER} via ${ROUTER}`)

const owner = native.ownerOpen()
const packets = new Packets({ slots: 16, mtu: 1500 })
const memory = native.memoryOpen(packets)
const socket = native.udpOpen(owner, { backend: 2, family: SIX ? 6 : 4, mtu: 1500, remote: { address: PEER, port: 9 } })
const poller = native.pollerOpen(owner)
native.pollerAdd(poller, socket, 1)
const counters = new Float64Array(IO_COUNTERS.length)
const ready = new Int32Array(1)
let heard = 0
CALLS.forEach((lengths, i) => {
  const handles = Int32Array.from(lengths, (length) => {
    const packet = packets.allocate()
    packets.append(packet, length)
    return packet
  })
  native.udpSend(socket, memory, handles, 0, handles.length, counters)
  if (i < ANSWERED) heard += native.pollerWait(poller, 20 * SECOND, ready)
})
native.ownerRelease(owner)
const { socketErrors, sendErrors } = Object.fromEntries(IO_COUNTERS.map((name, i) => [name, counters[i]]))
console.log(JSON.stringify({ heard, socketErrors, sendErrors, held: packets.held }))
