/**
 * In the cpuset whose directory is the first argument, of the two CPU threads that follow: prints which of them are known to be usable while a run
 * in performance mode has the first one, with both, the first and the second in the cpuset, and with both again; how runs at the first and at the second
 * began while there was the first only; and the warnings of runs.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const [path, ...names] = process.argv.slice(2)
const [first, second] = names.map(Number)
const pipeline = {
  in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  sink: { traffic_sink: { input: 'a' } },
}
const { config } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), components)
const pool = openRunPool({ warm: 0 })
const warnings = []
// A run that never ends ends the process: nobody else could.
setTimeout(() => process.exit(1), 20_000).unref()

function start(cpu, performanceMode = false) {
  return pool.start({ runId: 'run', config, performanceMode, level: 'INFO', cpu }, (lines) => {
    for (const { level, message } of lines) if (level === 'WARN') warnings.push(message)
  })
}
const usable = []
const allow = (...cpus) => {
  writeFileSync(join(path, 'cpuset.cpus'), cpus.join())
  usable.push(pool.usableCpus())
}

const alone = start(first, true)
await alone.running
allow(first, second)
allow(first)
const begun = []
for (const cpu of [first, second]) {
  const run = start(cpu)
  begun.push(
    await run.running.then(
      () => 'running',
      ({ message }) => message,
    ),
  )
  run.stop()
  await run.ended
}
allow(second)
allow(first, second)
await pool.close()
console.log(JSON.stringify({ usable, begun, warnings }))
