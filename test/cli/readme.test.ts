/** What README and guide tell people to type works as it is written. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { packageRoot } from '../../src/api/package-root.ts'
import { settings } from '../../src/node/config.ts'
import { lineOf, penstock, scratch, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'

const directory = scratch()
afterAll(() => directory.dispose())

it('creates, starts, follows and stops a pipeline with curl, then another with the command line', async () => {
  const readme = readFileSync(join(packageRoot(), 'README.md'), 'utf8')
  const [, block] = /```sh\n(API=[\s\S]*?)```/.exec(readme) ?? []
  const node = start(['up', '--data-dir', `${directory.path}/data`, '--http', '127.0.0.1:0', '--grpc', 'none'])
  try {
    const [, address] = await lineOf(node, /^penstock ready http=(\S+)/)
    const script = block.replace('127.0.0.1:8769', address).replaceAll('body.json', `${directory.path}/body.json`)
    // curl -m ends a stream that goes on with exit code 28.
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-uc', script], { cwd: packageRoot() })
    expect(stdout).toContain(': ready')
    expect(stdout).toMatch(/data: ?\{"messages":\[.*"message":"running"/)
    expect(stdout).toMatch(/data: ?\{"metricCollections":\[/)
    expect(stdout).toMatch(/\{\}\s*$/)
    expect(stdout).not.toContain('"code"')
    const [, commands] = /```sh\n(penstock pipelines create [\s\S]*?)```/.exec(readme) ?? []
    // What a person ends with Ctrl-C.
    const bounded = commands.replace('--follow', '').replace(/telemetry \w+/, '$& --count 1')
    const shell = `set -e; penstock() { '${process.execPath}' bin/penstock.js "$@"; }; ${bounded}`
    const env = { ...process.env, PENSTOCK_URL: `http://${address}` }
    const said = await promisify(execFile)('bash', ['--norc', '-uc', shell], { cwd: packageRoot(), env })
    expect(said.stdout).toMatch(/started run [\s\S]*METRIC[\s\S]*stopping\s*$/)
    expect(said.stderr).toBe('')
  } finally {
    node.kill('SIGTERM')
  }
})

it('joins a node to a hub and runs a pipeline there, in six commands', async () => {
  const readme = readFileSync(join(packageRoot(), 'README.md'), 'utf8')
  const [, block = ''] = /```sh\n(penstock up --hub[\s\S]*?)```/.exec(readme) ?? []
  const commands = block.trim().split('\n')
  expect(commands).toHaveLength(6)
  // Free ports instead of the defaults, which a node on this machine may have.
  let url = ''
  let edgeUrl = ''
  const wordsOf = (command = '') =>
    command
      .replace(/ +#.*/, '')
      .replace('http://127.0.0.1:8769', url)
      .replace('http://127.0.0.1:8779', edgeUrl)
      .replaceAll('./', `${directory.path}/`)
      .trim()
      .split(' ')
      .slice(1)
  const [hubCommand, edgeCommand, ask, answer, create, run] = commands
  const free = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0']
  const hub = start([...wordsOf(hubCommand), ...free])
  const edge = start([...wordsOf(edgeCommand?.replace(/--http.*/, '')), ...free])
  try {
    url = `http://${(await lineOf(hub, /^penstock ready http=(\S+)/))[1]}`
    edgeUrl = `http://${(await lineOf(edge, /^penstock ready http=(\S+)/))[1]}`
    const env = { PENSTOCK_URL: url }
    const terminal = new PseudoTerminal(wordsOf(answer), env)
    await terminal.see(/no node asks to join/)
    const asked = penstock(wordsOf(ask), { env })
    await terminal.see(/edge/)
    terminal.type(KEYS.down)
    terminal.type(KEYS.enter)
    await terminal.see(/approved edge/)
    terminal.type('q')
    expect(await asked).toMatchObject({ code: 0 })
    expect(await penstock(wordsOf(create), { env })).toMatchObject({ code: 0 })
    const follower = start(wordsOf(run), env)
    expect((await lineOf(follower, /^started run (\S+)$/))[1]).toBeDefined()
    follower.kill('SIGINT')
    const { stdout } = await penstock(['pipelines', 'list', '-o', 'json'], { env: { PENSTOCK_URL: edgeUrl } })
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'first', started: true }])
  } finally {
    hub.kill('SIGKILL')
    edge.kill('SIGKILL')
  }
})

it('lists every setting of hub, access and listeners with its flag', () => {
  const guide = readFileSync(join(packageRoot(), 'docs/hub.md'), 'utf8')
  const told = [...guide.matchAll(/^\| `([\w.]+)` +\| `--([\w-]+)` +\|/gm)].map(([, key, flag]) => [key, flag])
  const known = settings.filter(({ key }) => !/^(telemetry|log)\./.test(key)).map(({ key, flag }) => [key, flag])
  expect(told.sort()).toEqual(known.sort())
})
