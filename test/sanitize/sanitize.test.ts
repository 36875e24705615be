/** A short round of `npm run test:sanitize`: the addon under address and undefined-behaviour sanitizers, called rightly and wrongly. */
import { beforeAll, expect, test } from 'vitest'
import { sanitizedAddon } from './addon.mjs'
import { type Calls, fuzzRound, isolated, sum } from './round.mjs'

let env: Record<string, string> | undefined
beforeAll(() => {
  const built = sanitizedAddon()
  env = built.env
  if (built.missing !== undefined) console.warn(`THE ADDON IS NOT TESTED WITH SANITIZERS: ${built.missing}`)
  if (!isolated) console.warn('THE FUZZER OPENS NO TUN DEVICES: a network namespace needs root, unshare and ip')
}, 600_000)

test('a fuzzer of every exported function finds nothing, alone and with three threads on what they share', (context) => {
  if (env === undefined) return context.skip()
  const total: Calls = {}
  for (const [seed, threads] of [
    [1, 1],
    [2, 3],
  ] as const) {
    const { failure, calls } = fuzzRound(env, { seed, threads, seconds: 100, count: 8_000 })
    expect(failure, `seed ${seed}, ${threads} threads`).toBeUndefined()
    sum(total, calls)
  }
  // A function that never did what it was asked was only ever refused at the door.
  const idle = Object.keys(total).filter((name) => total[name]?.[1] === 0)
  expect(idle.filter((name) => isolated || !name.startsWith('tun'))).toEqual([])
  expect(Object.keys(total).length).toBeGreaterThan(30)
}, 300_000)

test('the usual addon is told from the sanitized one', () => {
  expect(fuzzRound({}, { seed: 1, threads: 1, seconds: 0.1 }).failure).toContain('not the sanitized one')
})
