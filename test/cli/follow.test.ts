/** The log and the metrics of a pipeline's runs, one after the other, found by name or run, filtered, and ended by who reads them. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lineOf, lossy, penstock, scratch, start, startNode } from './cli.ts'
import { PseudoTerminal } from './pseudo-terminal.ts'

const directory = scratch()
let node: ChildProcess
let env: Record<string, string>

const call = (...args: string[]) => penstock(args, { env })

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await call(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

const begin = async (name: string) => (await json<{ runId: string }>('pipelines', 'start', name)).runId

/** A command that goes on, and the lines of JSON that it prints. */
class Follower {
  readonly child: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #reader: Interface

  constructor(...args: string[]) {
    this.child = start([...args, '--json'], env)
    this.#reader = createInterface({ input: this.child.stdout! })
    this.#lines = this.#reader[Symbol.asyncIterator]()
  }

  /** The first line that is one. */
  async until(holds: (line: Record<string, never>) => boolean): Promise<Record<string, never>> {
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done) throw new Error('the command ended without such a line')
      const line = JSON.parse(value)
      if (holds(line)) return line
    }
  }

  async end(): Promise<unknown[]> {
    const gone = once(this.child, 'exit')
    this.child.kill('SIGINT')
    return await gone
  }
}

beforeAll(async () => {
  const started = await startNode(`${directory.path}/data`)
  node = started.node
  env = { PENSTOCK_URL: started.url }
  const config = directory.file('lossy.json', lossy)
  const bomb = { bomb: { delay: 200, poison: 'THROW_EXCEPTION' } }
  const failing = directory.file('failing.json', {
    engine_config: { pipeline: { ...lossy.engine_config.pipeline, bomb } },
  })
  for (const args of [
    ['lossy', config],
    ['failing', failing, '--restart-policy', 'always'],
    ['short', config],
  ]) {
    expect((await call('pipelines', 'create', ...args)).code).toBe(0)
  }
}, 60_000)
afterAll(async () => {
  const gone = once(node, 'exit')
  node.kill('SIGTERM')
  await gone
  directory.dispose()
})

