/** sse: one event to 1,000 and 10,000 subscribers of a stream against a bare uWebSockets.js loop, by CPU time; memory of an idle stream. */
import { type Bench, type BenchRow, inTurn, runAlone } from './measure.ts'
import { makePipeline, Server } from './support/servers.ts'
import { Subscribers } from './support/subscribers.ts'

/** Changes under way at once, each of a pipeline of its own, so that waiting for the disk is not what is measured. */
const PIPELINES = 8
/** Events delivered in one round. */
const DELIVERIES = 160_000
const IDLE_STREAMS = 10_000

/** A server whose stream can be made to speak. */
interface Source {
  server: Server
  path: string
  /** Makes `events` events, `together` at a time (at most `PIPELINES`, which is what it is when left out). */
  publish(events: number, together?: number): Promise<void>
}

async function nodeSource(): Promise<Source> {
  const server = await Server.node()
  const made = []
  for (let i = 0; i < PIPELINES; i++) made.push(await makePipeline(server.port, `bench-${i}`))
  const node = made[0]?.node as string
  const base = `http://127.0.0.1:${server.port}/v1/nodes/${node}/pipelines`
  const { pipelines } = (await (await fetch(base)).json()) as { pipelines: Record<string, unknown>[] }
  let turn = 0
  const rename = async ({ id, currentRun, started, ...settings }: Record<string, unknown>) => {
    turn++
    const body = JSON.stringify({ ...settings, name: `bench-${turn % 10}` })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${base}/${id}`, { method: 'PUT', headers, body })
    if (!answer.ok) throw new Error(await answer.text())
    await answer.arrayBuffer()
  }
  return {
    server,
    path: `/v1/streams/nodes/${node}/pipelines`,
    publish: async (events, together = PIPELINES) => {
      for (let sent = 0; sent < events; sent += together) {
        await Promise.all(pipelines.slice(0, Math.min(together, events - sent)).map((pipeline) => rename(pipeline)))
      }
    },
  }
}

/** The bytes of one event, as they come on the stream. */
async function eventOf({ server, path, publish }: Source): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`)
  let text = ''
  const decoder = new TextDecoder()
  await publish(1)
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    const event = /data: .*\n\n/.exec(text)
    // Leaving the loop closes the stream.
    if (event !== null) return event[0]
  }
  throw new Error('the stream ended without an event')
}

async function bareSource(event: string): Promise<Source> {
  const server = await Server.bare({ event: Buffer.from(event).toString('base64') })
  // As many at once as changes of pipelines reach the disk together.
  const publish = async (events: number, together = PIPELINES) => {
    for (let sent = 0; sent < events; sent += together) {
      const count = Math.min(together, events - sent)
      await (await fetch(`http://127.0.0.1:${server.port}/publish/${count}`, { method: 'POST' })).arrayBuffer()
    }
  }
  return { server, path: '/events', publish }
}

/** Deliveries per second of the server's CPU time. */
async function rate({ server, publish }: Source, subscribers: Subscribers, together?: number): Promise<number> {
  const events = Math.ceil(DELIVERIES / subscribers.count)
  const before = server.cpu()
  const arrived = subscribers.expect(events)
  await Promise.all([publish(events, together), arrived])
  return (events * subscribers.count) / (server.cpu() - before)
}

/** KB that one more stream takes, once the first ones have filled what the process had lying about. */
async function memoryOfStream({ server, path }: Source): Promise<number> {
  const first = await Subscribers.open(server, path, IDLE_STREAMS / 5)
  const before = server.memory()
  const others = await Subscribers.open(server, path, (IDLE_STREAMS * 4) / 5)
  const after = server.memory()
  await first.close()
  await others.close()
  return (after - before) / others.count / 1024
}

export const bench: Bench = async () => {
  const node = await nodeSource()
  const event = await eventOf(node)
  const bare = await bareSource(event)
  try {
    const idle = await memoryOfStream(node)
    const bareIdle = await memoryOfStream(bare)
    const rows: BenchRow[] = []
    for (const count of [1_000, 10_000]) {
      const ofNode = await Subscribers.open(node.server, node.path, count)
      const ofBare = await Subscribers.open(bare.server, bare.path, count)
      const rates = await inTurn(5, {
        bare: () => rate(bare, ofBare),
        node: () => rate(node, ofNode),
        bareSingle: () => rate(bare, ofBare, 1),
        nodeSingle: () => rate(node, ofNode, 1),
      })
      await ofNode.close()
      await ofBare.close()
      const unit = 'events per CPU second'
      rows.push({ label: `bare loop, ${count.toLocaleString('en-US')} subscribers`, value: rates.bare, unit })
      rows.push({ label: 'streamPipelines', value: rates.node, unit, ratio: rates.node / rates.bare, goal: '≥ 0.9' })
      rows.push({ label: 'bare loop, one event at a time', value: rates.bareSingle, unit })
      const single = rates.nodeSingle / rates.bareSingle
      rows.push({ label: 'streamPipelines, one change at a time', value: rates.nodeSingle, unit, ratio: single })
    }
    rows.push({ label: 'memory of an idle stream, bare', value: bareIdle, unit: 'KB' })
    rows.push({ label: 'memory of an idle stream', value: idle, unit: 'KB', goal: '≤ 4' })
    return { name: `sse: an event of ${event.length} B to every subscriber of a stream`, rows }
  } finally {
    await node.server.stop()
    await bare.server.stop()
  }
}

await runAlone(import.meta.url, bench)
