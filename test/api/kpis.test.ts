/** KPIs of runs on a real node: over REST, event streams and gRPC, changed while a run is on, and hostile ones. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GrpcClient } from './grpc-client.ts'
import { type EventStream, type RunningNode, runNode, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '100ms' })
})
afterAll(() => node.node.close())

const settings = (kpis: unknown) => ({
  name: 'test',
  jsonConfig: JSON.stringify({ engine_config: { pipeline: traffic(2) }, kpis }),
})

async function create(kpis: unknown): Promise<string> {
  const { status, body } = await node.call('POST', '/pipelines', settings(kpis))
  expect([status, body.message]).toEqual([200, undefined])
  return body.pipeline.id
}

const telemetryOf = (run: string) => node.follow(`/pipeline-runs/${run}/telemetry`)

/** The KPIs of the first sample that `wanted` takes. */
async function sampleWith(stream: EventStream, wanted: (kpis: Record<string, Kpi>) => boolean) {
  for (;;) {
    const sample = await stream.next()
    const kpis = Object.fromEntries(sample.kpis.map((kpi: Kpi) => [kpi.id, kpi]))
    if (wanted(kpis)) return { sample, kpis }
  }
}

interface Kpi {
  id: string
  error?: string
  value?: { value: number }
  dataRate?: { goodput: number }
}

const measured = {
  variables: { mbit: 'rate({sink/input_bytes}) * 8 / 1e6' },
  metrics: [
    { id: 'rate', label: 'Rate', value: { expression: 'round(mbit, 3)', unit: 'Mbit/s' } },
    {
      id: 'data',
      columnSpan: 2,
      dataRate: {
        goodputExpression: 'rate({sink/input_bytes}, "1s") * 8',
        overheadExpression: '0',
        type: 'RATE',
      },
    },
    { id: 'counted', value: { expression: '{sink/input_packets}' } },
    { id: 'state', valueToText: { expression: 'mbit > 0.1', mapping: { true: { text: 'up', color: 'green' } } } },
    { id: 'bad', gauge: { expression: '1 / ({sink/lost_packets} * 0)' } },
    { id: 'breaths', value: { expression: '{/engine/breaths} + {/process/threads}' } },
  ],
}

