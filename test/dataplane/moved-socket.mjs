/**
 * One connected socket that follows the way to its peer again and again, while a stranger sends to its port without pause (network namespaces of this
 * process's own, `unshare -n -m`); says as JSON what it has heard. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Packets } from '../../dist/src/dataplane/engine/packets.js'
import { native, REMOTE_BYTES } from '../../dist/src/dataplane/native/native.js'
import { IO_COUNTERS } from '../../dist/src/dataplane/native/socket-calls.js'

const [family = '4', chosen = '0'] = process.argv.slice(2)
const SIX = family === '6'
const NEAR = SIX ? ['2001:db8::1', '2001:db8::3'] : ['192.0.2.1', '192.0.2.3']
const FAR = SIX ? '2001:db8::2' : '192.0.2.2'
const ROUNDS = 40
const ANSWERS = 5

const ip = (...words) => execFileSync('ip', [SIX ? '-6' : '-4', ...words.join(' ').split(' ')], { stdio: 'pipe' })
const bits = SIX ? '64 nodad' : 24
ip('netns add far')
ip('link add cable type veth peer name cable netns far')
ip('link set cable up')
ip('-n far link set cable up')
for (const address of NEAR) ip(`address add ${address}/${bits} dev cable`)
ip(`-n far address add ${FAR}/${bits} dev cable`)
/** Whichever of the two addresses the machine sends from. */
const from = (which) => ip(`route replace ${FAR}/${SIX ? 128 : 32} dev cable src ${NEAR[which]}`)
from(0)

const owner = native.ownerOpen()
const packets = new Packets({ slots: 256, mtu: 1500 })
const memory = native.memoryOpen(packets)
const socket = native.udpOpen(owner, {
  backend: 2,
  family: SIX ? 6 : 4,
  mtu: 1500,
  local: { address: SIX ? '::' : '0.0.0.0', port: Number(chosen) },
  remote: { address: FAR, port: 9000 },
})
const { port } = native.udpAddress(socket)

// The peer answers each datagram with several and says when they have left: they have arrived then.
const peer = `
  const { createSocket } = require('node:dgram')
  const type = '${SIX ? 'udp6' : 'udp4'}'
  const peer = createSocket(type)
  peer.on('message', (bytes, from) => {
    let left = ${ANSWERS}
    for (let i = 0; i < ${ANSWERS}; i++) peer.send('answer', from.port, from.address, () => --left === 0 && console.log('answered'))
  })
  peer.bind(9000, '${FAR}', () => console.log('ready'))`
const stranger = `
  const { createSocket } = require('node:dgram')
  const socket = createSocket('${SIX ? 'udp6' : 'udp4'}')
  socket.on('error', () => {})
  const flood = () => {
    for (let i = 0; i < 50; i++) for (const to of ${JSON.stringify(NEAR)}) socket.send('stray', ${port}, to)
    setImmediate(flood)
  }
  socket.bind(9001, '${FAR}', () => { flood(); console.log('ready') })`
async function start(program) {
  const child = spawn('ip', ['netns', 'exec', 'far', process.execPath, '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.on('exit', () => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}
const answering = await start(peer)
await start(stranger)

const handles = new Int32Array(64)
const counters = new Float64Array(IO_COUNTERS.length)
const result = { answers: 0, strays: 0, moves: 0, settled: 0, places: [] }
/** Takes what waits in the socket; how many of it are the peer's. */
function take() {
  let answers = 0
  for (;;) {
    const count = native.udpReceive(socket, memory, handles, 64, 0, counters)
    if (count === 0) return answers
    for (let i = 0; i < count; i++) {
      const sender = new Uint16Array(packets.remote.buffer, packets.remote.byteOffset + handles[i] * REMOTE_BYTES, 2)[1]
      if (sender === 9000) answers++
      else result.strays++
      packets.release(handles[i])
    }
  }
}
function ask() {
  handles[0] = packets.allocate(4)
  if (native.udpSend(socket, memory, handles, 0, 1, counters) !== 1) throw new Error('not sent')
}
for (let round = 1; round <= ROUNDS; round++) {
  const answered = once(answering.stdout, 'data')
  ask()
  await answered
  // What waits in the socket stays there.
  from(round % 2)
  if (native.udpFollow(socket) === 1) result.moves++
  result.answers += take()
  if (native.udpFollow(socket) === 0) result.settled++
  const address = native.udpAddress(socket)
  result.places.push(`${address.address} ${address.port === port}`)
}
result.places = [...new Set(result.places.map((place, i) => `${i % 2} ${place}`))]
result.refused = counters[IO_COUNTERS.indexOf('sendErrors')]
native.memoryClose(memory)
native.ownerRelease(owner)
result.descriptors = native.openDescriptors()
console.log(JSON.stringify(result))
process.exit()
