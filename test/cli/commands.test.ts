/** Every command has help that fits a terminal, and stands in the reference with an example that works as it is written. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { COMMAND_EXAMPLES } from '../../src/cli/command-examples.ts'
import { COMMANDS_PAGE, commandsPage, OUTPUT_DIRECTORY, outputFiles } from '../../src/cli/command-reference.ts'
import { createProgram } from '../../src/cli/program.ts'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { plainEnvironment, scratch } from './cli.ts'
import { commandsOf } from './commands.ts'
import '../harness/slow.ts'

const all = commandsOf(await createProgram())
/** Those that do something by themselves, and are shown. */
const verbs = all.filter(({ path, command }) => command.commands.length === 0 && path !== 'complete')

describe('help', () => {
  it.each(all.map(({ path }) => path))('of %s fits 80 columns', async (path) => {
    const { command } = commandsOf(await createProgram()).find((each) => each.path === path)!
    let shown = ''
    command.configureOutput({
      writeOut: (given) => {
        shown += given
      },
      getOutHelpWidth: () => 80,
    })
    command.outputHelp()
    expect(shown).toContain('Usage: penstock')
    expect(shown.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  it.each(all.filter(({ path }) => !path.includes(' ')).map(({ path }) => path))(
    'of %s is the same where only that is loaded',
    async (name) => {
      const alone = (await createProgram([name])).commands.find((each) => each.name() === name)!
      expect(alone.helpInformation()).toBe(all.find(({ path }) => path === name)!.command.helpInformation())
    },
  )

  it('shows a value that is taken as it stands where nothing is given', () => {
    const wrong = all.flatMap(({ path, command }) =>
      command.options
        .filter((option) => option.parseArg !== undefined && option.defaultValue !== undefined)
        .filter(({ variadic, defaultValue }) => !variadic && !Array.isArray(defaultValue))
        .filter((option) => {
          const shown = option.defaultValueDescription ?? String(option.defaultValue)
          try {
            return option.parseArg?.(shown, undefined) !== option.defaultValue
          } catch {
            return true
          }
        })
        .map(({ flags }) => `${path} ${flags}`),
    )
    expect(wrong).toEqual([])
  })

  it('shows the example', () => {
    const { command } = all.find(({ path }) => path === 'pipelines start')!
    let shown = ''
    command.configureOutput({
      writeOut: (given) => {
        shown += given
      },
    })
    command.outputHelp()
    expect(shown).toContain('\nExample:\n  penstock pipelines start first\n')
  })
})

describe('the reference: if this fails, run "npm run docs"', () => {
  it('is up to date', async () => {
    const root = packageRoot()
    expect(readFileSync(join(root, COMMANDS_PAGE), 'utf8')).toBe(commandsPage(await createProgram()))
    const files = outputFiles()
    expect(readdirSync(join(root, OUTPUT_DIRECTORY)).sort()).toEqual([...files.keys()].sort())
    for (const [file, schema] of files) {
      expect(readFileSync(join(root, OUTPUT_DIRECTORY, file), 'utf8'), file).toBe(schema)
    }
  })

  it('has an example of every command', () => {
    expect(verbs.map(({ path }) => path).filter((path) => COMMAND_EXAMPLES[path] === undefined)).toEqual([])
  })
})

/** Their own tests run them: demo-cluster.test.ts, demo-hub.test.ts, demo-operate.test.ts, hub-key.test.ts, hub-move.test.ts, node.test.ts, readme.test.ts. */
const RUN_ELSEWHERE = [
  'demo',
  'demo-cluster',
  'demo-hub',
  'demo-operate',
  'authentication-requests watch',
  'hub key adopt',
  'hub export',
  'hub import',
]

describe('examples', () => {
  const directory = scratch()
  afterAll(() => directory.dispose())
  const clone = join(directory.path, 'clone')
  const launcher = join(packageRoot(), 'bin/penstock.js')
  for (const name of ['bin', 'tmp', 'home', 'clone']) mkdirSync(join(directory.path, name))
  cpSync(join(packageRoot(), 'examples'), join(clone, 'examples'), { recursive: true })
  writeFileSync(join(directory.path, 'bin/penstock'), `#!/bin/sh\nexec '${process.execPath}' '${launcher}' "$@"\n`, {
    mode: 0o755,
  })
  const environment: Record<string, string | undefined> = {
    ...plainEnvironment(),
    PATH: `${directory.path}/bin:${process.env.PATH}`,
    TMPDIR: join(directory.path, 'tmp'),
    HOME: join(directory.path, 'home'),
    PENSTOCK_HTTP_ADDRESS: '127.0.0.1:0',
    PENSTOCK_GRPC_ADDRESS: '127.0.0.1:0',
  }

  const type = (command: string): ChildProcess =>
    spawn('bash', ['--norc', '-c', command], { cwd: clone, env: environment, stdio: 'pipe' })

  /** Types a command and waits for its end; rejects unless it succeeds. */
  async function run(command: string): Promise<string> {
    const child = type(command)
    const gone = once(child, 'close')
    const [stdout, stderr] = await Promise.all([text(child.stdout!), text(child.stderr!)])
    const [code] = await gone
    expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' })
    return stdout
  }

  /** Types a command that goes on; gives it with the first line that matches. */
  async function begin(command: string, pattern: RegExp): Promise<[ChildProcess, RegExpExecArray]> {
    const child = type(`exec ${command}`)
    for await (const line of createInterface({ input: child.stdout! })) {
      const match = pattern.exec(line)
      if (match !== null) return [child, match]
    }
    throw new Error(`${command} ended without a line like ${pattern}`)
  }

  it('work as they are written, one after the other', { timeout: 300_000 }, async () => {
    const known = new Set(verbs.map(({ path }) => path))
    const [hub, [, address]] = await begin(COMMAND_EXAMPLES.up, /^penstock ready http=(\S+)/)
    const [edge, [, edgeAddress]] = await begin(
      'penstock up --node-name edge --data-dir "$(mktemp -d)"',
      /^penstock ready http=(\S+)/,
    )
    environment.PENSTOCK_URL = `http://${address}`
    const meant = (command: string) =>
      command.replace('127.0.0.1:8769', address as string).replace('127.0.0.1:8779', edgeAddress as string)
    let joining: Promise<string> | undefined
    try {
      await run('penstock pipelines create operate examples/operate.json')
      for (const [path, given] of Object.entries(COMMAND_EXAMPLES)) {
        if (path === 'up' || RUN_ELSEWHERE.includes(path) || !known.has(path)) continue
        const example = meant(given)
        if (path === 'pipelines logs') {
          const [follower] = await begin(example, /running/)
          const gone = once(follower, 'exit')
          follower.kill('SIGINT')
          expect(await gone).toEqual([0, null])
        } else if (path === 'authenticate-by-request') {
          joining = run(example)
          await until(async () => (await run('penstock authentication-requests list')).includes('edge'))
        } else await run(example)
        if (path === 'authentication-requests approve') expect(await joining).toContain('joined')
      }
    } finally {
      for (const node of [hub, edge]) {
        const gone = once(node, 'exit')
        node.kill('SIGTERM')
        await gone
      }
    }
  })
})
