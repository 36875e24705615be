/** A machine whose clock is set long after the node has begun, and set back: one without a battery, that asks the network for the time. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, expect, it } from 'vitest'
import { lineOf, penstock, scratch, start } from '../cli/cli.ts'

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

it.skipIf(!library)(
  'a run says the time that the system has by then, rates do not see it set, and the last run is the last',
  async () => {
    const time = directory.file('time', '@2001-01-01 00:00:00')
    const setTime = (to: string) => directory.file('time', to)
    const up = () =>
      begin(['up', '--data-dir', `${directory.path}/data`, '--http', '127.0.0.1:0', '--telemetry-interval', '100ms'], {
        LD_PRELOAD: library as string,
        FAKETIME_TIMESTAMP_FILE: time,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      })
    const urlOf = async (node: ChildProcess) => ({
      PENSTOCK_URL: `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}`,
    })
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
