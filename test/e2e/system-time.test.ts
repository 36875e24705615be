/** A machine whose clock is set long after the node has begun, and set back: one without a battery, that asks the network for the time. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, expect, it } from 'vitest'
import { lineOf, penstock, scratch, start } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'

const directory = scratch()
const processes: ChildProcess[] = []
afterAll(() => {
  for (const child of processes) child.kill('SIGKILL')
  directory.dispose()
})

function begin(args: string[], env: Record<string, string>): ChildProcess {
  const child = start(args, env)
  processes.push(child)
  return child
}

/** What shows a process another time than the system's; undefined where it is not installed. */
const library = spawnSync('faketime', ['now', 'printenv', 'LD_PRELOAD'], { encoding: 'utf8' }).stdout?.trim()
if (!library) console.warn('SKIPPED: the test of a clock that is set lacks faketime')

const DAY_MS = 86_400_000

const steady = {
  engine_config: {
    pipeline: {
      source: { uniform_traffic_source: { output: 'packets', interval: 1 } },
      sink: { traffic_sink: { input: 'packets' } },
    },
  },
  kpis: { metrics: [{ id: 'pace', label: 'Pace', value: { expression: 'rate({source/generated_packets})' } }] },
}

interface Sample {
  timestamp: string
  kpis: { value?: { value: number } }[]
}

const SETTINGS = ['--http', '127.0.0.1:0', '--grpc', 'none', '--telemetry-interval', '100ms']

/** A node whose clock is as the file `time` says. */
function nodeWith(time: string, data: string): ChildProcess {
  return begin(['up', '--data-dir', `${directory.path}/${data}`, ...SETTINGS], {
    LD_PRELOAD: library as string,
    FAKETIME_TIMESTAMP_FILE: time,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  })
}

/** What commands need to reach it. */
async function urlOf(node: ChildProcess) {
  return { PENSTOCK_URL: `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}` }
}

it.skipIf(!library)(
  'a run says the time that the system has by then, rates do not see it set, and the last run is the last',
  async () => {
    const time = directory.file('time', '@2001-01-01 00:00:00')
    const setTime = (to: string) => directory.file('time', to)
    const up = () => nodeWith(time, 'data')
    let node = up()
    let env = await urlOf(node)
    const pipelines = async (...args: string[]) => {
      const { code, stderr, stdout } = await penstock(['pipelines', ...args], { env })
      expect([code, stderr]).toEqual([0, ''])
      return stdout
    }
    await pipelines('create', 'steady', directory.file('steady.json', steady))
    // Its thread was made in 2001, and has the next run too.
    await pipelines('start', 'steady')
    await pipelines('stop', 'steady')
    setTime('+0')
    await pipelines('start', 'steady')

    const log = begin(['pipelines', 'logs', 'steady', '--json'], env)
    const [running] = await lineOf(log, /.*"message":"running".*/)
    expect(Math.abs(Date.parse(JSON.parse(running).timestamp) - Date.now())).toBeLessThan(DAY_MS / 2)
    const metrics = await (await fetch(`${env.PENSTOCK_URL}/metrics`)).text()
    const began = Number(/^process_start_time_seconds (.*)$/m.exec(metrics)?.[1])
    expect(Math.abs(began * 1000 - Date.now())).toBeLessThan(DAY_MS / 2)

    const telemetry = begin(['pipelines', 'telemetry', 'steady', '--json'], env)
    const days: number[] = []
    const paces: number[] = []
    for await (const line of createInterface({ input: telemetry.stdout! })) {
      const { timestamp, kpis } = JSON.parse(line) as Sample
      const day = Math.round((Date.parse(timestamp) - Date.now()) / DAY_MS) || 0 // it may be -0
      days.push(day)
      // The first has nothing before it.
      const pace = kpis[0]?.value?.value
      if (pace !== undefined) paces.push(pace)
      if (days.length === 4) setTime('-1d')
      if (day === -1 && days.filter((other) => other === -1).length === 4) break
    }
    expect(days.slice(0, 4)).toEqual([0, 0, 0, 0])
    expect(days.slice(-4)).toEqual([-1, -1, -1, -1])
    expect(paces.length).toBeGreaterThan(4)
    // A packet a millisecond, give or take what a busy machine does; over a day that went by, or back, it would be none or no number.
    for (const pace of paces) {
      expect(pace).toBeGreaterThan(10)
      expect(pace).toBeLessThan(100_000)
    }

    // The clock is a day back: this run is the newest, though it begins before the one that is on.
    await pipelines('stop', 'steady')
    const { runId } = JSON.parse(await pipelines('start', 'steady', '-o', 'json')) as { runId: string }
    await pipelines('stop', 'steady')
    node.kill('SIGTERM')
    await once(node, 'exit')
    node = up()
    env = await urlOf(node)
    const shown = JSON.parse(await pipelines('get', 'steady', '-o', 'json')) as { currentRun: { id: string } }
    expect(shown.currentRun.id).toBe(runId)
  },
  60_000,
)

