/** What the threads of runs load, and when: the product's bundle, components as configurations name them. */
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import { BroadcastChannel, Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { componentLoaders } from '../../src/dataplane/components/loaders.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { HostNames } from '../../src/dataplane/engine/host-names.ts'
import { createRunPool } from '../../src/dataplane/engine/pool.ts'
import type { LogLine, RunHandle, RunPool } from '../../src/dataplane/engine/run.ts'
import { ThreadLoads } from '../../src/dataplane/engine/thread-loading.ts'
import { Threads } from '../../src/dataplane/engine/threads.ts'
import { openRunPool } from '../../src/dataplane/product.ts'
import { packageRoot } from '../../src/package-root.ts'
import type { Pipeline } from '../harness/component.ts'
import { until } from '../harness/waiting.ts'
import { configure, rehearsal, testPool } from './running.ts'

const finite: Pipeline = {
  source: { uniform_traffic_source: { output: 'a', total_packets: 10, seed: 1 } },
  sink: { traffic_sink: { input: 'a' } },
}

const endless: Pipeline = {
  in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  sink: { traffic_sink: { input: 'a' } },
}

const pools: RunPool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
})

function opened(pool: RunPool): RunPool {
  pools.push(pool)
  return pool
}

/** Starts a run; its log is complete once it has ended. */
function start(pool: RunPool, pipeline: Pipeline, runId = 'test') {
  const log: LogLine[] = []
  const options = { runId, config: configure(pipeline), performanceMode: false, level: 'INFO' as const }
  const handle = pool.start(options, (lines) => log.push(...lines))
  return { handle, log }
}

describe('the components of threads', () => {
  it('are those of the main thread', async () => {
    const loaded = await Promise.all(Object.entries(componentLoaders).map(async ([key, load]) => [key, await load()]))
    expect(loaded).toEqual([...components])
    for (const [key, definition] of loaded) expect(definition).toBe(components.get(key as string))
  })

  it('end the run with what, where and why when one cannot be loaded, and only that run', async () => {
    const thread = fileURLToPath(new URL('./broken-thread.mjs', import.meta.url))
    const pool = opened(createRunPool({ registry: components, thread, maximum: 1 }))
    const broken = start(pool, finite)
    await expect(broken.handle.running).rejects.toThrow(
      /component "source": uniform_traffic_source could not be loaded: .*no-such-file.*install it again/,
    )
    expect((await broken.handle.ended).outcome).toBe('FAILED')
    expect(broken.log.map(({ level, component }) => [level, component])).toContainEqual(['ERROR', 'source'])
    const whole = start(pool, { bomb: { bomb: { delay: 0, poison: 'NONE' } } })
    expect(await whole.handle.ended).toEqual({ outcome: 'COMPLETED' })
  })
})

