/**
 * Sockets that send one packet each, longer than the path MTU to its peer behind a router (network namespaces of this process's own,
 * `unshare -n -m`); says as JSON how long each was when it arrived. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { remoteRecord } from '../../dist/src/dataplane/engine/address.js'
import { Packets } from '../../dist/src/dataplane/engine/packets.js'
import { native } from '../../dist/src/dataplane/native/native.js'
import { IO_COUNTERS } from '../../dist/src/dataplane/native/socket-calls.js'
import { waiting } from './built-run.mjs'

/** The kernel learns how long packets may be for each address that they go to. */
const peer = (host) => ({ address: `198.51.100.${host}`, port: 9, family: 4 })
const ANY_V4 = { address: '0.0.0.0', port: 0, family: 4 }
const ANY_V6 = { address: '::', port: 0, family: 6 }
/** By the length of what they send, to the peer of that number. */
const SOCKETS = {
  1401: { family: 4, remote: peer(1) },
  1402: { family: 4, local: ANY_V4 },
  1403: { family: 6, local: ANY_V6 },
}

const ip = (...words) => execFileSync('ip', words.join(' ').split(' '), { stdio: 'pipe' })
for (const name of ['router', 'far']) ip(`netns add ${name}`)
ip('link add cable type veth peer name cable netns router')
ip('-n router link add narrow mtu 1300 type veth peer name narrow mtu 1300 netns far')
for (const link of [
  'link set cable',
  '-n router link set cable',
  '-n router link set narrow',
  '-n far link set narrow',
])
  ip(`${link} up`)
ip('address add 192.0.2.1/24 dev cable')
ip('-n router address add 192.0.2.2/24 dev cable')
ip('-n router address add 198.51.100.9/24 dev narrow')
for (const host of [1, 2, 3]) ip(`-n far address add ${peer(host).address}/24 dev narrow`)
ip('netns exec router sysctl -w net.ipv4.ip_forward=1')
ip('route add default via 192.0.2.2')

const listen = `
  const socket = require('node:dgram').createSocket('udp4')
  socket.on('message', ({ length }) => console.log(length))
  socket.bind(9, () => console.log('ready'))`
const far = spawn('ip', ['netns', 'exec', 'far', process.execPath, '-e', listen], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
process.on('exit', () => far.kill('SIGKILL'))
const told = []
createInterface({ input: far.stdout }).on('line', (line) => told.push(line))
const until = waiting(() => told.join(' '))
await until('the peer listens', () => told.length > 0)

const owner = native.ownerOpen()
const packets = new Packets({ slots: 16, mtu: 1500 })
const memory = native.memoryOpen(packets)
const counters = new Float64Array(IO_COUNTERS.length)
for (const [length, options] of Object.entries(SOCKETS)) {
  const packet = packets.allocate()
  packets.append(packet, Number(length))
  packets.setRemote(packet, remoteRecord(peer(length % 1400)))
  const socket = native.udpOpen(owner, { backend: 2, mtu: 1500, ...options })
  native.udpSend(socket, memory, Int32Array.of(packet), 0, 1, counters)
}
await until('all have arrived', () => told.length > Object.keys(SOCKETS).length)
native.ownerRelease(owner)
far.kill('SIGKILL')
console.log(JSON.stringify(told.slice(1).map(Number)))
