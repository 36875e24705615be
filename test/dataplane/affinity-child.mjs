/**
 * One thread serves three runs in turn: pinned, pinned, not pinned. Prints how each began and ended, and its warnings. For systems
 * that do not let a thread choose its CPUs.
 */
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const pipeline = {
  source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } },
  sink: { traffic_sink: { input: 'a' } },
}
const { config } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), components)
const pool = openRunPool({ warm: 1, maximum: 1 })
const results = []
// A run that never ends ends the process: nobody else could.
setTimeout(() => process.exit(1), 20_000).unref()
for (const cpu of [pool.cpus[0], pool.cpus[0], undefined]) {
  const warnings = []
  const options = { runId: 'run', config, performanceMode: false, level: 'INFO', ...(cpu !== undefined && { cpu }) }
  const run = pool.start(options, (lines) => {
    for (const { level, message } of lines) if (level === 'WARN') warnings.push(message)
  })
  const begun = await run.running.then(
    () => 'running',
    ({ message }) => message,
  )
  run.stop()
  const { outcome } = await run.ended
  results.push({ begun, outcome, warnings })
}
await pool.close()
console.log(JSON.stringify(results))
