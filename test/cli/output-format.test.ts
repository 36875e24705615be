/** Every command that prints data prints it as a table, as JSON and as YAML. */
import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createProgram } from '../../src/cli/program.ts'
import { lossy, penstock, scratch, startNode } from './cli.ts'
import { commandsOf } from './commands.ts'

const directory = scratch()
const config = directory.file('lossy.json', lossy)
const site = directory.file('site.json', { name: 'lossy', config: lossy })
let node: ChildProcess
let env: Record<string, string>

beforeAll(async () => {
  const started = await startNode(`${directory.path}/data`)
  node = started.node
  env = { PENSTOCK_URL: started.url }
  expect((await penstock(['pipelines', 'create', 'lossy', config], { env })).code).toBe(0)
  expect((await penstock(['pipelines', 'start', 'lossy'], { env })).code).toBe(0)
})
afterAll(async () => {
  const gone = once(node, 'exit')
  node.kill('SIGTERM')
  await gone
  directory.dispose()
})

/** Those that print nothing but what a person, or a shell, is to read. */
const WITHOUT_DATA = ['up', 'demo-hub', 'demo-cluster', 'demo-operate', 'completion', 'complete']
/** Those whose formats are others. */
const OTHER_FORMATS: Record<string, string[]> = {
  schema: ['json', 'yaml'],
  // Its -o is the file; --format has json and yaml.
  'pipelines export': [],
  simulate: ['table', 'json', 'yaml', 'csv'],
}

describe('the format of what is printed', () => {
  it('is chosen by -o and --json at every command that prints data', async () => {
    for (const { path, command } of commandsOf(await createProgram())) {
      if (command.commands.length > 0 || WITHOUT_DATA.includes(path)) continue
      const choices = command.options.find(({ long }) => long === '--output')?.argChoices ?? []
      expect({ path, choices }).toEqual({ path, choices: OTHER_FORMATS[path] ?? ['table', 'json', 'yaml'] })
      expect({ path, json: command.options.some(({ long }) => long === '--json') }).toEqual({ path, json: true })
    }
  })

  it.each([
    [['version']],
    [['components', 'udp']],
    [['pipelines', 'get', 'lossy']],
    [['status']],
    [['pipelines', 'list', '--all-nodes']],
    [['pipelines', 'apply', site, '--dry-run', '--all-nodes']],
    [['simulate', config, '-d', '1s']],
  ])('%j says the same in each', async (args) => {
    const [table, output, json, yaml] = await Promise.all(
      [['-o', 'table'], ['-o', 'json'], ['--json'], ['-o', 'yaml']].map((flags) =>
        penstock([...args, ...flags], { env }),
      ),
    )
    expect([table, output, json, yaml].map((result) => result?.code)).toEqual([0, 0, 0, 0])
    expect(json?.stdout).toBe(output?.stdout)
    expect(() => JSON.parse(table?.stdout ?? '')).toThrow()
    expect(parse(yaml?.stdout ?? '')).toEqual(JSON.parse(json?.stdout ?? ''))
  })

  it('keeps strings apart from what YAML 1.1 would make of them', async () => {
    const create = ['pipelines', 'create', 'yes', config, '-o', 'yaml']
    const { stdout } = await penstock(create, { env })
    expect(stdout).toContain('\nname: "yes"\n')
    expect(parse(stdout, { version: '1.1' })).toMatchObject({ name: 'yes' })
  })

  it('of several values is a document of YAML each', async () => {
    const { code, stdout } = await penstock(['pipelines', 'telemetry', 'lossy', '-c', '2', '-o', 'yaml'], { env })
    expect(code).toBe(0)
    const samples = parseAllDocuments(stdout).map((document) => document.toJS())
    expect(samples).toMatchObject([{ metrics: { sink: {} } }, { metrics: { sink: {} } }])
  })

  it('of a sweep is a document of YAML for each row', async () => {
    const sweep = ['simulate', config, '-d', '1s', '--set', 'loss=0.1,0.2']
    const [json, yaml] = await Promise.all(['json', 'yaml'].map((format) => penstock([...sweep, '-o', format])))
    const rows = json!.stdout.trim().split('\n')
    expect(rows).toHaveLength(2)
    expect(parseAllDocuments(yaml!.stdout).map((document) => document.toJS())).toEqual(
      rows.map((row) => JSON.parse(row)),
    )
  })

  it('of a schema and of what is exported is data alone', async () => {
    const [json, yaml] = await Promise.all([penstock(['schema', '--json']), penstock(['schema', '-o', 'yaml'])])
    expect((await penstock(['schema'])).stdout).toBe(json.stdout)
    expect(parse(yaml.stdout)).toEqual(JSON.parse(json.stdout))
    const exported = async (...flags: string[]) =>
      (await penstock(['pipelines', 'export', 'lossy', ...flags], { env })).stdout
    expect(await exported('--json')).toBe(await exported('--format', 'json'))
    expect(parse(await exported())).toEqual(JSON.parse(await exported('--json')))
    expect(await penstock(['pipelines', 'export', 'lossy', '--json', '--format', 'yaml'], { env })).toMatchObject({
      code: 2,
      stdout: '',
    })
  })

  it('of what is exported has every text and number as it was', async () => {
    const kpi = { id: 'k', label: 'two\twords', value_to_text: { expression: '1', mapping: { 1: { text: ' \n' } } } }
    const loss = { uniform_loss: { input: 'sent', output: 'kept', loss_prob: 1e-7 } }
    const { pipeline } = lossy.engine_config
    const odd = { engine_config: { pipeline: { ...pipeline, loss } }, kpis: { metrics: [kpi] } }
    const created = await penstock(['pipelines', 'create', 'odd', directory.file('odd.json', odd)], { env })
    expect(created.code).toBe(0)
    const { stdout } = await penstock(['pipelines', 'export', 'odd'], { env })
    expect(parse(stdout)).toMatchObject({ pipelines: [{ name: 'odd', config: odd }] })
    expect(stdout).toContain('label: "two\\twords"\n')
    expect(stdout).toContain('loss_prob: 1.0e-7\n')
  })

  it('is asked for once', async () => {
    const { code, stdout, stderr } = await penstock(['version', '--json', '-o', 'table'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('--json and --output table do not go together')
    expect((await penstock(['version', '--json', '-o', 'json'])).code).toBe(0)
  })

  it('is read by jq and by what else reads JSON', async () => {
    const { stdout } = await penstock(['components', '--json'])
    const jq = promisify(execFile)('jq', ['-e', 'length > 70'])
    jq.child.stdin?.end(stdout)
    expect((await jq).stdout.trim()).toBe('true')
  })
})
