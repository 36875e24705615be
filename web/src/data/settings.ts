/** The settings of a pipeline: what creating it takes, and updating it replaces. */
import type { CreatePipelineRequest, Pipeline, UpdatePipelineRequest } from '@penstock/client'
import { readJson } from './json.ts'

export type Settings = Omit<CreatePipelineRequest, 'nodeId'>

/** Those that a pipeline has, to be sent back with changes: what an update leaves out falls back to its default. */
export function settingsOf(pipeline: Pipeline): Settings {
  const { name, jsonConfig, restartPolicy, startupPolicy, defaultLoggingLevel } = pipeline
  const { nodeReferenceId, instructionsTimeout, cpuPin, performanceMode } = pipeline
  return {
    ...{ name, jsonConfig, restartPolicy, startupPolicy, defaultLoggingLevel },
    ...{ nodeReferenceId, instructionsTimeout, cpuPin, performanceMode },
  }
}

/** The update that changes nothing. */
export function updateOf(nodeId: string, pipeline: Pipeline): UpdatePipelineRequest {
  return { nodeId, id: pipeline.id, ...settingsOf(pipeline) }
}

/** All that they say, line by line, for who compares: a configuration that is JSON is laid out, so that lines differ where it does. */
export function linesOf({ jsonConfig, ...others }: Settings): string {
  const given = Object.entries(others).filter(([, value]) => value !== undefined)
  const lines = given.map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
  return `${lines.sort().join('')}${laidOut(jsonConfig)}`
}

function laidOut(text: string): string {
  try {
    return JSON.stringify(readJson(text), null, 2)
  } catch {
    return text
  }
}

/** Whether both say the same. */
export function isSame(a: Settings, b: Settings): boolean {
  const text = (settings: Settings): string =>
    JSON.stringify(
      Object.entries(settings)
        .filter(([, value]) => value !== undefined)
        .sort(),
    )
  return text(a) === text(b)
}
