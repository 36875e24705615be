/** What an outlet gathers before it sends it. */
import { expect, test } from 'vitest'
import { ComponentError } from './component-error.ts'
import { Outlet } from './outlet.ts'
import { Packets } from './packets.ts'

const SLOTS = 900

/** The sizes of the batches that leave, and all packets of them in their order. */
function gathering(send: (outlet: Outlet, all: Int32Array) => void) {
  const packets = new Packets({ slots: SLOTS, mtu: 64 })
  const values = new Float64Array(2)
  const outlet = new Outlet(packets, values, 0)
  const sizes: number[] = []
  const sent: number[] = []
  outlet.connect(
    (batch) => {
      sizes.push(batch.length)
      sent.push(...batch.handles.subarray(0, batch.length))
      expect(batch.bytes).toBe(2 * batch.length)
      packets.releaseAll(batch)
    },
    () => {},
    (thrown) => new ComponentError('end', 'end', thrown),
  )
  const all = Int32Array.from({ length: SLOTS }, () => packets.allocate())
  for (const packet of all) packets.append(packet, 2)
  send(outlet, all)
  outlet.flush()
  return { sizes, sent, all, counted: [...values] }
}

test.each([[1], [63], [64], [65, 1], [255, 1], [256], [257], [100, 200, 300, 300], [5, 64, 600, 7]])(
  'packets gathered by pushAll of %i, … leave in their order, 256 at a time',
  (...counts) => {
    let from = 0
    const { sizes, sent, all, counted } = gathering((outlet, packets) => {
      for (const count of counts) {
        outlet.pushAll(packets, from, from + count)
        from += count
      }
    })
    expect(sent).toEqual([...all.subarray(0, from)])
    expect(sizes).toEqual([...Array(Math.floor(from / 256)).fill(256), ...(from % 256 > 0 ? [from % 256] : [])])
    expect(counted).toEqual([from, 2 * from])
  },
)

test('packets gathered one by one and many at once leave in the order in which they were gathered', () => {
  const { sizes, sent, all } = gathering((outlet, packets) => {
    outlet.push(packets[0])
    outlet.pushAll(packets, 1, 301)
    outlet.push(packets[301])
  })
  expect(sent).toEqual([...all.subarray(0, 302)])
  expect(sizes).toEqual([256, 46])
})

test('gathering many packets at once leaves no garbage', () => {
  const CALLS = 20_000
  const packets = new Packets({ slots: SLOTS, mtu: 64 })
  const outlet = new Outlet(packets, new Float64Array(2), 0)
  outlet.connect(
    () => {},
    () => {},
    (thrown) => new ComponentError('end', 'end', thrown),
  )
  const all = Int32Array.from({ length: 200 }, () => packets.allocate())
  const gather = () => {
    for (let n = 0; n < CALLS; n++) outlet.pushAll(all, 0, all.length)
  }
  // The compiler makes some while it warms up; in a round that the collector interrupts none is seen.
  const grown = Array.from({ length: 6 }, () => {
    const before = process.memoryUsage().heapUsed
    gather()
    return process.memoryUsage().heapUsed - before
  })
  // A view a call would be 2 MB.
  expect(Math.max(...grown.slice(1))).toBeLessThan(500_000)
})
