/** Sweeps of `penstock simulate`: combinations, seeds, columns, what is refused, and what Ctrl-C leaves. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { interrupted, penstock, plainEnvironment, scratch } from './cli.ts'
import { PseudoTerminal } from './pseudo-terminal.ts'
import '../harness/slow.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const coded = {
  version: 1,
  engine_config: {
    pipeline: {
      source: { throughput_traffic_source: { output: 'a', throughput_mbit: 5, payload_size: 1000, duration_ms: 2000 } },
      encoder: { reed_solomon_encoder: { input: 'a', output: 'b', symbols: 10, repair: 2 } },
      'bad.loss': { uniform_loss: { input: 'b', output: 'c', loss_prob: 0.1 } },
      decoder: { reed_solomon_decoder: { input: 'c', output: 'd' } },
      sink: { traffic_sink: { input: 'd' } },
    },
  },
  kpis: {
    metrics: [
      { id: 'missing', value: { expression: '{sink/loss} * 100', unit: '%' } },
      { id: 'state', value_to_text_conditions: { conditions: [{ expression: '{sink/loss} > 0', text: 'lossy' }] } },
    ],
  },
  variables: [{ id: 'loss', paths: ['/engine_config/pipeline/bad.loss/uniform_loss/loss_prob'] }],
}
const file = directory.file('coded.json', coded)
const simulate = (...args: string[]) => penstock(['simulate', file, '-d', '3s', ...args])

interface Line {
  set: Record<string, unknown>
  runs: { seed: number; outcome: string; elapsedMs: number }[]
  figures: Record<string, { unit: string; values: number[]; mean: number; standardDeviation: number }>
}
const linesOf = (stdout: string): Line[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('a sweep', () => {
  it('has whole numbers of a range as they are, however many digits they have', async () => {
    const auth = { input: 'a', output: 'b', constant: 1 }
    const pipeline = { source: coded.engine_config.pipeline.source, sign: { constant_auth_sign: auth } }
    const input = JSON.stringify({
      engine_config: { pipeline: { ...pipeline, sink: { traffic_sink: { input: 'b' } } } },
    })
    const range = 'sign.constant=1000000000001..1000000000003'
    const args = ['simulate', '-', '-d', '10ms', '-o', 'json', '--set', range]
    const { stdout } = await penstock(args, { input })
    expect(linesOf(stdout).map(({ set }) => set['sign.constant'])).toEqual([1e12 + 1, 1e12 + 2, 1e12 + 3])
  })

  const sweep = ['--set', 'encoder.repair=1,3', '--set', 'bad.loss.loss_prob=0.05..0.1:0.05']
  const figures = ['--metric', 'sink.loss', '--metric', 'sink/delay_p99', '--repeat', '2', '--seed', '5']

  it.each(['constructor', 'hasOwnProperty', '__proto__'])('has the metrics of a component called %s', async (name) => {
    const { pipeline } = coded.engine_config
    const components = { source: pipeline.source, [name]: { traffic_sink: { input: 'a' } } }
    const input = JSON.stringify({ version: 1, engine_config: { pipeline: components } })
    const metric = `${name}.packets`
    const one = await penstock(['simulate', '-', '-d', '3s', '-o', 'json'], { input })
    const { packets } = JSON.parse(one.stdout).metrics[name]
    expect(packets).toBe(1250)
    const table = await penstock(['simulate', '-', '-d', '3s', '-o', 'csv', '--metric', metric], { input })
    expect(table.stdout).toBe(`seed,runs,${metric}\n1,1,1250\n`)
    const foreground = await penstock(['run', '-', '-d', '0.2s', '-o', 'json'], { input })
    expect(JSON.parse(foreground.stdout).metrics[name].packets).toBeGreaterThan(0)
  })

  it('has the figures of runs of simulate one by one, whatever the number of jobs', async () => {
    const [one, many] = await Promise.all(
      ['1', '3'].map((jobs) => simulate(...sweep, ...figures, '-o', 'json', '--jobs', jobs)),
    )
    expect(one).toMatchObject({ code: 0, stderr: '' })
    expect(many).toEqual(one)
    const lines = linesOf(one?.stdout ?? '')
    expect(lines.map(({ set }) => Object.values(set))).toEqual([
      [1, 0.05],
      [1, 0.1],
      [3, 0.05],
      [3, 0.1],
    ])
    expect(lines.flatMap(({ runs }) => runs.map(({ seed }) => seed))).toEqual([5, 6, 7, 8, 9, 10, 11, 12])
    for (const { set, runs, figures } of lines) {
      const single = structuredClone(coded)
      single.engine_config.pipeline.encoder.reed_solomon_encoder.repair = set['encoder.repair'] as number
      single.engine_config.pipeline['bad.loss'].uniform_loss.loss_prob = set['bad.loss.loss_prob'] as number
      const input = JSON.stringify(single)
      for (const [i, { seed, outcome, elapsedMs }] of runs.entries()) {
        const { stdout } = await penstock(['simulate', '-', '-d', '3s', '-o', 'json', '--seed', `${seed}`], { input })
        const alone = JSON.parse(stdout)
        expect(alone).toMatchObject({ outcome, elapsedMs })
        expect(figures['sink.loss']?.values[i]).toBe(alone.metrics.sink.loss)
        expect(figures['sink.delay_p99']?.values[i]).toBe(alone.metrics.sink.delay_p99)
      }
      const { values = [], mean, standardDeviation } = figures['sink.loss'] ?? {}
      const [a = 0, b = 0] = values
      expect(mean).toBeCloseTo((a + b) / 2, 12)
      expect(standardDeviation).toBeCloseTo(Math.abs(a - b) / Math.SQRT2, 12)
    }
    expect(new Set(lines.flatMap(({ figures }) => figures['sink.loss']?.values)).size).toBeGreaterThan(5)
  })

  it('repeats one run exactly by its seed', async () => {
    const { stdout } = await simulate(...sweep, ...figures, '-o', 'json')
    const line = linesOf(stdout)[1] as Line
    const replayed = await simulate(...sweep, ...figures, '-o', 'json', '--replay', '8')
    expect(replayed.code).toBe(0)
    const run = JSON.parse(replayed.stdout)
    expect(run).toMatchObject({ seed: 8, set: { 'encoder.repair': 1, 'bad.loss.loss_prob': 0.1 } })
    expect(run.metrics.sink.loss).toBe(line.figures['sink.loss']?.values[1])
    const table = await simulate(...sweep, ...figures, '--replay', '8')
    expect(table.stdout).toMatch(/^encoder\.repair=1 {2}bad\.loss\.loss_prob=0\.1\n/)
    expect(table.stdout).toContain('seed 8')
    const outside = await simulate(...sweep, ...figures, '--replay', '13')
    expect(outside).toMatchObject({ code: 2, stdout: '' })
    expect(outside.stderr).toContain('the runs of this sweep have the seeds 5 to 12')
  })

  it('is one table with mean and spread, in parts where the terminal is narrow, what is the same said once', async () => {
    const args = ['--set', 'encoder.repair=1,3', '--set', 'loss=0.1', '--repeat', '2']
    const all = ['--metric', 'sink.loss', '--metric', 'delay_p99', '--metric', 'sink.mean_goodput', '--kpi', 'state']
    const { stdout } = await penstock(['simulate', file, '-d', '3s', ...args, ...all], { env: { COLUMNS: '64' } })
    const lines = stdout.split('\n')
    expect(lines[0]).toMatch(/^encoder\.repair +SEEDS +sink\.loss +sink\.delay_p99$/)
    expect(lines[1]).toMatch(/^ +1 +1–2 +0\.0\d+ ± 0\.0\d+ +[\d.]+ ms ± [\d.]+ (ms|µs)$/)
    expect(lines[4]).toMatch(/^encoder\.repair +SEEDS +sink\.mean_goodput +state$/)
    expect(lines[5]).toMatch(/^ +1 +1–2 +[\d,]+ ± [\d,]+ +lossy$/)
    expect(stdout).toContain('All rows: loss=0.1\n± is the standard deviation')
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(64)
  })

  it('is CSV too; its columns are the KPIs unless others are chosen, those of an expression too', async () => {
    const { stdout } = await simulate('--set', 'encoder.repair=3..1:2', '-o', 'csv')
    expect(stdout).toMatch(/^encoder\.repair,seed,runs,missing,state\n3,1,1,[\d.]+,lossy\n1,2,1,[\d.]+,lossy\n$/)
    const own = await simulate('--repeat', '2', '--kpi', 'kept={sink/packets}', '--metric', 'sink.packets', '-o', 'csv')
    const [header, line = ''] = own.stdout.split('\n')
    expect(header).toBe('seed,runs,sink.packets,sink.packets_sd,kept,kept_sd')
    const [, , packets, packetsSpread, kept, keptSpread] = line.split(',')
    expect([kept, keptSpread]).toEqual([packets, packetsSpread])
    expect(Number(packets)).toBeGreaterThan(1000)
  })

  it('without KPIs has what its sinks measure', async () => {
    const { kpis: _, ...plain } = coded
    const input = JSON.stringify(plain)
    const { stdout } = await penstock(['simulate', '-', '-d', '1s', '--repeat', '2', '-o', 'json'], { input })
    expect(linesOf(stdout)[0]?.figures).toMatchObject({
      'sink.loss': { unit: 'fraction' },
      'sink.delay_p50': { unit: 'ns' },
      'sink.delay_p99': { unit: 'ns' },
      'sink.mean_goodput': { unit: 'bit/s' },
    })
  })
})

describe('KPIs', () => {
  it('have their unit with each value', async () => {
    const { stdout } = await simulate('--kpi', 'missing', '--repeat', '2')
    expect(stdout).toMatch(/^SEEDS +missing\n +1–2 +[\d.]+ % ± [\d.]+ %\n/)
    const zero = structuredClone(coded)
    zero.kpis.metrics = [{ id: 'late', value: { expression: '{sink/packets} * 0', unit: 'ms' } }]
    const input = JSON.stringify(zero)
    const late = await penstock(['simulate', '-', '-d', '1s', '--kpi', 'late'], { input })
    expect(late.stdout).toMatch(/^SEED +late\n +1 +0 ms\n/)
  })

  it('with the same label have figures of their own, whatever others are called', async () => {
    const values = ['n', 'n', '', 'n.2', '3'].map((label, i) => ({ label, expression: String(i) }))
    const { kpis: _, ...plain } = coded
    const alike = { ...plain, kpis: { metrics: [{ id: 'x', multiple_values: { values } }] } }
    const input = JSON.stringify(alike)
    const { stdout } = await penstock(['simulate', '-', '-d', '1ms', '--repeat', '1', '--kpi', 'x', '-o', 'json'], {
      input,
    })
    const means = Object.entries(linesOf(stdout)[0]?.figures ?? {}).map(([name, { mean }]) => [name, mean])
    expect(means).toEqual([
      ['x.n', 0],
      ['x.n.3', 1],
      ['x.3', 2],
      ['x.n.2', 3],
      ['x.3.2', 4],
    ])
  })

  it('without a value have the reason that a single run tells', async () => {
    const wrong = ['--kpi', 'x=1/0', '--kpi', 'state']
    const { code, stdout } = await simulate(...wrong)
    expect(code).toBe(0)
    const [, reason = ''] = /^SEED +x +state\n +1 +– +lossy\n\nNo value of x: (.+)\n$/.exec(stdout) ?? []
    const single = structuredClone(coded)
    single.kpis.metrics.push({ id: 'x', value: { expression: '1/0', unit: '' } })
    const alone = await penstock(['simulate', '-', '-d', '3s', '-o', 'json'], { input: JSON.stringify(single) })
    expect(JSON.parse(alone.stdout).kpis[2]).toMatchObject({ id: 'x', error: reason })
    const lines = await simulate(...wrong, '--repeat', '2', '-o', 'json')
    expect(linesOf(lines.stdout)[0]?.figures.x).toMatchObject({ values: [null, null], errors: [reason, reason] })
    expect(linesOf(lines.stdout)[0]?.figures.state).not.toHaveProperty('errors')
    const many = await simulate(...wrong, '--set', 'encoder.repair=1..3')
    expect(many.stdout).toContain(`\n\nNo value with seed 1 and 2 more of x: ${reason}\n`)
  })

  it('have no spread where one run only has a value', async () => {
    const losses = await simulate('--repeat', '2', '--metric', 'bad.loss.emulated_loss', '-o', 'json')
    const [first = 0, second = 0] = linesOf(losses.stdout)[0]?.figures['bad.loss.emulated_loss']?.values ?? []
    expect(first).not.toBe(second)
    const args = ['--repeat', '2', '--kpi', `x=1/({bad.loss/emulated_loss} - ${first})`]
    const value = 1 / (second - first)
    const { x } = linesOf((await simulate(...args, '-o', 'json')).stdout)[0]?.figures ?? {}
    expect(x).toMatchObject({ values: [null, value], mean: value })
    expect(x).not.toHaveProperty('standardDeviation')
    expect((await simulate(...args, '-o', 'csv')).stdout).toBe(`seed,runs,x,x_sd\n1,2,${value},\n`)
  })
})

it('one value each sets it, and shows all of the run', async () => {
  const { code, stdout } = await simulate('--set', 'loss=0', '--set', 'sink.latencyBudget=7', '-o', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    set: { loss: 0, 'sink.latencyBudget': 7 },
    metrics: { 'bad.loss': { emulated_loss: 0 } },
  })
})

it('tells of seeds that make the runs of a combination alike, which null takes out', async () => {
  const seeded = structuredClone(coded) as typeof coded & { engine_config: { pipeline: Record<string, object> } }
  Object.assign(seeded.engine_config.pipeline['bad.loss'].uniform_loss, { seed: 7 })
  const input = JSON.stringify(seeded)
  const args = ['simulate', '-', '-d', '3s', '--repeat', '2', '-o', 'json', '--metric', 'bad.loss.emulated_loss']
  const alike = await penstock(args, { input })
  expect(alike.stderr).toContain('draw the same in every run: bad.loss; --set bad.loss.seed=null')
  expect(linesOf(alike.stdout)[0]?.figures['bad.loss.emulated_loss']?.standardDeviation).toBe(0)
  const free = await penstock([...args, '--set', 'bad.loss.seed=null'], { input })
  expect(free.stderr).toBe('')
  expect(linesOf(free.stdout)[0]?.figures['bad.loss.emulated_loss']?.standardDeviation).toBeGreaterThan(0)
})

describe('what is wrong', () => {
  it.each([
    [['--set', 'encodr.repair=1'], 1, 'there is no component "encodr". Did you mean "encoder"?'],
    [['--set', 'quite.other=1'], 1, 'There are source, encoder, bad.loss, decoder, sink.'],
    [
      ['--set', 'encoder.repai=1'],
      1,
      'component "encoder" (reed_solomon_encoder) has no field "repai". Did you mean "repair"?',
    ],
    [
      ['--set', 'encoder=1'],
      2,
      'say which field of component "encoder" (reed_solomon_encoder): input, output, symbols',
    ],
    [['--set', 'encoder.repair'], 2, 'write it component.field=value'],
    [['--set', 'encoder.repair=1,,2'], 2, 'a value is missing'],
    [
      ['--set', 'loss=1e999'],
      2,
      '--set loss: the number in 1e999 is too large: 1.7976931348623157e+308 is the largest',
    ],
    [['--set', 'bad.loss.seed=1,-1e999'], 2, '--set bad.loss.seed: the number in -1e999 is too large'],
    [['--set', 'source.duration_ms=[1,{"a":1e999}]'], 2, 'the number in [1,{"a":1e999}] is too large'],
    [['--set', `source.duration_ms=1..${'9'.repeat(400)}`], 2, 'is too large'],
    [['--set', `source.duration_ms=1..2:${'9'.repeat(400)}`], 2, 'is too large'],
    [['--set', 'loss=0..0.1'], 2, 'has no step'],
    [['--set', 'loss=0..1:0.000001'], 2, 'has more than 100000 values'],
    [['--set', 'loss=0.1', '--set', 'bad.loss.loss_prob=0.2'], 2, 'it is set twice'],
    [['--set', 'encoder.repair=1..400', '--set', 'encoder.symbols=1..400'], 2, '160000 runs, more than 100000'],
    [['--repeat', '2', '--seed', '2147483647'], 2, '2147483647 is the greatest'],
    [['--metric', 'sink.los'], 1, 'there is no such metric. Did you mean "loss"?'],
    [['--metric', 'input_packets'], 2, 'several components have it; say which: encoder.input_packets, bad.loss.input'],
    [['--kpi', 'missin'], 1, 'no KPI with this id. Did you mean "missing"?'],
    [
      ['--kpi', 'missing', '--kpi', 'x={sink/los}', '--set', 'loss=0.1,0.2'],
      1,
      `${file}: nothing was run\n--kpi 'x={sink/los}': "sink" has no metric "los". Did you mean "loss"?\n`,
    ],
    [['--kpi', 'x=1', '--kpi', 'state=2'], 1, `nothing was run\n--kpi 'state=2': `],
    [['--kpi', 'x='], 2, "--kpi 'x=': the expression is empty: write --kpi 'x={sink/loss} * 100'"],
    [['--kpi', '=1'], 2, "--kpi '=1': the id is empty: give one, or write --kpi 'missing={sink/loss} * 100'"],
    [['--kpi', ''], 2, "--kpi '': the id is empty"],
    [['--jobs', '0', '--repeat', '2'], 2, 'Expected a whole number from 1'],
  ])('%j', async (args, exitCode, message) => {
    const { code, stdout, stderr } = await simulate(...args)
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('in some combinations is told with component, field and value, and nothing is run', async () => {
    const { code, stdout, stderr } = await simulate('--set', 'encoder.repair=1,250', '--set', 'loss=0.1,5%,2')
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(`${file}: nothing was run\n`)
    expect(stderr).toContain(
      '--set encoder.repair=250: component "encoder" (reed_solomon_encoder), field "repair": symbols + repair is 260',
    )
    expect(stderr).toContain('--set loss=5%: variable "loss": ')
    expect(stderr).toContain('2 is above the maximum of 1 (a probability is 0..1: 5 % is 0.05)')
  })

  it('is named once, with the other variables that set the same place', async () => {
    const config = JSON.parse(readFileSync(file, 'utf8'))
    const [{ paths }] = config.variables
    config.variables.push({ id: 'second', label: '', description: '', paths })
    const shared = directory.file('shared.json', config)
    const { stderr } = await penstock(['simulate', shared, '-d', '1s', '--set', 'loss=7'])
    expect(stderr).toContain('--set loss=7: variables "loss", "second": 7 is above')
  })

  it.each([
    [[], 'variable "it" points to nothing: its paths are empty'],
    [['engine_config'], 'variable "it": path "engine_config" is no JSON pointer, which starts with /'],
    [
      ['/delays/-'],
      '"/engine_config/pipeline/delay/delay_fixed_sequencer/delays/-" is no entry of the list, which has 2',
    ],
    [
      ['/delays/2'],
      '"/engine_config/pipeline/delay/delay_fixed_sequencer/delays/2" is no entry of the list, which has 2',
    ],
  ])('is a variable that would set nothing: its paths are %j', async (paths, message) => {
    const { source } = coded.engine_config.pipeline
    const delay = { delay_fixed_sequencer: { input: 'a', output: 'b', delays: [1, 2], intervals: [5, 5] } }
    const pipeline = { source, delay, sink: { traffic_sink: { input: 'b' } } }
    const within = (path: string) => path.replace(/^\//, '/engine_config/pipeline/delay/delay_fixed_sequencer/')
    const variables = [{ id: 'it', paths: paths.map(within) }]
    const input = JSON.stringify({ version: 1, engine_config: { pipeline }, variables })
    const { code, stdout, stderr } = await penstock(['simulate', '-', '-d', '1s', '--set', 'it=1,2'], { input })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('is that several files are given', async () => {
    const { code, stderr } = await penstock(['simulate', file, file, '-d', '1s', '--repeat', '2'])
    expect(code).toBe(2)
    expect(stderr).toContain('are for one file')
  })

  it('is a run that fails: its row has no figures, the others do', async () => {
    const bomb = { bomb: { delay: 100, poison: 'THROW_EXCEPTION' } }
    const input = JSON.stringify({ engine_config: { pipeline: { ...coded.engine_config.pipeline, bomb } } })
    const args = ['--set', 'bomb.poison=NONE,THROW_EXCEPTION', '--metric', 'sink.loss', '-o', 'csv']
    const { code, stdout, stderr } = await penstock(['simulate', '-', '-d', '3s', ...args], { input })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^bomb\.poison,seed,runs,sink\.loss\nNONE,1,1,0\.\d+\nTHROW_EXCEPTION,2,1,\n$/)
    expect(stderr).toContain('bomb.poison=THROW_EXCEPTION seed 2: component "bomb" (bomb)')
  })
})

const ENDLESS = ['--set', 'source.duration_ms=1000,0', '--metric', 'source.output_packets', '--jobs', '2']

it('Ctrl-C shows progress until then, prints what is done, and exits 130', async () => {
  const args = ['simulate', file, '-d', '90000h', ...ENDLESS]
  const terminal = new PseudoTerminal(args, plainEnvironment() as Record<string, string>)
  await terminal.see(/1 of 2 runs are done/)
  terminal.type('\x03')
  await terminal.see(/source\.duration_ms +SEED +source\.output_packets\s+1000 +1 +625\s/)
  await terminal.see(/interrupted: 1 of 2 runs are done/)
  expect(await terminal.code()).toBe(130)
})

it('Ctrl-C before anything is done prints no row', async () => {
  const args = ['simulate', file, '-d', '90000h', '--set', 'source.duration_ms=0', '--repeat', '2', '-o', 'csv']
  const terminal = new PseudoTerminal(args, plainEnvironment() as Record<string, string>)
  await terminal.see(/0 of 2 runs are done\s/)
  terminal.type('\x03')
  await terminal.see(/^\s*(\^C)?\s*penstock: interrupted: 0 of 2 runs are done/)
  expect(await terminal.code()).toBe(130)
})

it.each([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s exits with its own code, %d', async (name, code) => {
  const args = ['simulate', file, '-d', '90000h', '--set', 'source.duration_ms=0', '--repeat', '2']
  expect(await interrupted(args, name)).toMatchObject({ code, signal: null, stdout: '' })
})

it('does what its page says', async () => {
  const page = readFileSync(join(packageRoot(), 'docs/simulate.md'), 'utf8')
  const [, block = ''] = /```sh\npenstock ([\s\S]*?)```/.exec(page) ?? []
  const args = block.replaceAll('\\\n', ' ').trim().split(/\s+/)
  const path = join(packageRoot(), args[1] as string)
  const { code, stdout, stderr } = await penstock([args[0] as string, path, ...args.slice(2)], {
    env: { COLUMNS: '100' },
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.split('\n').filter((line) => line.includes(' ± '))).toHaveLength(9)
  expect(stdout).toContain('All rows: loss.seed=null  source.seed=null')
})

it('its help fits a terminal of 80 columns', async () => {
  const { stdout } = await penstock(['simulate', '--help'], { env: { COLUMNS: '80' } })
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})
