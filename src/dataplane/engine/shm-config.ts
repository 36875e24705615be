/** The shared-memory file of a configuration: its schema, and how large the file must be for a run's metrics. */
import { type Static, Type } from '@sinclair/typebox'
import type { MetricEntry } from './metrics.ts'
import { FileName, Int32 } from './schema.ts'

export const ShmConfig = Type.Object({
  file_path: FileName('The file that the metrics are written to.'),
  bytes: Int32('Size of the file.', { minimum: 1, unit: 'bytes' }),
  interval_ms: Int32('Time between two writes.', { minimum: 1, unit: 'ms' }),
})

export type ShmConfig = Static<typeof ShmConfig>

/** The layout of the file (docs/shared-memory.md): where what is, bytes from its beginning. */
export interface MetricsFileLayout {
  /** One line a metric: path, name, kind, unit, with tabs between. */
  readonly directory: Buffer
  readonly valuesAt: number
  readonly bytes: number
}

/** Bytes before the directory. */
export const METRICS_FILE_HEADER_BYTES = 64

/** The layout for a run with these metrics. Names and units have neither tabs nor line ends but in paths, where they become spaces. */
export function metricsFileLayout(entries: readonly MetricEntry[]): MetricsFileLayout {
  const lines = entries.map(({ path, name, kind, unit }) =>
    [path, name, kind, unit].map((text) => text.replaceAll(/[\t\n\0]/g, ' ')).join('\t'),
  )
  const directory = Buffer.from(lines.map((line) => `${line}\n`).join(''))
  const valuesAt = (METRICS_FILE_HEADER_BYTES + directory.length + 7) & ~7
  return { directory, valuesAt, bytes: valuesAt + entries.length * 8 }
}
