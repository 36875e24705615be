/**
 * A storm: what was answered is kept, streams tell what gets tell, no run is left without owner and no descriptor open, whatever fails.
 * Environment: PENSTOCK_STORM_ROUNDS (default 1), PENSTOCK_STORM_SEED (default: drawn; printed).
 */
import { afterEach, expect, test } from 'vitest'
import { temporaryDirectory } from '../api/running-node.ts'
import { endProcesses } from '../harness/node-process.ts'
import { Storm } from './storm.ts'

const rounds = Number(process.env.PENSTOCK_STORM_ROUNDS ?? 1)
const seed = Number(process.env.PENSTOCK_STORM_SEED ?? Math.floor(Math.random() * 2 ** 31))
afterEach(endProcesses)

test(`${rounds} rounds, seed ${seed}`, { timeout: 120_000 + rounds * 120_000 }, async () => {
  const lines: string[] = []
  const log = (line: string) => {
    lines.push(line)
    console.log(`storm ${seed}: ${line}`)
  }
  await new Storm({
    seed,
    rounds,
    members: 6,
    milliseconds: 6_000,
    speed: 10,
    directory: temporaryDirectory(),
    log,
  }).run()
  // Where the hub is struck first there may be little more.
  expect(lines.at(-1)).toMatch(/ OK: [1-9]/)
})
