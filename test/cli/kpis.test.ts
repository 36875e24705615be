/** KPIs on the command line: the example of their page, simulated, run, and followed on a node. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, scratch, start } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const page = readFileSync(join(packageRoot(), 'docs/kpi-expressions.md'), 'utf8')
const example = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '')
const file = directory.file('kpis.json', example)

interface Kpi {
  id: string
  dataRate?: { goodput: number }
  valueOverTime?: { value: number; avg: number }
  valueToTextConditions?: { text: string; color: string }
}

const byId = (kpis: Kpi[]): Record<string, Kpi> => Object.fromEntries(kpis.map((kpi) => [kpi.id, kpi]))

describe('simulate', () => {
  const simulate = async (path: string, ...args: string[]) => {
    const { code, stdout } = await penstock(['simulate', path, '--duration', '20s', ...args], {
      env: { COLUMNS: '64' },
    })
    expect(code).toBe(0)
    return stdout
  }

  it('evaluates them every second of virtual time and changes nothing else', async () => {
    const { kpis: _, ...without } = example
    const plain = directory.file('plain.json', without)
    const [{ kpis, ...rest }, other] = await Promise.all(
      [file, plain].map(async (path) => JSON.parse(await simulate(path, '-o', 'json'))),
    )
    expect(rest).toEqual(other)
    const { goodput, loss, state } = byId(kpis)
    const bits = rest.metrics.sink.input_bytes * 8
    // The last second against the mean of all twenty.
    expect(goodput?.dataRate?.goodput).toBeGreaterThan((bits / 20) * 0.95)
    expect(goodput?.dataRate?.goodput).toBeLessThan((bits / 20) * 1.05)
    const { emulated_loss } = rest.metrics.link
    expect(loss?.valueOverTime?.avg).toBe((emulated_loss / rest.metrics.source.output_packets) * 100)
    expect(state?.valueToTextConditions).toEqual({ text: 'up', color: 'green' })
  })

  it.each([1000, 500, 100])('a packet every %i ms is that rate, at the end too', async (interval) => {
    const pipeline = {
      s: { uniform_traffic_source: { output: 'a', interval } },
      k: { traffic_sink: { input: 'a' } },
    }
    const of = (id: string) => ({ id, value: { expression: `${id}({s/output_packets})` } })
    const kpis = { metrics: [of('rate'), of('delta')] }
    const path = directory.file('steady.json', { version: 1, engine_config: { pipeline }, kpis })
    for (const duration of ['10s', '10250ms']) {
      const { kpis: shown } = JSON.parse(await simulate(path, '-d', duration, '-o', 'json'))
      // The quarter of a second after 10 s has what comes in it.
      const count = duration === '10s' ? 1000 / interval : Math.floor(250 / interval)
      const rate = duration === '10s' ? count : count / 0.25
      expect(shown).toMatchObject([{ value: { value: rate } }, { value: { value: count } }])
    }
  })

  it('shows small fractions with their digits, of metrics and of KPIs, and 0 without a sign', async () => {
    const pipeline = {
      s: { throughput_traffic_source: { output: 'a', throughput_mbit: 10, payload_size: 200 } },
      link: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.0003, seed: 1 } },
      k: { traffic_sink: { input: 'b' } },
    }
    const expressions = { a: '1e-7', b: '0.0000015', c: '0.00012345', d: '-0' }
    const metrics = Object.entries(expressions).map(([id, expression]) => ({ id, value: { expression } }))
    const path = directory.file('small.json', { version: 1, engine_config: { pipeline }, kpis: { metrics } })
    const exact = JSON.parse(await simulate(path, '-o', 'json')).metrics.k.loss
    expect(exact).toBeGreaterThan(0)
    expect(exact).toBeLessThan(0.001)
    const text = await simulate(path)
    expect(text).toMatch(/^a +1e-7\nb +0\.0000015\nc +0\.000123\nd +0$/m)
    expect(text).toMatch(new RegExp(`\\bloss +${Number(exact.toPrecision(3))} +fraction`))
  })

  it('shows them as a table above the metrics, no wider than the terminal', async () => {
    const lines = (await simulate(file)).split('\n')
    expect(lines[0]).toMatch(/^KPI +VALUE +UNIT +NOTE$/)
    expect(lines.slice(1, 5)).toEqual([
      expect.stringMatching(/^Goodput +[\d.]+ Mbit\/s$/),
      expect.stringMatching(/^Loss +[\d.]+ +% +avg [\d.]+$/),
      expect.stringMatching(/^Delay, 99th percentile +0 +ms$/),
      expect.stringMatching(/^State +up$/),
    ])
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(64)
  })
})

it('run shows them each second and at the end', async () => {
  const { code, stdout } = await penstock(['run', file, '--duration', '2500ms', '--log-level', 'ERROR'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^ +Goodput [\d.]+ Mbit\/s {2}Loss [\d.]+ %/m)
  expect(stdout).toMatch(/^KPI +VALUE +UNIT +NOTE\nGoodput +[\d.]+ Mbit\/s\n/m)
  const json = await penstock(['run', file, '--duration', '1500ms', '-o', 'json', '--log-level', 'ERROR'])
  expect(JSON.parse(json.stdout).kpis.map(({ id }: Kpi) => id)).toEqual(['goodput', 'loss', 'late', 'state'])
})

it('pipelines telemetry shows them above the metrics, live and when the run has ended', async () => {
  const flags = ['--http', '127.0.0.1:0', '--grpc', 'none', '--telemetry-interval', '100ms', '--log-level', 'silent']
  const node = start(['up', '--data-dir', `${directory.path}/data`, ...flags])
  const [, http] = await lineOf(node, /^penstock ready http=(\S+) /)
  const call = (...args: string[]) => penstock(['pipelines', ...args], { env: { PENSTOCK_URL: `http://${http}` } })
  expect((await call('create', 'k', file)).code).toBe(0)
  expect((await call('start', 'k')).code).toBe(0)
  const live = await call('telemetry', 'k', 'sink', '--count', '2')
  expect(live.stdout.match(/^KPI +VALUE +UNIT/gm)).toHaveLength(2)
  expect(live.stdout).toMatch(/^Goodput +[\d.]+ .*bit\/s$/m)
  const lines = (await call('telemetry', 'k', '--count', '1', '-o', 'json')).stdout.trim().split('\n')
  expect(JSON.parse(lines[0] as string).kpis.map(({ id }: Kpi) => id)).toEqual(['goodput', 'loss', 'late', 'state'])
  expect((await call('stop', 'k')).code).toBe(0)
  const ended = await call('telemetry', 'k')
  expect(ended.stdout).toMatch(/^KPI +VALUE +UNIT[\s\S]*^COMPONENT +METRIC[\s\S]*stopped after/m)
  const gone = once(node, 'exit')
  node.kill('SIGTERM')
  await gone
})
