/** Completion in bash offers names that the node knows, and nothing, soon, where no node answers. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, lossy, penstock, plainEnvironment, scratch, start } from './cli.ts'

const directory = scratch()
let node: ChildProcess
let url: string
let run: string
let script: string

/** What bash offers after these words, the last of which is being typed; its words are broken as bash breaks them. */
function complete(words: readonly string[], address = url): string[] {
  const broken = words.flatMap((word) => word.split(/(:|=)/).filter((part, _, all) => part !== '' || all.length === 1))
  const quoted = broken.map((word) => `'${word.replaceAll(' ', '\\ ')}'`).join(' ')
  const line = words.map((word) => word.replaceAll(' ', '\\ ')).join(' ')
  const typed = `penstock() { "${process.execPath}" "${join(packageRoot(), 'bin/penstock.js')}" "$@"; }
source ${script}; COMP_WORDS=(${quoted}); COMP_CWORD=${broken.length - 1}; COMP_LINE='${line}'; COMP_POINT=${line.length}
_penstock; printf '%s\\n' "\${COMPREPLY[@]}"`
  const env = { ...plainEnvironment(), PENSTOCK_URL: address }
  return execFileSync('bash', ['-c', typed], { encoding: 'utf8', env })
    .trim()
    .split('\n')
    .filter((line) => line !== '')
}

/** What `penstock` is called with when each line is typed at an interactive shell in the directory, a Tab after it, then Enter. */
async function typed(lines: readonly string[]): Promise<string[][]> {
  const driver = fileURLToPath(new URL('terminal.py', import.meta.url))
  const shell = spawn('python3', [driver, 'bash', '--noprofile', '--norc', '-i'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd: directory.path,
    env: { ...plainEnvironment(), PENSTOCK_URL: url, PS1: '', LC_ALL: 'C.UTF-8' },
  })
  shell.stdin.write(`penstock() {
  if [[ "$1" == complete ]]; then "${process.execPath}" "${join(packageRoot(), 'bin/penstock.js')}" "$@"; return; fi
  printf '[called'; printf '<%s>' "$@"; echo ']'
}
source ${script}
${lines.map((line) => `${line}\t\n`).join('')}exit
\x04\x04`)
  const shown = await text(shell.stdout)
  const calls = shown.match(/\[called(<.*?>)\]/g) ?? []
  return calls.map((call) => [...call.matchAll(/<(.*?)>/g)].map(([, word]) => word as string))
}

beforeAll(async () => {
  node = start([
    'up',
    '--hub',
    '--node-name',
    'shed',
    '--data-dir',
    `${directory.path}/data`,
    '--http',
    '127.0.0.1:0',
    '--grpc',
    '127.0.0.1:0',
  ])
  url = `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}`
  const env = { PENSTOCK_URL: url }
  const config = directory.file('lossy.json', lossy)
  for (const name of ['uplink', 'up town', 'east:1', 'a "quoted" $name', 'logs', 'red\u001b[0m']) {
    expect((await penstock(['pipelines', 'create', name, config], { env })).code).toBe(0)
  }
  run = JSON.parse((await penstock(['pipelines', 'start', 'uplink', '--json'], { env })).stdout).runId
  script = directory.file('completion.bash', (await penstock(['completion', 'bash'])).stdout)
}, 60_000)
afterAll(async () => {
  const gone = once(node, 'exit')
  node.kill('SIGTERM')
  await gone
  directory.dispose()
})