describe('the threads kept ready', () => {
  const thread = fileURLToPath(new URL('./told-thread.mjs', import.meta.url))
  /** The number of the thread and what it ran: the rehearsal is a bomb, runs are endless. */
  const done: { thread: number; what: string }[] = []
  const channel = new BroadcastChannel('told-thread')
  channel.onmessage = (event) => {
    const { thread, components } = (event as MessageEvent).data
    done.push({ thread, what: components[0] === 'bomb' ? 'rehearsal' : 'run' })
  }
  const threadsOf = (what: string) => done.filter((entry) => entry.what === what).map((entry) => entry.thread)
  const rehearsed = (count: number) => until(() => threadsOf('rehearsal').length === count, `${count} rehearsals`)
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  beforeEach(async () => {
    await turn() // what threads have told that have ended is heard by then
    done.length = 0
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('have had a rehearsal each, and those that runs take are replaced', async () => {
    const pool = opened(createRunPool({ registry: components, thread, rehearsal, warm: 2 }))
    await rehearsed(2)
    const first = threadsOf('rehearsal')
    const runs = [start(pool, endless), start(pool, endless)]
    for (const { handle } of runs) await handle.running
    await rehearsed(4)
    const all = threadsOf('rehearsal')
    expect(new Set(all).size).toBe(4)
    await until(() => threadsOf('run').length === 2, 'both runs are told of')
    expect(new Set(threadsOf('run'))).toEqual(new Set(first))
    // A third finds one of the new.
    await start(pool, endless).handle.running
    await until(() => threadsOf('run').length === 3, 'the third run is told of')
    expect(all.slice(2)).toContain(threadsOf('run')[2])
  })

  it('are never more, with those that have a run, than there may be threads', async () => {
    const pool = opened(createRunPool({ registry: components, thread, rehearsal, warm: 2, maximum: 1 }))
    await rehearsed(1)
    const run = start(pool, endless)
    await run.handle.running
    run.handle.stop()
    await run.handle.ended
    const next = start(pool, endless)
    await next.handle.running
    await until(() => threadsOf('run').length === 2, 'both runs are told of')
    expect(new Set(done.map((entry) => entry.thread)).size).toBe(1)
  })

  it('are not waited for where there may be no more threads: the pool closes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const pool = opened(createRunPool({ registry: components, thread, rehearsal, warm: 2, maximum: 1 }))
    while (threadsOf('rehearsal').length < 1) await turn()
    const { handle } = start(pool, endless)
    await handle.running
    handle.stop()
    await handle.ended
    vi.advanceTimersByTime(1_000)
    for (let i = 0; i < 10; i++) await turn()
    await pool.close()
  })

  it('are not waited for where a run takes the last thread meanwhile: nobody is told, runs go on, the pool closes', async () => {
    // The rehearsal is decided on, and asks for the address of a name until a run has the only thread.
    let answer = (_: { address: string; family: number }[]) => {}
    const lookup = () =>
      new Promise<{ address: string; family: number }[]>((resolve) => {
        answer = resolve
      })
    const errors: string[] = []
    const pool = opened(
      createRunPool({
        registry: components,
        thread,
        rehearsal: configure({
          in: { udp: { local_address: 'localhost:0', output: 'a' } },
          sink: { traffic_sink: { input: 'a' } },
        }),
        hostNames: new HostNames(lookup),
        warm: 1,
        maximum: 1,
        onError: (error) => errors.push(error.message),
      }),
    )
    await turn()
    const first = start(pool, endless)
    await first.handle.running
    answer([{ address: '127.0.0.1', family: 4 }])
    for (let i = 0; i < 10; i++) await turn()
    first.handle.stop()
    await first.handle.ended
    const second = start(pool, endless)
    await second.handle.running
    await pool.close()
    expect(await second.handle.ended).toEqual({ outcome: 'STOPPED' })
    expect(errors).toEqual([])
  })

  it('are the one that has just run, until it has been without a run for ten seconds and is ended', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const pool = opened(createRunPool({ registry: components, thread, rehearsal, warm: 2 }))
    const run = async () => {
      const { handle } = start(pool, endless)
      await handle.running
      return handle
    }
    const again = async () => {
      const count = threadsOf('run').length
      const handle = await run()
      while (threadsOf('run').length === count) await turn()
      handle.stop()
      await handle.ended
    }
    // One whose rehearsal has ended: they come one after the other.
    while (threadsOf('rehearsal').length < 2) await turn()
    await again()
    await again()
    const [first, second] = threadsOf('run')
    expect(second).toBe(first)
    vi.advanceTimersByTime(10_000)
    while (threadsOf('rehearsal').length < 3) {
      vi.advanceTimersByTime(100)
      await turn()
    }
    await again()
    expect(threadsOf('run')[2]).toBe(threadsOf('rehearsal')[1])
    expect(threadsOf('run')[2]).not.toBe(first)
  })

  it('have loaded the components of the last run before the next', async () => {
    const loads: { thread: number; loaded: string }[] = []
    const telling = new BroadcastChannel('loading-thread')
    telling.onmessage = (event) => loads.push((event as MessageEvent).data)
    const loader = fileURLToPath(new URL('./loading-thread.mjs', import.meta.url))
    const pool = opened(createRunPool({ registry: components, thread: loader, rehearsal, warm: 1 }))
    const { handle } = start(pool, endless)
    const rehearsed = () => {
      const { thread } = loads.find(({ loaded }) => loaded === 'bomb') ?? {}
      return loads.filter((load) => load.thread === thread).map(({ loaded }) => loaded)
    }
    await until(() => rehearsed().length === 3, 'all loads of the rehearsal')
    expect(rehearsed()).toEqual(['bomb', 'udp_local', 'traffic_sink'])
    await handle.running
    telling.close()
  })

  it('that cannot be made are told of, and runs go on without', async () => {
    const errors: string[] = []
    const broken = {
      ...rehearsal,
      components: {
        socket: { key: 'udp_local', config: { address: '192.0.2.1:0', output: 'received' } },
        sink: { key: 'traffic_sink', config: { input: 'received', mtu: 0, latency_budget: 100, timeout_ms: 10_000 } },
      },
    }
    const pool = opened(testPool({ rehearsal: broken, onError: (error) => errors.push(error.message) }))
    await until(() => errors.length === 1)
    expect(errors).toEqual([expect.stringMatching(/^no thread could be made ready for the next run: .*192\.0\.2\.1/)])
    await start(pool, endless).handle.running
  })

  it('whose files have gone are told of once, with what to do, until a run has had a thread', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const errors: string[] = []
    const gone = fileURLToPath(new URL('./no-such-file.cjs', import.meta.url))
    const onError = (error: Error) => errors.push(error.message)
    const pool = opened(createRunPool({ registry: components, thread: gone, rehearsal, onError }))
    while (errors.length === 0) await turn()
    const unable = /no thread could be started for the run: ENOENT.*; restart the node if it was upgraded meanwhile/
    for (let i = 0; i < 3; i++) {
      await expect(start(pool, endless).handle.running).rejects.toThrow(unable)
      vi.advanceTimersByTime(1_000)
      for (let i = 0; i < 100; i++) await turn()
    }
    expect(errors).toEqual([expect.stringMatching(unable)])
  })
})

