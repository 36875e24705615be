/** openCaptureStream: how many there may be at once. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../harness/waiting.ts'
import { type RunningNode, runNode, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
})
afterAll(() => node.node.close())

test('captures of a run beyond its limit are refused, until one is closed; those of another run are not', async () => {
  const [one, other] = await Promise.all([1, 2].map(async () => node.start(await node.create(traffic()))))
  const follow = (runId: string | undefined) =>
    node.follow(`/pipeline-runs/${runId}/capture?component=source&side=OUTPUT`)
  const open = await Promise.all(Array.from({ length: 32 }, () => follow(one)))
  await expect(follow(one)).rejects.toMatchObject({
    code: 8,
    message: `a run has 32 captures at once, and run ${one} has as many; close one first`,
  })
  const elsewhere = await follow(other)
  open.pop()?.close()
  // That the first has gone reaches the node a little later.
  await until(async () => {
    const stream = await follow(one).catch(() => undefined)
    if (stream !== undefined) open.push(stream)
    return stream !== undefined
  })
  expect(await open.at(-1)?.next()).toMatchObject({ links: [expect.any(String)] })
  for (const stream of [...open, elsewhere]) stream.close()
})
