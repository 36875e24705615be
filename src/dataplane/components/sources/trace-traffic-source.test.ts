/** trace_traffic_source: what is sent, when, how often, and what is said of a file that cannot be replayed; on the virtual clock. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ethernet, type Frame, ipv4, ipv6, pcap } from '../../../../test/harness/captures.ts'
import { drive } from '../../../../test/harness/component.ts'

const MS = 1e6
const SECOND = 1e9
const directory = mkdtempSync(join(tmpdir(), 'penstock-trace-'))
let files = 0

function fileOf(bytes: string | Uint8Array): string {
  const path = join(directory, `capture-${files++}`)
  writeFileSync(path, bytes)
  return path
}

function replay(trace_file: string, config: Record<string, unknown> = {}) {
  return drive({ source: { trace_traffic_source: { output: 'out', trace_file, ...config } } })
}

const frame = (ms: number, bytes: Uint8Array): Frame => ({ time: [7, ms * 1000], bytes })
const V4 = 0x0800
const small = pcap([frame(1, ethernet(V4, ipv4(41, 1))), frame(4, ethernet(0x86dd, ipv6(99, 2), [0x8100]))])

test('packets leave as they were recorded, byte for byte and at their times', () => {
  const frames = Array.from({ length: 700 }, (_, i) => frame(100 + i * 3, ethernet(V4, ipv4(20 + i * 13, i & 255))))
  const bench = replay(fileOf(pcap(frames)))
  bench.advance(10 * SECOND)
  const out = bench.take('out')
  expect(out).toHaveLength(700)
  out.forEach(({ bytes, time, arrival }, i) => {
    expect(time).toBe(i * 3 * MS)
    expect(arrival).toBe(time)
    expect(Buffer.compare(bytes, ipv4(20 + i * 13, i & 255))).toBe(0)
  })
  expect(bench.metrics().source).toMatchObject({ generated_packets: 700, finished: 1, starved_packets: 0 })
  expect(bench.over).toBe(true)
  expect(bench.stop()).toEqual({ outcome: 'COMPLETED' })
})

test('of a list the packets are probes of its sizes', () => {
  const bench = replay(fileOf('0,32\n0,1400\n2.5,9216\n'), { seed: 3 })
  bench.advance(SECOND)
  const out = bench.take('out')
  expect(out.map(({ time, bytes }) => [time / MS, bytes.length])).toEqual([
    [0, 32],
    [0, 1400],
    [2.5, 9216],
  ])
  out.forEach(({ bytes }, i) => {
    const view = new DataView(bytes.buffer)
    expect([view.getUint32(0), view.getUint32(12), view.getUint32(24)]).toEqual([0x504e534b, i, bytes.length])
  })
  expect(bench.packets.held).toBe(0)
  bench.stop()
})

test('what cannot be sent is counted, not sent', () => {
  const cut: Frame = { ...frame(2, ethernet(V4, ipv4(60)).subarray(0, 50)), original: 74 }
  const bench = replay(
    fileOf(
      pcap([
        frame(0, ethernet(0x0806, ipv4(30))),
        frame(1, ethernet(V4, ipv4(9217))),
        cut,
        frame(9, ethernet(V4, ipv4(33))),
      ]),
    ),
  )
  bench.advance(SECOND)
  expect(bench.received('out').map(({ bytes, time }) => [bytes.length, time])).toEqual([[33, 0]])
  expect(bench.metrics().source).toMatchObject({ skipped_frames: 1, unsendable_packets: 2, generated_packets: 1 })
  bench.stop()
})

describe('loops', () => {
  const timesOf = (config: Record<string, unknown>, until = 100 * MS) => {
    const bench = replay(fileOf(small), config)
    bench.advance(until)
    const times = bench.received('out').map(({ time }) => time / MS)
    const { over } = bench
    bench.stop()
    return { times, over }
  }

  test('once unless said otherwise', () => {
    expect(timesOf({})).toEqual({ times: [0, 3], over: true })
  })

  test('so often, loop_delay from the last packet to the first', () => {
    expect(timesOf({ loops: 3, loop_delay: 5 })).toEqual({ times: [0, 3, 8, 11, 16, 19], over: true })
    expect(timesOf({ loops: 3 })).toEqual({ times: [0, 3, 3, 6, 6, 9], over: true })
  })

  test('0 is for ever', () => {
    expect(timesOf({ loops: 0, loop_delay: 7 }, 49 * MS)).toEqual({
      times: [0, 3, 10, 13, 20, 23, 30, 33, 40, 43],
      over: false,
    })
  })

  test('for ever and at one moment is refused, and so is a change to it', () => {
    const file = fileOf('5,64\n5,64\n')
    const refusal = /loops 0 plays for ever what takes no time, .*: set loop_delay to 1 or more, or loops/
    expect(() => replay(file, { loops: 0 })).toThrow(refusal)
    const bench = replay(file, { loops: 0, loop_delay: 1 })
    const source = { trace_traffic_source: { output: 'out', trace_file: file, loops: 0 } }
    expect(() => bench.reconfigure({ source })).toThrow(refusal)
    bench.advance(3 * MS)
    expect(bench.received('out')).toHaveLength(8)
    bench.stop()
  })

  test('what is changed beside it goes on as before where that is refused', () => {
    const file = fileOf('5,64\n5,64\n')
    const pipeline = (total_packets: number, type: string, client_id: number[], loops: number) => ({
      counted: { uniform_traffic_source: { output: 'counted', interval: 1, total_packets } },
      injector: { notification_injector: { flows: [{ input: 'in', output: 'notified' }], notification: { type } } },
      relay: {
        relay_network_lookup: {
          network: { input: 'net', output: 'to net' },
          client: { input: 'for clients', output: 'from clients' },
          client_id,
        },
      },
      source: { trace_traffic_source: { output: 'out', trace_file: file, loops, loop_delay: loops === 0 ? 0 : 1 } },
    })
    const bench = drive(pipeline(0, 'FLUSH', [7], 1))
    bench.send('net', Uint8Array.of(0, 0, 0, 7), { remote: '192.0.2.1:5000' })
    bench.advance(5 * MS)
    expect(() => bench.reconfigure(pipeline(3, 'RESET', [8], 0))).toThrow(/loops 0 plays for ever/)
    bench.advance(5 * MS)
    expect([bench.received('counted').length, bench.notifications('notified')]).toEqual([11, ['FLUSH']])
    bench.send('for clients', Uint8Array.of(1), { client: 7 })
    expect(bench.received('to net').map(({ remote }) => remote)).toEqual(['192.0.2.1:5000'])
    bench.stop()
  })

  test('a pause that is over by its new length ends at once, and what follows has its times', () => {
    const file = fileOf(Array.from({ length: 100 }, (_, i) => `${i},64\n`).join(''))
    const source = (loop_delay: number) => ({
      source: { trace_traffic_source: { output: 'out', trace_file: file, loops: 0, loop_delay } },
    })
    const bench = drive(source(10_000))
    bench.advance(5 * SECOND)
    bench.take('out')
    bench.reconfigure(source(1))
    bench.advance(3 * MS)
    expect(bench.take('out').map(({ time }) => time / MS)).toEqual([5000, 5001, 5002, 5003])
    expect(bench.metrics().source.skipped_ms).toBe(0)
    bench.stop()
  })

  test('a pause that is on takes another length, or is the end when nothing is to follow', () => {
    const file = fileOf(small)
    const source = (loops: number, loop_delay: number) => ({
      source: { trace_traffic_source: { output: 'out', trace_file: file, loops, loop_delay } },
    })
    const bench = drive(source(0, 80_000_000))
    bench.advance(10 * MS)
    bench.reconfigure(source(0, 17))
    bench.advance(20 * MS)
    expect(bench.take('out').map(({ time }) => time / MS)).toEqual([0, 3, 20, 23])
    bench.reconfigure(source(2, 17))
    expect(bench.over).toBe(true)
    expect(bench.metrics().source.finished).toBe(1)
    bench.stop()
  })
})

test('packets of one moment, more than a batch of them, all leave at it', () => {
  const bench = replay(fileOf('0,64\n'.repeat(1000)))
  bench.advance(1)
  expect(bench.received('out').map(({ time }) => time)).toEqual(Array.from({ length: 1000 }, () => 0))
  bench.stop()
})

test('a run that was held up sends one batch of what it has missed, and plays the rest from then on as it was recorded', () => {
  const bench = replay(fileOf(Array.from({ length: 1000 }, (_, i) => `${i},64\n`).join('')))
  bench.advance(0)
  // Nothing of the run has its turn meanwhile.
  bench.simulation.clock.advanceTo(500 * MS)
  bench.advance(10 * MS)
  expect(bench.received('out').map(({ time }) => time / MS)).toEqual([
    0,
    ...Array.from({ length: 256 }, () => 500),
    ...Array.from({ length: 11 }, (_, i) => 500 + i),
  ])
  expect(bench.metrics().source.skipped_ms).toBe(243)
  bench.stop()
})

test('without free slots a packet is counted as not sent, and the next leaves at its time', () => {
  const bench = replay(fileOf(small))
  const taken: number[] = []
  while (bench.packets.available > 0) taken.push(bench.packets.allocate())
  bench.advance(MS)
  for (const packet of taken) bench.packets.release(packet)
  bench.advance(9 * MS)
  expect(bench.received('out').map(({ time }) => time / MS)).toEqual([3])
  expect(bench.metrics().source).toMatchObject({ generated_packets: 1, starved_packets: 1, finished: 1 })
  bench.stop()
})

describe('a file that cannot be replayed', () => {
  const refused = (file: string) => {
    try {
      replay(file)
    } catch (error) {
      return (error as Error).message
    }
    throw new Error('it was not refused')
  }

  test('is named, with what is wrong, where, and what to do', () => {
    const none = join(directory, 'none')
    expect(refused(none)).toBe(
      `component "source" (trace_traffic_source): cannot read ${none}: it does not exist; put it there, or correct its name`,
    )
    const damaged = fileOf('1,64\n1,x\n')
    expect(refused(damaged)).toBe(
      `component "source" (trace_traffic_source): cannot replay ${damaged}: line 2: "1,x" is no "time_ms,size", as in 12.5,1200`,
    )
    expect(refused(directory)).toContain('it is no regular file; name one')
    expect(refused('/dev/zero')).toContain('it is no regular file; name one')
    const circle = join(directory, 'circle')
    symlinkSync(circle, circle)
    expect(refused(circle)).toContain('its symbolic links lead in a circle')
    mkdirSync(join(directory, 'below'))
    expect(refused(join(damaged, 'x'))).toContain('a part of its path is no directory')
  })

  test('a pipe that nobody writes is not waited for', () => {
    const pipe = join(directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(refused(pipe)).toContain('it is no regular file; name one')
  })

  test('is refused when it has more than 512 MiB, before it is read', () => {
    const large = fileOf('')
    truncateSync(large, 536_870_913)
    expect(refused(large)).toContain('it has 536870913 bytes, 536870912 are taken at most; cut it into several files')
  })
})
