/** Ports for listeners that come and go: of nobody else, now and later. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freeAddress } from './free-address.ts'

const lowestOfSystem = 20_000
const portOf = (address: string) => Number(address.split(':')[1])

/** One after the other. */
const drawn =
  (...values: number[]) =>
  () =>
    values.shift() ?? expect.fail('one more was drawn')

test('is none of those that the system gives to whoever connects or listens', async () => {
  for (const value of [0, 0.5, 1 - 2 ** -53]) {
    const port = portOf(await freeAddress({ random: drawn(value, ...[1, 2, 3].map(Math.random)), lowestOfSystem }))
    expect(port).toBeGreaterThanOrEqual(10_000)
    expect(port).toBeLessThan(lowestOfSystem)
  }
})

test('is given once, and not where somebody listens', async () => {
  const given = (value: number, lowest = lowestOfSystem) =>
    freeAddress({ random: drawn(value, ...[1, 2, 3, 4].map(Math.random)), lowestOfSystem: lowest })
  expect(new Set(await Promise.all([0.123, 0.123, 0.123].map((value) => given(value)))).size).toBe(3)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  try {
    // Half of the ports are below it.
    expect(portOf(await given(0.5, 2 * port - 10_000))).not.toBe(port)
  } finally {
    other.close()
  }
})

test('is one of the system where that leaves no others', async () => {
  const random = () => expect.fail('nothing is to be drawn')
  expect(portOf(await freeAddress({ random, lowestOfSystem: 1_024 }))).toBeGreaterThan(1_023)
})
