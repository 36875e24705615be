/** Delays of real runs: a packet may leave late, for the machine is shared, but never early. */
import { afterAll, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { Peer, startRun, testPool } from './running.ts'

const pool = testPool()
afterAll(() => pool.close())

const DELAY_MS = 40
const PACKETS = 120

/** Nanoseconds on CLOCK_MONOTONIC, which penstock's runs live by too. */
const now = (): bigint => process.hrtime.bigint()

it.each(['GENERIC', 'LINUX_NO_GRO', 'LINUX'])(
  'no packet leaves before its delay, however busy the run is, %s',
  async (backend) => {
    const far = await Peer.open()
    const near = await Peer.open()
    const heard = new Map<number, bigint>()
    far.socket.on('message', (bytes) => heard.set(bytes.readUInt32BE(0), now()))
    const run = await startRun(pool, {
      // Whatever comes to `busy` keeps the run from everything else for 5 ms; what comes to `front` meanwhile waits in the kernel.
      busy: { udp_local: { address: '127.0.0.1:0', output: 'load', backend } },
      slow: { test_slow: { input: 'load', output: 'slowly', milliseconds: 5 } },
      end: { traffic_sink: { input: 'slowly' } },
      front: { udp_local: { address: '127.0.0.1:0', output: 'a', backend } },
      delay: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: DELAY_MS } },
      back: { udp: { remote_address: far.address, input: 'b' } },
    })
    try {
      const sent: bigint[] = []
      for (let i = 0; i < PACKETS; i++) {
        const payload = Buffer.alloc(100)
        payload.writeUInt32BE(i)
        sent.push(now())
        await Promise.all([near.send(run.port('busy'), 'load'), near.send(run.port('front'), payload)])
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await until(() => heard.size === PACKETS, 'all have come')
      const early = sent.map((time, i) => ({
        packet: i,
        early: DELAY_MS - Number((heard.get(i) as bigint) - time) / 1e6,
      }))
      expect(early.filter((packet) => packet.early > 0)).toEqual([])
    } finally {
      await run.stop()
      far.close()
      near.close()
    }
  },
)

it('nor before the sum of its delays, in trains of datagrams and alone', async () => {
  const far = await Peer.open()
  const near = await Peer.open()
  const heard = new Map<number, bigint>()
  far.socket.on('message', (bytes) => heard.set(bytes.readUInt32BE(0), now()))
  const run = await startRun(pool, {
    busy: { udp_local: { address: '127.0.0.1:0', output: 'load' } },
    slow: { test_slow: { input: 'load', output: 'slowly', milliseconds: 5 } },
    end: { traffic_sink: { input: 'slowly' } },
    front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    first: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: 1 } },
    second: { delay_constant: { flows: [{ input: 'b', output: 'c' }], delay: DELAY_MS } },
    back: { udp: { remote_address: far.address, input: 'c' } },
  })
  // What has waited while this one is busy leaves in one piece: the next receives it as a train.
  const joining = await startRun(pool, {
    busy: { udp_local: { address: '127.0.0.1:0', output: 'load' } },
    slow: { test_slow: { input: 'load', output: 'slowly', milliseconds: 5 } },
    end: { traffic_sink: { input: 'slowly' } },
    front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    back: { udp: { remote_address: `127.0.0.1:${run.port('front')}`, input: 'a' } },
  })
  try {
    const sent: bigint[] = []
    for (let i = 0; i < PACKETS; i++) {
      const payload = Buffer.alloc(i % 10 === 0 ? 50 : 100)
      payload.writeUInt32BE(i)
      sent.push(now())
      const isAlone = i % 4 === 0
      const loads = [near.send(run.port('busy'), 'load'), near.send(joining.port('busy'), 'load')]
      await Promise.all([...loads, near.send((isAlone ? run : joining).port('front'), payload)])
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await until(() => heard.size === PACKETS, 'all have come')
    const early = sent.map((time, i) => ({
      packet: i,
      early: DELAY_MS + 1 - Number((heard.get(i) as bigint) - time) / 1e6,
    }))
    expect(early.filter((packet) => packet.early > 0)).toEqual([])
  } finally {
    await joining.stop()
    await run.stop()
    far.close()
    near.close()
  }
})
