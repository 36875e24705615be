/**
 * A storm over the servers of one hub: what was answered is linearizable, what each server tells is in one order, and in the calm all agree.
 * PENSTOCK_STORM_SEED repeats one (default: drawn; printed).
 */
import { describe, expect, test } from 'vitest'
import { BrokenPromise } from '../storm/broken-promise.ts'
import { natsOfMachine } from './engine.ts'
import { Storm, type StormOptions } from './storm.ts'

const seed = Number(process.env.PENSTOCK_STORM_SEED ?? Math.floor(Math.random() * 2 ** 31))
const { version, replicas } = natsOfMachine()
const nats = `nats-server ${version}, replicas: ${replicas}`
const TIMEOUT_MS = 180_000

/** Storms in which a broken promise must show up. */
const ATTEMPTS = 5

async function storm(options: Partial<StormOptions>): Promise<void> {
  const log = (line: string) => console.log(`storm ${seed}: ${line}`)
  await new Storm({ seed, milliseconds: 6_000, natsServers: 3, replicas, clients: 6, log, ...options }).run()
}

test(`three servers of a hub over three of NATS, ${nats}, seed ${seed}`, { timeout: TIMEOUT_MS }, () => storm({}))

describe('what two servers see comes late', () => {
  const milliseconds = 2_500
  const late: Partial<StormOptions> = {
    milliseconds,
    natsServers: 1,
    replicas: 1,
    subjects: 1,
    clients: 10,
    weather: ['h2', 'h3'].map((hub) => ({
      kind: 'fault',
      fault: 'delay',
      between: [hub, 'n1'],
      from: 0,
      to: milliseconds,
    })),
  }

  test('reads are current all the same', { timeout: TIMEOUT_MS }, () => storm(late))

  test('servers that answer reads from what they have seen are found out', { timeout: TIMEOUT_MS }, async () => {
    let found: unknown
    // Not every storm asks at the moment that tells.
    for (let attempt = 0; attempt < ATTEMPTS && found === undefined; attempt++) {
      found = await storm({ ...late, seed: seed + attempt, isWithoutBarrier: true }).catch((error: unknown) => error)
    }
    expect(found).toBeInstanceOf(BrokenPromise)
    expect((found as BrokenPromise).message).toContain('not linearizable')
  })
})
