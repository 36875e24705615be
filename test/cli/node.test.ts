/** The commands that talk to a node: up, status and the life of a pipeline, over REST, from start to SIGTERM. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { interrupted, lineOf, lossy, penstock, type Result, scratch, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'

const directory = scratch()
let node: ChildProcess
let id: string
let url: string

/** Against the node under test. */
const call = (...args: string[]): Promise<Result> => penstock(args, { env: { PENSTOCK_URL: url } })

/** The same, as JSON; fails unless the command succeeds. */
async function json<T = Record<string, never>>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await call(...args, '-o', 'json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

async function up(): Promise<void> {
  const flags = ['--data-dir', `${directory.path}/data`, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0']
  node = start(['up', ...flags, '--telemetry-interval', '100ms', '--log-level', 'error'])
  const match = await lineOf(node, /^penstock ready http=(\S+) grpc=127\.0\.0\.1:\d+ node=(\S+)$/)
  url = `http://${match[1]}`
  id = match[2]
}

async function down(): Promise<number | null> {
  const gone = once(node, 'exit')
  node.kill('SIGTERM')
  return (await gone)[0]
}

/** A proxy of the node that holds streams back until `events` events have come, and lets them go in one piece, as a busy machine does. */
async function holding(events: number): Promise<{ url: string; close(): void }> {
  const proxy = createServer((request, response) => {
    get(`${url}${request.url}`, { headers: request.headers }, (answer) => {
      const isStream = answer.headers['content-type'] === 'text/event-stream'
      response.writeHead(answer.statusCode as number, answer.headers)
      response.flushHeaders()
      let held = ''
      answer.setEncoding('utf8')
      answer.on('data', (text: string) => {
        held += text
        if (isStream && held.split('\ndata: ').length <= events) return
        response.write(held)
        held = ''
      })
      answer.on('end', () => response.end(held))
      response.on('close', () => answer.destroy())
    })
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, close: () => proxy.close() }
}

interface Pipeline {
  id: string
  name: string
  started: boolean
  cpuPin?: number
  jsonConfig: string
  restartPolicy: object
  currentRun?: { id: string; state: string; outcome?: string }
}

beforeAll(up)
afterAll(async () => {
  if (node.exitCode === null && node.signalCode === null) node.kill('SIGKILL')
  directory.dispose()
})

describe('a node and its pipelines', () => {
  const config = directory.file('lossy.json', lossy)

  it('shows a name that would steer the terminal as text', async () => {
    const name = 'a\u001b[2Jb\u009b2Kc\nd'
    const { id } = await json<Pipeline>('pipelines', 'create', name, config)
    const { stdout } = await call('pipelines', 'list')
    expect(stdout).toContain('a\\u001b[2Jb\\u009b2Kc\\u000ad')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those must not be there
    expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
    const { stderr } = await call('pipelines', 'start', `${name}?`)
    expect(stderr).toContain('a\\u001b[2Jb')
    expect((await json<Pipeline[]>('pipelines', 'list'))[0]?.name).toBe(name)
    await json('pipelines', 'delete', id)
  })

  it('tells what it is', async () => {
    expect(await json('status')).toMatchObject({ nodeId: id, isAuthenticated: false, pipelines: 0, running: 0 })
    expect((await call('pipelines', 'list')).stdout).toContain('no pipelines')
  })

  it('creates, starts, follows, changes, stops and deletes a pipeline', async () => {
    const made = await json<Pipeline>(
      'pipelines',
      'create',
      'lossy',
      config,
      '--cpu-pin',
      '0',
      '--restart-policy',
      'on-failure:3',
    )
    expect(made).toMatchObject({
      name: 'lossy',
      started: false,
      cpuPin: 0,
      restartPolicy: { onFailure: { maxRestarts: 3 } },
    })
    const { runId } = await json<{ runId: string }>('pipelines', 'start', 'lossy')
    expect((await call('pipelines', 'list')).stdout).toMatch(/lossy +running +/)

    const telemetry = await call('pipelines', 'telemetry', 'lossy', 'sink', '--count', '2')
    expect(telemetry.code).toBe(0)
    expect(telemetry.stdout.match(/COMPONENT +METRIC/g)).toHaveLength(2)
    expect(telemetry.stdout).toMatch(/input_packets +[\d,]+ +packets +[\d.]+( k)?\/s/)
    const late = await holding(6)
    const two = ['pipelines', 'telemetry', 'lossy', '--count', '2', '-o', 'json']
    const shown = await penstock(two, { env: { PENSTOCK_URL: late.url } })
    late.close()
    expect(shown).toMatchObject({ code: 0, stderr: '' })
    expect(shown.stdout.trim().split('\n')).toHaveLength(2)
    const seldom = [
      'telemetry',
      'lossy',
      '--interval',
      '250ms',
      '--metric',
      'input_bytes',
      '--count',
      '3',
      '-o',
      'json',
    ]
    const samples = (await call('pipelines', ...seldom)).stdout.trim().split('\n')
    const read = samples.map((line) => JSON.parse(line) as { timestamp: string; metrics: object })
    expect(Object.keys(read[0]?.metrics ?? {}).sort()).toEqual(['loss', 'sink'])
    // The node samples every 100 ms.
    const times = read.map(({ timestamp }) => Date.parse(timestamp))
    expect((times[2] as number) - (times[1] as number)).toBeGreaterThan(250)

    const placed = await json<Pipeline>('pipelines', 'set', made.id, 'loss.loss_prob=0.4')
    expect(JSON.parse(placed.jsonConfig).engine_config.pipeline.loss.uniform_loss.loss_prob).toBe(0.4)
    expect(placed.currentRun?.id).toBe(runId)
    expect((await call('pipelines', 'set', made.id, 'loss.los_prob=0.4')).stderr).toContain('unknown field "los_prob"')
    const changed = await json<Pipeline>('pipelines', 'set', made.id, 'loss=0.5')
    expect(JSON.parse(changed.jsonConfig).engine_config.pipeline.loss.uniform_loss.loss_prob).toBe(0.5)
    expect(changed.currentRun?.id).toBe(runId)
    expect(changed.cpuPin).toBe(0)

    const renamed = await json<Pipeline>(
      'pipelines',
      'update',
      'lossy',
      '--name',
      'worse',
      '--cpu-pin',
      'none',
      '--force-restart',
    )
    expect(renamed).toMatchObject({ name: 'worse', restartPolicy: { onFailure: { maxRestarts: 3 } } })
    expect(renamed.cpuPin).toBeUndefined()
    const run = renamed.currentRun?.id as string

    const soFar = await call('pipelines', 'logs', 'worse', '--no-follow')
    expect(soFar).toMatchObject({ code: 0, stdout: expect.stringMatching(/ running( .*)?\n/) })
    const follower = call('pipelines', 'logs', '--run', run)
    await json('pipelines', 'stop', 'worse')
    const log = await follower
    expect(log.code).toBe(0)
    expect(log.stdout).toMatch(/ended: STOPPED\n$/)
    // A log of a run that is over is shown, then the command ends.
    expect((await call('pipelines', 'logs', '--run', run)).stdout).toBe(log.stdout)

    expect((await call('pipelines', 'delete', 'worse')).stdout).toBe(`deleted ${made.id}\n`)
    expect(await json('pipelines', 'list')).toEqual([])
  })

  it('shows what the restart policy does', async () => {
    const once = {
      source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const file = directory.file('once.json', { engine_config: { pipeline: once } })
    await json('pipelines', 'create', 'again', file, '--restart-policy', 'always:5')
    await json('pipelines', 'start', 'again')
    let shown = ''
    while (!/restarts +[0-4] of at most 5 in a row, the next at \d{4}-/.test(shown)) {
      shown = (await call('pipelines', 'show', 'again')).stdout
    }
    expect(shown).toMatch(/state +ended \(completed\), starts again/)
    await json('pipelines', 'delete', 'again', '--force')
  })

  it('asks before it deletes a pipeline that is started', { timeout: 120_000 }, async () => {
    const { id: pipeline } = await json<Pipeline>('pipelines', 'create', 'busy', config)
    await json('pipelines', 'start', 'busy')
    // Nobody to ask.
    const refused = await call('pipelines', 'delete', 'busy')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(`pipeline "busy" (${pipeline}) is started: --force stops its run and deletes it`)
    for (const [typed, isGone] of [
      ['\r', false],
      [KEYS.interrupt, false],
      ['y\r', true],
    ] as const) {
      const terminal = new PseudoTerminal(['pipelines', 'delete', 'busy'], { PENSTOCK_URL: url })
      await terminal.see(/stop its run and delete it\? \[y\/N\] /)
      terminal.type(typed)
      await terminal.see(isGone ? new RegExp(`deleted ${pipeline}`) : /not deleted/)
      expect([typed, await terminal.code()]).toEqual([typed, isGone ? 0 : 1])
      const answer = await fetch(`${url}/v1/nodes/${id}/pipelines/${pipeline}`)
      expect([typed, answer.status]).toEqual([typed, isGone ? 404 : 200])
    }
    const second = await json<Pipeline>('pipelines', 'create', 'busy', config)
    await json('pipelines', 'start', 'busy')
    expect(await json('pipelines', 'delete', 'busy', '--force')).toEqual({ id: second.id })
  })

  it('watches pipelines until Ctrl-C', async () => {
    const watcher = start(['pipelines', 'list', '--watch', '-o', 'json'], { PENSTOCK_URL: url })
    const lines = createInterface({ input: watcher.stdout! })[Symbol.asyncIterator]()
    const next = async () => JSON.parse((await lines.next()).value as string)
    expect(await next()).toEqual([])
    const made = await json<Pipeline>('pipelines', 'create', 'watched', config)
    expect((await next()).create.pipeline).toMatchObject({ id: made.id, name: 'watched' })
    await json('pipelines', 'delete', made.id)
    expect((await next()).delete.pipeline.id).toBe(made.id)
    const gone = once(watcher, 'exit')
    watcher.kill('SIGINT')
    expect(await gone).toEqual([0, null])
  })

  it('tells the places in the file of what the node refuses, and what is not in it', async () => {
    const bad = directory.file(
      'places.json',
      '{"engine_config": {"pipeline": {\n  "a": {"uniform_loss": {"loss_prob": 7}}}}}',
    )
    const place = `\n${bad}:2:26: /engine_config/pipeline/a/uniform_loss/loss_prob: `
    const created = await call('pipelines', 'create', '', bad)
    expect({ code: created.code, stdout: created.stdout }).toEqual({ code: 1, stdout: '' })
    expect(created.stderr).toContain(place)
    expect(created.stderr).toMatch(/^\/name: a pipeline needs a name$/m)
    const { id } = await json<Pipeline>('pipelines', 'create', 'good', config)
    const updated = await call('pipelines', 'update', id, bad)
    expect(updated.code).toBe(1)
    expect(updated.stderr).toContain(place)
    await json('pipelines', 'delete', id)
  })

  it('checks a configuration on the node, and says what an update would ask of the run', async () => {
    const bad = directory.file(
      'wrong.json',
      '{"engine_config": {"pipeline": {\n  "a": {"uniform_loss": {"loss_prob": 7}}}}}',
    )
    expect(await call('pipelines', 'validate', config)).toMatchObject({ code: 0, stdout: `valid: ${config}\n` })
    const refused = await call('pipelines', 'validate', bad)
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain(`${bad}:2:26: /engine_config/pipeline/a/uniform_loss/loss_prob: `)
    expect(JSON.parse((await call('pipelines', 'validate', bad, '-o', 'json')).stdout)).toMatchObject({ valid: false })
    expect(await json<Pipeline[]>('pipelines', 'list')).toEqual([])

    const { id } = await json<Pipeline>('pipelines', 'create', 'dry', config)
    const worse = structuredClone(lossy)
    worse.engine_config.pipeline.loss.uniform_loss.loss_prob = 0.5
    const other = directory.file('worse.json', worse)
    const dry = (...args: string[]) => call('pipelines', 'update', 'dry', other, '--dry-run', ...args)
    const at = '/engine_config/pipeline/loss/uniform_loss/loss_prob'
    expect((await dry()).stdout).toMatch(new RegExp(`next run +${at} *\\n\\nno run is on`))
    await json('pipelines', 'start', 'dry')
    expect((await dry()).stdout).toMatch(new RegExp(`live +${at} +the component takes it over`))
    expect((await dry('--performance-mode')).stdout).toMatch(
      /restart +\/performanceMode .*--force-restart replaces it/s,
    )
    expect(JSON.parse((await dry('-o', 'json')).stdout)).toEqual({
      running: true,
      live: [{ pointer: at, reason: 'LIVE', message: 'the component takes it over while it runs' }],
      restart: [],
    })
    const seeded = structuredClone(lossy)
    Object.assign(seeded.engine_config.pipeline.loss.uniform_loss, { seed: 8 })
    const reseeded = directory.file('seeded.json', seeded)
    const told = await call('pipelines', 'update', 'dry', reseeded)
    expect(told.code).toBe(1)
    expect(told.stderr).toContain('pipeline "dry" is running and its run cannot take all of it over: --force-restart')
    expect(told.stderr).toMatch(
      /seeded\.json:\d+:\d+: \/engine_config\/pipeline\/loss\/uniform_loss\/seed: a change needs/,
    )
    const kept = await json<Pipeline>('pipelines', 'get', 'dry')
    expect(JSON.parse(kept.jsonConfig)).toEqual(lossy)
    expect((await call('pipelines', 'update', 'dry', bad, '--dry-run')).stderr).toContain(`${bad}:2:26: `)
    await json('pipelines', 'delete', id, '--force')
  })

  it('says what is wrong on stderr and exits 1', async () => {
    const bad = directory.file('bad.json', { engine_config: { pipeline: { a: { uniform_loss: { loss_prob: 7 } } } } })
    const refused = await call('pipelines', 'create', 'bad', bad)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('/engine_config/pipeline/a/uniform_loss/loss_prob')
    expect((await call('pipelines', 'get', 'none')).stderr).toContain('no pipeline has the id or name "none"')
    expect((await call('pipelines', 'list', '--node', 'elsewhere')).code).toBe(1)
    const created = await json<Pipeline>('pipelines', 'create', 'idle', config)
    expect((await call('pipelines', 'stop', 'idle')).code).toBe(1)
    expect((await call('pipelines', 'logs', 'idle')).stderr).toContain('has no run now')
    expect((await call('pipelines', 'set', 'idle', 'los=1')).stderr).toContain('Did you mean "loss"?')
    await json('pipelines', 'delete', created.id)
  })

  it('names all variables that set the same place', async () => {
    const paths = lossy.variables[0]?.paths ?? []
    const variables = [
      { id: 'first', paths },
      { id: 'second', paths: [...paths, '/engine_config/pipeline/source/uniform_traffic_source/interval'] },
    ]
    const shared = { ...structuredClone(lossy), variables }
    const created = await json<Pipeline>('pipelines', 'create', 'shared', directory.file('shared.json', shared))
    const told = async (...args: string[]) => (await call('pipelines', ...args)).stderr
    expect(await told('set', 'shared', 'first=abc')).toContain(
      'loss_prob: variables "first", "second": must be a number',
    )
    expect(await told('set', 'shared', 'second=abc')).toContain('interval: variable "second": must be ')
    shared.engine_config.pipeline.loss.uniform_loss.loss_prob = 7
    const wrong = directory.file('shared-wrong.json', shared)
    expect(await told('update', 'shared', wrong)).toContain('loss_prob: variables "first", "second": 7 is above')
    await json('pipelines', 'delete', created.id)
  })

  it('tells where no node answers', async () => {
    const { code, stderr } = await penstock(['status', '--url', 'http://127.0.0.1:9'])
    expect(code).toBe(1)
    expect(stderr).toContain('no penstock node answers at http://127.0.0.1:9')
    expect(stderr).toContain('penstock up')
  })

  it('goes down at SIGTERM with runs in progress, and comes back with its pipelines and its id', async () => {
    const before = id
    await json('pipelines', 'create', 'kept', config)
    await json('pipelines', 'start', 'kept')
    expect(await down()).toBe(0)
    await up()
    expect(id).toBe(before)
    expect(await json<Pipeline[]>('pipelines', 'list')).toMatchObject([{ name: 'kept', started: false }])
  })

  it('stays up without listeners, until SIGTERM', async () => {
    const quiet = start(['up', '--data-dir', `${directory.path}/quiet`, '--http', 'none', '--grpc', 'none'])
    await lineOf(quiet, /^penstock ready http=none grpc=none/)
    const gone = once(quiet, 'exit')
    // One that has nothing to wait for ends within some milliseconds.
    const waited = new Promise((resolve) => setTimeout(() => resolve('still up'), 500))
    expect(await Promise.race([gone, waited])).toBe('still up')
    quiet.kill('SIGTERM')
    expect(await gone).toEqual([0, null])
  })

  it('refuses to share its data directory', async () => {
    const args = ['up', '--data-dir', `${directory.path}/data`, '--http', 'none', '--grpc', 'none']
    const { code, stderr } = await penstock(args)
    expect(code).toBe(1)
    expect(stderr).toContain('the node did not start')
  })
})

describe('demo', () => {
  it('recovers what is lost on the way, over real sockets', async () => {
    const { code, stdout, stderr } = await penstock(['demo', '--duration', '2s', '--rate', '2000', '-o', 'json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { sent, lost, recovered, delivered, corrupt } = JSON.parse(stdout)
    expect(sent).toBeGreaterThan(0)
    expect(lost).toBeGreaterThan(0)
    expect(recovered).toBeGreaterThan(0)
    expect(delivered).toBeLessThanOrEqual(sent)
    // Without error correction one in ten is lost; a (10, 4) code leaves less than one in a hundred.
    expect(delivered).toBeGreaterThan(sent * 0.95)
    expect(corrupt).toBe(0)
  })

  it('shows a table that fits a terminal of 80 columns', async () => {
    const { stdout } = await penstock(['demo', '--duration', '1500ms'])
    const [, table = ''] = stdout.split('\n\n')
    const [titles, ...rows] = table.split('\n')
    expect(titles).toMatch(/^ +time +sent +lost \(emulated\) +recovered +beyond repair +delivered +in all$/)
    expect(rows.length).toBeGreaterThan(0)
    for (const row of rows) expect(row).toMatch(/^ +[\d.]+ s( +[\d,]+){5} +[\d.]+ %$/)
    expect(Math.max(...table.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  })

  it('killed, leaves no node behind', async () => {
    const demo = start(['demo', '--duration', '60s'])
    const [, url] = await lineOf(demo, /^node \S+ is up: REST (http\S+), /)
    const answers = () =>
      fetch(`${url}/v1/node`).then(
        () => true,
        () => false,
      )
    expect(await answers()).toBe(true)
    demo.kill('SIGKILL')
    await until(async () => !(await answers()), 'its node has ended too')
  })

  it.each([
    ['demo', 'SIGINT', 130],
    ['demo-operate', 'SIGHUP', 129],
    ['demo-hub', 'SIGTERM', 143],
  ] as const)('%s ends at %s before its nodes are up, with %i', async (name, signal, code) => {
    const { stderr, ...ended } = await interrupted([name], signal)
    expect(ended).toMatchObject({ code, signal: null })
    expect(stderr).toContain('interrupted')
  })
})

it('a node is up until its standard input ends, where that is asked for', async () => {
  const listeners = ['--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error']
  const child = start(['up', '--until-stdin-ends', '--data-dir', `${directory.path}/until`, ...listeners])
  await lineOf(child, /^penstock ready /)
  expect(child.exitCode).toBe(null)
  child.stdin!.end()
  expect(await once(child, 'exit')).toEqual([0, null])
})
