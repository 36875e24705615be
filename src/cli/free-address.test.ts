/** Ports for listeners that come and go: of nobody else, now and later. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freeAddress } from './free-address.ts'

const [lowest] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/).map(Number)
const portOf = (address: string) => Number(address.split(':')[1])

/** One after the other. */
const drawn =
  (...values: number[]) =>
  () =>
    values.shift() ?? expect.fail('one more was drawn')

test('is none of those that the system gives to whoever connects or listens', async () => {
  for (const value of [0, 0.5, 1 - 2 ** -53]) {
    const draw = drawn(value, ...[1, 2, 3].map(Math.random))
    const port = portOf(await freeAddress(draw))
    expect(port).toBeGreaterThanOrEqual(10_000)
    expect(port).toBeLessThan(lowest as number)
  }
})

test('is given once, and not where somebody listens', async () => {
  const all = await Promise.all([1, 2, 3].map(() => freeAddress(drawn(0.123, ...[1, 2, 3, 4].map(Math.random)))))
  expect(new Set(all).size).toBe(3)
  const value = 0.321
  const taken = 10_000 + Math.floor(value * ((lowest as number) - 10_000))
  const other = createServer().listen(taken, '127.0.0.1')
  await once(other, 'listening')
  try {
    expect(portOf(await freeAddress(drawn(value, ...[1, 2, 3].map(Math.random))))).not.toBe(taken)
  } finally {
    other.close()
  }
})
