/** The data plane as the product has it, for whoever composes a node or a command: the engine with all components handed in. */
import { join } from 'node:path'
import { packageRoot } from '../package-root.ts'
import { components } from './components/registry.ts'
import type { PipelineConfig } from './engine/config.ts'
import { createRunPool, type RunPoolOptions } from './engine/pool.ts'
import type { RunPool } from './engine/run.ts'

/** `thread.ts`, bundled. Threads run built code, also when the main thread runs the sources (tests). */
const THREAD = join(packageRoot(), 'dist/thread/run.cjs')

/** A packet for a socket that knows nobody, and what it would receive: nothing leaves, and nothing comes in. */
const REHEARSAL: PipelineConfig = {
  version: 1,
  components: {
    source: { key: 'uniform_traffic_source', config: { output: 'packets', total_packets: 1, interval: 0, seed: 1 } },
    socket: {
      key: 'udp_local',
      config: { address: '127.0.0.1:0', input: 'packets', output: 'received' },
    },
    sink: { key: 'traffic_sink', config: { input: 'received', mtu: 0, latency_budget: 100, timeout_ms: 10_000 } },
  },
  logFilters: [],
  variables: [],
}

/** Opens a pool for runs of the product's components. */
export function openRunPool(options: Omit<RunPoolOptions, 'registry' | 'thread' | 'rehearsal'> = {}): RunPool {
  return createRunPool({ ...options, registry: components, thread: THREAD, rehearsal: REHEARSAL })
}
