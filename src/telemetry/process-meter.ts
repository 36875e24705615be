/** What the process of the node takes: CPU time, memory, descriptors, threads. */
import { openSync, readSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { uptimeMs } from '../contract/clock.ts'
import { type MetricEntry, MetricLayout } from '../dataplane/engine/metrics.ts'
import { PROCESS_PATH, processMetrics } from '../dataplane/engine/own-metrics.ts'
import { openDescriptors } from '../open-descriptors.ts'

/** Milliseconds for which one reading serves all who ask. */
const READING_MS = 50
/** The system's time was set where it went further than this from what truly passed, milliseconds. */
const CLOCK_SET_MS = 1_000
/** Room for all of /proc/self/status. */
const STATUS_BYTES = 8192

/** Reads the process's figures; one for all runs of a node. */
export class ProcessMeter {
  /** What `read` gives, in its order. */
  readonly entries: readonly MetricEntry[]
  readonly #begunAt = uptimeMs() - performance.now()
  #startedAt = performance.timeOrigin
  #last: { values: Float64Array; at: number } | undefined

  constructor() {
    const layout = new MetricLayout()
    layout.declare(PROCESS_PATH, processMetrics)
    this.entries = layout.entries
    // Opened while there are descriptors.
    status.read()
  }

  /**
   * When the process began, milliseconds since the Unix epoch, by the system's time as it is now: a machine without a battery begins in 1970, and is told
   * the time later. The same until that is set.
   */
  get startedAt(): number {
    const at = Date.now() - (uptimeMs() - this.#begunAt)
    if (Math.abs(at - this.#startedAt) > CLOCK_SET_MS) this.#startedAt = at
    return this.#startedAt
  }

  /** The figures of now, by the index of their entries; nobody writes into them. */
  read(): Float64Array {
    const at = performance.now()
    if (this.#last !== undefined && at - this.#last.at < READING_MS) return this.#last.values
    const { user, system } = process.cpuUsage()
    const { memory, threads } = status.read()
    const figures: Record<keyof typeof processMetrics, number> = {
      cpu_time: (user + system) * 1000,
      resident_memory: memory,
      heap_used: getHeapStatistics().used_heap_size,
      open_descriptors: openDescriptors.count,
      threads,
    }
    const values = Float64Array.from(this.entries, ({ name }) => figures[name as keyof typeof figures])
    this.#last = { values, at }
    return values
  }
}

/**
 * What /proc says of the process, proc_pid_status(5), by a descriptor that is opened once for all meters and stays open: where the process
 * has none left is where its figures are wanted most.
 */
class ProcessStatus {
  readonly #text = Buffer.alloc(STATUS_BYTES)
  #descriptor: number | undefined
  #memory = 0
  #threads = 0

  /** Memory in RAM, bytes, and threads; the last ones known when it cannot be read. */
  read(): { memory: number; threads: number } {
    try {
      this.#descriptor ??= openSync('/proc/self/status', 'r')
      const text = this.#text.toString('latin1', 0, readSync(this.#descriptor, this.#text, 0, STATUS_BYTES, 0))
      this.#memory = 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(text)?.[1] ?? this.#memory / 1024)
      this.#threads = Number(/^Threads:\s+(\d+)/m.exec(text)?.[1] ?? this.#threads)
    } catch {
      // No sample should fail of it.
    }
    return { memory: this.#memory, threads: this.#threads }
  }
}

const status = new ProcessStatus()
