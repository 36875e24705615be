/** Three servers of a hub that start in the same moment, on NATS that has no buckets of it yet: all come up, and each lists all. */
import { test } from 'vitest'
import { Nats } from '../harness/nats.ts'
import { clusterServer, type HubServerRig } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { closing, start } from './server-rig.ts'

const NAMES = ['a', 'b', 'c']
/** Within which they start, milliseconds: about as long as NATS takes to make a bucket. */
const SPREAD_MS = 30

test.each([
  { on: 'one NATS server', nats: () => Nats.alone(), replicas: 1, hubs: 60 },
  { on: 'three NATS servers as a cluster', nats: () => Nats.three(), replicas: 3, hubs: 4 },
])('on $on, $hubs hubs one after the other', async ({ nats: made, replicas, hubs }) => {
  const nats = await start(made())
  for (let hub = 0; hub < hubs; hub++) {
    const open: HubServerRig[] = []
    const starting = NAMES.map(async (name) => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * SPREAD_MS))
      const server = await clusterServer({ name, servers: nats.addresses, bucket: `hub${hub}`, replicas })
      closing.push(() => server.close())
      open.push(server)
    })
    await Promise.allSettled(starting)
    await Promise.all(starting)
    const listed = () =>
      open.map(({ registry }) =>
        registry
          .nodes()
          .map(({ name, online }) => `${name} ${online}`)
          .sort(),
      )
    const all = NAMES.map((name) => `${name} true`)
    await until(
      () => listed().every((names) => names.join() === all.join()),
      () => `three servers on each list: ${JSON.stringify(listed())}`,
    )
    await Promise.all(open.map((server) => server.close()))
  }
})
