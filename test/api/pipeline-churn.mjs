/** `npm run test:long -- pipeline-churn`: many clients start, stop, update and delete the same pipeline for --seconds N (60). */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { seconds: { type: 'string' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, 'test/api/pipeline-churn'], {
  env: { ...process.env, PENSTOCK_TEST_LONG: values.seconds ?? '60' },
  stdio: 'inherit',
})
process.exit(status ?? 1)
