/**
 * A socket at all addresses of the machine sends to two peers without end, one of IPv4 and one of IPv6 (in a namespace of this process's own, `unshare -n -m`); says
 * as JSON from where each heard it: before it had said anything, once it had asked at another address, and once the machine had lost that. Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { startBuilt, waiting } from './built-run.mjs'

const ip = (...words) => execFileSync('ip', words.join(' ').split(' '), { stdio: 'pipe' })
const ASKED = { udp4: '192.0.2.7', udp6: '2001:db8::7' }
ip(`address add ${ASKED.udp4}/32 dev lo`)
ip(`-6 address add ${ASKED.udp6}/128 dev lo nodad`)

const peers = await Promise.all(
  ['udp4', 'udp6'].map(async (type) => {
    const socket = dgram.createSocket(type)
    const peer = { type, socket, from: undefined }
    socket.on('message', (_bytes, { address }) => {
      peer.from = address
    })
    socket.bind(0, type === 'udp4' ? '127.0.0.1' : '::1')
    await once(socket, 'listening')
    return peer
  }),
)

const until = waiting(() => peers.map(({ from }) => from))

const sources = peers.flatMap(({ type, socket }) => {
  const { address, port } = socket.address()
  const to = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  return [
    // Several of equal size in each millisecond: a train.
    [
      `${type} source`,
      { throughput_traffic_source: { output: `${type} fresh`, throughput_mbit: 32, payload_size: 1000 } },
    ],
    [`${type} peer`, { peer_writer: { input: `${type} fresh`, output: `${type} addressed`, remote_address: to } }],
  ]
})
const pipeline = {
  ...Object.fromEntries(sources),
  join: { flow_combiner: { inputs: ['udp4 addressed', 'udp6 addressed'], output: 'all' } },
  socket: { udp_local: { address: '[::]:7000', input: 'all', output: 'heard' } },
  sink: { traffic_sink: { input: 'heard' } },
}
const warnings = []
const { end } = await startBuilt(pipeline, ({ level, message }) => level === 'WARN' && warnings.push(message), 'WARN')

const result = {}
const heardFrom = () => Object.fromEntries(peers.map(({ type, from }) => [type, from]))
await until('both hear it', () => peers.every(({ from }) => from !== undefined))
result.unasked = heardFrom()
for (const { type, socket } of peers) socket.send('here', 7000, ASKED[type])
await until('each hears it from where it asked', () => peers.every(({ type, from }) => from === ASKED[type]))
ip(`address del ${ASKED.udp4}/32 dev lo`)
ip(`-6 address del ${ASKED.udp6}/128 dev lo`)
await until('each hears it from another address', () => peers.every(({ type, from }) => from !== ASKED[type]))
result.lost = heardFrom()
result.warnings = warnings
const { ended, descriptors } = await end()
Object.assign(result, { end: ended.outcome, descriptors })
for (const { socket } of peers) socket.close()
console.log(JSON.stringify(result))
