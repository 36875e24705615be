/** `penstock fec advise`: its choice against simulations of what it prints, its confidence, and what it says when nothing fits. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { interrupted, penstock, plainEnvironment, scratch } from './cli.ts'
import '../harness/slow.ts'

const directory = scratch()
afterAll(() => directory.dispose())

type Fields = Record<string, unknown>
interface Trial {
  encoder: Record<string, Fields>
  decoder: Record<string, Fields>
  code: string | null
  settings: string
  sent: number
  lost: number
  residual: number
  upper: number
  overhead: number
  p99: number
  seeds: number[]
  allowed: { overhead: number; budget: number }
  sure: boolean
}
interface Remedy extends Trial {
  tryPackets?: number
}
interface Advice {
  best: Trial | null
  trials: Trial[]
  simulation: { engine_config: { pipeline: Record<string, Record<string, Fields>> } }
  simulationMs: number
  sender: object
  receiver: object
  moreOverhead?: Remedy
  moreBudget?: Remedy
  unsure?: Remedy
}

const LINK = ['--loss', '2%', '--burst', '2', '--rate', '10M', '--packet', '1200', '--budget', '30ms']
const advise = (...args: string[]) => penstock(['fec', 'advise', ...args])
const asked = async (...args: string[]) => {
  const { code, stdout, stderr } = await advise(...args, '-o', 'json')
  expect(stderr).toBe('')
  return { code, advice: JSON.parse(stdout) as Advice }
}

describe('the choice', () => {
  const EFFORT = ['--packets', '8000', '--overhead', '30%']
  let advised: Awaited<ReturnType<typeof asked>>

  beforeAll(async () => {
    advised = await asked(...LINK, ...EFFORT, '--jobs', '3')
  })

  it('is what simulations of the printed configuration show, run by run', async () => {
    const { code, advice } = advised
    expect(code).toBe(0)
    const { best, simulation, simulationMs } = advice
    const input = JSON.stringify(simulation)
    let [sent, lost, carried, payload] = [0, 0, 0, 0]
    for (const seed of best?.seeds ?? []) {
      const args = ['simulate', '-', '-d', `${simulationMs}ms`, '--seed', `${seed}`, '-o', 'json']
      const { metrics } = JSON.parse((await penstock(args, { input })).stdout)
      sent += metrics.source.output_packets
      lost += metrics.source.output_packets - metrics.sink.probe_packets + metrics.sink.late_packets
      carried += metrics.encoder.output_bytes
      payload += metrics.source.output_bytes
    }
    expect(best).toMatchObject({ sent, lost })
    expect(sent).toBeGreaterThanOrEqual(32_000)
    expect(best?.residual).toBeCloseTo(lost / sent, 12)
    expect(best?.overhead).toBeCloseTo(carried / payload - 1, 12)
    expect(best?.overhead).toBeLessThanOrEqual(0.3)
    expect(best?.upper).toBeLessThanOrEqual(0.01)
    // No setting that was tried loses clearly less.
    const [bare, ...trials] = advice.trials
    expect(bare?.residual).toBeCloseTo(0.02, 2)
    expect(best?.residual).toBeLessThanOrEqual(Math.min(...trials.map(({ upper }) => upper)))
    expect(new Set(trials.map((trial) => trial.code))).toEqual(
      new Set(['reed_solomon', 'rlnc', 'kodok', 'parity_2d', 'rely']),
    )
    expect(best?.seeds).toEqual([5, 6, 7, 8])
    expect(trials[0]?.seeds).toEqual([1, 2, 3, 4])
    // The ends are configurations that a node takes.
    for (const end of [advice.sender, advice.receiver]) {
      expect(await penstock(['validate', '-'], { input: JSON.stringify(end) })).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('is among settings whose late packets count as lost', async () => {
    const { advice } = advised
    // Its rows are there in time, its columns when the budget is over.
    const grid = advice.trials.find(({ code }) => code === 'parity_2d') as Trial
    const { pipeline } = structuredClone(advice.simulation.engine_config)
    for (const end of ['encoder', 'decoder'] as const) {
      const [{ input, output }] = Object.values(pipeline[end]) as [Fields]
      const [[key, fields]] = Object.entries(grid[end]) as [[string, Fields]]
      pipeline[end] = { [key]: { input, output, ...fields } }
    }
    pipeline.source.throughput_traffic_source = { ...pipeline.source.throughput_traffic_source, duration_ms: 1920 }
    const input = JSON.stringify({ engine_config: { pipeline } })
    let [lost, late] = [0, 0]
    for (const seed of grid.seeds) {
      const args = ['simulate', '-', '-d', `${advice.simulationMs}ms`, '--seed', `${seed}`, '-o', 'json']
      const { metrics } = JSON.parse((await penstock(args, { input })).stdout)
      lost += metrics.source.output_packets - metrics.sink.probe_packets
      late += metrics.sink.late_packets
    }
    expect(late).toBeGreaterThan(0)
    expect(grid.lost).toBe(lost + late)
  })

  it('is the same whatever the number of jobs, and another seed gives other losses', async () => {
    const [one, other] = await Promise.all(
      [
        ['--jobs', '1'],
        ['--seed', '9'],
      ].map((args) => asked(...LINK, ...EFFORT, ...args)),
    )
    expect(advised).toEqual(one)
    expect(other?.advice.trials[0]?.lost).not.toBe(one?.advice.trials[0]?.lost)
  })

  it('is the cheapest when a residual is asked for', async () => {
    const { advice } = await asked(...LINK, ...EFFORT, '--residual', '1%')
    const enough = advice.trials.filter(({ code, upper }) => code !== null && upper <= 0.01)
    expect(enough.length).toBeGreaterThan(2)
    expect(enough[0]?.overhead).toBe(Math.min(...enough.map(({ overhead }) => overhead)))
    expect(advice.best?.upper).toBeLessThanOrEqual(0.01)
    expect(advice.best?.overhead).toBeLessThan(0.25)
  })

  it('sends packets several times where the overhead allows it', async () => {
    const slow = ['--loss', '5%', '--rate', '64k', '--packet', '200', '--budget', '10ms', '--packets', '8000']
    const { advice } = await asked(...slow, '--overhead', '250%')
    expect(advice.trials.map(({ code, settings }) => `${code} ${settings}`)).toContain('replication 3 times')
  })
})

it('in order is what hands no packet over behind a later one, and its waiting is in the delay', async () => {
  const reordered = async (...args: string[]) => {
    const { code, advice } = await asked(...LINK, '--packets', '8000', '--overhead', '30%', ...args)
    expect(code).toBe(0)
    const { best, simulation, simulationMs } = advice
    const seed = `${best?.seeds[0]}`
    const simulated = ['simulate', '-', '-d', `${simulationMs}ms`, '--seed', seed, '-o', 'json']
    const { stdout } = await penstock(simulated, { input: JSON.stringify(simulation) })
    return { advice, packets: JSON.parse(stdout).metrics.sink.reordered_packets }
  }
  expect((await reordered()).packets).toBeGreaterThan(0)
  const { advice, packets } = await reordered('--in-order')
  expect(packets).toBe(0)
  const { trials, receiver, best } = advice
  expect(new Set(trials.map(({ code }) => code))).toEqual(new Set([null, 'rely']))
  expect(JSON.stringify(receiver)).toContain('"release_in_order":true')
  expect(best?.p99).toBeGreaterThan(0)
  expect(best?.p99).toBeLessThanOrEqual(30)
})

describe('where the cheapest are close to the aim', () => {
  const close = [...LINK.with(3, '3'), '--overhead', '30%', '--residual', '1.5%']

  it.each(['3000', '5000'])('with %s packets one that is surely within it is taken', async (packets) => {
    const { code, advice } = await asked(...close, '--packets', packets)
    const within = advice.trials.filter(({ code, upper }) => code !== null && upper <= 0.015)
    expect(within.length).toBeGreaterThan(3)
    expect(code).toBe(0)
    expect(advice.best?.upper).toBeLessThanOrEqual(0.015)
    expect(advice.best?.overhead).toBeLessThanOrEqual(0.3)
    // Those that are cheaper failed the check.
    expect(advice.best?.overhead).toBeGreaterThan(within[2]?.overhead ?? 0)
    expect(advice.unsure).toBeUndefined()
  })
})

it('more packets are advised where they help, and then do', async () => {
  const few = [...LINK.with(1, '1%'), '--overhead', '30%', '--residual', '0.3%']
  const { stdout, code } = await advise(...few, '--packets', '1000')
  expect(code).toBe(1)
  const { unsure } = (await asked(...few, '--packets', '1000')).advice
  expect(stdout).toContain(` may: too few packets were sent to know. Try --packets ${unsure?.tryPackets}.\n`)
  expect(unsure?.tryPackets).toBeGreaterThan(1000)
  expect((await advise(...few, '--packets', String(unsure?.tryPackets))).code).toBe(0)
})

it('what was lost by nobody is not said to be never lost', async () => {
  const { code, advice } = await asked(
    ...LINK.with(1, '0.1%'),
    '--packets',
    '2000',
    '--overhead',
    '40%',
    '--residual',
    '0.01%',
  )
  const clean = advice.trials.filter(({ lost }) => lost === 0)
  expect(clean.length).toBeGreaterThan(0)
  // The rule of three: nothing in n says no more than 3 / n.
  for (const { upper, sent } of clean) expect(upper).toBeGreaterThan(2.9 / sent)
  expect(code).toBe(1)
  expect(advice.best).toBeNull()
  expect(advice.unsure).toMatchObject({ lost: 0 })
  expect(advice.unsure?.tryPackets).toBeGreaterThan(2000)
})

it('says when no code reaches it, and what would', async () => {
  const args = [...LINK, '--packets', '8000', '--overhead', '10%', '--residual', '0.5%']
  const { code, advice } = await asked(...args)
  expect(code).toBe(1)
  expect(advice.best).toBeNull()
  const { moreOverhead, moreBudget } = advice
  expect(moreOverhead?.allowed).toMatchObject({ budget: 30 })
  expect(moreOverhead?.overhead).toBeGreaterThan(0.1)
  expect(moreOverhead?.overhead).toBeLessThanOrEqual(moreOverhead?.allowed.overhead ?? 0)
  expect(moreBudget?.allowed).toMatchObject({ overhead: 0.1 })
  expect(moreBudget?.overhead).toBeLessThanOrEqual(0.1)
  for (const remedy of [moreOverhead, moreBudget]) {
    expect(remedy).toMatchObject({ sure: true })
    expect(remedy?.upper).toBeLessThanOrEqual(0.005)
  }
  const told = await advise(...args)
  expect(told.code).toBe(1)
  expect(told.stdout).toContain('No code reaches at most 0.5 % of residual loss with 30 ms and 10 % of overhead.\n')
  expect(told.stdout).toMatch(/With --overhead [\d.]+% .* does/)
  expect(told.stdout).toMatch(/With --budget \d+ms .* does/)
  expect(told.stdout).not.toContain('Sender')
  // It does what it says.
  const more = ['--overhead', String(moreOverhead?.allowed.overhead)]
  expect((await asked(...LINK, '--packets', '8000', ...more, '--residual', '0.5%')).code).toBe(0)
})

it('where too few packets were sent to know what would, it says so and how many tell', async () => {
  const few = [...LINK.with(1, '20%').with(3, '1'), '--residual', '0.1%']
  const args = [...few, '--overhead', '20%', '--packets', '2000']
  const { code, advice } = await asked(...args)
  expect(code).toBe(1)
  const { moreOverhead } = advice
  expect(moreOverhead).toMatchObject({ sure: false, sent: 8000 })
  expect(moreOverhead?.residual).toBeLessThanOrEqual(0.001)
  expect(moreOverhead?.upper).toBeGreaterThan(0.001)
  const { allowed, tryPackets } = moreOverhead as Remedy
  const { stdout } = await advise(...args)
  expect(stdout).not.toContain('was enough')
  expect(stdout).toMatch(/With --overhead [\d.]+% .* may: too few packets were sent to know\./)
  expect(stdout).toContain(`Try --packets ${tryPackets}.`)
  const enough = ['--overhead', String(allowed.overhead), '--packets', String(tryPackets)]
  expect((await advise(...few, ...enough)).code).toBe(0)
})

it('where not one repair packet fits, only the bare link is in the table', async () => {
  const { code, stdout } = await advise(...LINK, '--packets', '2000', '--overhead', '1%')
  expect(code).toBe(1)
  expect(stdout).toMatch(/^CODE .*\n\(none\) .*\n\n/)
})

it.each([
  [['--loss', '0'], '--loss: there is nothing to advise on'],
  [['--budget', '0ms'], '--budget: no code recovers anything in no time'],
  [['--burst', '0.5'], 'Expected the mean packets lost in a row, from 1 to 1000'],
  [['--loss', '90%', '--burst', '2'], '--burst: 90 % of loss has longer bursts than 2'],
  [['--packets', '500', '--seconds', '1s'], 'give one'],
  [['--seconds', '10ms'], '--seconds: these are 10 packets'],
  [['--overhead', '900%'], 'An overhead is written 5% or 0.05, from 0 to 400 %'],
  [['--packet', '12'], 'Expected a whole number from 32'],
])('%j is wrong usage', async (args, message) => {
  const { code, stdout, stderr } = await advise(...LINK, ...args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
})

it.each([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s exits with its own code, %d', async (name, code) => {
  const result = await interrupted(['fec', 'advise', ...LINK, '--packets', '1000000'], name)
  expect(result).toMatchObject({ code, signal: null, stdout: '' })
  expect(result.stderr).toContain('interrupted: there is no advice yet')
})

it('does what its page says, and overwrites nothing', async () => {
  const page = readFileSync(join(packageRoot(), 'docs/fec-advise.md'), 'utf8')
  const [, block = ''] = /```sh\n([\s\S]*?)```/.exec(page) ?? []
  const place = join(mkdtempSync(join(directory.path, 'page-')), 'advice')
  const [words = [], second = []] = block
    .trim()
    .split('\n')
    .map((line) =>
      line
        .replace(/\badvice\b/, place)
        .split(/\s+/)
        .slice(1),
    )
  const advice = await penstock(words, { env: { COLUMNS: '80' } })
  expect(advice).toMatchObject({ code: 0, stderr: '' })
  expect(advice.stdout).toContain(`penstock ${second.join(' ')}\n`)
  expect(advice.stdout).toContain('Answers do not come back that way')
  const simulated = await penstock(second)
  expect(simulated.code).toBe(0)
  expect(simulated.stdout).toContain('seed 5')
  for (const name of ['sender', 'receiver']) {
    expect((await penstock(['validate', join(place, `${name}.json`)])).code).toBe(0)
  }
  const again = await penstock([...words, '--packets', '2000'])
  expect(again.code).toBe(1)
  expect(again.stderr).toContain('nothing is overwritten: name another directory')
  const table = advice.stdout.split('\n\n')[0] as string
  expect(Math.max(...table.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})

describe('what is written', () => {
  const brief = [...LINK, '--packets', '2000', '--overhead', '30%']
  const place = () => mkdtempSync(join(directory.path, 'write-'))

  it('leaves nothing of what was made for it, and the next try works', async () => {
    const above = place()
    const target = join(above, 'new', 'advice')
    // No file may grow beyond 0 bytes, as on a full disk.
    const command = ['bin/penstock.js', 'fec', 'advise', ...brief, '--write', target]
    const full = spawnSync('bash', ['-c', 'ulimit -f 0; exec "$@"', 'bash', process.execPath, ...command], {
      cwd: packageRoot(),
      env: plainEnvironment(),
      encoding: 'utf8',
    })
    expect({ code: full.status, stdout: full.stdout }).toEqual({ code: 1, stdout: '' })
    expect(full.stderr).toContain(`cannot write to ${target}: `)
    expect(readdirSync(above)).toEqual([])
    expect((await advise(...brief, '--write', target)).code).toBe(0)
    expect(readdirSync(target).sort()).toEqual(['receiver.json', 'sender.json', 'simulation.json'])
  })

  it('has its commands printed as a shell takes them, whatever the directory is called', async () => {
    const { code, stdout } = await advise(...brief, '--write', join(place(), "it's my advice"))
    expect(code).toBe(0)
    const [command = ''] = /penstock simulate .*/.exec(stdout) ?? []
    const script = `penstock() { "${process.execPath}" bin/penstock.js "$@"; }\n${command}`
    const pasted = spawnSync('bash', ['-c', script], { cwd: packageRoot(), env: plainEnvironment(), encoding: 'utf8' })
    expect(pasted).toMatchObject({ status: 0, stderr: '' })
    expect(pasted.stdout).toContain('seed 5')
  })

  it('leaves what was there', async () => {
    const target = join(place(), 'advice')
    mkdirSync(target)
    writeFileSync(join(target, 'simulation.json'), 'mine')
    const { code, stderr } = await advise(...brief, '--write', target)
    expect(code).toBe(1)
    expect(stderr).toContain('nothing is overwritten: name another directory')
    expect(readdirSync(target)).toEqual(['simulation.json'])
    expect(readFileSync(join(target, 'simulation.json'), 'utf8')).toBe('mine')
  })
})

it('its help fits a terminal of 80 columns', async () => {
  const { stdout } = await penstock(['fec', 'advise', '--help'], { env: { COLUMNS: '80' } })
  expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})
