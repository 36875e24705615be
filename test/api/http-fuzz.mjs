/** `npm run test:long -- http-fuzz`: raw requests, right and wrong, against a node for --seconds N (90), plain and with TLS. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { seconds: { type: 'string' } } })
const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, 'test/api/http-fuzz'], {
  env: { ...process.env, PENSTOCK_TEST_LONG: values.seconds ?? '90' },
  stdio: 'inherit',
})
process.exit(status ?? 1)
