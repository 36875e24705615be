/** Whether the shared-memory file of a configuration has room for its metrics. */
import type { Problem } from '../../text/pointer.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { layoutOf } from './layout.ts'
import { metricsFileLayout } from './shm-config.ts'

/** What is wrong with the file's size; nothing for a configuration without such a file. */
export function shmProblems(config: PipelineConfig, available: Registry): Problem[] {
  if (config.shmConfig === undefined) return []
  const { bytes } = metricsFileLayout(layoutOf(config, available).metrics.entries)
  if (config.shmConfig.bytes >= bytes) return []
  const message = `${config.shmConfig.bytes} bytes are too few for the metrics of this pipeline, which need ${bytes}`
  return [{ pointer: '/engine_config/shm_config/bytes', message }]
}
