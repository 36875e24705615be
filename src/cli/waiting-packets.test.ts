import { expect, test } from 'vitest'
import { MAX_WAITING_BYTES, WaitingPackets } from './waiting-packets.ts'

const packet = (n: number, bytes = 1000) => ({ n, data: new Uint8Array(bytes) })
const numbers = (packets: readonly { n: number }[] | undefined) => packets?.map(({ n }) => n)

test('come in order, once there are any, and end when no more will come', async () => {
  const waiting = new WaitingPackets<ReturnType<typeof packet>>()
  const first = waiting.next()
  waiting.add([])
  waiting.add([packet(1), packet(2)])
  expect(numbers(await first)).toEqual([1, 2])
  waiting.add([packet(3)])
  waiting.end()
  expect(numbers(await waiting.next())).toEqual([3])
  expect(await waiting.next()).toBe(undefined)
  expect([waiting.accepted, waiting.dropped]).toEqual([3, 0])
})

test('the end wakes who waits for the next', async () => {
  const waiting = new WaitingPackets<ReturnType<typeof packet>>()
  const next = waiting.next()
  waiting.end()
  expect(await next).toBe(undefined)
})

test('what finds no room is dropped; those handed out give theirs back when they are taken', async () => {
  const waiting = new WaitingPackets<ReturnType<typeof packet>>()
  const half = MAX_WAITING_BYTES / 2
  waiting.add([packet(1, half), packet(2, half), packet(3, 1)])
  expect([waiting.accepted, waiting.dropped]).toEqual([2, 1])
  expect(numbers(await waiting.next())).toEqual([1, 3])
  waiting.add([packet(4, half)])
  expect(waiting.dropped).toBe(2)
  const next = waiting.next()
  waiting.add([packet(5, half)])
  expect(numbers(await next)).toEqual([5])
  expect([waiting.accepted, waiting.dropped]).toEqual([3, 2])
})

test('packets without a byte take room too', () => {
  const waiting = new WaitingPackets<ReturnType<typeof packet>>()
  waiting.add(Array.from({ length: 100_000 }, (_, n) => packet(n, 0)))
  expect(waiting.accepted).toBeLessThan(20_000)
  expect(waiting.accepted + waiting.dropped).toBe(100_000)
})
