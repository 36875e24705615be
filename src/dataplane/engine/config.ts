/** The pipeline configuration: from the text of jsonConfig to a checked, normalised value, or every problem in it. */
import type { Problem } from '../../text/pointer.ts'
import type { KpisConfig } from './kpis.ts'
import type { LifecycleHandler } from './lifecycle.ts'
import type { LogFilter } from './log-filters.ts'
import type { ShmConfig } from './shm-config.ts'

/** Something that is allowed, but hardly meant. */
export interface Warning extends Problem {
  /** Name of the component that it is about; empty: none. */
  component: string
}

/** One component as the engine takes it: its key and its checked configuration, defaults filled in. */
export interface ComponentConfig {
  key: string
  config: Record<string, unknown>
}

/** A checked configuration, keys in snake_case, enums by name. Plain data: it crosses threads. */
export interface PipelineConfig {
  version: number
  components: Record<string, ComponentConfig>
  /** Their files as the configuration names them, or absolute. */
  logFilters: LogFilter[]
  /** Its file as the configuration names it, or absolute. */
  shmConfig?: ShmConfig
  variables: { id: string; label: string; description: string; paths: string[] }[]
  /** How a display lays the components out. */
  meta?: {
    component_display_coordinates?: Record<string, { x?: number; y?: number }>
    component_display_order?: Record<string, number>
  }
  /** Commands around the run; absent: none. */
  lifecycle?: LifecycleHandler
  kpis?: KpisConfig
}
