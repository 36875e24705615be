/** What a node sends, as tests make it or as a node of this repository has it. */
import type { Metric, Pipeline, TelemetrySample } from '@penstock/client'
import type { ConfigSchema } from './configuration.ts'
import type { Profile } from './documents.ts'

/** Where the node is. The types of the page know no Node.js, so the compiler is not to follow it there. */
const NODE: string = '../../../src/node'

/** The node's schema of configurations. */
export async function nodeSchema(): Promise<ConfigSchema> {
  return (await import(`${NODE}/config-schema.ts`)).pipelineConfigSchema()
}

/** The node's impairment profiles. */
export async function nodeProfiles(): Promise<readonly Profile[]> {
  const { profileNames, profileFile } = await import(`${NODE}/impairment-profiles.ts`)
  return profileNames().map((name: string) => JSON.parse(profileFile(name).text))
}

export function counter(value: number, more: Partial<Metric> = {}): Metric {
  return { kind: 'COUNTER', unit: 'packets', description: '', uint64Value: String(value), ...more }
}

/** A sample `seconds` after some moment. */
export function sampleAt(
  seconds: number,
  metrics: Readonly<Record<string, Record<string, Metric>>>,
  more: Partial<TelemetrySample> = {},
): TelemetrySample {
  const metricCollections = Object.entries(metrics).map(([path, of]) => ({ path, metrics: of }))
  return { metricCollections, kpis: [], timestamp: new Date(1_700_000_000_000 + seconds * 1000).toISOString(), ...more }
}

/** A pipeline `a` of this configuration. */
export function pipelineOf(jsonConfig: string): Pipeline {
  const settings = { defaultLoggingLevel: 'INFO', instructionsTimeout: 30, performanceMode: false } as const
  return { id: 'a', name: 'a', jsonConfig, started: false, ...settings }
}
