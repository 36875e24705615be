/** simulated_network over the API: pipelines created and started by REST on one node exchange packets. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from './running-node.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '100ms' })
})
afterAll(() => node.node.close())

interface Sample {
  metricCollections: { path: string; metrics: Record<string, { uint64Value: string; doubleValue: number }> }[]
}

/** Follows a run's telemetry until a number of a component is as it should be. */
async function when(run: string, path: string, metric: string, holds: (value: number) => boolean): Promise<void> {
  const samples = await node.follow(`/pipeline-runs/${run}/telemetry`)
  try {
    for (;;) {
      const { metricCollections }: Sample = await samples.next()
      const value = metricCollections.find((each) => each.path === path)?.metrics[metric]
      if (value && holds(Number(value.uint64Value ?? value.doubleValue))) return
    }
  } finally {
    samples.close()
  }
}

const SENT = 500

test('two pipelines on one node are joined, whichever starts first, and again after a stop', async () => {
  const receiver = await node.create({
    in: { simulated_network: { network_name: 'lan', output: 'a' } },
    sink: { traffic_sink: { input: 'a' } },
  })
  const deaf = await node
    .create({
      in: { simulated_network: { network_name: 'lan', output: 'a' } },
      sink: { traffic_sink: { input: 'a' } },
      sender: { simulated_network: { network_name: 'another' } },
    })
    .catch((error: Error) => error.message)
  expect(deaf).toContain('neither input nor output is set')
  const finite = await node.create({
    source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: SENT, seed: 1 } },
    out: { simulated_network: { network_name: 'lan', input: 'a' } },
  })
  const endless = await node.create({
    source: { uniform_traffic_source: { output: 'a', interval: 1, seed: 2 } },
    out: { simulated_network: { network_name: 'lan', input: 'a', receivers: ['in'] } },
  })
  const first = await node.start(receiver)
  await node.start(finite)
  await when(first, 'sink', 'probe_packets', (packets) => packets === SENT)
  await node.call('POST', `/pipelines/${receiver}/stop`)

  const sender = await node.start(endless)
  await when(sender, 'out', 'members', (count) => count === 0)
  const second = await node.start(receiver)
  await when(second, 'sink', 'probe_packets', (packets) => packets > SENT)
  await node.call('POST', `/pipelines/${receiver}/stop`)
  await when(sender, 'out', 'members', (count) => count === 0)
  const third = await node.start(receiver)
  await when(third, 'sink', 'probe_packets', (packets) => packets > 0)
})
