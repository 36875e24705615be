/** What the threads of runs load, and when: the product's bundle, components as configurations name them. */
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { componentLoaders } from '../../src/dataplane/components/loaders.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { createRunPool } from '../../src/dataplane/engine/pool.ts'
import type { LogLine, RunPool } from '../../src/dataplane/engine/run.ts'
import { openRunPool } from '../../src/dataplane/product.ts'
import type { Pipeline } from '../harness/component.ts'
import { configure } from './running.ts'

const finite: Pipeline = {
  source: { uniform_traffic_source: { output: 'a', total_packets: 10, seed: 1 } },
  sink: { traffic_sink: { input: 'a' } },
}

const pools: RunPool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
})

function opened(pool: RunPool): RunPool {
  pools.push(pool)
  return pool
}

/** Starts a run; its log is complete once it has ended. */
function start(pool: RunPool, pipeline: Pipeline, runId = 'test') {
  const log: LogLine[] = []
  const options = { runId, config: configure(pipeline), performanceMode: false, level: 'INFO' as const }
  const handle = pool.start(options, (lines) => log.push(...lines))
  return { handle, log }
}

describe('the components of threads', () => {
  it('are those of the main thread', async () => {
    const loaded = await Promise.all(Object.entries(componentLoaders).map(async ([key, load]) => [key, await load()]))
    expect(loaded).toEqual([...components])
    for (const [key, definition] of loaded) expect(definition).toBe(components.get(key as string))
  })

  it('end the run with what, where and why when one cannot be loaded, and only that run', async () => {
    const thread = fileURLToPath(new URL('./broken-thread.mjs', import.meta.url))
    const pool = opened(createRunPool({ registry: components, thread, warm: 1, maximum: 1 }))
    const broken = start(pool, finite)
    await expect(broken.handle.running).rejects.toThrow(
      /component "source": uniform_traffic_source could not be loaded: .*no-such-file.*install it again/,
    )
    expect((await broken.handle.ended).outcome).toBe('FAILED')
    expect(broken.log.map(({ level, component }) => [level, component])).toContainEqual(['ERROR', 'source'])
    const whole = start(pool, { bomb: { bomb: { delay: 0, poison: 'NONE' } } })
    expect(await whole.handle.ended).toEqual({ outcome: 'COMPLETED' })
  })
})

describe('the bundle', () => {
  it('runs, in a first thread and in those that take what it has compiled', async () => {
    const pool = opened(openRunPool({ warm: 1 }))
    const first = start(pool, finite)
    expect(await first.handle.ended).toEqual({ outcome: 'COMPLETED' })
    const others = [1, 2, 3].map((n) => start(pool, finite, `test-${n}`))
    for (const { handle } of others) expect(await handle.ended).toEqual({ outcome: 'COMPLETED' })
  })

  it('runs 200 pipelines whose starts come at once', async () => {
    const pool = opened(openRunPool())
    const endless: Pipeline = {
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const runs = Array.from({ length: 200 }, (_, n) => start(pool, endless, `test-${n}`).handle)
    await Promise.all(runs.map(({ running }) => running))
    for (const run of runs) run.stop()
    expect(await Promise.all(runs.map(({ ended }) => ended))).toEqual(runs.map(() => ({ outcome: 'STOPPED' })))
  }, 120_000)

  it('names the sources in what a component throws', async () => {
    const pool = opened(openRunPool({ warm: 1 }))
    const { handle, log } = start(pool, { bomb: { bomb: { delay: 0, poison: 'THROW_EXCEPTION' } } })
    expect((await handle.ended).outcome).toBe('FAILED')
    const [thrown] = log.filter(({ level, component }) => level === 'ERROR' && component === 'bomb')
    expect(thrown?.message).toMatch(/at explode \(.*\/src\/dataplane\/components\/routing\/bomb\.ts:\d+:\d+\)/)
    expect(thrown?.message).not.toMatch(/\.cjs:/)
  })
})
