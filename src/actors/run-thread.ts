/** The thread of a run as its machine has it: what it is started with, what it is told and what it tells. */
import { fromCallback } from 'xstate'
import type { Hook } from '../dataplane/engine/lifecycle.ts'
import type { LogLine, RunEnd, RunHandle, RunOptions, RunPool } from '../dataplane/engine/run.ts'
import { messageOf } from '../text/error-message.ts'

/** The commands around a run. */
export interface RunHooks {
  /** Whether there are any of this hook. */
  has(hook: Hook): boolean
  /** Runs those of one hook; rejects with what failed when that is to end the run. Aborting `signal` ends what runs. */
  run(hook: Hook, signal: AbortSignal): Promise<void>
  /** Ends every process that they have left; resolves once those are gone. */
  end(): Promise<void>
}

/** What a run is started with. */
export interface RunPlan {
  pipelineId: string
  /** Or why the run cannot be launched, for people. */
  options: Omit<RunOptions, 'isAwaited'> | { runId: string; cpu?: number; problem: string }
  /** Somebody waits for its start, so that the time it stands in line counts too. */
  isAwaited: boolean
  /** Absent: no command is run around it. */
  hooks?: RunHooks
  /** Milliseconds that the run may take to stop when it is not asked to, but ends itself. */
  stopTimeout: number
  /** Gets the run's log lines, in order. */
  onLog(lines: LogLine[]): void
  /** The run has a thread; once at most. */
  onLaunch(handle: RunHandle): void
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
  /** Likewise, of one that goes on while the machine sleeps. */
  uptime(): number
}

export type ThreadCommand = { type: 'stop' } | { type: 'go' } | { type: 'kill'; cause: string }
export type ThreadEvent =
  | { type: 'thread.launched'; handle: RunHandle }
  /** It is the run's turn to have a thread. */
  | { type: 'thread.turn' }
  /** The graph stands; the thread waits for `go`. Told only of a run that has commands before its start. */
  | { type: 'thread.built' }
  | { type: 'thread.running' }
  | { type: 'thread.ended'; end: RunEnd }

/** The effect of a run: its worker thread. Replaced in tests. */
export function runThread(pool: RunPool) {
  return fromCallback<ThreadCommand, RunPlan, ThreadEvent>(({ input, sendBack, receive }) => {
    const { options, isAwaited } = input
    if ('problem' in options) {
      sendBack({ type: 'thread.ended', end: { outcome: 'FAILED', error: options.problem } })
      return
    }
    let handle: RunHandle
    try {
      handle = pool.start({ ...options, isAwaited }, (lines) => input.onLog(lines))
    } catch (error) {
      sendBack({ type: 'thread.ended', end: { outcome: 'FAILED', error: messageOf(error) } })
      return
    }
    let ended = false
    let released = false
    let cause: string | undefined
    sendBack({ type: 'thread.launched', handle })
    handle.turn.then(() => {
      if (!released) sendBack({ type: 'thread.turn' })
    })
    handle.built.then(() => {
      if (!released) sendBack({ type: 'thread.built' })
    })
    handle.running.then(
      () => {
        if (!released) sendBack({ type: 'thread.running' })
      },
      (error: unknown) => {
        cause = messageOf(error)
      },
    )
    handle.ended.then((end) => {
      ended = true
      if (released) return
      const error = end.error ?? (end.outcome === 'FAILED' ? cause : undefined)
      sendBack({ type: 'thread.ended', end: error === undefined ? end : { ...end, error } })
    })
    receive((command) => {
      if (command.type === 'stop') handle.stop()
      else if (command.type === 'go') handle.go()
      else handle.kill(command.cause)
    })
    return () => {
      released = true
      if (!ended) handle.kill('its pipeline is gone')
    }
  })
}
