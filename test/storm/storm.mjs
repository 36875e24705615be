/**
 * `npm run test:storm [-- --seconds N] [--rounds N] [--seed N] [FOLDER]`: storms of the length of the suite's, one after the other, for N seconds
 * (300) or N rounds, at least one; each with the next seed, which is printed. `--seed` begins with that one. FOLDER of test: storm,
 * cluster-storm, of which each round is one storm over registries and a longer one over whole nodes, or cluster-partitions.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const TESTS = {
  storm: ['storm.test.ts'],
  'cluster-storm': ['storm.test.ts', 'hub-storm.test.ts'],
  'cluster-partitions': ['partitions.test.ts'],
}
const options = { seconds: { type: 'string' }, rounds: { type: 'string' }, seed: { type: 'string' } }
const { values, positionals } = parseArgs({ options, allowPositionals: true })
const [folder = 'storm'] = positionals
const rounds = Number(values.rounds ?? Number.POSITIVE_INFINITY)
const seconds = Number(values.seconds ?? (values.rounds === undefined ? 300 : Number.POSITIVE_INFINITY))
const first = Number(values.seed ?? Date.now() % 1_000_000)
if (!(seconds > 0) || !(rounds > 0) || !Number.isSafeInteger(first) || TESTS[folder] === undefined) {
  console.error(
    `usage: npm run test:storm [-- --seconds N] [--rounds N] [--seed N] [${Object.keys(TESTS).join('|')}], with numbers`,
  )
  process.exit(2)
}
const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const end = performance.now() + seconds * 1000
let seed = first
do {
  const args = [
    'run',
    '--root',
    root,
    '--no-file-parallelism',
    ...TESTS[folder].map((name) => `test/${folder}/${name}`),
  ]
  const { status } = spawnSync(process.execPath, [vitest, ...args], {
    env: { ...process.env, PENSTOCK_STORM_SEED: String(seed), PENSTOCK_STORM_LONG: '1' },
    stdio: 'inherit',
  })
  if (status !== 0) {
    console.error(`a promise was broken in the storm of seed ${seed}`)
    process.exit(1)
  }
  seed++
} while (performance.now() < end && seed < first + rounds)
console.log(`${seed - first} storms, seeds ${first} to ${seed - 1}: every promise was kept`)
