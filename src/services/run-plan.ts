/** What the next run of a pipeline is started with. */
import type { RunPlan } from '../actors/run-thread.ts'
import { uptimeMs } from '../contract/clock.ts'
import { cpuProblem, isLastLine } from '../dataplane/engine/run.ts'
import type { PipelineSettings } from '../store/pipelines.ts'
import { MetricsFile } from '../telemetry/metrics-file.ts'
import { messageOf } from '../text/error-message.ts'
import type { HostedRun } from './hosted-run.ts'
import type { PipelineHost } from './pipeline-host.ts'
import { policyOf, type StoredConfig } from './pipelines-settings.ts'
import { RunCommands } from './run-commands.ts'

/**
 * Plans `run` from the settings as they are now, but for whether anybody waits for it; what they do not allow is planned with why. `onUnshared` hears of
 * metrics that their `file` does not take. `follows`: the run whose place it takes. Never throws.
 */
export function planRun(
  host: PipelineHost,
  settings: PipelineSettings,
  stored: StoredConfig,
  run: HostedRun,
  onUnshared: (file: string, error: Error) => void,
  follows?: string,
): Omit<RunPlan, 'isAwaited'> {
  const usable = host.usableCpus()
  const cpu = settings.cpuPin ?? host.leastLoadedCpu(run.pipelineId, usable)
  const handler = stored.config?.lifecycle
  const options = (): RunPlan['options'] => {
    if (stored.config === null) return { runId: run.id, problem: stored.problem }
    if (cpu !== undefined && !usable.includes(cpu)) return { runId: run.id, problem: cpuProblem(cpu, usable) }
    // Its thread has nothing to do with the commands, nor with what is in their environment.
    const { lifecycle, ...config } = stored.config
    const { shmConfig } = config
    if (shmConfig !== undefined) {
      const { file_path: file } = shmConfig
      try {
        run.shareMetrics(new MetricsFile(shmConfig, (error) => onUnshared(file, error)))
      } catch (error) {
        return { runId: run.id, problem: `its metrics cannot be shared in ${file}: ${messageOf(error)}` }
      }
    }
    const hold = (lifecycle?.pre_start.length ?? 0) > 0
    const { performanceMode } = settings
    // Lines of every level come here, so that a change of defaultLoggingLevel takes effect on the run that is.
    const place = follows === undefined ? {} : { follows }
    const pin = cpu === undefined ? {} : { cpu }
    return { runId: run.id, config, ...pin, performanceMode, level: 'STATE', hold, ...place }
  }
  const plan: ReturnType<typeof planRun> = {
    pipelineId: run.pipelineId,
    options: options(),
    stopTimeout: policyOf(settings).instructionsTimeout,
    onLog: (lines) => run.append(lines),
    onLaunch: (handle) => {
      // What cannot run here is never launched.
      if (stored.config !== null) run.launched(handle, stored.config, host.telemetryInterval, host.processMeter)
    },
    now: Date.now,
    elapsed: () => performance.now(),
    uptime: uptimeMs,
  }
  if (handler === undefined) return plan
  const hooks = new RunCommands({
    handler,
    runId: run.id,
    pipelineId: run.pipelineId,
    directory: host.trust.files,
    log: (line) => run.append([line]),
  })
  // What the thread says last is not the end: its commands follow.
  return { ...plan, hooks, onLog: (lines) => run.append(lines.filter((line) => !isLastLine(line))) }
}
