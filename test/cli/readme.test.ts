/** What README and guide tell people to type works as it is written, and leaves nothing behind where it is typed. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, expect, it } from 'vitest'
import { settings } from '../../src/node/settings.ts'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, plainEnvironment, scratch } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'
import '../harness/slow.ts'

const directory = scratch()
/** All that was typed; a test that has run into its time limit has not come to ending it. */
const typed = new Set<ChildProcess>()
afterEach(async () => {
  for (const child of typed) await end(child)
  typed.clear()
})
afterAll(() => directory.dispose())
const readme = readFileSync(join(packageRoot(), 'README.md'), 'utf8')

/** What a person has: a clone to type in, the command on the path, a directory for temporary files. */
const clone = join(directory.path, 'clone')
const environment = {
  ...plainEnvironment(),
  PATH: `${directory.path}/bin:${process.env.PATH}`,
  TMPDIR: join(directory.path, 'tmp'),
  // A walk must not find, nor leave, anything there.
  HOME: join(directory.path, 'home'),
  XDG_STATE_HOME: '',
}
for (const name of ['bin', 'tmp', 'home', 'clone']) mkdirSync(join(directory.path, name))
cpSync(join(packageRoot(), 'examples'), join(clone, 'examples'), { recursive: true })
const launcher = join(packageRoot(), 'bin/penstock.js')
writeFileSync(join(directory.path, 'bin/penstock'), `#!/bin/sh\nexec '${process.execPath}' '${launcher}' "$@"\n`, {
  mode: 0o755,
})

const left = () => ['clone', 'home'].map((name) => readdirSync(join(directory.path, name), { recursive: true }).sort())
const before = left()

/** Types one command without waiting for its end. */
function type(command: string, env: Record<string, string> = {}): ChildProcess {
  const child = spawn('bash', ['--norc', '-c', `exec ${command}`], {
    cwd: clone,
    env: { ...environment, ...env },
    stdio: 'pipe',
  })
  typed.add(child)
  return child
}

/** Types a whole block; rejects unless it succeeds. */
function run(block: string, env: Record<string, string> = {}) {
  const options = { cwd: clone, env: { ...environment, ...env } }
  const running = promisify(execFile)('bash', ['--norc', '-uc', block], options)
  typed.add(running.child)
  return running
}

/** Ends at once what has not ended by itself. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Ends a node in order. */
async function stop(node: ChildProcess): Promise<void> {
  const gone = once(node, 'close')
  node.kill('SIGTERM')
  await gone
}

const free = { PENSTOCK_HTTP_ADDRESS: '127.0.0.1:0', PENSTOCK_GRPC_ADDRESS: '127.0.0.1:0' }

it('creates, starts, follows and stops a pipeline with curl, then another with the command line', async () => {
  const [, up = ''] = /```sh\n(penstock up [^\n]*)\n```/.exec(readme) ?? []
  const [, block = ''] = /```sh\n(API=[\s\S]*?)```/.exec(readme) ?? []
  const node = type(up, free)
  try {
    const [, address = ''] = await lineOf(node, /^penstock ready http=(\S+)/)
    // curl -m ends a stream that goes on with exit code 28.
    const { stdout } = await run(block.replace('127.0.0.1:8769', address))
    expect(stdout).toContain(': ready')
    expect(stdout).toMatch(/data: ?\{"messages":\[.*"message":"running"/)
    expect(stdout).toMatch(/data: ?\{"metricCollections":\[/)
    expect(stdout).toMatch(/\{\}\s*$/)
    expect(stdout).not.toContain('"code"')
    const [, commands = ''] = /```sh\n(penstock pipelines create [\s\S]*?)```/.exec(readme) ?? []
    // What a person ends with Ctrl-C.
    const bounded = commands.replace('--follow', '').replace(/telemetry \w+/, '$& --count 1')
    const said = await run(`set -e; ${bounded}`, { PENSTOCK_URL: `http://${address}` })
    expect(said.stdout).toMatch(/started run [\s\S]*METRIC[\s\S]*stopping\s*$/)
    expect(said.stderr).toBe('')
  } finally {
    await stop(node)
  }
  expect(left()).toEqual(before)
})

it('joins a node to a hub and runs a pipeline there, in six commands', async () => {
  const [, block = ''] = /```sh\n(penstock up --hub[\s\S]*?)```/.exec(readme) ?? []
  const commands = block.trim().split('\n')
  expect(commands).toHaveLength(6)
  // Free ports instead of the defaults, which a node on this machine may have.
  let url = ''
  let edgeUrl = ''
  const meant = (command = '') =>
    command
      .replace(/ +#.*/, '')
      .replace('http://127.0.0.1:8769', url)
      .replace('http://127.0.0.1:8779', edgeUrl)
      .replace(/ --http 127\.0\.0\.1:8779 --grpc 127\.0\.0\.1:8780/, '')
  const [hubCommand, edgeCommand, ask, answer, create, follow] = commands
  const hub = type(meant(hubCommand), free)
  const edge = type(meant(edgeCommand), free)
  try {
    url = `http://${(await lineOf(hub, /^penstock ready http=(\S+)/))[1]}`
    edgeUrl = `http://${(await lineOf(edge, /^penstock ready http=(\S+)/))[1]}`
    const env = { PENSTOCK_URL: url }
    const terminal = new PseudoTerminal(meant(answer).trim().split(' ').slice(1), env)
    typed.add(terminal.process)
    await terminal.see(/no node asks to join/)
    const asked = run(meant(ask), env)
    await terminal.see(/edge/)
    terminal.type(KEYS.down)
    terminal.type(KEYS.enter)
    await terminal.see(/approved edge/)
    terminal.type('q')
    await asked
    await run(meant(create), env)
    const follower = type(meant(follow), env)
    expect((await lineOf(follower, /^started run (\S+)$/))[1]).toBeDefined()
    follower.kill('SIGINT')
    const { stdout } = await penstock(['pipelines', 'list', '-o', 'json'], { env: { PENSTOCK_URL: edgeUrl } })
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'first', started: true }])
  } finally {
    await Promise.all([hub, edge].map(stop))
  }
  expect(left()).toEqual(before)
})

it('lists every setting with its flag', () => {
  const guide = readFileSync(join(packageRoot(), 'docs/hub.md'), 'utf8')
  const told = [...guide.matchAll(/^\| `([\w.]+)` +\| `--([\w-]+)` +\|/gm)].map(([, key, flag]) => [key, flag])
  const known = settings.map(({ key, flag }) => [key, flag])
  expect(told.sort()).toEqual(known.sort())
})
