/** A run of the built code, for scripts that have a process or namespaces of their own. */
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { RegionReader } from '../../dist/src/dataplane/engine/metrics.js'
import { native } from '../../dist/src/dataplane/native/native.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

/** Starts `pipeline` and waits until it runs; `onLine` gets each line of its log from `level` on. */
export async function startBuilt(pipeline, onLine, level = 'INFO') {
  const text = JSON.stringify({ version: 1, engine_config: { pipeline } })
  const { config, problems } = checkPipelineConfig(text, components)
  if (!config) throw new Error(JSON.stringify(problems))
  const before = native.openDescriptors()
  // None is made ready beside the run: its rehearsal has a socket for a moment.
  const pool = openRunPool({ warm: 0 })
  const run = pool.start({ runId: 'it', config, performanceMode: false, level }, (lines) => lines.forEach(onLine))
  await run.running
  const reader = new RegionReader(run.region)
  let values = reader.blank.values
  return {
    run,
    /** What a metric says now. */
    figure(component, metric) {
      values = reader.snapshot()?.values ?? values // no snapshot: the run was writing
      return values[reader.entries.find(({ path, name }) => path === component && name === metric).index]
    },
    /** Stops it; how it ended, and how many descriptors it has left behind. */
    async end() {
      run.stop()
      const ended = await run.ended
      await pool.close()
      return { ended, descriptors: native.openDescriptors() - before }
    },
  }
}

/** What waits until a condition holds, and calls `act` after each look; it fails after 15 s with `what`, and with what `told` returns. */
export const waiting =
  (told) =>
  async (what, holds, act = () => {}) => {
    const deadline = performance.now() + 15_000
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`not within 15 s: ${what}; ${told()}`)
      act()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
