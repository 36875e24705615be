/** The settings of a pipeline as an update takes them: what is left out there is reset. */
import type { Pipeline, UpdatePipelineRequest } from '@penstock/client'

export function settingsOf(nodeId: string, pipeline: Pipeline): UpdatePipelineRequest {
  const { id, name, jsonConfig, restartPolicy, startupPolicy, defaultLoggingLevel } = pipeline
  const { instructionsTimeout, cpuPin, performanceMode, nodeReferenceId } = pipeline
  return {
    ...{ nodeId, id, name, jsonConfig, restartPolicy, startupPolicy, defaultLoggingLevel },
    ...{ instructionsTimeout, cpuPin, performanceMode, nodeReferenceId },
  }
}
