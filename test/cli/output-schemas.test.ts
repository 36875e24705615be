/** What commands print with `-o json` is what their JSON Schemas in docs/output say. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { documentOf, OUTPUT_SCHEMAS } from '../../src/cli/output-schemas.ts'
import { createProgram } from '../../src/cli/program.ts'
import { loadIdentity } from '../../src/link/identity.ts'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { lineOf, lossy, penstock, scratch, start } from './cli.ts'
import { commandsOf } from './commands.ts'
import '../harness/slow.ts'

const directory = scratch()
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false })
const nodes: ChildProcess[] = []
let env: Record<string, string>
let edge: string

async function up(...flags: string[]): Promise<string> {
  const own = [
    '--http',
    '127.0.0.1:0',
    '--grpc',
    '127.0.0.1:0',
    '--log-level',
    'error',
    '--telemetry-interval',
    '100ms',
  ]
  const node = start(['up', '--data-dir', `${directory.path}/${nodes.length}`, ...own, ...flags])
  nodes.push(node)
  return `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}`
}

beforeAll(async () => {
  env = { PENSTOCK_URL: await up('--hub') }
  edge = await up('--node-name', 'edge')
}, 60_000)
afterAll(async () => {
  for (const node of nodes) {
    const gone = once(node, 'exit')
    node.kill('SIGTERM')
    await gone
  }
  directory.dispose()
})

const seen = new Set<string>()

/** Runs `penstock …args --json` and holds what it prints against the schema of `path`. */
async function conforms(path: string, args: readonly string[], wanted = 0): Promise<void> {
  seen.add(path)
  const { code, stdout, stderr } = await penstock([...args, '--json'], { env })
  expect({ args, code, stderr: code === wanted ? '' : stderr }).toEqual({ args, code: wanted, stderr: '' })
  check(path, stdout, args)
}

/** Whether it is a line for each value, as the schema says of these arguments. */
function isLines(path: string, args: readonly string[]): boolean {
  const { form, otherwise = '' } = OUTPUT_SCHEMAS[path]!
  const [how = ''] = /one value|a line each/.exec(otherwise) ?? []
  const options = how === '' ? [] : Array.from(otherwise.matchAll(/`(--[\w-]+)`(?! of several)/g), ([, name]) => name)
  const isOther = args.some((each) => options.includes(each))
  return isOther ? how === 'a line each' : form === 'lines'
}

/** Messages of the API may get more fields; here every one that is printed has to be in the schema. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const parts = Object.fromEntries(Object.entries(schema).map(([key, part]) => [key, closed(part)]))
  return 'properties' in parts && parts.type === 'object' ? { additionalProperties: false, ...parts } : parts
}

function schemaOf(path: string): object {
  const { $defs = {}, ...own } = documentOf(path)
  return { ...own, $defs: closed($defs) }
}

function check(path: string, stdout: string, args: readonly string[] = []): void {
  const schema = schemaOf(path)
  const texts = isLines(path, args) ? stdout.trim().split('\n') : [stdout]
  for (const text of texts) {
    ajv.validate(schema, JSON.parse(text))
    expect({ path, text: ajv.errors === null ? '' : text, errors: ajv.errors }).toEqual({
      path,
      text: '',
      errors: null,
    })
  }
}

const generator = `${packageRoot()}/examples/generator.json`
/** A copy: beside it `run` writes a file of metrics. */
const operate = directory.file(
  'operate.json',
  JSON.parse(readFileSync(join(packageRoot(), 'examples/operate.json'), 'utf8')),
)

const link = ['--loss', '2%', '--rate', '10M', '--packet', '1200', '--budget', '30ms']

/** A file for `apply` with a pipeline that loses this share. */
function site(name: string, loss: number): string {
  const config = structuredClone(lossy)
  config.engine_config.pipeline.loss.uniform_loss.loss_prob = loss
  return directory.file(`${name}.json`, { pipelines: [{ name: 'q', config }] })
}

