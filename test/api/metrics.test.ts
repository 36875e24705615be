/** GET /metrics on a real node: what Prometheus's own tool says of it, what is in it, and who may read it. */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../harness/waiting.ts'
import { RawConnection } from './raw-http.ts'
import { type RunningNode, runNode, temporaryDirectory } from './running-node.ts'

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
if (!hasPromtool) console.warn('SKIPPED: promtool is not here (Debian package prometheus)')

let node: RunningNode
let run: string
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  const pipeline = {
    'so"urce\\': { throughput_traffic_source: { output: 'a', throughput_mbit: 2, payload_size: 200 } },
    link: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: 1 } },
    watch: { observer: { input: 'b', output: 'c' } },
    rtp: { rtp_observer: { input: 'c', output: 'd' } },
    sink: { traffic_sink: { input: 'd' } },
  }
  run = await node.start(await node.create(pipeline, { name: 'a "quoted" \\ name\nof two lines' }))
  await node.start(await node.create(pipeline, { name: 'another' }))
})
afterAll(() => node.node.close())

const url = () => `http://${node.node.http}/metrics`
const text = async () => await (await fetch(url())).text()

/** Of a line: name, labels, value. */
function samplesOf(exposed: string) {
  return exposed
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? expect.fail(line)
      return { name, labels, value: Number(value) }
    })
}

const runLabels = () => `run="${run}"`
/** NaN where there is none. */
const numberOf = (exposed: string, name: string, component = '') =>
  samplesOf(exposed).find(
    (sample) =>
      sample.name === name &&
      sample.labels.includes(runLabels()) &&
      (component === '' || sample.labels.includes(`component="${component}"`)),
  )?.value ?? Number.NaN

test('is text of the exposition format, which HEAD gives without its body', async () => {
  const response = await fetch(url())
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  const head = await fetch(url(), { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
    '',
  ])
})

test.skipIf(!hasPromtool)(
  'promtool takes it and has nothing to say about its names, types, units and helps',
  async () => {
    await until(async () => numberOf(await text(), 'penstock_delay_seconds_count', 'sink') > 10)
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await text(),
      encoding: 'utf8',
    })
    expect(`${stdout}${stderr}`).toBe('')
    expect(status).toBe(0)
  },
)

test('has the metrics of every run by pipeline, run and component, of its loop, and of the process', async () => {
  await until(async () => numberOf(await text(), 'penstock_input_packets_total', 'sink') > 10)
  const exposed = await text()
  expect(exposed).toContain(
    String.raw`penstock_generated_packets_total{pipeline="a \"quoted\" \\ name\nof two lines",run="${run}",component="so\"urce\\"} `,
  )
  expect(exposed).toMatch(
    /^penstock_input_packets_total\{pipeline="another",run="[^"]+",component="link",port="flows_0_input"\} \d+$/m,
  )
  expect(numberOf(exposed, 'penstock_engine_breaths_total')).toBeGreaterThan(0)
  expect(samplesOf(exposed).find(({ name }) => name === 'process_resident_memory_bytes')?.value).toBeGreaterThan(1e7)
  for (const [, name] of exposed.matchAll(/^# TYPE (\S+)/gm)) {
    expect(exposed.match(new RegExp(`^# TYPE ${name} `, 'gm')), name).toHaveLength(1)
  }
})

test('the buckets of a histogram rise, and the last has all', async () => {
  await until(async () => numberOf(await text(), 'penstock_delay_seconds_count', 'sink') > 10)
  const exposed = samplesOf(await text()).filter(
    ({ labels }) => labels.includes(runLabels()) && labels.includes('component="sink"'),
  )
  const buckets = exposed.filter(({ name }) => name === 'penstock_delay_seconds_bucket')
  const bounds = buckets.map(({ labels }) => Number(/le="(.*)"/.exec(labels)?.[1]?.replace('+Inf', 'Infinity')))
  expect(bounds).toEqual([...bounds].sort((a, b) => a - b))
  const counts = buckets.map(({ value }) => value)
  expect(counts).toEqual([...counts].sort((a, b) => a - b))
  expect(counts.at(-1)).toBe(exposed.find(({ name }) => name === 'penstock_delay_seconds_count')?.value)
  // A millisecond of emulated delay: none is earlier.
  const early = buckets.filter((_, i) => (bounds[i] as number) < 0.001)
  expect(early.map(({ value }) => value)).toEqual(early.map(() => 0))
  const sum = exposed.find(({ name }) => name === 'penstock_delay_seconds_sum')?.value as number
  expect(sum).toBeGreaterThanOrEqual((counts.at(-1) as number) * 0.001)
})

test('a run that has ended is not there any more', async () => {
  const id = await node.create({
    source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } },
    sink: { traffic_sink: { input: 'a' } },
  })
  const other = await node.start(id)
  await until(async () => (await text()).includes(other))
  await node.call('POST', `/pipelines/${id}/stop`)
  await node.when(id, ({ started }) => !started)
  expect(await text()).not.toContain(other)
})

describe('who may read it', () => {
  test('other methods are refused, and said which there are', async () => {
    const refused = await fetch(url(), { method: 'POST' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect(await refused.json()).toMatchObject({ code: 12 })
    const asked = await fetch(url(), { method: 'OPTIONS' })
    expect([asked.status, asked.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
  })

  test('a Host that is not ours and a page of another origin are refused as by the API', async () => {
    const connection = new RawConnection(Number(node.node.http?.split(':').at(-1)))
    expect((await connection.ask('GET', '/metrics', { host: 'evil.example' }))?.status).toBe(403)
    connection.close()
    expect((await fetch(url(), { headers: { origin: 'https://evil.example' } })).status).toBe(403)
    expect((await fetch(url(), { headers: { authorization: 'Bearer wrong' } })).status).toBe(401)
  })

  test('with access.loopback: token it takes one', async () => {
    const guarded = await runNode(temporaryDirectory(), { loopback: 'token' })
    expect((await fetch(`http://${guarded.node.http}/metrics`)).status).toBe(401)
    await guarded.node.close()
  })
})
