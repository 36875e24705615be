/**
 * `npm run test:storm [-- --seconds N] [--seed N]`: storms of the length of the suite's, one after the other, for N seconds (300), at least
 * one; each with the next seed, which is printed. `--seed` begins with that one.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } })
const seconds = Number(values.seconds ?? 300)
const first = Number(values.seed ?? Date.now() % 1_000_000)
if (!(seconds > 0) || !Number.isSafeInteger(first)) {
  console.error('usage: npm run test:storm [-- --seconds N] [--seed N], both numbers')
  process.exit(2)
}
const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const end = performance.now() + seconds * 1000
let seed = first
do {
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, 'test/storm/'], {
    env: { ...process.env, PENSTOCK_STORM_SEED: String(seed) },
    stdio: 'inherit',
  })
  if (status !== 0) {
    console.error(`a promise was broken in the storm of seed ${seed}`)
    process.exit(1)
  }
  seed++
} while (performance.now() < end)
console.log(`${seed - first} storms, seeds ${first} to ${seed - 1}: every promise was kept`)
