/** Commands that need no node: validate, simulate, run, components, doctor, config check, completion, version. */

import { execFile, execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { COMPONENT_KEYS } from '../../src/dataplane/engine/component-keys.ts'
import { packageRoot } from '../../src/package-root.ts'
import { NatsOperator } from '../harness/nats-operator.ts'
import { lossy, penstock, plainEnvironment, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())
const good = directory.file('good.json', lossy)

describe('usage', () => {
  it.each([
    [['nope']],
    [['validate']],
    [['simulate', good]],
    [['simulate', good, '--duration', '5']],
    [['simulate', good, '--duration', '1s', '--seed', 'x']],
    [['run', good, '--frobnicate']],
    [['run', good, '--duration', '600h']],
    [['pipelines', 'create', 'a', good, '--instructions-timeout', '3000000000']],
    [['components', '-o', 'xml']],
    [['pipelines', 'create', 'a', good, '--restart-policy', 'sometimes']],
    [['pipelines', 'list', '--url', 'nowhere']],
    [['pipelines']],
    [[]],
  ])('%j exits 2 and says why on stderr', async (args) => {
    const { code, stdout, stderr } = await penstock(args)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).not.toBe('')
  })

  it.each([
    [['nope', '--help']],
    [['pipelines', 'nope', '--help']],
    [['nodes', 'nope', '-h']],
    [['help', 'nope']],
    [['pipelines', 'help', 'nope']],
    [['help', 'pipelines', 'nope']],
    [['help', 'hub', 'key', 'nope']],
    [['help', 'validate', 'nope']],
  ])('%j: there is no such command to help with', async (args) => {
    const { code, stdout, stderr } = await penstock(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain("unknown command 'nope'")
  })

  it.each([
    [['help', 'pipelines', 'start'], 'pipelines start'],
    [['pipelines', 'help', 'start'], 'pipelines start'],
    [['help', 'pipelines', 'show'], 'pipelines get'],
    [['help', 'hub', 'key', 'create'], 'hub key create'],
    [['hub', 'help', 'key', 'create'], 'hub key create'],
    [['help', 'nodes', 'set', '--help'], 'nodes set'],
    [['help', 'nodes'], 'nodes'],
    [['help', 'validate'], 'validate'],
    [['help'], ''],
  ])('%j shows the help of %j', async (args, path) => {
    const { code, stdout, stderr } = await penstock(args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe((await penstock([...path.split(' ').filter(Boolean), '--help'])).stdout)
  })

  it.each([
    [['nodes', 'foo'], "unknown command 'foo'."],
    [['nodes', 'lsit', '-o', 'json'], `unknown command 'lsit'. Did you mean "list"?`],
    [['nodes', '--watch', 'foo'], "unknown command 'foo'."],
    [['authentication-requests', 'aprove', '3'], `unknown command 'aprove'. Did you mean "approve"?`],
    // Words of others: docker, headscale, tailscale.
    [['nodes', 'delete', 'edge'], `unknown command 'delete'. Did you mean "penstock nodes remove"?`],
    [['help', 'nodes', 'delete'], `unknown command 'delete'. Did you mean "penstock nodes remove"?`],
    [['pipelines', 'rm', 'p'], `unknown command 'rm'. Did you mean "penstock pipelines delete"?`],
    [['preauthkeys', 'create'], 'Did you mean "penstock authentication-requests approve"?'],
    [['delay', '40ms'], 'Did you mean "penstock impair"?'],
    [['pipelines', 'stats', 'p'], 'Did you mean "penstock pipelines telemetry"?'],
    [['nodes', 'register'], 'Did you mean "penstock authentication-requests approve"?'],
    [['login', 'https://hub.example'], `unknown command 'login'. Did you mean "penstock authenticate-by-request"?`],
    [['nodes', 'list', 'foo'], "too many arguments for 'list'"],
    [['nodes', '--watch', 'list'], "too many arguments for 'list'"],
  ])('%j, where a subcommand runs that need not be named: %s', async (args, message) => {
    const { code, stdout, stderr } = await penstock(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it.each([
    [
      ['--url', 'http://x', 'pipelines', 'list'],
      "'--url': it stands behind the command that takes it, as in penstock pipelines list",
    ],
    [['pipelines', '--url=http://x', 'show', 'p'], 'as in penstock pipelines get --url'],
    [['-o', 'json', 'nodes'], 'as in penstock nodes list -o'],
    [['--data-dir', 'd', 'up'], 'as in penstock up --data-dir'],
    [['hub', '--nonsense', 'key'], "unknown option '--nonsense'\n"],
  ])('%j, an option before its command: %s', async (args, message) => {
    const { code, stdout, stderr } = await penstock(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it.each([
    ['http://127.0.0.1:1/v1', 'write http://127.0.0.1:1\n'],
    ['https://proxy.example/edge/v1/nodes', 'write https://proxy.example/edge\n'],
    [
      'http://user:secret@127.0.0.1:1',
      'a node asks for a token, not for a user and password: write http://127.0.0.1:1, and',
    ],
    ['127.0.0.1:1', '"127.0.0.1:1" is no address of a node: write it http://127.0.0.1:8769\n'],
  ])('%s, no address of a node: %s', async (url, message) => {
    const { code, stdout, stderr } = await penstock(['pipelines', 'list', '--url', url])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('secret')
  })

  it.each([
    [['pipelines', 'export', '--all', '-o', '']],
    [['pipelines', 'tap', 'p', 'sink', '-w', '']],
    [['fec', 'advise', '--loss', '2%', '--rate', '10M', '--packet', '1200', '--budget', '30ms', '--write', '']],
    [['hub', 'export', '']],
    [['hub', 'key', 'create', '']],
    [['hub', 'key', 'show', '']],
    [['hub', 'key', 'adopt', '']],
  ])('%j: a file without a name is refused before anything is done', async (args) => {
    const { code, stdout, stderr } = await penstock(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('The name is empty.')
  })

  it('shows the options of what runs when no subcommand is named', async () => {
    const { code, stdout } = await penstock(['nodes', '--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('-w, --watch')
    expect(stdout).toContain('--filter <key=value>')
    expect((await penstock(['nodes', 'list', '--help'])).stdout).toContain('-w, --watch')
  })

  it('shows help on request with exit code 0', async () => {
    const { code, stdout } = await penstock(['pipelines', '--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('telemetry')
  })

  it('shows the defaults of the node, with the data directory that is in force for this user', async () => {
    const state = process.getuid?.() === 0 ? '/var/lib/penstock' : '/home/of/state/penstock'
    const env = { XDG_STATE_HOME: '/home/of/state' }
    const help = (await penstock(['up', '--help'], { env })).stdout.replaceAll(/\s+/g, ' ')
    expect(help).toContain(`where the node keeps its state (default: ${state})`)
    expect(help).toContain('where HTTP listens, host:port, or none (default: 127.0.0.1:8769)')
    expect(help).toContain('how long a request to join waits for its answer (default: 5m)')
    const { stdout } = await penstock(['config', 'check', '-o', 'json'], { env })
    expect(JSON.parse(stdout)).toContainEqual({ key: 'dataDirectory', value: state, origin: 'default' })
  })
})

describe('validate', () => {
  it('accepts a good configuration, from a file and from standard input', async () => {
    expect(await penstock(['validate', good])).toMatchObject({ code: 0, stderr: '' })
    const { code, stdout } = await penstock(['validate', '-', '-o', 'json'], { input: JSON.stringify(lossy) })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ valid: true, problems: [], warnings: [] })
  })

  it('warns of what is hardly meant, and so do run and simulate', async () => {
    const doubtful = structuredClone(lossy) as { engine_config: { pipeline: Record<string, Record<string, object>> } }
    const { pipeline } = doubtful.engine_config
    pipeline.loss.uniform_loss = { input: 'sent', output: 'once', loss_prob: 0.1, seed: 7 }
    pipeline.more = { uniform_loss: { input: 'once', output: 'kept', loss_prob: 0.1, seed: 7 } }
    const file = directory.file('doubtful.json', doubtful)
    const pointer = '/engine_config/pipeline/more/uniform_loss/seed'
    const table = await penstock(['validate', file])
    expect(table.code).toBe(0)
    expect(table.stdout).toContain('valid')
    expect(table.stderr).toContain('1 warning:')
    expect(table.stderr).toContain(`${pointer}: 7 is the seed of "loss" (uniform_loss) too`)
    const json = await penstock(['validate', file, '-o', 'json'])
    expect(json.code).toBe(0)
    expect(JSON.parse(json.stdout)).toMatchObject({
      valid: true,
      problems: [],
      warnings: [{ component: 'more', pointer }],
    })
    for (const args of [
      ['simulate', file, '-d', '10ms'],
      ['run', file, '-d', '100ms'],
    ]) {
      const { code, stderr } = await penstock(args)
      expect(code).toBe(0)
      expect(stderr).toMatch(/WARN +more: 7 is the seed of "loss"/)
    }
  })

  it('takes commands around a run, which run and simulate say that they do not run', async () => {
    const pipeline = {
      source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const trace = `${directory.path}/was-run`
    const lifecycle_handler = { on_setup: [{ cmd: `touch ${trace}` }] }
    const file = directory.file('commands.json', { engine_config: { pipeline, lifecycle_handler } })
    expect((await penstock(['validate', file])).code).toBe(0)
    for (const args of [
      ['simulate', file, '--duration', '1s'],
      ['run', file],
    ]) {
      const { code, stderr } = await penstock(args)
      expect(code).toBe(0)
      expect(stderr).toContain('note: the commands of lifecycle_handler are not run: only a node runs them')
    }
    expect(existsSync(trace)).toBe(false)
  })

  it('lists every problem with its pointer', async () => {
    const bad = structuredClone(lossy) as Record<string, unknown>
    Object.assign(bad, { versoin: 1 })
    const pipeline = (bad.engine_config as Record<string, Record<string, Record<string, object>>>).pipeline
    pipeline.loss.uniform_loss = { input: 'sent', output: 'kept', loss_prob: 5 }
    pipeline.tap = { traffic_snk: {} }
    const file = directory.file('bad.json', bad)
    const { code, stdout, stderr } = await penstock(['validate', file])
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toContain('3 problems')
    expect(stderr).toContain('/versoin: unknown field')
    expect(stderr).toContain('/engine_config/pipeline/loss/uniform_loss/loss_prob: variable "loss": 5 is above')
    expect(stderr).toContain('Did you mean "traffic_sink"?')
    const json = await penstock(['validate', file, '-o', 'json'])
    expect(json.code).toBe(1)
    expect(JSON.parse(json.stdout).problems).toHaveLength(3)
  })

  const places = JSON.stringify(lossy, null, 2)
    .replace('"loss_prob": 0.1', '"loss_prob": 7')
    .replace('"mtu": 1500', '"mut": 1')
  const placed = directory.file('places.json', places)
  const at = (what: string): string => {
    const lines = places.slice(0, places.indexOf(what)).split('\n')
    return `${lines.length}:${lines.at(-1)!.length + 1}`
  }
  const told = [
    `:${at('"loss_prob"')}: /engine_config/pipeline/loss/uniform_loss/loss_prob: variable "loss": 7 is above`,
    `:${at('"mut"')}: /engine_config/pipeline/sink/traffic_sink/mut: unknown field`,
  ]

  it.each([['validate'], ['simulate', '-d', '1s'], ['run']])(
    '%s tells file, line and column of each',
    async (...args) => {
      const { code, stderr } = await penstock([...args, placed])
      expect(code).toBe(1)
      for (const place of told) expect(`\n${stderr}`).toContain(`\n${placed}${place}`)
    },
  )

  it('as JSON, of standard input and of text that is no JSON too', async () => {
    const { stdout } = await penstock(['validate', placed, '-o', 'json'])
    const [line, column] = at('"mut"').split(':').map(Number)
    expect(JSON.parse(stdout).problems).toContainEqual(expect.objectContaining({ line, column }))
    const piped = await penstock(['validate', '-'], { input: places })
    expect(piped.stderr).toMatch(/^invalid: <stdin>, \d+ problems$/m)
    expect(piped.stderr).toContain(`<stdin>${told[0]}`)
    expect((await penstock(['run', '-'], { input: places })).stderr).toMatch(/^penstock: <stdin>: \d+ problems$/m)
    expect((await penstock(['validate', '-'], { input: JSON.stringify(lossy) })).stdout).toMatch(/^valid: <stdin>, /)
    const broken = await penstock(['validate', '-'], { input: '{\n "a": 1,\n  b' })
    expect(broken.stderr).toContain('<stdin>:3:3: /: ')
  })

  describe('of metrics in shared memory', () => {
    const shm_config = { file_path: 'metrics.shm', bytes: 65_536, interval_ms: 10 }
    const shared = (more = {}) => ({
      engine_config: {
        ...(lossy as { engine_config: object }).engine_config,
        shm_config: { ...shm_config, ...more },
      },
    })
    const path = join(directory.path, 'metrics.shm')

    it.each([['validate'], ['simulate', '-d', '1s'], ['run']])(
      '%s refuses a file that is too small',
      async (...args) => {
        const small = directory.file('small.json', shared({ bytes: 64 }))
        const { code, stderr } = await penstock([...args, small])
        expect(code).toBe(1)
        expect(stderr).toMatch(
          /small\.json:\d+:\d+: \/engine_config\/shm_config\/bytes: 64 bytes are too few .* need \d+/,
        )
        const bytes = Number(/need (\d+)/.exec(stderr)?.[1])
        expect((await penstock(['validate', '-'], { input: JSON.stringify(shared({ bytes })) })).code).toBe(0)
        expect((await penstock(['validate', '-'], { input: JSON.stringify(shared({ bytes: bytes - 1 })) })).code).toBe(
          1,
        )
      },
    )

    it('simulate says that it writes none', async () => {
      const { code, stderr } = await penstock(['simulate', directory.file('shared.json', shared()), '-d', '1s'])
      expect(code).toBe(0)
      expect(stderr).toContain('note: the file of shm_config is not written')
      expect(existsSync(path)).toBe(false)
    })

    it('run writes it, with the last values once it has ended', async () => {
      const { code, stdout, stderr } = await penstock([
        ...['run', directory.file('shared.json', shared()), '-d', '300ms', '-o', 'json'],
      ])
      expect({ code, note: stderr.includes('note') }).toEqual({ code: 0, note: false })
      const file = readFileSync(path)
      expect([file.length, file.toString('latin1', 0, 8), file.readUInt32LE(16)]).toEqual([65_536, 'PENSHMEM', 2])
      const [bytes, values] = [file.readUInt32LE(32), file.readUInt32LE(36)]
      const lines = file.toString('utf8', 64, 64 + bytes).split('\n')
      const at = lines.findIndex((line) => line.startsWith('sink\tpackets\t'))
      const packets = file.readDoubleLE(values + at * 8)
      expect(packets).toBeGreaterThan(0)
      expect(packets).toBe(JSON.parse(stdout).metrics.sink.packets)
    })

    it('run says why it cannot be made', async () => {
      const { code, stderr } = await penstock(['run', directory.file('no.json', shared({ file_path: '/proc/x/y' }))])
      expect(code).toBe(1)
      expect(stderr).toContain('penstock: the metrics cannot be shared in /proc/x/y: ')
    })
  })

  const relay = {
    entry_pipeline: 'entry',
    endpoints: { near: { pipeline: 'one', carriers: ['a', 'b'] }, far: { pipeline: 'two', carriers: [] } },
    routes: { home: { endpoints: ['near', 'far'], conmment: 'both' } },
  }
  const logConfig = {
    default_level: 'WARN',
    log_filters: [{ level: 'INFO', actions: { actions: ['file'] }, file: 'run.log' }],
  }

  it.each<[string, object]>([
    ['a RelayConfiguration: 2 endpoints, 1 route', relay],
    ['a RelayConfiguration: 0 endpoints, 0 routes', { entryPipeline: 'entry' }],
    ['a LogConfig: 1 log filter', logConfig],
    ['a LogConfig: 0 log filters', { defaultLevel: 3 }],
  ])('takes %s', async (found, value) => {
    const input = JSON.stringify(value)
    const table = await penstock(['validate', '-'], { input })
    expect(table).toMatchObject({ code: 0, stdout: `valid: <stdin>, ${found}\n`, stderr: '' })
    const json = await penstock(['validate', '-', '-o', 'json'], { input })
    expect(JSON.parse(json.stdout)).toEqual({ valid: true, problems: [], warnings: [] })
  })

  it.each<[string, object, string[]]>([
    [
      'RelayConfiguration',
      { ...relay, entry_pipeline: '', routes: { home: { endpoints: ['near', 3] } }, comment: 'x' },
      [
        '1:165: /comment: unknown field "comment".',
        '1:2: /entry_pipeline: must not be empty',
        '1:160: /routes/home/endpoints/1: must be a string, not a number',
      ],
    ],
    [
      'RelayConfiguration',
      { endpoints: { near: { carriers: ['a', 'a'] } } },
      [
        '1:1: /entry_pipeline: required field "entry_pipeline" is missing',
        '1:15: /endpoints/near/pipeline: required field "pipeline" is missing',
      ],
    ],
    [
      'RelayConfiguration',
      {
        entryPipeline: 'entry',
        endpoints: { near: { pipeline: 'one', carriers: ['a', 'a'] } },
        routes: { home: { endpoints: ['near', 'nowhere', 'near'] } },
      },
      [
        '1:125: /routes/home/endpoints/1: no endpoint is called "nowhere": there are "near"',
        '1:80: /endpoints/near/carriers/1: "a" is listed twice: leave one of them out',
        '1:135: /routes/home/endpoints/2: "near" is listed twice: leave one of them out',
      ],
    ],
    [
      'LogConfig',
      { defaultLevel: 'LOUD', logFilters: [{ actions: { actions: ['file'] } }] },
      ['1:2: /defaultLevel: "LOUD" is none of STATE, DEBUG, INFO, WARN, ERROR, FATAL.'],
    ],
    [
      'LogConfig',
      { logFilters: [{ actions: { actions: ['file'] } }] },
      ['1:16: /logFilters/0/file: action "file" needs the name of a file'],
    ],
  ])('lists every problem of a %s with its place', async (_kind, value, problems) => {
    const { code, stdout, stderr } = await penstock(['validate', '-'], { input: JSON.stringify(value) })
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
    const lines = problems.map((problem) => `<stdin>:${problem}\n`)
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: `invalid: <stdin>, ${count}\n${lines.join('')}`,
    })
  })

  it('takes what has a field of a pipeline configuration for one', async () => {
    const input = JSON.stringify({ ...logConfig, version: 1 })
    const { code, stderr } = await penstock(['validate', '-'], { input })
    expect(code).toBe(1)
    expect(stderr).toContain('required field "engine_config" is missing')
  })

  it('says which file is missing', async () => {
    const { code, stderr } = await penstock(['validate', '/nonexistent.json'])
    expect(code).toBe(1)
    expect(stderr).toBe('penstock: no such file: /nonexistent.json\n')
  })

  it.each(['udp-fec', 'udp-forward', 'loss-delay', 'generator'])('accepts the example %s', async (name) => {
    const { code, stderr } = await penstock(['validate', join(packageRoot(), 'examples', `${name}.json`)])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })
})

describe('a file that a configuration names', () => {
  const folder = scratch()
  afterAll(() => folder.dispose())
  folder.file('list.csv', '0,64\n5,64\n')
  const pipeline = (name: string) => ({
    trace: { trace_traffic_source: { output: 'a', trace_file: name } },
    sink: { traffic_sink: { input: 'a' } },
  })
  const text = (name: string) => JSON.stringify({ engine_config: { pipeline: pipeline(name) } })
  const file = folder.file('trace.json', text('list.csv'))

  it.each([['simulate', '-d', '1s'], ['run']])('%s takes it relative to its own file', async (command, ...args) => {
    const { code, stdout, stderr } = await penstock([command, file, ...args, '-o', 'json'])
    expect({ code, stderr: stderr.includes('ERROR') }).toEqual({ code: 0, stderr: false })
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'COMPLETED', metrics: { sink: { probe_packets: 2 } } })
  })

  it('is told where it was looked for', async () => {
    const missing = folder.file('missing.json', text('none.csv'))
    const { code, stderr } = await penstock(['simulate', missing, '-d', '1s'])
    expect(code).toBe(1)
    expect(stderr).toContain(`cannot read ${join(missing, '../none.csv')}: it does not exist`)
    // A configuration may be for another machine: whether its files are here is no matter of its being right.
    expect((await penstock(['validate', missing])).code).toBe(0)
    expect((await penstock(['validate', folder.file('wrong.json', text('a\0b'))])).stderr).toContain('without NUL')
  })
})

describe('simulate', () => {
  const simulated = async (...args: string[]) => {
    const { code, stdout, stderr } = await penstock(['simulate', good, '-d', '10s', '-o', 'json', ...args])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  it('gives the same output for the same seed, another for another', async () => {
    const [first, second, other] = [
      await simulated('--seed', '3'),
      await simulated('--seed', '3'),
      await simulated('--seed', '4'),
    ]
    expect(second).toBe(first)
    const drops = (json: string): number => JSON.parse(json).metrics.loss.emulated_loss
    expect(drops(first)).toBeGreaterThan(800)
    expect(drops(first)).toBeLessThan(1200)
    expect(JSON.parse(other).metrics).not.toEqual(JSON.parse(first).metrics)
  })

  it('leaves the places that nobody has out of the table, unless --all is asked for', async () => {
    const rtp = directory.file('rtp.json', {
      engine_config: {
        pipeline: {
          source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 10 } },
          rtp: { rtp_observer: { input: 'a', output: 'b' } },
          sink: { traffic_sink: { input: 'b' } },
        },
      },
    })
    const tables = await Promise.all([[], ['--all']].map((flags) => penstock(['simulate', rtp, '-d', '1s', ...flags])))
    const [some, all] = tables.map(({ stdout }) => stdout)
    expect(some).toContain('640 metrics of places that nobody has are left out: --all shows them')
    expect(some).not.toContain('stream_')
    expect(all?.match(/stream_\d+_ssrc/g)).toHaveLength(64)
  })

  it('of several says which cannot begin', async () => {
    const socket = { udp_local: { address: '127.0.0.1:9000', output: 'a' } }
    const sockets = { one: socket, other: { udp_local: { ...socket.udp_local, output: 'b' } } }
    const sinks = { sink: { traffic_sink: { input: 'a' } }, drain: { traffic_sink: { input: 'b' } } }
    const taken = directory.file('taken.json', { engine_config: { pipeline: { ...sockets, ...sinks } } })
    const { code, stdout, stderr } = await penstock(['simulate', good, taken, '-d', '1s'])
    const why = 'component "other" (udp_local): address 127.0.0.1:9000 is taken (EADDRINUSE)'
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: `penstock: ${taken}: ${why}\n` })
  })

  it('runs several at the same time, joined by their simulated networks; one that fails is told, the other goes on', async () => {
    const lan = { network_name: 'lan' }
    const sender = directory.file('sender.json', {
      engine_config: {
        pipeline: {
          source: { uniform_traffic_source: { output: 'a', interval: 10, total_packets: 50 } },
          out: { simulated_network: { ...lan, input: 'a' } },
        },
      },
    })
    const sink = {
      in: { simulated_network: { ...lan, output: 'a' } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const receiver = directory.file('receiver.json', { engine_config: { pipeline: sink } })
    const bomb = { bomb: { delay: 100, poison: 'THROW_EXCEPTION' } }
    const fragile = directory.file('fragile.json', { engine_config: { pipeline: { ...sink, bomb } } })
    const { code, stdout, stderr } = await penstock(['simulate', sender, receiver, '-d', '2s', '-o', 'json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout).runs).toMatchObject([
      { file: sender, seed: 1, outcome: 'COMPLETED', elapsedMs: 490 },
      { file: receiver, outcome: 'DURATION', elapsedMs: 2000, metrics: { sink: { probe_packets: 50 } } },
    ])
    const broken = await penstock(['simulate', sender, fragile, receiver, '-d', '2s', '-o', 'json'])
    expect(broken.code).toBe(1)
    expect(broken.stderr).toContain(`the simulation failed: ${fragile}: component "bomb" (bomb)`)
    expect(JSON.parse(broken.stdout).runs).toMatchObject([
      { outcome: 'COMPLETED', metrics: { out: { sent_packets: 50, ring_full_packets: 0 } } },
      { outcome: 'FAILED', elapsedMs: 100, metrics: { bomb: { exploded: 1 } } },
      { outcome: 'DURATION', metrics: { sink: { probe_packets: 50 } } },
    ])
    const table = await penstock(['simulate', sender, receiver, '-d', '2s'])
    expect(table.code).toBe(0)
    for (const text of [sender, receiver, 'probe_packets']) expect(table.stdout).toContain(text)
  })

  it('gives each of several a seed of its own, which alone draws the same numbers, and none that neighbouring seeds have', async () => {
    const files = ['one', 'two', 'three'].map((name) => directory.file(`${name}.json`, lossy))
    const all: number[] = []
    for (const seed of [1, 2, 3]) {
      const args = ['-d', '10s', '--seed', String(seed)]
      const { runs } = JSON.parse((await penstock(['simulate', ...files, ...args, '-o', 'json'])).stdout)
      const seeds = runs.map((run: { seed: number }) => run.seed)
      expect(seeds[0]).toBe(seed)
      all.push(...seeds)
      expect((await penstock(['simulate', ...files, ...args])).stdout.match(/(?<=, seed )\d+$/gm)).toEqual(
        seeds.map(String),
      )
      for (const run of runs) {
        const { file, ...told } = run
        expect(JSON.parse(await simulated('--seed', String(run.seed)))).toEqual(told)
      }
    }
    expect(new Set(all).size).toBe(all.length)
  })

  it('prints a table that keeps to the width asked for', async () => {
    const { code, stdout } = await penstock(['simulate', good, '-d', '1s'], { env: { COLUMNS: '80' } })
    expect(code).toBe(0)
    expect(stdout).toContain('emulated_loss')
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(stdout).not.toContain('\x1b')
  })

  it('writes times and spans as people read them', async () => {
    const delayed = directory.file('delayed.json', {
      engine_config: {
        pipeline: {
          source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
          delay: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: 7 } },
          sink: { traffic_sink: { input: 'b' } },
        },
      },
    })
    const { stdout } = await penstock(['simulate', delayed, '-d', '90s'])
    expect(stdout).toMatch(/lag +min 0 {2}mean 0 /)
    expect(stdout).not.toMatch(/\bns\b/)
    expect(stdout).toContain('time was up after 1 min 30 s of virtual time')
  })

  it.each([['simulate', '--verbose'], ['run']])(
    '%s writes out what would steer the terminal in a log line',
    async (...args) => {
      const source = { uniform_traffic_source: { output: 'a', total_packets: 10, interval: 1 } }
      const pipeline = { 'in\u001b[31m\nout': source, sink: { traffic_sink: { input: 'a' } } }
      const input = JSON.stringify({ version: 1, engine_config: { pipeline } })
      const { code, stderr } = await penstock([...args, '-', '-d', '1s'], { input })
      expect(code).toBe(0)
      expect(stderr).toContain(' in\\u001b[31m\\u000aout: ')
      expect(stderr).not.toContain('\u001b')
    },
  )

  it('refuses a bad configuration', async () => {
    const { code, stderr } = await penstock(['simulate', '-', '-d', '1s'], { input: '{' })
    expect(code).toBe(1)
    expect(stderr).toContain('malformed JSON')
  })
})

describe('run', () => {
  it('tells the queue of a slow link apart from emulated loss, and times in UTC with their Z', async () => {
    const queue = directory.file('queue.json', {
      engine_config: {
        pipeline: {
          source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
          link: {
            bandwidth_limit_constant: {
              flows: [{ input: 'a', output: 'b' }],
              bandwidth_limit_mbit: 0.05,
              max_queue_size: 1,
            },
          },
          sink: { traffic_sink: { input: 'b' } },
        },
      },
    })
    const { code, stdout, stderr } = await penstock(['run', queue, '--duration', '2500ms'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^1 s {2}entered .* {2}dropped 0\/s {2}queue full [1-9][\d. k]*\/s {2}emulated loss 0\/s /m)
    expect(stderr).toMatch(/^\d\d:\d\d:\d\d\.\d{3}Z STATE running$/m)
  })

  it('runs for the duration and sums up', async () => {
    const { code, stdout } = await penstock(['run', good, '--duration', '300ms', '-o', 'json'])
    expect(code).toBe(0)
    const { outcome, metrics } = JSON.parse(stdout)
    expect(outcome).toBe('STOPPED')
    expect(metrics.sink.input_packets).toBeGreaterThan(0)
    expect(metrics.sink.input_packets + metrics.loss.emulated_loss).toBe(metrics.source.output_packets)
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('stops cleanly at %s, after lines of live rates', async (name) => {
    const { code, signal, stdout } = await penstock(['run', good], {
      onStart: (child) => child.stdout!.once('data', () => child.kill(name)),
    })
    expect({ code, signal }).toEqual({ code: 0, signal: null })
    expect(stdout).toMatch(/^\d+ s {2}entered .*\/s/)
    expect(stdout).toContain('stopped after')
  })

  it('shows no rates below the line that says it has ended', async () => {
    const pipeline = {
      source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 10 } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const file = directory.file('rates.json', { engine_config: { pipeline } })
    const command = [process.execPath, join(packageRoot(), 'bin/penstock.js'), 'run', file, '--duration', '1s']
    // Both streams are one, as on a terminal. Its second and its end fall together, with several at once in either order.
    const run = () => promisify(execFile)('sh', ['-c', 'exec "$@" 2>&1', 'sh', ...command], { env: plainEnvironment() })
    const runs = await Promise.all(Array.from({ length: 8 }, run))
    for (const { stdout } of runs) expect(stdout).toMatch(/ STATE ended: STOPPED\nCOMPONENT /)
  }, 60_000)

  it('ends by itself when its sources are done, or says why it could not start', async () => {
    const taken = createSocket('udp4').bind(0, '127.0.0.1')
    await once(taken, 'listening')
    const config = {
      engine_config: {
        pipeline: {
          in: { udp_local: { address: `127.0.0.1:${taken.address().port}`, output: 'x' } },
          sink: { traffic_sink: { input: 'x', mtu: 1500 } },
        },
      },
    }
    const { code, stdout, stderr } = await penstock(['run', '-', '-d', '5s'], { input: JSON.stringify(config) })
    taken.close()
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/did not start: component "in" \(udp_local\): .*address already in use/i)
  })

  it('refuses a CPU thread that does not exist', async () => {
    const { code, stderr } = await penstock(['run', good, '--cpu', '1000', '-d', '1s'])
    expect(code).toBe(1)
    expect(stderr).toContain('CPU thread 1000 cannot be used here: this process may use')
  })
})

describe('components', () => {
  it('lists every key', async () => {
    const { code, stdout } = await penstock(['components', '-o', 'json'])
    expect(code).toBe(0)
    const listed = JSON.parse(stdout).map(({ key }: { key: string }) => key)
    expect(listed).toEqual([...COMPONENT_KEYS].sort())
  })

  it('shows fields, units, ranges, defaults, live fields and metrics of one', async () => {
    const { code, stdout } = await penstock(['components', 'uniform_loss'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/loss_prob +double +probability +0 to 1 +required +yes/)
    expect(stdout).toMatch(/emulated_loss +counter +packets/)
  })

  it('suggests the nearest key, or says where all of them are', async () => {
    const { code, stderr } = await penstock(['components', 'uniform_los'])
    expect(code).toBe(1)
    expect(stderr).toContain('Did you mean "uniform_loss"?')
    expect((await penstock(['components', 'Encrypt'])).stderr).toContain('there are chacha20_encrypt, ssl_encrypt.')
    expect((await penstock(['components', 'multipath'])).stderr).toContain('Of that kind there are raft.')
    expect((await penstock(['components', 'ethernet'])).stderr).toContain('Of that kind there are tap.')
    expect((await penstock(['components', 'frob'])).stderr).toContain('`penstock components` lists those there are')
  })
})

describe('doctor, config, completion, version', () => {
  it('grades what this machine can do', async () => {
    const { code, stdout } = await penstock(['doctor', '-o', 'json'])
    const findings: { check: string; grade: string; advice?: string }[] = JSON.parse(stdout)
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining(['kernel', 'addon', 'udp', 'tun', 'cpus', 'buffers', 'simd']),
    )
    for (const { grade, advice } of findings) if (grade !== 'ok') expect(advice).toBeTruthy()
    expect(code).toBe(findings.some(({ grade }) => grade === 'fail') ? 1 : 0)
  })

  it('says whether a node could be started with a configuration', async () => {
    const cluster = 'cluster: { name: h, natsServers: [nats://a], credentialsFile: hub.creds }'
    const text = `hubServer:\n  keyFile: hub.key\n  address: https://a.example\n  ${cluster}\n`
    const file = directory.file('cluster.yaml', text)
    const findingOf = async () => {
      const findings = JSON.parse((await penstock(['doctor', '-c', file, '-o', 'json'])).stdout)
      return findings.find(({ check }: { check: string }) => check === 'configuration')
    }
    expect(await findingOf()).toMatchObject({ grade: 'fail', found: expect.stringContaining('there is no hub key in') })
    await penstock(['hub', 'key', 'create', join(dirname(file), 'hub.key')])
    const noFile = 'hubServer.cluster.credentialsFile: cannot read'
    expect(await findingOf()).toMatchObject({ grade: 'fail', found: expect.stringContaining(noFile) })
    const creds = directory.file('hub.creds', '')
    const none = `hubServer.cluster.credentialsFile: ${creds} holds no credentials`
    expect(await findingOf()).toMatchObject({ grade: 'fail', found: expect.stringContaining(none) })
    const operator = new NatsOperator()
    directory.file('hub.creds', operator.credentials('a', Date.UTC(2020, 0) / 1_000))
    const expired = `the credentials in ${creds} expired on 2020-01-01T00:00:00.000Z`
    expect(await findingOf()).toMatchObject({ grade: 'warn', found: expired })
    directory.file('hub.creds', operator.credentials('a'))
    expect(await findingOf()).toMatchObject({ grade: 'ok', found: `${file} makes a server of a hub of several` })
    directory.file('cluster.yaml', 'hubServer: { cluster: {} }\n')
    expect(await findingOf()).toMatchObject({ grade: 'fail', found: expect.stringContaining('has nothing below it') })
  })

  it('shows where every setting of a node comes from', async () => {
    const file = directory.file('penstock.yaml', 'http:\n  address: 127.0.0.1:1234\ntelemetry:\n  interval: 500ms\n')
    const args = ['config', 'check', '-c', file, '--grpc', 'none', '-o', 'json']
    const { code, stdout } = await penstock(args, { env: { PENSTOCK_LOG_LEVEL: 'error' } })
    expect(code).toBe(0)
    const settings = new Map(JSON.parse(stdout).map((entry: { key: string }) => [entry.key, entry]))
    expect(settings.get('http.address')).toMatchObject({ value: '127.0.0.1:1234', origin: `${file}:2` })
    expect(settings.get('telemetry.interval')).toMatchObject({ value: '500ms', origin: `${file}:4` })
    expect(settings.get('grpc.address')).toMatchObject({ value: 'none', origin: '--grpc' })
    expect(settings.get('log.level')).toMatchObject({ value: 'error', origin: 'PENSTOCK_LOG_LEVEL' })
    expect(settings.get('http.tls')).toMatchObject({ origin: 'default' })
    const bad = await penstock(['config', 'check', '-c', directory.file('bad.yaml', 'htp: 1\n')])
    expect(bad.code).toBe(1)
    expect(bad.stderr).toContain('unknown key "htp". Did you mean "http"?')
  })

  it('completes commands, options and component keys in bash', async () => {
    const { stdout } = await penstock(['completion', 'bash'])
    const file = directory.file('completion.bash', stdout)
    const complete = (...words: string[]): string[] => {
      const quoted = words.map((word) => `'${word}'`).join(' ')
      const script = `source ${file}; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; COMP_LINE='${words.join(' ')}'; COMP_POINT=${words.join(' ').length}; _penstock; printf '%s\\n' "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
    }
    expect(complete('penstock', 'pip')).toEqual(['pipelines'])
    expect(complete('penstock', 'pipelines', 'sta')).toEqual(['start'])
    expect(complete('penstock', 'pipelines', 'start', 'x', '--fo')).toEqual(['--follow'])
    expect(complete('penstock', 'components', 'reed_solomon_d')).toEqual(['reed_solomon_decoder'])
    expect(complete('penstock', 'status', '-o', 'j')).toEqual(['json'])
    expect(complete('penstock', 'nodes', '--w')).toEqual(['--watch'])
    expect(complete('penstock', 'impair', '--profile', 'l')).toEqual(['leo-satellite', 'lte'])
    // Names of the format that this version has no component for are not offered.
    const offered = complete('penstock', 'components', '').filter((word) => !word.startsWith('-'))
    expect(offered.sort()).toEqual([...components.keys()].sort())
  })

  it('prints its version', async () => {
    const { stdout } = await penstock(['version', '-o', 'json'])
    expect(JSON.parse(stdout).penstock).toMatch(/^\d+\.\d+\.\d+$/)
    for (const flag of ['--version', '-V']) {
      expect((await penstock([flag])).stdout.trim()).toBe(JSON.parse(stdout).penstock)
      expect((await createProgram([flag])).commands, 'for which it loads no command').toEqual([])
    }
  })
})
