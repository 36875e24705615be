/** One end of a tunnel as a process: `tunnel-end.js CPU CONFIGURATION` runs the pipeline in a thread on that CPU and writes a line once packets flow. */
import { openRunPool } from '../../src/dataplane/product.ts'
import { checked } from './chain.ts'

const [cpu, pipeline] = process.argv.slice(2)
const pool = openRunPool({ warm: 1 })
const config = checked(JSON.parse(pipeline))
const run = pool.start({ runId: 'bench', config, cpu: Number(cpu), performanceMode: false, level: 'WARN' }, (lines) => {
  for (const { component, message } of lines) if (component !== '') console.error(component, message)
})
await run.running
console.log('ready')
const { outcome, error } = await run.ended
console.error('the tunnel has ended:', outcome, error)
process.exitCode = 1
await pool.close()