describe('threads that cannot begin', () => {
  it('are the end of every start that waits for one, and of nothing else', async () => {
    const gone = fileURLToPath(new URL('./no-such-file.cjs', import.meta.url))
    const errors: string[] = []
    const pool = opened(
      createRunPool({ registry: components, thread: gone, onError: (error) => errors.push(error.message) }),
    )
    const runs = Array.from({ length: 4 }, (_, n) => start(pool, endless, `test-${n}`).handle)
    for (const { running } of runs) {
      await expect(running).rejects.toThrow(/no thread could be started for the run: ENOENT.*install it again/)
    }
    expect(errors).toEqual([])
  })

  it('are not tried again by a thread that becomes free: each start has one, and is told of it once', async () => {
    const thread = fileURLToPath(new URL('./fickle-thread.mjs', import.meta.url))
    const errors: Error[] = []
    const rehearse = () => {
      throw new Error('none is to be ready')
    }
    const threads = new Threads({ thread, ready: 0, maximum: 8, rehearse, onError: (error) => errors.push(error) })
    const killed: string[] = []
    const who = { kill: (cause: string) => killed.push(cause) }
    const abort = new AbortController()
    const task = () => threads.run({}, who, { transferList: [], signal: abort.signal, left: abort.signal })
    try {
      const first = task()
      await until(() => process.env.TEST_TASK_BEGUN !== undefined, 'the first has a thread')
      process.env.TEST_THREADS_DIE = '1'
      const second = expect(task()).rejects.toThrow(/abort/)
      await until(() => killed.length > 0, 'the second is told')
      // It takes its time to go.
      process.env.TEST_TASK_ENDS = '1'
      await first
      await new Promise((resolve) => setTimeout(resolve, 500))
      expect(killed).toEqual([expect.stringMatching(/^no thread could be started for the run: EMFILE.*ulimit -n/)])
      expect(errors).toEqual([])
      abort.abort()
      await second
    } finally {
      for (const name of ['TASK_BEGUN', 'TASK_ENDS', 'THREADS_DIE']) delete process.env[`TEST_${name}`]
      await threads.close()
    }
  })
})

