/**
 * `npm run test:sanitize [-- --seconds N] [--seed N]`: the addon with address and undefined-behaviour sanitizers under its own tests and
 * those of the runs, then under a fuzzer for N seconds (60). Prints the seed of each round; `--seed` goes
 * straight to the round of that one.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root, sanitizedAddon } from './addon.mjs'
import { fuzzRound, sum } from './round.mjs'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } })
const seconds = Number(values.seconds ?? 60)
const first = Number(values.seed ?? Date.now() % 1_000_000)
if (!(seconds > 0) || !Number.isSafeInteger(first)) {
  console.error('usage: npm run test:sanitize [-- --seconds N] [--seed N], both numbers')
  process.exit(2)
}
console.log('building the addon with sanitizers')
const { env, missing } = sanitizedAddon()
if (missing !== undefined) {
  console.error(`the sanitizers cannot be used: ${missing}`)
  process.exit(1)
}

if (values.seed === undefined) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const files = ['src/dataplane/native/', 'src/dataplane/codes/', 'test/dataplane/runs', 'test/dataplane/datagrams']
  const slow = ['--testTimeout=120000', '--hookTimeout=120000']
  const tests = spawnSync(process.execPath, [vitest, 'run', '--root', root, ...slow, ...files], {
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  if (tests.status !== 0) process.exit(1)
}

const end = performance.now() + seconds * 1000
const total = {}
for (let seed = first; performance.now() < end; seed++) {
  const length = Math.min(20, Math.max(1, (end - performance.now()) / 1000))
  // One thread can be repeated call by call, three meet in what they share.
  const threads = seed % 3 === 0 ? 1 : 3
  const { failure, calls } = fuzzRound(env, { seed, threads, seconds: length })
  if (failure !== undefined) {
    console.error(`seed ${seed}, ${threads} threads: ${failure}`)
    process.exit(1)
  }
  sum(total, calls)
  const [called, done] = Object.values(calls).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0])
  console.log(`seed ${seed}, ${threads} threads: ${called} calls, ${done} carried out, nothing found`)
}
console.log(
  Object.entries(total)
    .map(([name, [called, done]]) => `${name} ${done}/${called}`)
    .join(', '),
)
