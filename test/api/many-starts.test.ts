/** Many pipelines that start at once: all run, however they were asked to. */
import { afterAll, expect, it } from 'vitest'
import { loadConfig } from '../../src/node/config.ts'
import { createLog } from '../../src/node/log.ts'
import { startNode } from '../../src/node/node.ts'
import { until } from '../harness/waiting.ts'
import { RunningNode, temporaryDirectory } from './running-node.ts'

/** A start has ten seconds, also on a machine that does much else. */
const MANY = 16
const pipeline = {
  in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  sink: { traffic_sink: { input: 'a' } },
}
const directory = temporaryDirectory()

/** A node with the threads of the product. */
async function open(): Promise<RunningNode> {
  const { config } = loadConfig({ flags: { 'data-dir': directory, http: '127.0.0.1:0', grpc: 'none' } })
  const log = createLog({ level: 'error', format: 'json', destination: { write: () => {} } })
  return new RunningNode(await startNode(config, { log }), [])
}

let node = await open()
afterAll(() => node.node.close())

/** In how many pipelines the run is in each state. */
async function states(): Promise<Record<string, number>> {
  const { body } = await node.call('GET', '/pipelines')
  const counts: Record<string, number> = {}
  for (const { currentRun } of body.pipelines) {
    const state = currentRun?.state ?? 'none'
    counts[state] = (counts[state] ?? 0) + 1
  }
  return counts
}

it('runs pipelines whose starts are asked for at once, and those that start by themselves when the node comes back', async () => {
  const ids: string[] = []
  for (let n = 0; n < MANY; n++) {
    const startupPolicy = n % 2 === 0 ? { auto: {} } : { manual: {} }
    ids.push(await node.create(pipeline, { name: `many-${n}`, startupPolicy }))
  }
  const answers = await Promise.all(ids.map((id) => node.call('POST', `/pipelines/${id}/start`)))
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(await states()).toEqual({ RUNNING: MANY })
  await node.node.close()
  node = await open()
  await until(async () => (await states()).RUNNING === MANY / 2)
}, 120_000)
