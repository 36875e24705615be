/** `node test/vectors/raft.mjs` writes raft.json: what an end of a raft sends while some of it is lost. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(process.execPath, [vitest, 'run', '--root', root, 'test/vectors/raft.test.ts'], {
  env: { ...process.env, PENSTOCK_WRITE_VECTORS: '1' },
  stdio: 'inherit',
})
process.exit(status ?? 1)