test('what is measured is in each sample, the same in all streams', async () => {
  const id = await create(measured)
  const run = await node.start(id)
  const streams = [await telemetryOf(run), await telemetryOf(run)] as const
  const rated = ({ data, rate }: Record<string, Kpi>) =>
    Number(data?.dataRate?.goodput) > 0 && Number(rate?.value?.value) > 0.1
  let [one, other] = await Promise.all([sampleWith(streams[0], rated), sampleWith(streams[1], rated)])
  // The one stream may stand before the other, and a slow one leaves samples out.
  const time = ({ sample }: typeof one) => Date.parse(sample.timestamp)
  while (time(one) !== time(other)) {
    if (time(one) < time(other)) one = await sampleWith(streams[0], rated)
    else other = await sampleWith(streams[1], rated)
  }
  expect(one).toEqual(other)
  const { kpis, sample } = one
  const sink = sample.metricCollections.find(({ path }: { path: string }) => path === 'sink')
  expect(kpis.counted?.value?.value).toBe(Number(sink.metrics.input_packets.uint64Value))
  expect(kpis.rate).toMatchObject({ label: 'Rate', value: { unit: 'Mbit/s' } })
  expect(kpis.data).toMatchObject({ columnSpan: 2, dataRate: { overhead: 0, type: 'RATE' } })
  expect(kpis.data?.dataRate?.goodput).toBeGreaterThan(0)
  expect(kpis.state).toMatchObject({ valueToText: { text: 'up', color: 'green', value: 1 } })
  expect(kpis.bad?.error).toMatch(/no finite number/)
  expect(kpis.breaths?.value?.value).toBeGreaterThan(1)

  const client = new GrpcClient(node)
  const { messages, stream } = client.follow('openTelemetryStream', { run_id: run })
  const { value } = await messages.next()
  expect(value.kpis.map((kpi: Kpi & { result: string }) => [kpi.id, kpi.result])).toEqual([
    ['rate', 'value'],
    ['data', 'data_rate'],
    ['counted', 'value'],
    ['state', 'value_to_text'],
    ['bad', 'error'],
    ['breaths', 'value'],
  ])
  stream.cancel()
  client.close()
  for (const stream of streams) stream.close()
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('the past is there for who comes late: samples are taken whoever listens', async () => {
  const id = await create({ metrics: [{ id: 'least', value: { expression: 'min({sink/input_packets}, "1h")' } }] })
  const run = await node.start(id)
  const first = await telemetryOf(run)
  const { kpis: early } = await sampleWith(first, () => true)
  await sampleWith(first, () => true)
  first.close()
  const late = await telemetryOf(run)
  const { kpis } = await sampleWith(late, () => true)
  expect(kpis.least?.value?.value).toBe(early.least?.value?.value)
  late.close()
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('a steady source has a steady rate over any time, and a value in every sample from the second on', async () => {
  const times = ['50ms', '100ms', '200ms', '1s']
  const metrics = times.flatMap((time) => [
    { id: `rate ${time}`, value: { expression: `rate({source/output_packets}, "${time}")` } },
    { id: `delta ${time}`, value: { expression: `delta({source/output_packets}, "${time}")` } },
  ])
  const id = await create({ metrics })
  const run = await node.start(id)
  const stream = await telemetryOf(run)
  await sampleWith(stream, (kpis) => kpis['rate 1s']?.value !== undefined)
  for (let i = 0; i < 15; i++) {
    const { kpis } = await sampleWith(stream, () => true)
    for (const { id } of metrics)
      expect([id, kpis[id]?.error, kpis[id]?.value?.value]).toEqual([id, undefined, expect.any(Number)])
  }
  // 2 Mbit/s in packets of 200 bytes; a machine that has much to do may hold the source up.
  const { kpis } = await sampleWith(stream, () => true)
  expect(kpis['rate 1s']?.value?.value).toSatisfy((rate: number) => rate > 500 && rate < 2500)
  expect(kpis['delta 1s']?.value?.value).toBeCloseTo(Number(kpis['rate 1s']?.value?.value), 6)
  expect(Number(kpis['delta 50ms']?.value?.value) * 20).toBeCloseTo(Number(kpis['rate 50ms']?.value?.value), 6)
  stream.close()
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('a run takes other KPIs over while it is on, and keeps its own when a change is refused', async () => {
  const id = await create({ metrics: [{ id: 'a', value: { expression: '1' } }] })
  const run = await node.start(id)
  const stream = await telemetryOf(run)
  await sampleWith(stream, ({ a }) => a?.value?.value === 1)
  const update = (kpis: unknown) =>
    node.call('PUT', `/pipelines/${id}`, { ...settings(kpis), instructionsTimeout: 5, defaultLoggingLevel: 'INFO' })
  const refused = await update({ metrics: [{ id: 'a', value: { expression: '{sink/input_packet}' } }] })
  expect(refused.body).toMatchObject({
    code: 3,
    message: expect.stringMatching(/^\/kpis\/metrics\/0\/value\/expression: .*Did you mean "input_packets"\?/),
  })
  expect((await update(measured)).status).toBe(200)
  await sampleWith(stream, (kpis) => kpis.a === undefined && kpis.rate?.value !== undefined)
  expect((await update(undefined)).status).toBe(200)
  await sampleWith(stream, (kpis) => Object.keys(kpis).length === 0)
  expect((await node.get(id)).currentRun).toMatchObject({ id: run, state: 'RUNNING' })
  stream.close()
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('the last sample of a run has its KPIs', async () => {
  const id = await create(measured)
  const run = await node.start(id)
  const stream = await telemetryOf(run)
  await sampleWith(stream, ({ rate }) => rate?.value !== undefined)
  stream.close()
  await node.call('POST', `/pipelines/${id}/stop`)
  await node.when(id, ({ started }) => !started)
  const after = await telemetryOf(run)
  const { kpis } = await sampleWith(after, () => true)
  expect(Object.keys(kpis)).toEqual(measured.metrics.map(({ id }) => id))
  expect(kpis.rate?.value).toBeDefined()
  await expect(after.next()).rejects.toMatchObject({ code: 10 })
})

describe('hostile expressions', () => {
  test.each([
    'constructor.constructor("return process")().exit(1)',
    '__proto__',
    '{__proto__/polluted}',
    '{sink/__proto__}',
    '{constructor/constructor}',
    'toString()',
    'this',
    'import("node:fs")',
    '(() => 1)()',
    `${'('.repeat(900)}1${')'.repeat(900)}`,
    '['.repeat(2_000),
    '-'.repeat(1_999),
    `1${'?1:1'.repeat(400)}`,
    '1+'.repeat(500_000 / 2),
  ])('%.60s is refused', async (expression) => {
    const { status, body } = await node.call(
      'POST',
      '/pipelines',
      settings({ metrics: [{ id: 'k', value: { expression } }] }),
    )
    expect([status, body.code]).toEqual([400, 3])
    expect(body.message).toMatch(/^\/kpis\/metrics\/0\/value\/expression: /)
    expect(body.message).not.toMatch(/at .*\.ts|RangeError|stack/)
  })

  test('names of JavaScript objects are plain names: of KPIs, of variables, of values', async () => {
    const kpis = JSON.parse(`{
      "variables": { "__proto__": "7", "constructor": "__proto__ + 1" },
      "metrics": [
        { "id": "__proto__", "value": { "expression": "constructor" } },
        { "id": "text", "valueToText": { "expression": "\\"__proto__\\"", "mapping": { "__proto__": { "text": "x" } } } }
      ]
    }`)
    const id = await create(kpis)
    const run = await node.start(id)
    const stream = await telemetryOf(run)
    const { kpis: heard } = await stream.next()
    expect(heard).toMatchObject([
      { id: '__proto__', value: { value: 8 } },
      { id: 'text', valueToText: { text: '' } },
    ])
    stream.close()
    await node.call('POST', `/pipelines/${id}/stop`)
    expect(({} as Record<string, unknown>).text).toBe(undefined)
  })
})
