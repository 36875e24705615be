/**
 * `npm run test:long [-- --seconds N] [NAME …]`: the rounds that find more the longer they last, one after the other, N seconds each
 * (PENSTOCK_LONG_SECONDS, else 600).
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROUNDS = {
  sanitize: 'sanitize/sanitize.mjs',
  storm: 'storm/storm.mjs',
  'http-fuzz': 'api/http-fuzz.mjs',
  'decoder-fuzz': 'dataplane/decoder-fuzz.mjs',
  'capture-fuzz': 'dataplane/capture-fuzz.mjs',
}

const { values, positionals } = parseArgs({ options: { seconds: { type: 'string' } }, allowPositionals: true })
const seconds = Number(values.seconds ?? process.env.PENSTOCK_LONG_SECONDS ?? 600)
const names = positionals.length > 0 ? positionals : Object.keys(ROUNDS)
const unknown = names.filter((name) => !(name in ROUNDS))
if (!(seconds > 0) || unknown.length > 0) {
  console.error(
    `usage: npm run test:long [-- --seconds N] [NAME …], with names out of: ${Object.keys(ROUNDS).join(', ')}`,
  )
  process.exit(2)
}
let failed = false
for (const name of names) {
  const script = fileURLToPath(new URL(ROUNDS[name], import.meta.url))
  const round = spawnSync(process.execPath, [script, '--seconds', String(seconds)], { stdio: 'inherit' })
  console.log(`${name}: ${round.status === 0 ? 'passed' : 'FAILED'}`)
  failed ||= round.status !== 0
}
process.exit(failed ? 1 : 0)
