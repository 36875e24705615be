/** log: packets of a run whose component logs 10,000 lines a second, and of one that says nothing; what the node's memory grows by meanwhile. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRunPool } from '../src/dataplane/engine/pool.ts'
import { loadConfig } from '../src/node/config.ts'
import { createLog } from '../src/node/log.ts'
import { startNode } from '../src/node/node.ts'
import { type Bench, inTurn, runAlone } from './measure.ts'
import { talkative } from './support/talker.ts'

const LINES_PER_MS = 10
const SECONDS = 2
const PAIRS = 9

const configOf = (lines: number) =>
  JSON.stringify({
    engine_config: {
      pipeline: {
        talker: { bench_talker: { lines } },
        source: { throughput_traffic_source: { output: 'a', throughput_mbit: 100_000, payload_size: 1_200, seed: 1 } },
        loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.01, seed: 1 } },
        tracker: { throughput_tracker: { input: 'b', output: 'c' } },
        sink: { traffic_sink: { input: 'c' } },
      },
    },
  })

export const bench: Bench = async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
  const { config } = loadConfig({ flags: { 'data-dir': directory, http: '127.0.0.1:0', grpc: 'none' } })
  const thread = fileURLToPath(new URL('./support/talking-thread.js', import.meta.url))
  const pool = createRunPool({ registry: talkative, thread })
  const log = createLog({ level: 'error', format: 'text' })
  const node = await startNode(config, { log, pool, registry: talkative })
  const base = `http://${node.http}/v1/nodes/${node.id}`
  // biome-ignore lint/suspicious/noExplicitAny: JSON as it came over the wire
  const call = async (method: string, path: string, body?: unknown): Promise<any> => {
    const response = await fetch(`${base}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as { message: string }
    if (!response.ok) throw new Error(`${path}: ${answer.message}`)
    return answer
  }
  const cpu = pool.cpus.at(-1) as number
  const make = async (name: string, lines: number): Promise<string> =>
    (await call('POST', '/pipelines', { name, jsonConfig: configOf(lines), cpuPin: cpu, performanceMode: true }))
      .pipeline.id
  const pipelines = { silent: await make('silent', 0), talking: await make('talking', LINES_PER_MS) }
  /** Packets a second that come to the sink of a run. */
  const rate = async (id: string): Promise<number> => {
    const { runId } = await call('POST', `/pipelines/${id}/start`)
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000))
    await call('POST', `/pipelines/${id}/stop`)
    const response = await fetch(`http://${node.http}/v1/streams/nodes/${node.id}/pipeline-runs/${runId}/telemetry`)
    const events = await response.text()
    const samples = events.split('\n').filter((line) => line.startsWith('data:') && line.includes('metricCollections'))
    const last = JSON.parse((samples.at(-1) as string).slice(5))
    const { run } = await call('GET', `/pipeline-runs/${runId}`)
    const sink = last.metricCollections.find(({ path }: { path: string }) => path === 'sink')
    return Number(sink.metrics.packets.uint64Value) / ((Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000)
  }
  try {
    await rate(pipelines.talking)
    const before = process.memoryUsage.rss()
    const rates = await inTurn(PAIRS, { silent: () => rate(pipelines.silent), talking: () => rate(pipelines.talking) })
    const grown = process.memoryUsage.rss() - before
    const logs = join(directory, 'logs')
    const largest = Math.max(...readdirSync(logs).map((name) => statSync(join(logs, name)).size))
    return {
      name: `log: a run whose component logs ${LINES_PER_MS * 1000} lines a second, and one that says nothing`,
      rows: [
        { label: 'silent', value: rates.silent, unit: 'packets/s' },
        {
          label: 'talking',
          value: rates.talking,
          unit: 'packets/s',
          ratio: rates.talking / rates.silent,
          goal: '≥ 0.98',
        },
        { label: `memory of the node after ${PAIRS} of each`, value: grown / 2 ** 20, unit: 'MB more' },
        { label: 'largest file of a log', value: largest / 2 ** 20, unit: 'MiB', goal: '≤ 1' },
      ],
    }
  } finally {
    await node.close()
    await pool.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

await runAlone(import.meta.url, bench)
