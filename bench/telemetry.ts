/** telemetry: packets per CPU second of a run's thread with none, one and 1,000 subscribers of its metrics and KPIs, ten samples a second. */
import { readdirSync, readFileSync } from 'node:fs'
import { SIX } from './forward.ts'
import { type Bench, inTurn, runAlone } from './measure.ts'
import { chainOf } from './support/chain.ts'
import { Server } from './support/servers.ts'
import { Subscribers } from './support/subscribers.ts'

const ROUNDS = 9
const SECONDS = 2

const config = {
  engine_config: {
    pipeline: {
      source: { uniform_traffic_source: { output: 'in', total_packets: 0, interval: 0 } },
      ...chainOf(SIX, 'in', 'out'),
      sink: { traffic_sink: { input: 'out' } },
    },
  },
  kpis: {
    variables: { bits: 'rate({sink/input_bytes}) * 8' },
    metrics: Array.from({ length: 20 }, (_, i) => ({
      id: `${i}`,
      value: { expression: `bits / max({sink/input_packets}, 1) + max({sink/delay_p99}, "${i + 1}s")` },
    })),
  },
}

/** A run that is never done, alone on a node of its own. */
class BusyRun {
  readonly server: Server
  readonly telemetry: string
  /** Its thread: the one that is always at work. */
  readonly #thread: string

  private constructor(server: Server, telemetry: string, thread: string) {
    this.server = server
    this.telemetry = telemetry
    this.#thread = thread
  }

  static async start(): Promise<BusyRun> {
    const server = await Server.node('--telemetry-interval', '100ms')
    const base = `http://127.0.0.1:${server.port}/v1`
    const ask = async (path: string, method = 'GET', body?: object) => {
      const headers = { 'content-type': 'application/json' }
      const init = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) }
      const answer = await fetch(`${base}${path}`, init)
      if (!answer.ok) throw new Error(await answer.text())
      return (await answer.json()) as { nodeId: string; pipeline: { id: string }; runId: string }
    }
    const { nodeId } = await ask('/hub-client/local-node-id')
    const jsonConfig = JSON.stringify(config)
    const { pipeline } = await ask(`/nodes/${nodeId}/pipelines`, 'POST', { name: 'busy', jsonConfig })
    const { runId } = await ask(`/nodes/${nodeId}/pipelines/${pipeline.id}/start`, 'POST')
    const before = threadTimes(server.pid)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const risen = [...threadTimes(server.pid)].map(
      ([thread, time]) => [thread, time - (before.get(thread) ?? 0)] as const,
    )
    const [[thread] = ['']] = risen.sort((a, b) => b[1] - a[1])
    return new BusyRun(server, `/v1/streams/nodes/${nodeId}/pipeline-runs/${runId}/telemetry`, thread)
  }

  /** Packets that its thread moves in a second of its CPU time. */
  async rate(): Promise<number> {
    const from = await this.#counts()
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000))
    const to = await this.#counts()
    return (to.packets - from.packets) / ((to.time - from.time) / 1e9)
  }

  async #counts(): Promise<{ packets: number; time: number }> {
    const text = await (await fetch(`http://127.0.0.1:${this.server.port}/metrics`)).text()
    const [, packets] = /^penstock_input_packets_total\{.*component="sink".*\} (\d+)$/m.exec(text) ?? []
    return { packets: Number(packets), time: threadTimes(this.server.pid).get(this.#thread) as number }
  }
}

/** CPU time that each thread of a process has had, nanoseconds. */
function threadTimes(pid: number): Map<string, number> {
  return new Map(
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const [time] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
      return [thread, Number(time)]
    }),
  )
}

export const bench: Bench = async () => {
  const run = await BusyRun.start()
  const withSubscribers = async (count: number) => {
    const subscribers = await Subscribers.open(run.server, run.telemetry, count)
    const rate = await run.rate()
    await subscribers.close()
    return rate
  }
  const rates = await inTurn(ROUNDS, {
    none: () => run.rate(),
    one: () => withSubscribers(1),
    thousand: () => withSubscribers(1000),
  })
  await run.server.stop()
  const unit = 'packets per CPU second'
  return {
    name: 'telemetry: what subscribers cost the thread of a run, ten samples a second of 21 expressions',
    rows: [
      { label: 'no subscriber', value: rates.none, unit },
      { label: '1 against none', value: rates.one, unit, ratio: rates.one / rates.none, goal: '≥ 0.98' },
      { label: '1,000 against none', value: rates.thousand, unit, ratio: rates.thousand / rates.none, goal: '≥ 0.98' },
    ],
  }
}

await runAlone(import.meta.url, bench)
