/** What the next run of a pipeline is started with. */
import type { RunPlan } from '../actors/pipeline-run.ts'
import { cpuProblem } from '../dataplane/engine/run.ts'
import type { PipelineSettings } from '../store/pipelines.ts'
import { MetricsFile } from '../telemetry/metrics-file.ts'
import type { HostedRun } from './hosted-run.ts'
import type { PipelineHost } from './pipeline-host.ts'
import type { StoredConfig } from './pipelines-settings.ts'

/** Plans `run` from the settings as they are now; what they do not allow is planned with why. Never throws. */
export function planRun(host: PipelineHost, settings: PipelineSettings, stored: StoredConfig, run: HostedRun): RunPlan {
  const cpu = settings.cpuPin ?? host.leastLoadedCpu()
  const options = (): RunPlan['options'] => {
    if (stored.config === null) return { runId: run.id, problem: stored.problem }
    if (!host.cpus.includes(cpu)) return { runId: run.id, problem: cpuProblem(cpu, host.cpus) }
    const { config } = stored
    if (config.shmConfig !== undefined) {
      try {
        run.shareMetrics(new MetricsFile(config.shmConfig, (error) => host.failed(error)))
      } catch (error) {
        return {
          runId: run.id,
          problem: `its metrics cannot be shared in ${config.shmConfig.file_path}: ${(error as Error).message}`,
        }
      }
    }
    // Lines of every level come here, so that a change of defaultLoggingLevel takes effect on the run that is.
    return { runId: run.id, config, cpu, performanceMode: settings.performanceMode, level: 'STATE' }
  }
  return {
    pipelineId: run.pipelineId,
    options: options(),
    onLog: (lines) => run.append(lines),
    onLaunch: (handle) =>
      run.launched(handle, host.telemetryInterval, { kpis: stored.config?.kpis, process: host.processMeter }),
    now: Date.now,
  }
}
