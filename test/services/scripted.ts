/** What tests of services hold in their hands: runs that do what the test says. */

import type { PipelineConfig } from '../../src/dataplane/engine/config.ts'
import { counter, createRegion, MetricLayout } from '../../src/dataplane/engine/metrics.ts'
import type { Capture, LogLine, RunEnd, RunHandle, RunOptions, RunPool } from '../../src/dataplane/engine/run.ts'

/** A run that does what the test says, when it says so. */
export class ScriptedRun implements RunHandle {
  readonly id: string
  readonly options: RunOptions
  readonly region: SharedArrayBuffer
  readonly turn: Promise<void>
  readonly built: Promise<void>
  readonly running: Promise<void>
  readonly ended: Promise<RunEnd>
  readonly asked: string[] = []
  /** How often it was told that what it has taken over stays. */
  kept = 0
  readonly log: (lines: LogLine[]) => void
  begin!: () => void
  build!: () => void
  run!: () => void
  end!: (end: RunEnd) => void
  reconfigured: (config: PipelineConfig) => Promise<void> = async () => {}

  constructor(options: RunOptions, log: (lines: LogLine[]) => void) {
    this.id = options.runId
    this.options = options
    this.log = log
    const layout = new MetricLayout()
    layout.declare('sink', { packets: counter('Packets taken', 'packets') })
    this.region = createRegion(layout)
    this.turn = new Promise((resolve) => {
      this.begin = resolve
    })
    this.built = new Promise((resolve) => {
      this.build = resolve
    })
    this.running = new Promise((resolve) => {
      this.run = resolve
    })
    this.ended = new Promise((resolve) => {
      this.end = resolve
    })
  }

  go(): void {
    this.asked.push('go')
  }

  stop(): void {
    this.asked.push('stop')
  }

  kill(cause: string): void {
    this.asked.push('kill')
    this.end({ outcome: 'FAILED', error: cause })
  }

  capture(): Capture {
    throw new Error('a scripted run has no packets')
  }

  reconfigure(config: PipelineConfig): Promise<void> {
    this.asked.push('reconfigure')
    return this.reconfigured(config)
  }

  keepChange(): void {
    this.kept++
  }
}

export class ScriptedPool implements RunPool {
  readonly cpus = [0, 1, 2, 3]
  /** Those of them that can be had now. */
  usable: readonly number[] = this.cpus
  readonly runs: ScriptedRun[] = []
  /** Whether packets flow as soon as a run is launched. */
  prompt = true
  /** Whether others start, so that a run has to wait for its turn. */
  isCrowded = false
  /** Why no run can be started, if none can. */
  problem: string | undefined

  start(options: RunOptions, onLog: (lines: LogLine[]) => void): RunHandle {
    const run = new ScriptedRun(options, onLog)
    this.runs.push(run)
    if (this.isCrowded) return run
    run.begin()
    if (this.prompt) run.run()
    return run
  }

  usableCpus(): readonly number[] {
    return this.usable
  }

  full(): string | undefined {
    return this.problem
  }

  keep(): () => void {
    return () => {}
  }

  get last(): ScriptedRun {
    return this.runs.at(-1) as ScriptedRun
  }

  async close(): Promise<void> {}
}
