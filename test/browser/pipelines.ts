/** Pipelines that tests of the dashboard look at, and what a node has of them. */
import type { RunningNode } from '../api/running-node.ts'

/** Sends into a sink over an emulated loss. */
export const lossy = (loss = 0, mbit = 2) => ({
  source: { throughput_traffic_source: { output: 'a', throughput_mbit: mbit, payload_size: 500 } },
  loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: loss } },
  sink: { traffic_sink: { input: 'b' } },
})

export interface Stored {
  readonly id: string
  readonly name: string
  readonly jsonConfig: string
  readonly started: boolean
}

/** The pipeline of that name; undefined where the node has none. */
export async function storedAt(node: RunningNode, name: string): Promise<Stored | undefined> {
  const { body } = await node.call('GET', '/pipelines')
  return (body.pipelines as Stored[]).find((pipeline) => pipeline.name === name)
}

/** The components of its configuration: by name, then by kind, their fields. */
export function componentsOf({ jsonConfig }: Stored): Record<string, Record<string, Record<string, unknown>>> {
  return JSON.parse(jsonConfig).engine_config.pipeline
}

/** Which component feeds which, by the kinds of both. */
export function connectionsOf(pipeline: Stored): string[] {
  const ends = new Map<unknown, { from?: string; to?: string }>()
  for (const component of Object.values(componentsOf(pipeline))) {
    for (const [kind, { input, output }] of Object.entries(component)) {
      if (output !== undefined) ends.set(output, { ...ends.get(output), from: kind })
      if (input !== undefined) ends.set(input, { ...ends.get(input), to: kind })
    }
  }
  return [...ends.values()].map(({ from, to }) => `${from} ${to}`).sort()
}
