/** What the process of the node takes: CPU time, memory, descriptors, threads. */
import { readdirSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { type MetricEntry, MetricLayout } from '../dataplane/engine/metrics.ts'
import { PROCESS_PATH, processMetrics } from '../dataplane/engine/own-metrics.ts'

/** Milliseconds for which one reading serves all who ask. */
const READING_MS = 50

/** Reads the process's figures; one for all runs of a node. */
export class ProcessMeter {
  /** What `read` gives, in its order. */
  readonly entries: readonly MetricEntry[]
  #last: { values: Float64Array; at: number } | undefined

  constructor() {
    const layout = new MetricLayout()
    layout.declare(PROCESS_PATH, processMetrics)
    this.entries = layout.entries
  }

  /** The figures of now, by the index of their entries; nobody writes into them. */
  read(): Float64Array {
    const at = performance.now()
    if (this.#last !== undefined && at - this.#last.at < READING_MS) return this.#last.values
    const { user, system } = process.cpuUsage()
    const figures: Record<keyof typeof processMetrics, number> = {
      cpu_time: (user + system) * 1000,
      resident_memory: residentMemory(),
      heap_used: getHeapStatistics().used_heap_size,
      open_descriptors: countIn('/proc/self/fd'),
      threads: countIn('/proc/self/task'),
    }
    const values = Float64Array.from(this.entries, ({ name }) => figures[name as keyof typeof figures])
    this.#last = { values, at }
    return values
  }
}

/** Bytes of memory the process has in RAM; 0 when it may open no descriptor to read them, which no sample should fail of. */
function residentMemory(): number {
  try {
    return process.memoryUsage.rss()
  } catch {
    return 0
  }
}

/** Entries of a directory of /proc; 0 when the process may open no more descriptors. */
function countIn(directory: string): number {
  try {
    return readdirSync(directory).length
  } catch {
    return 0
  }
}
