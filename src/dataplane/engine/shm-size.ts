/** Whether the shared-memory file of a configuration has room for its metrics. */
import type { Problem } from '../../text/pointer.ts'
import { asWritten, type CheckedConfig, checkPipelineConfig, readConfig } from './check.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { layoutOf } from './layout.ts'
import { metricsFileLayout } from './shm-config.ts'

/** What is wrong with the file's size; nothing for a configuration without such a file. */
function sizeProblems(config: PipelineConfig, available: Registry): Problem[] {
  if (config.shmConfig === undefined) return []
  const { bytes } = metricsFileLayout(layoutOf(config, available).metrics.entries)
  if (config.shmConfig.bytes >= bytes) return []
  const message = `${config.shmConfig.bytes} bytes are too few for the metrics of this pipeline, which need ${bytes}`
  return [{ pointer: '/engine_config/shm_config/bytes', message }]
}

/**
 * As `checkPipelineConfig`, of a configuration that is given: its shared-memory file has room for its metrics too. One that a node has stored
 * runs without that: in the version of the node that took it the metrics may have been fewer.
 */
export function checkGivenConfig(json: string, available: Registry): CheckedConfig {
  const checked = checkPipelineConfig(json, available)
  if (checked.config === null) return checked
  const problems = sizeProblems(checked.config, available)
  if (problems.length === 0) return checked
  return { config: null, problems: asWritten(problems, readConfig(json).value), warnings: [] }
}