describe('more runs than there may be threads', () => {
  it('wait in line, and those that are killed at once all hear of it', async () => {
    const thread = fileURLToPath(new URL('./fickle-thread.mjs', import.meta.url))
    const rehearse = () => {
      throw new Error('none is to be ready')
    }
    const threads = new Threads({ thread, ready: 0, maximum: 1, rehearse, onError: () => {} })
    const task = ({ signal }: AbortController) =>
      threads.run({}, { kill: () => {} }, { transferList: [], signal, left: signal })
    const aborts = [new AbortController(), new AbortController(), new AbortController()] as const
    try {
      const first = expect(task(aborts[0])).rejects.toThrow(/abort/)
      await until(() => process.env.TEST_TASK_BEGUN !== undefined, 'the first has the thread')
      const next = task(aborts[1])
      const last = expect(task(aborts[2])).rejects.toThrow(/abort/)
      for (const abort of [aborts[0], aborts[2]]) void threads.loaded().then(() => abort.abort())
      await Promise.all([first, last])
      process.env.TEST_TASK_ENDS = '1'
      await next
    } finally {
      for (const name of ['TASK_BEGUN', 'TASK_ENDS']) delete process.env[`TEST_${name}`]
      await threads.close()
    }
  })

  it('leave the line as soon as they are stopped or killed, while the thread is taken', async () => {
    const thread = fileURLToPath(new URL('./fickle-thread.mjs', import.meta.url))
    const pool = opened(createRunPool({ registry: components, thread, maximum: 1 }))
    // Takes no notice of its stop.
    const first = start(pool, endless).handle
    try {
      await until(() => process.env.TEST_TASK_BEGUN !== undefined, 'the first has the thread')
      first.stop()
      const next = [start(pool, endless).handle]
      for (const handle of next) await handle.turn
      expect(() => start(pool, endless)).toThrow(pool.full())
      next[0]?.stop()
      next.push(start(pool, endless).handle)
      await next[1]?.turn
      next[1]?.kill('unwanted')
      // Two in one moment, and one that is told before it is in line.
      next.push(start(pool, endless).handle)
      await next[2]?.turn
      next[2]?.stop()
      next.push(start(pool, endless).handle)
      next[3]?.stop()
      expect(await Promise.all(next.map(({ ended }) => ended))).toEqual([
        { outcome: 'STOPPED' },
        { outcome: 'FAILED', error: 'unwanted' },
        { outcome: 'STOPPED' },
        { outcome: 'STOPPED' },
      ])
      for (const { running } of next) await expect(running).rejects.toThrow()
    } finally {
      first.kill('the test is over')
      await first.ended
      delete process.env.TEST_TASK_BEGUN
    }
  })

  /** A pool whose threads load until they are let go on. */
  function loading(): RunPool {
    delete process.env.TEST_THREADS_BEGUN
    process.env.TEST_THREADS_LOAD = '1'
    const thread = fileURLToPath(new URL('./fickle-thread.mjs', import.meta.url))
    return opened(createRunPool({ registry: components, thread }))
  }

  async function twoOnTheirWay(pool: RunPool): Promise<RunHandle[]> {
    const both = [start(pool, endless).handle, start(pool, endless).handle]
    await until(() => process.env.TEST_THREADS_BEGUN === '2', 'both threads are on their way')
    return both
  }

  async function over(runs: readonly RunHandle[]): Promise<void> {
    delete process.env.TEST_THREADS_LOAD
    for (const handle of runs) handle.kill('the test is over')
    await Promise.all(runs.map(({ ended }) => ended))
    delete process.env.TEST_TASK_BEGUN
  }

  it('end as soon as they are stopped or killed while a thread is on its way, which the next has', async () => {
    const pool = loading()
    const last: RunHandle[] = []
    try {
      const first = await twoOnTheirWay(pool)
      first[0]?.stop()
      first[1]?.kill('unwanted')
      expect(await first[0]?.ended).toEqual({ outcome: 'STOPPED' })
      expect(await first[1]?.ended).toEqual({ outcome: 'FAILED', error: 'unwanted' })
      for (let i = 0; i < 2; i++) {
        const { handle } = start(pool, endless)
        await handle.turn
        last.push(handle)
      }
      delete process.env.TEST_THREADS_LOAD
      await until(() => process.env.TEST_TASK_BEGUN !== undefined, 'one of the last has a thread')
      expect(process.env.TEST_THREADS_BEGUN).toBe('2')
    } finally {
      await over(last)
    }
  })

  it('end as soon as they are stopped while their thread is on its way, and another is there', async () => {
    const both = await twoOnTheirWay(loading())
    try {
      process.env.TEST_THREADS_LOAD = '2'
      await until(() => process.env.TEST_TASK_BEGUN !== undefined, 'one of them has a thread')
      for (const handle of both) handle.stop()
      expect(await Promise.race(both.map(({ ended }) => ended))).toEqual({ outcome: 'STOPPED' })
      expect(process.env.TEST_THREADS_LOAD).toBe('2')
    } finally {
      await over(both)
    }
  })

  it('are refused at once; one that comes while another stops has its thread', async () => {
    const pool = opened(testPool({ rehearsal, warm: 1, maximum: 2 }))
    const [first, second] = [start(pool, endless).handle, start(pool, endless).handle]
    expect(pool.full()).toMatch(/^all 2 threads of this process have runs: stop others/)
    expect(() => start(pool, endless)).toThrow(pool.full())
    await Promise.all([first.running, second.running])
    expect(() => start(pool, endless)).toThrow(pool.full())
    first.stop()
    const third = start(pool, endless).handle
    await third.running
    expect(await first.ended).toEqual({ outcome: 'STOPPED' })
    // Its thread ends with it, and makes room for another.
    second.kill('killed')
    const fourth = start(pool, endless).handle
    await fourth.running
    expect(await second.ended).toEqual({ outcome: 'FAILED', error: 'killed' })
    third.stop()
    // Nobody waits for it any more before its thread is free.
    const fifth = start(pool, endless).handle
    fifth.kill('unwanted')
    expect(await fifth.ended).toEqual({ outcome: 'FAILED', error: 'unwanted' })
    fourth.stop()
    await Promise.all([third.ended, fourth.ended])
    const last = [start(pool, endless).handle, start(pool, endless).handle]
    await Promise.all(last.map(({ running }) => running))
  })
})

