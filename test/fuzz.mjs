/** `node test/fuzz.mjs TEST [--seconds N] [--inputs N] [--seed N]`: a long round of a fuzz test (harness/fuzz-round.ts), 90 s unless told. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const options = { seconds: { type: 'string' }, inputs: { type: 'string' }, seed: { type: 'string' } }
const { values, positionals } = parseArgs({ options, allowPositionals: true })
const { inputs, seed, seconds = inputs === undefined ? '90' : undefined } = values
const root = fileURLToPath(new URL('..', import.meta.url))
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, `test/${positionals[0]}`], {
  env: {
    ...process.env,
    ...(seconds !== undefined && { PENSTOCK_TEST_LONG: seconds }),
    ...(inputs !== undefined && { PENSTOCK_TEST_INPUTS: inputs }),
    ...(seed !== undefined && { PENSTOCK_TEST_SEED: seed }),
  },
  stdio: 'inherit',
})
process.exit(status ?? 1)
