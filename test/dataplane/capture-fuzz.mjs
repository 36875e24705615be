/** `npm run test:long -- capture-fuzz`: damaged captures of every format, for --seconds N (90). */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, 'test/dataplane/capture-fuzz'], {
  env: {
    ...process.env,
    PENSTOCK_TEST_LONG: values.seconds ?? '90',
    ...(values.seed !== undefined && { PENSTOCK_TEST_SEED: values.seed }),
  },
  stdio: 'inherit',
})
process.exit(status ?? 1)