describe('completion in bash', { timeout: 60_000 }, () => {
  it('knows the pipelines, quoted as the shell wants them', () => {
    expect(complete(['penstock', 'pipelines', 'start', 'up'])).toEqual(['up\\ town', 'uplink'])
    expect(complete(['penstock', 'pipelines', 'start', '--url', url, 'upl'], 'http://127.0.0.1:1')).toEqual(['uplink'])
  })

  it('knows runs, nodes, components, metrics and variables', () => {
    expect(complete(['penstock', 'pipelines', 'logs', run.slice(0, 6)])).toEqual([run])
    expect(complete(['penstock', 'pipelines', 'telemetry', '--run', ''])).toEqual([run])
    expect(complete(['penstock', 'pipelines', 'list', '--node', 's'])).toEqual(['shed'])
    expect(complete(['penstock', 'pipelines', 'telemetry', 'uplink', 's'])).toEqual(['sink', 'source'])
    expect(complete(['penstock', 'pipelines', 'logs', 'uplink', '--component', 'lo'])).toEqual(['loss'])
    expect(complete(['penstock', 'pipelines', 'telemetry', 'uplink', '--metric', 'emul'])).toEqual(['emulated_loss'])
    expect(complete(['penstock', 'pipelines', 'set', 'uplink', 'lo'])).toEqual(['loss='])
  })

  it('knows what a command takes: files, several pipelines or nodes, its own formats', () => {
    const file = `${directory.path}/lossy.json`
    expect(complete(['penstock', 'pipelines', 'apply', file.slice(0, -5)])).toEqual([file])
    expect(complete(['penstock', 'pipelines', 'export', '-o', file.slice(0, -5)])).toEqual([file])
    expect(complete(['penstock', 'pipelines', 'export', 'up town', 'upl'])).toEqual(['uplink'])
    expect(complete(['penstock', 'pipelines', 'start', 'up town', 'upl'])).toEqual([])
    expect(complete(['penstock', 'pipelines', 'apply', '--node', 'a', '--node', 's'])).toEqual(['shed'])
    expect(complete(['penstock', 'simulate', '-o', ''])).toEqual(['table', 'json', 'yaml', 'csv'])
    expect(complete(['penstock', 'schema', '-o', ''])).toEqual(['json', 'yaml'])
    expect(complete(['penstock', 'fec', 'advise', '--output', ''])).toEqual(['table', 'json', 'yaml'])
  })

  it('knows what an option takes: its choices, a file, or nothing that is known here', () => {
    expect(complete(['penstock', 'top', '--sort', 'd'])).toEqual(['drops'])
    expect(complete(['penstock', 'impair', '--direction='])).toEqual(['up', 'down'])
    expect(complete(['penstock', 'pipelines', 'tap', 'uplink', 'source', '--link-type', ''])).toContain('ethernet')
    const file = `${directory.path}/lossy.json`
    expect(complete(['penstock', 'up', '--hub-key-file', file.slice(0, -5)])).toEqual([file])
    // What is a switch here takes a file, or an address, elsewhere.
    expect(complete(['penstock', 'pipelines', 'logs', '-f', 'upl'])).toEqual(['uplink'])
    expect(complete(['penstock', 'pipelines', 'list', '-w', '--al'])).toEqual(['--all-nodes'])
    // Not pipelines, nor files.
    expect(complete(['penstock', 'pipelines', 'logs', '--level', ''])).toEqual([])
    expect(complete(['penstock', 'pipelines', 'telemetry', '-c', ''])).toEqual([])
    expect(complete(['penstock', 'run', '--duration', directory.path])).toEqual([])
  })

  it('completes to what is called with the name itself: with spaces, colons and quotes, in quotes, of files and beside directories', async () => {
    for (const name of ['pipelines', 'logs']) mkdirSync(`${directory.path}/${name}`)
    directory.file('my config.json', lossy)
    const lines = {
      'penstock pipel': ['pipelines'],
      'penstock validate my': ['validate', 'my config.json'],
      'penstock validate "my c': ['validate', 'my config.json'],
      'penstock hub key show my': ['hub', 'key', 'show', 'my config.json'],
      'penstock pipelines get lo': ['pipelines', 'get', 'logs'],
      'penstock pipelines get "up ': ['pipelines', 'get', 'up town'],
      'penstock pipelines show east:': ['pipelines', 'show', 'east:1'],
      'penstock pipelines get a': ['pipelines', 'get', 'a "quoted" $name'],
      'penstock pipelines get "a': ['pipelines', 'get', 'a "quoted" $name'],
      'penstock pipelines get re': ['pipelines', 'get', 're'],
      'penstock pipelines telemetry "up town" so': ['pipelines', 'telemetry', 'up town', 'source'],
      'penstock pipelines list --node=s': ['pipelines', 'list', '--node=shed'],
      'penstock pipelines update uplink my': ['pipelines', 'update', 'uplink', 'my config.json'],
    }
    expect(await typed(Object.keys(lines))).toEqual(Object.values(lines))
  })

  it('says nothing where no node answers, and where there is nothing to say', async () => {
    expect(
      complete(['penstock', 'pipelines', 'start', ''], 'http://127.0.0.1:1').filter((word) => !word.startsWith('-')),
    ).toEqual([])
    for (const words of [['pipelines', 'start'], ['nope'], ['pipelines', 'logs', '--lines', 'x'], []]) {
      const { code, stderr } = await penstock(['complete', '--', ...words], {
        env: { PENSTOCK_URL: 'http://127.0.0.1:1' },
      })
      expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
    }
  })
})
