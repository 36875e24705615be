/** `node test/vectors/write-block-codes.mjs`: writes the vectors of rlnc, kodok and parity_2d anew. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, 'test/vectors/block-codes'], {
  env: { ...process.env, PENSTOCK_WRITE_VECTORS: '1' },
  stdio: 'inherit',
})
process.exit(status ?? 1)
