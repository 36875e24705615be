/** The commands of penstock on docs/tasks.md work as they are written, and are as many as its table says. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, plainEnvironment, scratch, start } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

const page = readFileSync(join(packageRoot(), 'docs/tasks.md'), 'utf8')

/** What is below a heading. */
function sectionOf(heading: string): string {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  return section.split('\n## ')[0] as string
}

/** penstock's commands below a heading. */
function commandsOf(heading: string): string[] {
  return /```sh\n([\s\S]*?)\n```/.exec(sectionOf(heading))?.[1]?.split('\n') ?? []
}

/** The files below a heading that are to be written. */
const filesOf = (heading: string): string[] =>
  [...sectionOf(heading).matchAll(/```yaml\n([\s\S]*?\n)```/g)].map(([, file]) => file as string)

const directory = scratch()
const clone = join(directory.path, 'clone')
for (const name of ['bin', 'clone']) mkdirSync(join(directory.path, name))
cpSync(join(packageRoot(), 'examples'), join(clone, 'examples'), { recursive: true })
const launcher = join(packageRoot(), 'bin/penstock.js')
writeFileSync(join(directory.path, 'bin/penstock'), `#!/bin/sh\nexec '${process.execPath}' '${launcher}' "$@"\n`, {
  mode: 0o755,
})
const nodes: ChildProcess[] = []
afterEach(async () => {
  for (const node of nodes.splice(0)) {
    const gone = once(node, 'exit')
    if (node.exitCode === null && node.signalCode === null) {
      node.kill('SIGTERM')
      await gone
    }
  }
})
afterAll(() => directory.dispose())

/** Types a command; gives what it prints, and fails unless it succeeds. */
async function run(command: string, env: Record<string, string> = {}): Promise<string> {
  const path = `${directory.path}/bin:${process.env.PATH}`
  const child = spawn('bash', ['--norc', '-c', command], {
    cwd: clone,
    env: { ...plainEnvironment(), PATH: path, ...env },
    stdio: 'pipe',
  })
  const gone = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await gone
  expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' })
  return stdout
}

/** A node with its state in `data`; gives its address. */
async function up(data: string, ...flags: string[]): Promise<string> {
  const own = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--log-level', 'error']
  const node = start(['up', '--data-dir', join(directory.path, data), ...own, ...flags])
  nodes.push(node)
  return `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}`
}

/** Types the commands below a heading. */
function task(heading: string, body: (commands: string[]) => Promise<void>): void {
  const commands = commandsOf(heading)
  it(`${heading}, in ${commands.length}`, { timeout: 180_000 }, () => body(commands))
}

describe('tasks.md', () => {
  it.each([
    ['A bad link', 'a bad link for a test'],
    ['A tunnel', 'a tunnel with repair'],
    ['Three nodes', 'three nodes from one'],
    ['Tune a code', 'tune a code'],
    ['Move a node', 'move a node'],
  ])('counts the commands of "%s" right', (heading, row) => {
    const [, count] = new RegExp(`^\\| \\[${row}\\][^|]*\\| (\\d+) command`, 'm').exec(page) ?? []
    expect(commandsOf(heading)).toHaveLength(Number(count))
  })

  task('A bad link', async ([command = '']) => {
    const meant = command.replace('npm test', 'printenv PENSTOCK_IMPAIR_ADDRESS')
    expect(await run(meant)).toBe('127.0.0.1:7000\n')
  })

  it.skipIf(process.getuid?.() !== 0)(
    'A tunnel carries ping between two namespaces',
    { timeout: 120_000 },
    async () => {
      const [a = '', b = ''] = commandsOf('A tunnel')
      const names = [`tasks-a-${process.pid}`, `tasks-b-${process.pid}`] as const
      const ip = (...args: string[]) => execFileSync('ip', args)
      for (const name of names) ip('netns', 'add', name)
      try {
        ip('-n', names[0], 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'veth0', 'netns', names[1])
        for (const [i, name] of names.entries()) {
          ip('-n', name, 'address', 'add', `10.201.0.${i + 1}/24`, 'dev', 'veth0')
          ip('-n', name, 'link', 'set', 'veth0', 'up')
        }
        for (const [i, command] of [a, b].entries()) {
          const path = `${directory.path}/bin:${process.env.PATH}`
          const words = ['netns', 'exec', names[i] as string, 'bash', '-c', `exec ${command}`]
          nodes.push(spawn('ip', words, { cwd: clone, env: { ...plainEnvironment(), PATH: path }, stdio: 'ignore' }))
        }
        const ping = () =>
          run(`ip netns exec ${names[0]} ping -q -c 1 -W 1 10.202.0.2`).then(
            () => true,
            () => false,
          )
        await until(ping)
      } finally {
        for (const name of names) ip('netns', 'del', name)
      }
    },
  )

  task('Three nodes', async (commands) => {
    const [file = ''] = filesOf('Three nodes')
    writeFileSync(join(clone, 'first.yaml'), file)
    const hub = await up('hub', '--hub')
    const edges = [await up('edge-1', '--node-name', 'edge-1'), await up('edge-2', '--node-name', 'edge-2')]
    const env = { PENSTOCK_URL: hub }
    const joining: Promise<string>[] = []
    for (const command of commands) {
      const meant = command
        .replace('http://127.0.0.1:8769', hub)
        .replace('http://127.0.0.1:8779', edges[0] as string)
        .replace('http://127.0.0.1:8789', edges[1] as string)
      if (meant.endsWith('&')) joining.push(run(meant.slice(0, -1), env))
      else if (meant === 'penstock authentication-requests') {
        // A person answers by key.
        const pending = async () => JSON.parse(await run('penstock authentication-requests list --json', env)).length
        await until(async () => (await pending()) === 2)
        await run('penstock authentication-requests approve --all', env)
        await Promise.all(joining)
      } else await run(meant, env)
    }
    for (const node of ['.', 'edge-1', 'edge-2']) {
      const flags = node === '.' ? [] : ['--node', node]
      const { stdout } = await penstock(['pipelines', 'list', '--json', ...flags], { env })
      expect(JSON.parse(stdout)).toMatchObject([{ name: 'first', currentRun: { state: 'RUNNING' } }])
    }
  })

  task('Tune a code', async ([command = '']) => {
    expect(await run(command)).not.toBe('')
  })

  task('Move a node', async (commands) => {
    const env = { PENSTOCK_URL: await up('old') }
    await run('penstock pipelines create first examples/generator.json', env)
    const { nodeId } = JSON.parse(await run('penstock status --json', env))
    for (const command of commands) {
      // What systemd and ssh do, here: the service is stopped and started, and the other machine is another directory.
      if (command.startsWith('sudo systemctl disable')) {
        const gone = once(nodes[0] as ChildProcess, 'exit')
        nodes[0]?.kill('SIGTERM')
        await gone
      } else if (command.includes('enable --now')) {
        const moved = { PENSTOCK_URL: await up('new') }
        expect(JSON.parse(await run('penstock status --json', moved))).toMatchObject({ nodeId, pipelines: 1 })
      } else {
        const [from = '', to = ''] = command.replaceAll('sudo ', '').split(' | ')
        const [, there = ''] = /^ssh new '(.*)'$/.exec(to) ?? []
        const place = (name: string) => join(directory.path, name)
        const old = from.replaceAll('/var/lib/penstock', place('old'))
        await run(`${old} | (${there.replaceAll('/var/lib/penstock', place('new'))})`)
      }
    }
  })
})
