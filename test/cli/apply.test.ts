/** `penstock pipelines apply` and `export` against a node: what files ask for is there, once, whatever happens on the way. */
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { lossy, scratch, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'
import { CommandNode } from './running-node.ts'
import '../harness/slow.ts'

const directory = scratch()
let node: CommandNode

interface Pipeline {
  id: string
  name: string
  started: boolean
  jsonConfig: string
  cpuPin?: number
  currentRun?: { id: string }
}

interface Applied {
  node: string
  dryRun: boolean
  pipelines: {
    name: string
    id: string
    result: string
    started: boolean
    runId?: string
    error?: string
    problems?: object[]
    changes?: { live: object[]; restart: object[] }
  }[]
}

/** The configuration of `lossy` with another loss. */
function losing(loss: number): typeof lossy {
  const config = structuredClone(lossy)
  config.engine_config.pipeline.loss.uniform_loss.loss_prob = loss
  return config
}

const pipelines = () => node.json<Pipeline[]>('pipelines', 'list')
const yaml = (name: string, ...documents: object[]) =>
  directory.file(name, documents.map((each) => `---\n${stringify(each)}`).join(''))
const apply = (...args: string[]) => node.call(['pipelines', 'apply', ...args])
const applied = (...args: string[]) => node.json<Applied>('pipelines', 'apply', ...args)
const idOf = (all: Pipeline[], wanted: string) => all.find(({ name }) => name === wanted)?.id
const results = ({ pipelines }: Applied) => pipelines.map(({ name, result }) => `${result} ${name}`)

beforeAll(async () => {
  node = await CommandNode.up(`${directory.path}/data`)
})
afterEach(async () => {
  for (const { id } of await pipelines()) await node.json('pipelines', 'delete', id, '--force')
})
afterAll(async () => {
  await node?.end()
  directory.dispose()
})

describe('apply', () => {
  it('creates, leaves alone, updates live, and starts what several documents hold', async () => {
    const a = { name: 'a', config: losing(0.1), restartPolicy: 'on-failure:3', cpuPin: 0, performanceMode: false }
    const others = { $schema: 'https://example.org/any.json', pipelines: [{ name: 'b', config: losing(0.2) }] }
    const file = yaml('several.yaml', a, others)
    const planned = await apply(file, '--dry-run', '--start')
    expect(planned).toMatchObject({ code: 0, stderr: '' })
    expect(planned.stdout).toMatch(/^create +a\ncreate +b\nstart +a\nstart +b\ndry run: nothing was changed\n$/)
    expect(await pipelines()).toEqual([])

    const first = await apply(file)
    expect(first.stdout).toMatch(/^created +a {2}[0-9a-f-]{36}\ncreated +b {2}[0-9a-f-]{36}\n$/)
    expect(await node.json('pipelines', 'get', 'a')).toMatchObject({
      cpuPin: 0,
      restartPolicy: { onFailure: { maxRestarts: 3 } },
      started: false,
    })
    expect(results(await applied(file))).toEqual(['unchanged a', 'unchanged b'])
    const started = await applied(file, '--start')
    expect(started.pipelines.map(({ started, runId }) => [started, typeof runId])).toEqual([
      [true, 'string'],
      [true, 'string'],
    ])
    expect(results(started)).toEqual(['unchanged a', 'unchanged b'])

    // The run takes a loss over, not another CPU.
    const changed = yaml('changed.yaml', { ...a, config: losing(0.3) }, others)
    expect((await apply(changed, '--dry-run')).stdout).toMatch(
      /^update +a {2}\S+\n +live {2}\/engine_config\/pipeline\/loss\/uniform_loss\/loss_prob: .*\nunchanged +b .*\ndry run/,
    )
    expect(results(await applied(changed))).toEqual(['updated a', 'unchanged b'])
    const [run] = (await pipelines()).map(({ currentRun }) => currentRun?.id)
    const pinned = yaml('pinned.yaml', { ...a, config: losing(0.3), performanceMode: true }, others)
    for (const flags of [['--dry-run'], []]) {
      const refused = await apply(pinned, ...flags)
      expect(refused.code).toBe(2)
      expect(refused.stderr).toContain('"a" is refused: its run cannot take over /performanceMode: --force-restart')
      expect(refused.stdout).toContain('unchanged  b')
    }
    expect((await pipelines()).map(({ currentRun }) => currentRun?.id)).toContain(run)
    expect(results(await applied(pinned, '--force-restart'))).toEqual(['updated a', 'unchanged b'])
    expect((await node.json<Pipeline>('pipelines', 'get', 'a')).currentRun?.id).not.toBe(started.pipelines[0]?.runId)
  })

  it('does what can be done, says where the rest is wrong, and exits 2', async () => {
    const file = directory.file(
      'wrong.yaml',
      stringify({
        pipelines: [
          { name: 'good', config: losing(0.1) },
          { name: 'bad', config: losing(7) },
          { name: 'pinned', cpuPin: 4000, config: losing(0.2) },
        ],
      }),
    )
    await node.json('pipelines', 'create', 'spare', directory.file('lossy.json', lossy))
    const lines = readFileSync(file, 'utf8').split('\n')
    const at = (text: string) => `${file}:${lines.findIndex((line) => line.includes(text)) + 1}:`
    for (const flags of [['--dry-run'], ['--prune', '--yes'], ['--start']]) {
      const { code, stdout, stderr } = await apply(file, ...flags)
      expect(code).toBe(2)
      expect(stdout).toMatch(/(create|unchanged)d? +good/)
      expect(stderr).toContain('"bad" is refused:')
      expect(stderr).toContain(`${at('loss_prob: 7')}`)
      expect(stderr).toContain(': /pipelines/1/config/engine_config/pipeline/loss/uniform_loss/loss_prob: ')
      expect(stderr).toContain(`${at('cpuPin: 4000')}5: /pipelines/2/cpuPin: `)
    }
    // What was refused keeps all others from being deleted.
    expect((await pipelines()).map(({ name }) => name).sort()).toEqual(['good', 'spare'])
    const { stdout, code } = await node.call(['pipelines', 'apply', file, '-o', 'json'])
    expect(code).toBe(2)
    expect(JSON.parse(stdout).pipelines[1]).toMatchObject({
      name: 'bad',
      result: 'refused',
      problems: [{ pointer: '/pipelines/1/config/engine_config/pipeline/loss/uniform_loss/loss_prob' }],
    })
  })

  it.each([
    ['no.yaml', 'pipelines: [', /no\.yaml:1:\d+: /],
    ['tag.yaml', 'name: !secret a\nconfig: {}\n', /tag\.yaml:1:7: .*tag/],
    ['inf.yaml', 'name: a\nconfig: {x: .inf}\n', /inf\.yaml:2:10: \/config\/x: Infinity is no number/],
    [
      'circle.yaml',
      'name: a\nconfig: &c\n  engine_config:\n    again: *c\n',
      /circle\.yaml:4:5: \/config\/engine_config\/again: the alias leads back/,
    ],
    ['alias.yaml', 'name: &a a\nconfig: {x: *a, y: *b}\n', /alias\.yaml:2:20: .*alias.*: b/],
    [
      'deep.yaml',
      `name: a\nconfig: ${'['.repeat(3000)}${']'.repeat(3000)}\n`,
      /deep\.yaml:\d+:\d+: .*nested too deeply/,
    ],
    ['key.yaml', 'name: a\nconfig: {}\nrestartpolicy: never\n', /key\.yaml:3:1: \/restartpolicy: .*"restartPolicy"/],
    ['policy.yaml', 'name: a\nconfig: {}\nrestartPolicy: often\n', /policy\.yaml:3:1: .*Expected never, always/],
    [
      'object.yaml',
      'name: a\nconfig: {}\nrestartPolicy: { always: {} }\n',
      /object\.yaml:3:1: .*Expected never, always/,
    ],
    ['bare.yaml', 'version: 1\nengine_config: {pipeline: {}}\n', /bare\.yaml:1:1: .*put it below config/],
    ['nameless.yaml', 'config: {}\n', /nameless\.yaml:1:1: \/name: a pipeline needs a name/],
    ['twice.yaml', 'name: a\nconfig: {}\n---\nname: a\nconfig: {}\n', /twice\.yaml:4:1: .*twice\.yaml:1:1/],
    ['blank.json', ' '.repeat(1_000_000), /blank\.json:1:1000001: \/: malformed JSON .*: the text holds nothing/],
    ['twice.json', '{"name": "a", "name": "b", "config": {}}', /twice\.json:1:\d+: \/name: .*given twice/],
    ['list.yaml', '- a\n', /list\.yaml:1:1: .*name and config/],
    ['empty.yaml', '# nothing\n', /hold no pipeline/],
  ])('%s: changes nothing and says where it is wrong', async (name, text, told) => {
    const good = yaml('a-good.yaml', { name: 'good', config: lossy })
    const { code, stdout, stderr } = await apply(good, directory.file(name, text)).then((result) =>
      name === 'empty.yaml' ? apply(join(directory.path, name)) : result,
    )
    expect({ code, stdout: name === 'empty.yaml' ? '' : stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(told)
    if (name !== 'empty.yaml') expect(await pipelines()).toEqual([])
  })

  it('says of each pipeline without a name that it needs one, and of none that another has its name', async () => {
    const file = directory.file(
      'nameless.yaml',
      stringify({ pipelines: [{ config: lossy }, { config: lossy }, lossy, lossy] }),
    )
    const { code, stderr } = await apply(file)
    expect(code).toBe(1)
    expect(stderr).toContain('4 problems; nothing was changed')
    expect(stderr).not.toContain('is the name of the pipeline at')
  })

  it('takes directories and standard input', async () => {
    const files = join(directory.path, 'files')
    mkdirSync(files)
    expect((await apply(files)).stderr).toContain('holds no *.yaml')
    writeFileSync(join(files, 'b.yml'), stringify({ name: 'b', config: lossy }))
    writeFileSync(join(files, 'a.json'), JSON.stringify({ name: 'a', config: lossy }))
    writeFileSync(join(files, 'notes.txt'), 'no pipeline')
    expect(results(await applied(files))).toEqual(['created a', 'created b'])
    const { stdout } = await node.call(['pipelines', 'apply', '-'], {
      input: stringify({ name: 'c', config: lossy }),
    })
    expect(stdout).toMatch(/^created +c /)
  })

  it('deletes the others only when that was confirmed', async () => {
    const file = yaml('kept.yaml', { name: 'kept', config: lossy })
    await applied(yaml('old.yaml', { name: 'old', config: lossy }), '--start')
    const [old] = await pipelines()
    expect((await apply(file, '--prune', '--dry-run')).stdout).toMatch(/create +kept\ndelete +old/)
    const refused = await apply(file, '--prune')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain(`"old" ${old?.id}, started`)
    expect(refused.stderr).toContain('--yes')
    const terminal = new PseudoTerminal(['pipelines', 'apply', file, '--prune'], { PENSTOCK_URL: node.url })
    await terminal.see(/delete them, whoever made them\? \[y\/N\] /)
    terminal.type(KEYS.interrupt)
    expect(await terminal.code()).toBe(1)
    expect((await pipelines()).map(({ name }) => name)).toEqual(['old'])
    expect(results(await applied(file, '--prune', '--yes'))).toEqual(['created kept', 'deleted old'])
    expect(results(await applied(file, '--prune'))).toEqual(['unchanged kept'])
  })

  it('goes on when nobody reads what it says', async () => {
    const many = yaml('many.yaml', { pipelines: [1, 2, 3, 4].map((n) => ({ name: `p${n}`, config: lossy })) })
    const child = start(['pipelines', 'apply', many], { PENSTOCK_URL: node.url })
    child.stdout!.destroy()
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(await pipelines()).toHaveLength(4)
  })

  it('leaves one pipeline of a name where two apply the same file at once', async () => {
    const file = yaml('both.yaml', { pipelines: [1, 2, 3].map((n) => ({ name: `p${n}`, config: lossy })) })
    const [one, other] = await Promise.all([applied(file, '--start'), applied(file, '--start')])
    const left = await pipelines()
    expect(left.map(({ name }) => name).sort()).toEqual(['p1', 'p2', 'p3'])
    for (const told of [one, other]) {
      expect(told.pipelines.map(({ id }) => id)).toEqual(['p1', 'p2', 'p3'].map((n) => idOf(left, n)))
      for (const { started, runId } of told.pipelines) expect(started).toBe(runId !== undefined)
    }
    const runs = [one, other].flatMap((told) => told.pipelines.flatMap(({ runId }) => runId ?? []))
    expect(runs.sort()).toEqual(left.map(({ currentRun }) => currentRun?.id).sort())
  })

  it.each([[[]], [['--start']]])(
    'says which is left where another did the same before it created one, %j',
    async (flags) => {
      const file = yaml('late.yaml', { pipelines: [1, 2].map((n) => ({ name: `p${n}`, config: lossy })) })
      let first = ''
      const late = await withWait('POST', async () => {
        first ||= (await apply(file, ...flags)).stdout
      })
      const second = await node.call(['pipelines', 'apply', file, ...flags], { env: { PENSTOCK_URL: late.url } })
      late.close()
      const left = await pipelines()
      expect(left).toHaveLength(2)
      const lines = (what: string) => ['p1', 'p2'].map((n) => `${what}  ${n}  ${idOf(left, n)}\n`).join('')
      const started = left.map(({ name, currentRun }) => `started    ${name}  ${currentRun?.id}\n`).join('')
      expect(first).toBe(lines('created  ') + (flags.length > 0 ? started : ''))
      expect(second).toMatchObject({ code: 0, stdout: lines('unchanged'), stderr: '' })
    },
  )
})

describe('export', () => {
  it('writes what apply takes back without a change, in YAML and JSON', async () => {
    const odd = losing(0.5) as typeof lossy & { meta?: object }
    odd.meta = { component_display_order: { source: 2, sink: 1 } }
    await applied(
      yaml(
        'odd.yaml',
        {
          name: 'yes',
          config: odd,
          cpuPin: 0,
          restartPolicy: 'always:2',
          startupPolicy: 'auto',
          instructionsTimeout: '1m',
        },
        { name: '- a: "b" #\u00e9\n', config: lossy, defaultLoggingLevel: 'DEBUG', performanceMode: true },
      ),
    )
    await node.json(
      'pipelines',
      'create',
      'made by hand',
      directory.file('lossy.json', lossy),
      '--node-reference',
      'n1',
    )
    for (const name of ['out.yaml', 'out.json']) {
      const file = join(directory.path, name)
      expect(await node.call(['pipelines', 'export', '--all', '-o', file])).toMatchObject({
        code: 0,
        stdout: '',
        stderr: '',
      })
      // Configurations hold keys.
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect((await applied(file, '--prune')).pipelines.map(({ result }) => result)).toEqual(Array(3).fill('unchanged'))
    }
    const { stdout } = await node.call(['pipelines', 'export', 'yes', 'made by hand'])
    expect(stdout).toMatch(/^pipelines:\n {2}- name: "yes"\n {4}restartPolicy: always:2\n/)
    expect((await node.call(['pipelines', 'apply', '-', '--dry-run'], { input: stdout })).stdout).toMatch(
      /^unchanged +yes .*\nunchanged +made by hand .*\ndry run/,
    )
    const { id } = await node.json<Pipeline>('pipelines', 'get', 'yes')
    const twice = await node.call(['pipelines', 'export', 'yes', id, 'made by hand', 'yes', '--json'])
    expect(JSON.parse(twice.stdout).pipelines.map(({ name }: Pipeline) => name)).toEqual(['yes', 'made by hand'])
    for (const args of [[], ['--all', 'yes'], ['yes', '-o', 'json']]) {
      expect(await node.call(['pipelines', 'export', ...args])).toMatchObject({ code: 2, stdout: '' })
    }
    await node.json('pipelines', 'create', 'yes', directory.file('lossy.json', lossy), '--force')
    expect((await node.call(['pipelines', 'export', '--all'])).stderr).toContain('rename one')
  })
})

/** Stands between a command and the node; what has this method is sent on once `act` is done. */
async function withWait(method: string, act: () => Promise<void>): Promise<{ url: string; close: () => void }> {
  const server = createHttpServer(async (given, answer) => {
    const body = await buffer(given)
    if (given.method === method) await act()
    const { headers, url } = given
    // The node ends a connection that has waited for ten seconds, as long as `act` may take.
    const sent = request(node.url + url, { method: given.method, headers, agent: false }, (got) => {
      answer.writeHead(got.statusCode ?? 0, got.headers)
      got.pipe(answer)
    })
    sent.on('error', () => answer.destroy())
    sent.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** Where an apply is killed: before its k-th request is sent on, once the node has answered it, or after it has the answer. */
type Moment = 'unsent' | 'unanswered' | 'answered'

/** Stands between a command and the node; each request of a command is a connection. `reached` is told of each moment. */
async function between(
  reached: (request: number, moment: Moment) => boolean,
): Promise<{ url: string; close: () => void }> {
  const target = Number(new URL(node.url).port)
  const open = new Set<Socket>()
  let requests = 0
  const server = createServer((client) => {
    const request = ++requests
    open.add(client)
    client.on('error', () => {})
    if (reached(request, 'unsent')) return
    const upstream = connect(target, '127.0.0.1')
    open.add(upstream)
    upstream.on('error', () => {})
    client.pipe(upstream)
    upstream.once('data', (first) => {
      if (reached(request, 'unanswered')) return
      client.write(first)
      upstream.pipe(client)
    })
    client.on('close', () => {
      reached(request, 'answered')
      upstream.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

/** Numbers from 0 to below 1 (mulberry32), the same for the same seed. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** What counts of a state: names, settings, who is started. */
const shape = (all: Pipeline[]) =>
  all
    .map(({ name, started, jsonConfig, cpuPin }) => JSON.stringify([name, started, JSON.parse(jsonConfig), cpuPin]))
    .sort()

it('ends as an apply does that was not interrupted, wherever kill -9 meets it', { timeout: 600_000 }, async () => {
  const seed = Number(process.env.PENSTOCK_TEST_SEED ?? Date.now() % 1_000_000)
  const random = seeded(seed)
  const before = yaml('before.yaml', {
    pipelines: [
      { name: 'changes', config: losing(0.1) },
      { name: 'restarts', config: losing(0.1) },
      { name: 'stays', config: losing(0.1) },
      { name: 'goes', config: losing(0.1) },
    ],
  })
  const after = yaml('after.yaml', {
    pipelines: [
      { name: 'changes', config: losing(0.2) },
      { name: 'restarts', config: losing(0.1), performanceMode: false, cpuPin: 0 },
      { name: 'stays', config: losing(0.1) },
      { name: 'comes', config: losing(0.3) },
    ],
  })
  const flags = [after, '--start', '--prune', '--yes', '--force-restart']
  const reset = async () => {
    for (const { id } of await pipelines()) await node.json('pipelines', 'delete', id, '--force')
    await applied(before)
    await node.json('pipelines', 'start', 'restarts')
  }
  await reset()
  let requests = 0
  const counting = await between((request) => {
    requests = request
    return false
  })
  const whole = await node.call(['pipelines', 'apply', ...flags], { env: { PENSTOCK_URL: counting.url } })
  counting.close()
  expect(whole).toMatchObject({ code: 0, stderr: '' })
  const wanted = shape(await pipelines())
  expect(wanted).toHaveLength(4)

  const moments = Array.from({ length: requests }, (_, i) => i + 1).flatMap((request) =>
    (['unsent', 'unanswered', 'answered'] as const).map((moment) => ({ request, moment, order: random() })),
  )
  // After the last answer it is done.
  moments.pop()
  moments.sort((a, b) => a.order - b.order)
  const rounds = Number(process.env.PENSTOCK_TEST_ROUNDS ?? 6)
  for (const { request, moment } of moments.slice(0, rounds)) {
    await reset()
    const child = { kill: () => {} }
    const way = await between((reached, what) => {
      if (reached !== request || what !== moment) return false
      child.kill()
      return true
    })
    const cut = await node.call(['pipelines', 'apply', ...flags], {
      env: { PENSTOCK_URL: way.url },
      onStart: (started) => {
        child.kill = () => started.kill('SIGKILL')
      },
    })
    way.close()
    const where = { seed, request, moment }
    expect({ ...where, code: cut.code, signal: cut.signal }).toEqual({ ...where, code: null, signal: 'SIGKILL' })
    const again = await node.call(['pipelines', 'apply', ...flags])
    expect({ ...where, code: again.code, stderr: again.stderr }).toEqual({ ...where, code: 0, stderr: '' })
    expect({ ...where, state: shape(await pipelines()) }).toEqual({ ...where, state: wanted })
  }
})
