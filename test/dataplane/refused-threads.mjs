/**
 * Starts `count` runs, one after the other, in a process that may have no further thread (prlimit, of a user other than root), after as many to warm up. Says
 * as JSON why the last failed, and what is left of those that were counted: bytes of the heap for each, listeners at the standard output. Needs `--expose-gc`;
 * uses the built code.
 */
import { execFileSync } from 'node:child_process'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const count = Number(process.argv[2])
const pipeline = { in: { udp_local: { address: '127.0.0.1:0', output: 'a' } }, out: { traffic_sink: { input: 'a' } } }
const { config } = checkPipelineConfig(JSON.stringify({ version: 1, engine_config: { pipeline } }), components)
const pool = openRunPool({ warm: 0 })
execFileSync('prlimit', ['--pid', String(process.pid), '--nproc=1'])

async function refused() {
  let error
  for (let i = 0; i < count; i++) {
    const run = pool.start({ runId: 'refused', config, performanceMode: false, level: 'WARN' }, () => {})
    error = (await run.ended).error
  }
  // Ports are closed by the event loop, after what holds them was collected.
  for (let i = 0; i < 3; i++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return { error, heap: process.memoryUsage().heapUsed, listeners: process.stdout.listenerCount('unpipe') }
}
const before = await refused()
const after = await refused()
console.log(
  JSON.stringify({
    error: after.error,
    bytes: (after.heap - before.heap) / count,
    listeners: after.listeners - before.listeners,
    resident: process.memoryUsage().rss,
  }),
)
await pool.close()
