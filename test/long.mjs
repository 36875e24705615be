/**
 * `npm run test:long [-- --seconds N] [--inputs N] [--seed N] [NAME …]`: the rounds that find more the longer they last, one after the
 * other, N seconds each (PENSTOCK_LONG_SECONDS, else 600). With --inputs each decoder or parser of a round gets that many, however long it
 * takes, or for as long as --seconds says; dashboard-heap as many updates, which are those of a day without it.
 * cluster-storm has 50 rounds, cluster-partitions 10, unless --seconds is given.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROUNDS = {
  sanitize: { script: 'sanitize/sanitize.mjs' },
  storm: { script: 'storm/storm.mjs' },
  'cluster-storm': { script: 'storm/storm.mjs', args: ['cluster-storm'], rounds: 50 },
  'cluster-partitions': { script: 'storm/storm.mjs', args: ['cluster-partitions'], rounds: 10 },
  'http-fuzz': { script: 'api/http-fuzz.mjs' },
  'pipeline-churn': { script: 'api/pipeline-churn.mjs' },
  'dashboard-heap': { script: 'fuzz.mjs', args: ['browser/heap'], countsInputs: true },
  'decoder-fuzz': { script: 'fuzz.mjs', args: ['dataplane/decoder-fuzz'], countsInputs: true },
  'aead-fuzz': { script: 'fuzz.mjs', args: ['dataplane/aead-fuzz'], countsInputs: true },
  'capture-fuzz': { script: 'fuzz.mjs', args: ['dataplane/capture-fuzz'], countsInputs: true },
}

const options = { seconds: { type: 'string' }, inputs: { type: 'string' }, seed: { type: 'string' } }

/** What was given; null where that is nothing this program knows. */
function argumentsGiven() {
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch {
    return null
  }
}

const given = argumentsGiven()
const { values, positionals } = given ?? { values: {}, positionals: [] }
const { inputs, seed } = values
const seconds = values.seconds ?? (inputs === undefined ? (process.env.PENSTOCK_LONG_SECONDS ?? '600') : undefined)
const counting = Object.keys(ROUNDS).filter((name) => ROUNDS[name].countsInputs)
const all = inputs === undefined && seed === undefined ? Object.keys(ROUNDS) : counting
const names = positionals.length > 0 ? positionals : all
const isNumber = (value) => value === undefined || Number(value) > 0
if (given === null || !isNumber(seconds) || !isNumber(inputs) || names.some((name) => !all.includes(name))) {
  console.error(
    `usage: npm run test:long [-- --seconds N] [NAME …], with names out of: ${Object.keys(ROUNDS).join(', ')}\n` +
      `       npm run test:long -- [--seconds N] --inputs N [--seed N] [NAME …], with names out of: ${counting.join(', ')}`,
  )
  process.exit(2)
}
const isTimed = values.seconds !== undefined || process.env.PENSTOCK_LONG_SECONDS !== undefined
const flags = (values) => Object.entries(values).flatMap(([name, value]) => (value ? [`--${name}`, String(value)] : []))
let failed = false
for (const name of names) {
  const { script, args = [], rounds } = ROUNDS[name]
  const limits = rounds === undefined || isTimed ? flags({ seconds, inputs, seed }) : flags({ rounds, seed })
  const path = fileURLToPath(new URL(script, import.meta.url))
  const round = spawnSync(process.execPath, [path, ...args, ...limits], { stdio: 'inherit' })
  console.log(`${name}: ${round.status === 0 ? 'passed' : 'FAILED'}`)
  failed ||= round.status !== 0
}
process.exit(failed ? 1 : 0)