describe('logs and telemetry', () => {
  it('take a run as they take a pipeline, a past one too', async () => {
    const past = await begin('short')
    expect((await call('pipelines', 'stop', 'short')).code).toBe(0)
    const { stdout } = await call('pipelines', 'logs', past)
    expect(stdout).toMatch(/running[\s\S]*ended: STOPPED/)
    expect((await call('pipelines', 'telemetry', past)).stdout).toContain('stopped after')
    const now = await begin('short')
    const sample = await call('pipelines', 'telemetry', now, 'sink', '-c', '1', '--json')
    expect(Object.keys(JSON.parse(sample.stdout).metrics)).toEqual(['sink'])
    for (const [args, message] of [
      [['skin'], 'the run has no component "skin". Did you mean "sink"?'],
      [['--metric', 'nope'], 'the run has no metric "nope"'],
      [['sink', 'source', '--metric', 'packets', '--metric', 'nope'], '"sink", "source" has no metric "nope"'],
    ] as const) {
      const none = await call('pipelines', 'telemetry', now, '-c', '1', ...args)
      expect(none).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) })
    }
    const wrong = await call('pipelines', 'logs', past.replace(/^../, past.startsWith('00') ? '11' : '00'))
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('no pipeline has the id or name') })
    expect((await call('pipelines', 'logs')).code).toBe(2)
  })

  it('logs goes on with the next runs, restarted by policy and by hand, and says where one begins', async () => {
    const first = await begin('failing')
    const follower = new Follower('pipelines', 'logs', 'failing', '--follow')
    await follower.until(({ message }) => message === 'running')
    await follower.until(({ fields }) => (fields as { outcome?: string })?.outcome === 'FAILED')
    const { nextRun } = (await follower.until((line) => 'nextRun' in line)) as unknown as { nextRun: { id: string } }
    expect(nextRun.id).not.toBe(first)
    await follower.until(({ message }) => message === 'running')
    expect((await call('pipelines', 'stop', 'failing')).code).toBe(0)
    expect(await follower.end()).toEqual([0, null])
  })

  it('a run is meant by the beginning of its id too', async () => {
    const run = await begin('lossy')
    for (const verb of ['logs', 'telemetry']) {
      const follower = new Follower('pipelines', verb, run.slice(0, 8), '--follow')
      await follower.until(({ timestamp }) => timestamp !== undefined)
      expect(await follower.end()).toEqual([0, null])
    }
    const one = await json<{ timestamp: string }>('pipelines', 'telemetry', run.slice(0, 8), '-c', '1')
    expect(one.timestamp).toEqual(expect.any(String))
    expect((await call('pipelines', 'stop', 'lossy')).code).toBe(0)
    const unknown = await call('pipelines', 'logs', 'zzzz')
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringContaining('no pipeline has the id or name "zzzz"'),
    ])
  })

  it('telemetry shows the last of its samples whole, though a terminal has fewer rows', async () => {
    await begin('lossy')
    const size = { ...env, TERMINAL_SIZE: '80x10' }
    const terminal = new PseudoTerminal(['pipelines', 'telemetry', 'lossy', '-c', '2'], size)
    await terminal.see(/COMPONENT[\s\S]*… \d+ more lines/)
    await terminal.see(/COMPONENT[\s\S]*\/process[\s\S]*threads/)
    expect(await terminal.code()).toBe(0)
    expect(terminal.raw.split('more lines')).toHaveLength(2)
    await call('pipelines', 'stop', 'lossy')
  })

  it('telemetry goes on too, and ends when the pipeline is deleted', async () => {
    const { id } = await json<{ id: string }>('pipelines', 'create', 'again', `${directory.path}/lossy.json`)
    const first = await begin('again')
    const follower = new Follower('pipelines', 'telemetry', first, '--follow')
    const gone = once(follower.child, 'exit')
    await follower.until(({ metrics }) => metrics !== undefined)
    expect((await call('pipelines', 'stop', 'again')).code).toBe(0)
    await follower.until(({ outcome }) => outcome === ('STOPPED' as never))
    const next = await begin('again')
    expect(await follower.until((line) => 'nextRun' in line)).toMatchObject({ nextRun: { id: next } })
    await follower.until(({ timestamp }) => timestamp !== undefined)
    expect((await call('pipelines', 'delete', id, '--force')).code).toBe(0)
    expect(await gone).toEqual([0, null])
  })

  it('logs shows lines of a level and of components only', async () => {
    const run = await begin('lossy')
    expect((await call('pipelines', 'stop', 'lossy')).code).toBe(0)
    const bombed = await begin('failing')
    await call('pipelines', 'logs', bombed)
    expect((await call('pipelines', 'stop', 'failing')).code).toBe(0)
    const lines = async (...flags: string[]) =>
      (await call('pipelines', 'logs', bombed, '--json', ...flags)).stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { level: string; component: string })
    const all = await lines()
    const levels = new Set(all.map(({ level }) => level))
    expect(levels.has('STATE')).toBe(true)
    const severe = await lines('--level', 'error')
    expect(severe).toEqual(all.filter(({ level }) => ['ERROR', 'FATAL'].includes(level)))
    expect(severe.length).toBeGreaterThan(0)
    const named = severe[0]?.component ?? ''
    expect(await lines('--component', 'bomb')).toEqual(all.filter(({ component }) => component === 'bomb'))
    expect(named === '' ? all.length : (await lines('--component', named)).length).toBeGreaterThan(0)
    expect((await call('pipelines', 'logs', run, '--level', 'loud')).code).toBe(2)
  })

  it('end at once when nobody reads them, though nothing happens', async () => {
    for (const verb of ['logs', 'telemetry']) {
      const follower = start(['pipelines', verb, 'lossy', '--follow'], env)
      const gone = once(follower, 'exit')
      await lineOf(follower, verb === 'logs' ? /ended/ : /stopped after/)
      follower.stdout?.destroy()
      expect(await gone).toEqual([0, null])
    }
  })
})
