/** Metrics in shared memory, read by programs of other languages while the run is on and after it. */
import { execFile, spawnSync } from 'node:child_process'
import fs, {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { type RunningNode, runNode, temporaryDirectory } from './running-node.ts'

const run = promisify(execFile)
const example = join(packageRoot(), 'examples/shared-memory')
const directory = temporaryDirectory()
const reader = join(directory, 'reader')
const file = join(directory, 'files', 'metrics.shm')
let node: RunningNode
beforeAll(async () => {
  node = await runNode(directory)
  await run('cc', ['-O2', '-Wall', '-Wextra', '-Werror', '-o', reader, join(example, 'reader.c')])
})
afterAll(() => node.node.close())

const config = (shm_config: unknown) => ({
  ...JSON.parse(readFileSync(join(example, 'pipeline.json'), 'utf8')),
  engine_config: { ...JSON.parse(readFileSync(join(example, 'pipeline.json'), 'utf8')).engine_config, shm_config },
})
const create = (jsonConfig: string) => node.call('POST', '/pipelines', { name: 'test', jsonConfig })

const programs: [string, string, string[]][] = [
  ['C', reader, [file]],
  ['Python', 'python3', [join(example, 'reader.py'), file]],
]
/** What a reader prints: the state, and the values by component and metric. */
async function readBy([, command, args]: (typeof programs)[number]) {
  const { stdout } = await run(command, args)
  const [first = '', ...lines] = stdout.trimEnd().split('\n')
  const values = new Map(
    lines.map((line) => {
      const [value, component, metric, kind, unit] = line.split('\t')
      return [`${component}/${metric}`, { value: Number(value), kind, unit }]
    }),
  )
  return { state: first.split(' ')[0], time: Number(first.split(' ')[2]), values }
}

test('readers in C and Python see the metrics of a run while it is on, and its last ones after it', async () => {
  const { body } = await create(readFileSync(join(example, 'pipeline.json'), 'utf8'))
  const { id } = body.pipeline
  const runId = await node.start(id)
  for (const program of programs) {
    await until(async () => ((await readBy(program)).values.get('sink/packets')?.value ?? 0) > 0, 'packets were read')
    const first = await readBy(program)
    expect(first).toMatchObject({ state: 'running' })
    expect(Math.abs(first.time - Date.now() / 1000)).toBeLessThan(60)
    expect(first.values.get('sink/packets')).toMatchObject({ kind: 'counter', unit: 'packets' })
    const before = first.values.get('sink/packets')?.value as number
    await until(async () => ((await readBy(program)).values.get('sink/packets')?.value ?? 0) > before, 'they rise')
  }
  await node.call('POST', `/pipelines/${id}/stop`)
  await node.when(id, ({ started }) => !started)
  await until(
    async () => (await readBy(programs[0] as (typeof programs)[number])).state === 'ended',
    'the file says so',
  )
  const sample = (await (await node.follow(`/pipeline-runs/${runId}/telemetry`)).next()) as {
    metricCollections: { path: string; metrics: Record<string, { uint64Value?: string; doubleValue?: number }> }[]
  }
  for (const program of programs) {
    const { state, values } = await readBy(program)
    expect(state).toBe('ended')
    for (const { path, metrics } of sample.metricCollections) {
      for (const [name, { uint64Value, doubleValue }] of Object.entries(metrics)) {
        const seen = values.get(`${path}/${name}`)
        if (seen !== undefined)
          expect([path, name, seen.value]).toEqual([path, name, Number(uint64Value ?? doubleValue)])
      }
    }
    expect(values.get('sink/packets')?.value).toBeGreaterThan(0)
  }
})

test('line ends in the name of a component, other than LF, end no line of the directory', async () => {
  const name = 'a\rb\u2028c\u0085d'
  const pipeline = {
    source: { uniform_traffic_source: { output: 'a', total_packets: 3, interval: 1 } },
    [name]: { observer: { input: 'a', output: 'b' } },
    sink: { traffic_sink: { input: 'b' } },
  }
  const shm_config = { file_path: 'metrics.shm', bytes: 65536, interval_ms: 10 }
  const { body } = await create(JSON.stringify({ engine_config: { pipeline, shm_config } }))
  await node.start(body.pipeline.id)
  await node.when(body.pipeline.id, ({ started }) => !started)
  for (const program of programs) {
    await until(async () => (await readBy(program)).state === 'ended', 'the file says so')
    const { values } = await readBy(program)
    expect([values.get(`${name}/input_packets`), values.get('sink/packets')]).toMatchObject([
      { value: 3 },
      { value: 3 },
    ])
  }
})

test('the next run has a file of its own: who holds the last one sees it as it was left', async () => {
  const { body } = await create(JSON.stringify(config({ file_path: 'again.shm', bytes: 65536, interval_ms: 10 })))
  const { id } = body.pipeline
  const path = join(directory, 'files', 'again.shm')
  const stateOf = (descriptor: number) => {
    const head = Buffer.alloc(64)
    readSync(descriptor, head, 0, 64, 0)
    return head.readUInt32LE(16)
  }
  await node.start(id)
  const held = openSync(path, 'r')
  await until(() => stateOf(held) === 1, 'the file says that the run is on')
  await node.call('POST', `/pipelines/${id}/stop`)
  await node.when(id, ({ started }) => !started)
  await until(() => stateOf(held) === 2, 'the file says that the run has ended')
  await node.start(id)
  const next = openSync(path, 'r')
  await until(() => stateOf(next) === 1, 'the next file says that the next run is on')
  expect(stateOf(held)).toBe(2)
  closeSync(held)
  closeSync(next)
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('a file that is too small is refused with the size that is needed, which is enough', async () => {
  const { status, body } = await create(JSON.stringify(config({ file_path: 'small.shm', bytes: 64, interval_ms: 10 })))
  expect(status).toBe(400)
  expect(body.message).toContain('/engine_config/shm_config/bytes: 64 bytes are too few')
  const bytes = Number(/which need (\d+)/.exec(body.message)?.[1])
  const less = await create(JSON.stringify(config({ file_path: 'small.shm', bytes: bytes - 1, interval_ms: 10 })))
  expect(less.status).toBe(400)
  const enough = await create(JSON.stringify(config({ file_path: 'small.shm', bytes, interval_ms: 10 })))
  expect(enough.status).toBe(200)
})

test('a start whose file cannot be made fails with the cause', async () => {
  mkdirSync(join(directory, 'files'), { recursive: true })
  writeFileSync(join(directory, 'files', 'plain'), '')
  const { body } = await create(
    JSON.stringify(config({ file_path: 'plain/metrics.shm', bytes: 65536, interval_ms: 10 })),
  )
  const answer = await node.call('POST', `/pipelines/${body.pipeline.id}/start`)
  expect(answer.status).not.toBe(200)
  expect(answer.body.message).toContain('its metrics cannot be shared')
  expect(existsSync(join(directory, 'files', 'plain', 'metrics.shm'))).toBe(false)
})

type Call = (...args: unknown[]) => unknown

/** Has `call` made in the place of `name`, a function of node:fs, where that is about the file at `path`; puts back what it was once the function returned is called. */
function replacing(name: 'close' | 'closeSync' | 'write', path: string, call: (before: Call) => Call): () => void {
  const before = fs[name] as Call
  const replace = (by: Call) => {
    Object.assign(fs, { [name]: by })
    syncBuiltinESMExports()
  }
  const instead = call(before)
  replace((...args) => (readlinkSync(`/proc/self/fd/${args[0]}`) === path ? instead : before)(...args))
  return () => replace(before)
}

/** Has every such call fail. */
function failing(name: 'close' | 'closeSync' | 'write', path: string): () => void {
  const error = Object.assign(new Error(`EDQUOT: disk quota exceeded, ${name}`), { code: 'EDQUOT' })
  return replacing(name, path, () => (...args) => {
    const answer = args.at(-1)
    if (typeof answer !== 'function') throw error
    setImmediate(() => answer(error))
  })
}

test('a file that takes no more values, or not even its end, is told of with its run, which goes on', async () => {
  const path = join(directory, 'files', 'full.shm')
  const { body } = await create(JSON.stringify(config({ file_path: 'full.shm', bytes: 65536, interval_ms: 10 })))
  const { id } = body.pipeline
  const runId = await node.start(id)
  const sequence = () => readFileSync(path).readUInt32LE(12)
  await until(() => sequence() > 0, 'the file is written')
  const told = () => node.logged.map((line) => JSON.parse(line)).filter((line) => line.file === path)
  const about = { level: 'error', pipeline: id, name: 'test', run: runId }
  const takeAgain = failing('write', path)
  try {
    await until(() => told().length > 0, 'the log has it')
  } finally {
    takeAgain()
  }
  expect(told()).toMatchObject([{ ...about, error: 'EDQUOT: disk quota exceeded, write' }])
  const before = sequence()
  await until(() => sequence() > before + 2, 'the file is written again')
  // A disk of another machine may say only then that it is full.
  const closeAgain = [failing('close', path), failing('closeSync', path)]
  try {
    await node.call('POST', `/pipelines/${id}/stop`)
    await node.when(id, ({ started }) => !started)
    await until(() => told().length > 1, 'the log has it')
  } finally {
    for (const put of closeAgain) put()
  }
  expect(told().slice(1)).toMatchObject([
    { ...about, error: expect.stringContaining('EDQUOT: disk quota exceeded, close') },
  ])
  expect(readFileSync(path).readUInt32LE(16)).toBe(2)
})

test('of values that the disk takes a part of the rest is written too', async () => {
  const path = join(directory, 'files', 'part.shm')
  const { body } = await create(JSON.stringify(config({ file_path: 'part.shm', bytes: 65536, interval_ms: 5 })))
  const { id } = body.pipeline
  // Eight bytes at most, as where pages of a disk are left.
  const wholeAgain = replacing('write', path, (before) => (descriptor, bytes, offset, length, ...rest) => {
    before(descriptor, bytes, offset, Math.min(length as number, 8), ...rest)
  })
  const program: (typeof programs)[number] = ['C', reader, [path]]
  try {
    await node.start(id)
    await until(async () => ((await readBy(program)).values.get('sink/packets')?.value ?? 0) > 0, 'packets were read')
    await node.call('POST', `/pipelines/${id}/stop`)
    await node.when(id, ({ started }) => !started)
    await until(async () => (await readBy(program)).state === 'ended', 'the file says so')
  } finally {
    wholeAgain()
  }
})

test('a file that is removed under its run, or has to make room for that of another one, is told of once, the end of a run before the next is not', async () => {
  const { body } = await create(JSON.stringify(config({ file_path: 'taken.shm', bytes: 65536, interval_ms: 5 })))
  const { id } = body.pipeline
  const path = join(directory, 'files', 'taken.shm')
  const told = () => node.logged.map((line) => JSON.parse(line)).filter((line) => line.file === path)
  const isOn = () => readFileSync(path).readUInt32LE(16) === 1
  const again = { name: 'test', defaultLoggingLevel: 'INFO', instructionsTimeout: 5, forceRestart: true }
  await node.start(id)
  for (const bytes of [65537, 65538]) {
    const jsonConfig = JSON.stringify(config({ file_path: 'taken.shm', bytes, interval_ms: 5 }))
    expect((await node.call('PUT', `/pipelines/${id}`, { ...again, jsonConfig })).status).toBe(200)
    await until(isOn, 'its file is there')
  }
  expect(told()).toEqual([])
  const { body: other } = await create(body.pipeline.jsonConfig)
  await node.start(other.pipeline.id)
  await until(() => told().length > 0, 'the log has it')
  await until(isOn, 'the file of the other is there')
  rmSync(path)
  await until(() => told().length > 1, 'the log has that of the other too')
  for (const each of [id, other.pipeline.id]) {
    await node.call('POST', `/pipelines/${each}/stop`)
    await node.when(each, ({ started }) => !started)
  }
  const error = 'somebody has removed it, or another run has one of that name: the next run makes it again'
  expect(told()).toMatchObject([id, other.pipeline.id].map((pipeline) => ({ pipeline, error })))
})

const small = join(directory, 'files', 'small')
mkdirSync(small, { recursive: true })
const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', small]).status === 0
if (!isMounted) console.warn('SKIPPED: full disks need root and mount(8) with tmpfs')
afterAll(() => isMounted && spawnSync('umount', [small]))

test.skipIf(!isMounted)('a start for whose file the disk has no room fails, and disturbs nobody', async () => {
  const shm = { file_path: 'small/metrics.shm', bytes: 65536, interval_ms: 10 }
  const { body } = await create(JSON.stringify(config(shm)))
  const { id } = body.pipeline
  writeFileSync(join(small, 'fill'), Buffer.alloc(40_000))
  const answer = await node.call('POST', `/pipelines/${id}/start`)
  expect(answer.status).not.toBe(200)
  expect(answer.body.message).toMatch(/its metrics cannot be shared in .*small\/metrics\.shm: ENOSPC/)
  expect(readdirSync(small)).toEqual(['fill'])
  rmSync(join(small, 'fill'))
  await node.start(id)
  await until(() => readFileSync(join(small, 'metrics.shm')).readUInt32LE(16) === 1, 'the file says that the run is on')
  // Its room on the disk is its own.
  expect(() => writeFileSync(join(small, 'fill'), Buffer.alloc(4096))).toThrow('ENOSPC')
  await node.call('POST', `/pipelines/${id}/stop`)
  await until(() => readFileSync(join(small, 'metrics.shm')).readUInt32LE(16) === 2, 'the file says that it has ended')
})

test.each([
  [{ file_path: 'x', bytes: 0, interval_ms: 10 }, '/engine_config/shm_config/bytes'],
  [{ file_path: 'x', bytes: 4096, interval_ms: 0 }, '/engine_config/shm_config/interval_ms'],
  [{ bytes: 4096, interval_ms: 10 }, '/engine_config/shm_config/file_path'],
  [{ file_path: 'x\0y', bytes: 4096, interval_ms: 10 }, '/engine_config/shm_config/file_path'],
])('what is wrong is refused with its place: %j', async (shm, pointer) => {
  const { status, body } = await create(JSON.stringify(config(shm)))
  expect(status).toBe(400)
  expect(body.message).toContain(pointer)
})

test.each(['x.shm', './x.shm', 'logs/../x.shm'])('a log filter may not write to its file: %s', async (file) => {
  const wanted = config({ file_path: 'x.shm', bytes: 65536, interval_ms: 10 })
  wanted.engine_config.log_filters = [{ level: 'WARN', actions: { actions: ['file', 'log'] }, file, mode: 'APPEND' }]
  const { status, body } = await create(JSON.stringify(wanted))
  expect(status).toBe(400)
  expect(body.message).toContain('/engine_config/log_filters/0/file: is the file of shm_config too')
})
