/** The data plane as the product has it, for whoever composes a node or a command: the engine with all components handed in. */
import { join } from 'node:path'
import { packageRoot } from '../package-root.ts'
import { components } from './components/registry.ts'
import { createRunPool, type RunPoolOptions } from './engine/pool.ts'
import type { RunPool } from './engine/run.ts'

/** `thread.ts`, bundled. Threads run built code, also when the main thread runs the sources (tests). */
const THREAD = join(packageRoot(), 'dist/thread/run.cjs')

/** Opens a pool for runs of the product's components. */
export function openRunPool(options: Omit<RunPoolOptions, 'registry' | 'thread'> = {}): RunPool {
  return createRunPool({ ...options, registry: components, thread: THREAD })
}