describe('the output of', () => {
  it.each<[string, string[], number?]>([
    ['version', ['version']],
    ['components', ['components']],
    ['components', ['components', 'raft']],
    ['components', ['components', 'raft', '--example']],
    ['config check', ['config', 'check']],
    ['validate', ['validate', generator]],
    ['simulate', ['simulate', operate, '-d', '1s']],
    ['simulate', ['simulate', generator, operate, '-d', '1s']],
    ['simulate', ['simulate', operate, '-d', '1s', '--set', 'loss=0.05']],
    ['simulate', ['simulate', operate, '-d', '1s', '--set', 'loss=0.01,0.05', '--repeat', '2']],
    ['fec advise', ['fec', 'advise', ...link, '--packets', '2000']],
    ['fec advise', ['fec', 'advise', ...link, '--packets', '400', '--residual', '0.001%'], 1],
    ['schema', ['schema']],
    ['run', ['run', operate, '-d', '300ms']],
    ['impair', ['impair', '--list']],
    ['impair', ['impair', '--loss', '1%', '-l', '127.0.0.1:0', '-f', '127.0.0.1:9', '-d', '1100ms']],
    ['impair', ['impair', '--profile', 'lte', '-l', '127.0.0.1:7', '-f', '127.0.0.1:9', '--print']],
  ])('%s: %j', async (path, args, code) => conforms(path, args, code))

  it('doctor, whatever it finds', async () => {
    seen.add('doctor')
    check('doctor', (await penstock(['doctor', '--json'])).stdout)
  })

  it('validate, of what is wrong', async () => {
    await conforms(
      'validate',
      ['validate', directory.file('wrong.json', '{"engine_config": {"pipeline": {"a": {"b": {}}}}}')],
      1,
    )
  })

  it('the life of a pipeline', async () => {
    for (const [path, ...args] of [
      ['pipelines validate', generator],
      ['pipelines create', 'p', operate, '--restart-policy', 'on-failure:2', '--cpu-pin', '0'],
      ['pipelines list'],
      ['pipelines set', 'p', 'loss=0.05'],
      ['pipelines update', 'p', generator, '--dry-run'],
      ['pipelines update', 'p', generator],
      ['pipelines start', 'p'],
      ['pipelines get', 'p'],
      ['pipelines get', 'p', '--config'],
      ['pipelines telemetry', 'p', '-c', '2'],
      ['pipelines tap', 'p', 'source', '-c', '3'],
      ['pipelines tap', 'p', 'source', '-c', '3', '--write', `${directory.path}/p.pcapng`],
      ['top', '--once'],
      ['status'],
      ['pipelines update', 'p', operate, '--dry-run'],
      ['pipelines list', '--all-nodes'],
      ['status', '--all-nodes'],
      ['pipelines stop', 'p'],
      ['pipelines logs', 'p'],
      ['pipelines telemetry', 'p'],
      ['top', '--once'],
      ['pipelines export', 'p'],
      ['pipelines apply', site('first', 0.1), '--dry-run', '--prune'],
      ['pipelines apply', site('first', 0.1), '--start', '--prune', '--yes', '--all-nodes'],
      ['pipelines apply', site('second', 0.2)],
      ['pipelines delete', 'q', '--force'],
    ] as const) {
      await conforms(path, [...path.split(' '), ...args])
    }
    await conforms('pipelines apply', ['pipelines', 'apply', site('wrong', 7)], 2)
  })

  it('the life of a hub', async () => {
    const join = () => penstock(['authenticate-by-request', env.PENSTOCK_URL as string, '--url', edge, '--json'])
    const waiting = async () => {
      const { stdout } = await penstock(['authentication-requests', 'list', '--json'], { env })
      return stdout.includes('requestId')
    }
    const refused = join()
    await until(waiting)
    await conforms('authentication-requests list', ['authentication-requests', 'list'])
    await conforms('authentication-requests reject', ['authentication-requests', 'reject', '--all'])
    expect((await refused).code).toBe(1)
    const taken = join()
    await until(waiting)
    await conforms('authentication-requests approve', ['authentication-requests', 'approve', '--all'])
    seen.add('authenticate-by-request')
    check('authenticate-by-request', (await taken).stdout)
    await conforms('nodes list', ['nodes', 'list'])
    await conforms('nodes set', ['nodes', 'set', 'edge', '--metadata', 'rack:=4'])
    await conforms('nodes remove', ['nodes', 'remove', 'edge'])
    await conforms('disconnect', ['disconnect', '--url', edge])
    await conforms('token create', ['token', 'create', 'laptop'])
    await conforms('token list', ['token', 'list'])
    await conforms('token revoke', ['token', 'revoke', 'laptop'])
    await conforms('status', ['status'])
  })

  it('the key of a hub', async () => {
    const file = `${directory.path}/hub.key`
    await conforms('hub key create', ['hub', 'key', 'create', file])
    await conforms('hub key show', ['hub', 'key', 'show', file])
    const first = `${directory.path}/first`
    loadIdentity(first)
    const members = `${directory.path}/members.jsonl`
    await conforms('hub export', ['hub', 'export', members, '--data-dir', first])
    await conforms('hub import', ['hub', 'import', members, '--data-dir', first])
    await conforms('hub key adopt', ['hub', 'key', 'adopt', `${file}.first`, '--data-dir', first])
  })

  it.each(['pipelines list', 'nodes list'])('%s --watch: a line each', async (path) => {
    const args = [...path.split(' '), '--watch', '--json']
    const child = start(args, env)
    let stdout = ''
    child.stdout!.on('data', (text) => {
      stdout += text
    })
    const lines = (count: number) => until(() => stdout.split('\n').length > count, `it prints ${count} lines`)
    await lines(1)
    const { id } = JSON.parse(
      (await penstock(['pipelines', 'create', 'watched', generator, '--force', '--json'], { env })).stdout,
    )
    await penstock(['nodes', 'set', '.', '--metadata', `shows=${id}`], { env })
    await lines(2)
    const closed = once(child, 'close')
    child.kill('SIGINT')
    expect(await closed).toEqual([0, null])
    check(path, stdout, args)
    await penstock(['pipelines', 'delete', id, '--force'], { env })
  })

  it('demo', async () => conforms('demo', ['demo', '--duration', '1s']))

  it('every command that prints data has a schema, and was held against it here', async () => {
    const printing = commandsOf(await createProgram()).filter(({ command }) =>
      command.options.some(({ long }) => long === '--json'),
    )
    const paths = printing.map(({ path }) => path).filter((path) => path !== 'authentication-requests watch')
    expect([...seen].sort()).toEqual([...new Set(paths)].sort())
  })
})