it.skipIf(!library)(
  'what a run does a second, and how long it lasted, is as it was wherever the clock was set meanwhile',
  async () => {
    const setTime = (to: string) => directory.file('time-2', to)
    const env = await urlOf(nodeWith(setTime('+0'), 'data-2'))
    const pipelines = async (...args: string[]) => {
      const { code, stderr } = await penstock(['pipelines', ...args], { env })
      expect([code, stderr]).toEqual([0, ''])
    }
    await pipelines('create', 'steady', directory.file('steady-2.json', { ...steady, kpis: undefined }))
    const began = performance.now()
    await pipelines('start', 'steady')
    const table = begin(['pipelines', 'telemetry', 'steady', 'source', '--metric', 'generated_packets'], env)
    const lines = begin(['pipelines', 'telemetry', 'steady', '--json'], env)
    const top = begin(['top', '--json', '-i', '50ms'], env)
    let [shown, last] = ['', '']
    table.stdout?.on('data', (chunk) => {
      shown += chunk
    })
    createInterface({ input: lines.stdout! }).on('line', (line) => {
      last = line
    })
    const seenByTop: number[] = []
    createInterface({ input: top.stdout! }).on('line', (line) => {
      const [run] = JSON.parse(line).runs
      if (run?.enteredPerSecond !== undefined) seenByTop.push(run.enteredPerSecond)
    })
    /** Rates of the table as it is printed again and again, that of the whole run at the end. */
    const paces = () =>
      [...shown.matchAll(/generated_packets.* ([\d.]+)( k)?\/s/g)].map(
        ([, pace, kilo]) => Number(pace) * (kilo === undefined ? 1 : 1000),
      )
    const more = async () => {
      const [inTable, inTop] = [paces().length, seenByTop.length]
      await until(
        () => paces().length > inTable + 4 && seenByTop.length > inTop + 8,
        () => `further samples:\n${shown}`,
      )
    }
    await more()
    for (const time of ['+1h', '-1h']) {
      setTime(time)
      await more()
    }
    await pipelines('stop', 'steady')
    await until(() => / after /.test(shown) && last.includes('"outcome"'), 'both tell the end')
    const lasted = (performance.now() - began) / 1000
    const { seconds } = JSON.parse(last)
    expect(seconds).toBeGreaterThan(1)
    expect(seconds).toBeLessThan(lasted)
    expect(/stopped after (.*)/.exec(shown)?.[1]).not.toMatch(/-|h/)
    // A packet a millisecond, give or take what a busy machine does, which may have a sample without any; over an hour it would be a hundredth.
    const all = [...paces(), ...seenByTop]
    const some = all.filter((pace) => pace !== 0)
    expect(some.length).toBeGreaterThan(all.length / 2)
    for (const pace of some) {
      expect(pace).toBeGreaterThan(5)
      expect(pace).toBeLessThan(100_000)
    }
  },
  60_000,
)
