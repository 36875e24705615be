/** What the command line tells of runs that have ended, and of pipelines that failed. */
import type { ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { lineOf, penstock, type Result, scratch, start } from './cli.ts'

const directory = scratch()
let node: ChildProcess
let url: string
let api: string
/** Holds a port that a pipeline wants. */
const holder = createSocket('udp4')

const call = (...args: string[]): Promise<Result> => penstock(args, { env: { PENSTOCK_URL: url } })

async function up(): Promise<void> {
  const flags = ['--http', '127.0.0.1:0', '--grpc', 'none', '--telemetry-interval', '100ms', '--log-level', 'silent']
  node = start(['up', '--data-dir', `${directory.path}/data`, ...flags])
  const [, http, id] = await lineOf(node, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
  url = `http://${http}`
  api = `${url}/v1/nodes/${id}`
}

async function down(): Promise<void> {
  const gone = once(node, 'exit')
  node.kill('SIGTERM')
  await gone
}

/** Calls the API itself, which is quicker than a command; gives the status and the body. */
// biome-ignore lint/suspicious/noExplicitAny: JSON as it came over the wire
async function rest(method: string, path: string, body?: object): Promise<{ status: number; body: any }> {
  const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  const response = await fetch(`${api}${path}`, { method, ...init })
  return { status: response.status, body: await response.json() }
}

const startOf = (name: string) => rest('POST', `/pipelines-by-name/${name}/start`)

/** Waits until the pipeline's run has ended; gives its record. */
async function ended(name: string): Promise<{ id: string; outcome: string; error?: string }> {
  const latest = async () => (await rest('GET', `/pipelines-by-name/${name}`)).body.pipeline.currentRun
  await until(async () => (await latest()).state === 'ENDED', `the run of ${name} has ended`)
  return await latest()
}

/** A run that has made a packet and was stopped. */
async function run(name: string): Promise<string> {
  const { runId } = (await startOf(name)).body
  const samples = await fetch(`${api.replace('/v1/', '/v1/streams/')}/pipeline-runs/${runId}/telemetry`)
  let seen = ''
  for await (const chunk of samples.body as unknown as AsyncIterable<Uint8Array>) {
    seen += Buffer.from(chunk).toString()
    if (/"input_packets":\{[^}]*"uint64Value":"[1-9]/.test(seen)) break
  }
  expect((await rest('POST', `/pipelines-by-name/${name}/stop`)).status).toBe(200)
  return (await ended(name)).id
}

beforeAll(async () => {
  holder.bind(0, '127.0.0.1')
  await once(holder, 'listening')
  await up()
  const source = { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } }
  const flow = { source, sink: { traffic_sink: { input: 'a' } } }
  const address = `127.0.0.1:${holder.address().port}`
  const taken = { a: { udp: { local_address: address, output: 'a' } }, sink: { traffic_sink: { input: 'a' } } }
  for (const [name, pipeline] of Object.entries({ flow, taken })) {
    const jsonConfig = JSON.stringify({ engine_config: { pipeline } })
    expect((await rest('POST', '/pipelines', { name, jsonConfig })).status).toBe(200)
  }
})
afterAll(async () => {
  await down()
  holder.close()
  directory.dispose()
})

it('sums up a run that ended well: its counts, how it ended, exit code 0; also one before the last', async () => {
  const runs = [await run('flow'), await run('flow')]
  for (const args of [['flow'], ['--run', runs[0] as string], ['--run', runs[1] as string, '--count', '1']]) {
    const { code, stdout, stderr } = await call('pipelines', 'telemetry', ...args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^COMPONENT +METRIC +VALUE/)
    expect(stdout).toMatch(/sink +input_packets +[1-9]/)
    expect(stdout).toMatch(/\nstopped after [\d.]+ s\n$/)
  }
  const { code, stdout } = await call('pipelines', 'telemetry', '--run', runs[0] as string, '-o', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    outcome: 'STOPPED',
    seconds: expect.any(Number),
    kpis: [],
    metrics: {
      source: expect.any(Object),
      sink: expect.objectContaining({ input_packets: expect.any(Number) }),
      '/engine': expect.objectContaining({ breaths: expect.any(Number) }),
      '/process': expect.objectContaining({ threads: expect.any(Number) }),
    },
  })
})

it.each([['table'], ['json']])('sums up a run that ends while one watches (%s)', async (output) => {
  expect((await startOf('flow')).status).toBe(200)
  const watcher = start(['pipelines', 'telemetry', 'flow', '-o', output], { PENSTOCK_URL: url })
  const gone = once(watcher, 'exit')
  const lines: string[] = []
  const reading = (async () => {
    for await (const line of createInterface({ input: watcher.stdout! })) {
      // It has seen something: now the run may end.
      if (lines.push(line) === 1) void rest('POST', '/pipelines-by-name/flow/stop')
    }
  })()
  expect(await text(watcher.stderr!)).toBe('')
  await reading
  expect(await gone).toEqual([0, null])
  if (output === 'table') {
    expect(lines.at(-1)).toMatch(/^stopped after /)
    return
  }
  const samples = lines.map((line) => JSON.parse(line))
  expect(samples[0]).toEqual({
    timestamp: expect.stringMatching(/Z$/),
    kpis: [],
    metrics: expect.any(Object),
  })
  const last = samples.at(-1)
  expect(last).toMatchObject({ outcome: 'STOPPED', seconds: expect.any(Number) })
  expect(last.metrics.sink.input_packets).toBeGreaterThan(0)
  expect(last.metrics).toEqual(samples.at(-2).metrics)
})

it('exits 1 with the cause of a run that failed; status counts failed pipelines and names them', async () => {
  expect((await call('status')).stdout).not.toContain('failed')
  expect((await startOf('taken')).status).toBe(409)
  const { id, error } = await ended('taken')
  const { code, stderr } = await call('pipelines', 'telemetry', 'taken')
  expect({ code, stderr }).toEqual({ code: 1, stderr: `penstock: the run failed: ${error}\n` })
  const status = await call('status')
  expect(status.stdout).toMatch(/pipelines +2, 0 running, 1 failed\n/)
  const words = status.stdout.replaceAll(/\s+/g, ' ')
  expect(words).toMatch(/failed taken \S+: /)
  expect(words).toContain(error)
  const { failed } = JSON.parse((await call('status', '-o', 'json')).stdout)
  expect(failed).toEqual([{ id: expect.any(String), name: 'taken', run: id, error }])
})

it('says so when the counts went with a restart of the node', async () => {
  const id = await run('flow')
  await down()
  await up()
  const { code, stdout, stderr } = await call('pipelines', 'telemetry', 'flow')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^no counts of this run are kept\n\nstopped after /)
  expect((await call('pipelines', 'logs', '--run', id)).stdout).toMatch(/ended: STOPPED\n$/)
})

it('an unknown run is an error', async () => {
  const { code, stderr } = await call('pipelines', 'telemetry', '--run', 'none')
  expect(code).toBe(1)
  expect(stderr).toContain('no run none')
})
