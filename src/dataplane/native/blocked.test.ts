/** What a socket does while its interface is slower than the sender; in a network namespace of its own, needs root, unshare, ip and tc. */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../package-root.ts'

const SHAPE = 'ip link set lo up && tc qdisc add dev lo root tbf rate 40mbit burst 20kb latency 60s'
const probe = spawnSync('unshare', ['-n', 'sh', '-c', SHAPE], { encoding: 'utf8' })
const missing = probe.status === 0 ? undefined : (probe.error?.message ?? probe.stderr.trim())
if (missing) console.warn(`BLOCKED SENDER TESTS ARE SKIPPED: ${missing}`)

const SCRIPT = `
const native = require(${JSON.stringify(createRequire(import.meta.url).resolve('node-gyp-build'))})(${JSON.stringify(packageRoot())})
const backend = Number(process.argv[1])
const slots = 1100, slotBytes = 2048, count = 500
const shared = (Type, length) => new Type(new SharedArrayBuffer(length * Type.BYTES_PER_ELEMENT))
const memory = {
  data: shared(Uint8Array, slots * slotBytes), offset: shared(Int32Array, slots), length: shared(Int32Array, slots),
  arrival: shared(Float64Array, slots), remote: shared(Uint8Array, slots * 32), client: shared(Float64Array, slots), free: shared(Int32Array, slots + 1),
  train: shared(Int32Array, slots), trainReferences: shared(Int32Array, 0), trainFree: shared(Int32Array, 1),
  slotBytes, headroom: 128, tailroom: 64,
}
memory.free[0] = slots - count
for (let i = 0; i < slots - count; i++) memory.free[i + 1] = count + i + (i + 1) - slots
const handles = Int32Array.from({ length: count }, (_, i) => i)
for (const h of handles) {
  memory.offset[h] = h * slotBytes + 128
  memory.length[h] = h % 50 === 49 ? 900 : 1000
  memory.data.fill(h & 255, h * slotBytes, (h + 1) * slotBytes)
}
const id = native.memoryOpen(memory), owner = native.ownerOpen(), poller = native.pollerOpen(owner)
const local = { address: '127.0.0.1', port: 0 }
const receiver = native.udpOpen(owner, { backend: 2, family: 4, local, mtu: 1500, bufferBytes: 8 << 20 })
const remote = { address: '127.0.0.1', port: native.udpAddress(receiver).port }
const sender = native.udpOpen(owner, { backend, family: 4, remote, mtu: 1500, bufferBytes: 4096 })
native.pollerAdd(poller, sender, 0)
native.pollerWatchWrite(poller, sender, true)
const counters = new Float64Array(9), ready = new Int32Array(1)
const first = native.udpSend(sender, id, handles, 0, count, counters)
const freeAfterFirst = memory.free[0], blockedAfterFirst = counters[4]
let sent = first, waits = 0
while (sent < count) {
  if (native.pollerWait(poller, 10e9, ready) !== 1 || ready[0] !== -1) throw new Error('never writable')
  waits++
  sent += native.udpSend(sender, id, handles, sent, count - sent, counters)
}
const freeAtEnd = memory.free[0]
native.pollerRemove(poller, sender)
native.pollerAdd(poller, receiver, 1)
const got = new Int32Array(256), received = []
while (received.length < count && native.pollerWait(poller, 10e9, ready) === 1) {
  const taken = native.udpReceive(receiver, id, got, 256, 0, new Float64Array(9))
  for (let i = 0; i < taken; i++) received.push([memory.length[got[i]], memory.data[memory.offset[got[i]]]])
}
console.log(JSON.stringify({ first, freeAfterFirst, blockedAfterFirst, waits, freeAtEnd, sendErrors: counters[3], received }))
`

describe('a sender faster than its interface', () => {
  for (const [name, backend] of [
    ['GENERIC', 0],
    ['LINUX_NO_GRO', 1],
    ['LINUX', 2],
  ] as const) {
    test(`${name}: keeps what does not fit with the caller, and every packet arrives once and in order`, (context) => {
      if (missing) return context.skip()
      const command = `${SHAPE} && exec "$0" -e "$1" "$2"`
      const run = spawnSync('unshare', ['-n', 'sh', '-c', command, process.execPath, SCRIPT, String(backend)], {
        encoding: 'utf8',
        timeout: 20_000,
      })
      expect(run.stderr).toBe('')
      const result = JSON.parse(run.stdout)
      expect(result.first).toBeLessThan(500)
      expect(result.blockedAfterFirst).toBe(1)
      expect(result.freeAfterFirst).toBe(600 + result.first)
      expect(result.waits).toBeGreaterThan(0)
      expect(result.freeAtEnd).toBe(1100)
      expect(result.sendErrors).toBe(0)
      expect(result.received).toEqual(Array.from({ length: 500 }, (_, i) => [i % 50 === 49 ? 900 : 1000, i & 255]))
    })
  }
})
