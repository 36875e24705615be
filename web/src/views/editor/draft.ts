/** What is being edited: the settings of a pipeline, and its configuration as text and, where it can be drawn, as a value. */

import { type JsonObject, readJson } from '../../data/json.ts'
import type { Settings } from '../../data/settings.ts'
import { formatted } from '../configuration/text-tools.tsx'
import { hasPipeline } from './model-graph.ts'

export interface Draft {
  /** Its `jsonConfig` is the text. */
  readonly settings: Settings
  /** Undefined: the text is no JSON, has a number beyond the largest, or nothing that has components. */
  readonly config: JsonObject | undefined
}

const EMPTY = { version: 1, engine_config: { pipeline: {} } }

export const NEW: Settings = { name: '', jsonConfig: formatted(EMPTY) }

export function draftOf(settings: Settings): Draft {
  return { settings, config: parsed(settings.jsonConfig) }
}

/** The draft with another configuration, whose text is written anew. */
export function withConfig({ settings }: Draft, config: JsonObject): Draft {
  return { settings: { ...settings, jsonConfig: formatted(config) }, config }
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value = readJson(text)
    return hasPipeline(value) ? value : undefined
  } catch {
    return undefined
  }
}
