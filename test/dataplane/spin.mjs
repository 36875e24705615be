/**
 * A run in performance mode that turns `count` times to warm up and `count` times more: prints a line between. `node --trace-gc` says what was collected
 * in each part. Uses the built code.
 */
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { RegionReader } from '../../dist/src/dataplane/engine/metrics.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const count = Number(process.argv[2])
const pipeline = {
  in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  out: { traffic_sink: { input: 'a' } },
}
const { config, problems } = checkPipelineConfig(
  JSON.stringify({ version: 1, engine_config: { pipeline } }),
  components,
)
if (!config) throw new Error(JSON.stringify(problems))
const pool = openRunPool({ warm: 0 })
const run = pool.start({ runId: 'spin', config, performanceMode: true, level: 'WARN' }, () => {})
await run.running
const reader = new RegionReader(run.region)
const { index } = reader.entries.find(({ name }) => name === 'breaths')
const turns = () => reader.snapshot()?.values[index] ?? 0
const turned = async (wanted) => {
  while (turns() < wanted) await new Promise((resolve) => setTimeout(resolve, 20))
}
await turned(count)
console.log('warm')
await turned(2 * count)
console.log('done')
run.stop()
await run.ended
await pool.close()