describe('the bundle', () => {
  it('is ASCII, and each file of it a function: V8 has the text once in memory, a byte for each character', () => {
    const folder = fileURLToPath(new URL('../../dist/thread/', import.meta.url))
    const files = readdirSync(folder).filter((name) => name.endsWith('.cjs'))
    expect(files).toContain('run.cjs')
    for (const name of files) {
      const bytes = readFileSync(join(folder, name))
      expect(
        bytes.every((byte) => byte < 128),
        name,
      ).toBe(true)
      expect(typeof new Script(bytes.toString()).runInThisContext(), name).toBe('function')
    }
  })

  it('has a thread load of Node.js no more than it needs', async () => {
    const root = packageRoot()
    const worker = join(root, 'dist/piscina/worker.js')
    const thread = join(root, 'dist/thread/run.cjs')
    const workerData = new ThreadLoads(thread).data
    const program = `
      const { parentPort } = require('node:worker_threads')
      const before = new Set(process.moduleLoadList)
      require(${JSON.stringify(worker)})
      parentPort.postMessage(process.moduleLoadList.filter((name) => !before.has(name)))`
    const loading = new Worker(program, { eval: true, workerData })
    const [loaded] = await once(loading, 'message')
    await loading.terminate()
    // Of V8's scripts, which load the bundle.
    expect(loaded).toEqual(['NativeModule vm'])
  })

  it('runs, in a first thread and in those that take what it has compiled', async () => {
    const pool = opened(openRunPool({ warm: 1 }))
    const first = start(pool, finite)
    expect(await first.handle.ended).toEqual({ outcome: 'COMPLETED' })
    const others = [1, 2, 3].map((n) => start(pool, finite, `test-${n}`))
    for (const { handle } of others) expect(await handle.ended).toEqual({ outcome: 'COMPLETED' })
  })

  it('is in memory once a thread has loaded it: an upgrade in place is nothing to later threads, and what they have not is named', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-threads-'))
    cpSync(fileURLToPath(new URL('../../dist/thread/', import.meta.url)), folder, { recursive: true })
    const pool = opened(createRunPool({ registry: components, thread: join(folder, 'run.cjs') }))
    const { handle } = start(pool, endless)
    await handle.running
    handle.stop()
    await handle.ended
    // What the thread has handed over came before its end, by another port.
    await new Promise((resolve) => setImmediate(resolve))
    rmSync(folder, { recursive: true })
    // One has the thread, the other gets a new one.
    const runs = [start(pool, endless), start(pool, endless, 'other')]
    for (const run of runs) await run.handle.running
    const unknown = start(pool, { bomb: { bomb: { delay: 0, poison: 'NONE' } } })
    await expect(unknown.handle.running).rejects.toThrow(
      /component "bomb": bomb could not be loaded: ENOENT.*install it again/,
    )
  })

  it('runs 200 pipelines whose starts come at once', async () => {
    const pool = opened(openRunPool())
    const runs = Array.from({ length: 200 }, (_, n) => start(pool, endless, `test-${n}`).handle)
    await Promise.all(runs.map(({ running }) => running))
    for (const run of runs) run.stop()
    expect(await Promise.all(runs.map(({ ended }) => ended))).toEqual(runs.map(() => ({ outcome: 'STOPPED' })))
  }, 120_000)

  it('names the sources in what a component throws', async () => {
    const pool = opened(openRunPool({ warm: 1 }))
    const { handle, log } = start(pool, { bomb: { bomb: { delay: 0, poison: 'THROW_EXCEPTION' } } })
    expect((await handle.ended).outcome).toBe('FAILED')
    const [thrown] = log.filter(({ level, component }) => level === 'ERROR' && component === 'bomb')
    expect(thrown?.message).toMatch(/at explode \(.*\/src\/dataplane\/components\/routing\/bomb\.ts:\d+:\d+\)/)
    expect(thrown?.message).not.toMatch(/\.cjs:/)
  })
})
