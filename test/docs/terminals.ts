/** Runs the commands of a page as somebody would who types them, each block in the terminal it names, and holds what they print against the page. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../src/package-root.ts'
import { plainEnvironment, scratch } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'
import { type Difference, differenceOf } from './shown.ts'

/** How long a block may take: the longest of the pages runs for some ten seconds. */
const PATIENCE_MS = 60_000

/** Commands of a page, and the output that the page shows below them. */
export interface Block {
  readonly commands: string
  /** 1 where the page names none. */
  readonly terminal: number
  readonly shown?: string
  /** Its numbers were measured: those of another run are near them. */
  readonly measured: boolean
}

/** The ```sh blocks of a page, such as ```sh terminal-2, each with the ```text or ```text measured block right below it. */
export function blocksOf(page: string): Block[] {
  const fences = /^```sh(?: terminal-(\d))?\n([\s\S]*?)^```\n(?:\n```text( measured)?\n([\s\S]*?)^```\n)?/gm
  return [...page.matchAll(fences)].map(([, terminal = '1', commands = '', measured, shown]) => ({
    commands,
    terminal: Number(terminal),
    measured: measured !== undefined,
    ...(shown === undefined ? {} : { shown }),
  }))
}

/** A shell that goes on from block to block. */
class Terminal {
  readonly process: ChildProcess
  #told = ''
  /** What is printed when the last block has ended. */
  #end = ''

  constructor(command: readonly string[], cwd: string, env: Record<string, string | undefined>) {
    const [program = '', ...args] = [...command, 'bash', '--norc']
    this.process = spawn(program, args, { cwd, env, stdio: 'pipe', detached: true })
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on('data', (chunk) => {
        this.#told += chunk
      })
    }
  }

  /** Types a block once the last one has ended; gives what it prints until it ends, or until the page shows no more of it. */
  async type(file: string, block: Block): Promise<string> {
    await until(() => this.#told.endsWith(this.#end), 'the last block of the terminal has ended', PATIENCE_MS)
    const from = this.#told.length
    const end = `block ${file} ended\n`
    this.#end = end
    this.process.stdin?.write(`exec 2>&1; source ${file} < /dev/null; echo "${end.trimEnd()}"\n`)
    const told = () => this.#told.slice(from)
    const goesOn = () => block.shown?.endsWith('…\n') === true && check(block, told()) === undefined
    await until(
      () => told().endsWith(end) || goesOn(),
      () => `${block.commands}\nprinted:\n${told()}`,
      PATIENCE_MS,
    )
    return told().replace(end, '')
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const gone = once(this.process, 'exit')
    // The shell and all that it has started.
    process.kill(-(this.process.pid as number), 'SIGKILL')
    await gone
  }
}

const check = ({ shown, measured }: Block, told: string): Difference | undefined =>
  shown === undefined ? undefined : differenceOf(shown, told, measured)

/** Whether the terminals have a network of their own, in which every address is free and everything is allowed. */
export const hasOwnNetwork = process.getuid?.() === 0 && spawnSync('unshare', ['-n', '-m', 'true']).status === 0

/** Terminals in a directory with a copy of the examples and `penstock` on the path, in a network of their own where that can be. */
export class Desk {
  readonly #directory = scratch()
  readonly #terminals = new Map<number, Terminal>()
  readonly #network: ChildProcess | undefined
  #blocks = 0

  constructor() {
    const { path } = this.#directory
    for (const name of ['bin', 'work', 'home', 'tmp']) mkdirSync(join(path, name))
    cpSync(join(packageRoot(), 'examples'), join(path, 'work/examples'), { recursive: true })
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const programs = { penstock: `exec '${process.execPath}' '${launcher}' "$@"`, sudo: 'exec "$@"' }
    for (const [name, line] of Object.entries(programs)) {
      writeFileSync(join(path, 'bin', name), `#!/bin/sh\n${line}\n`, { mode: 0o755 })
    }
    const ready =
      'ip link set lo up; mkdir -p /run/netns; mount -t tmpfs none /run/netns; echo ready; exec sleep infinity'
    if (hasOwnNetwork) {
      const flags = ['-n', '-m', '--propagation', 'private']
      this.#network = spawn('unshare', [...flags, 'bash', '-c', ready], { stdio: ['ignore', 'pipe', 'inherit'] })
    }
  }

  async open(): Promise<void> {
    if (this.#network?.stdout) await once(this.#network.stdout, 'data')
  }

  /** Types the commands of a block; gives what they print, and how that differs from what the page shows. */
  async type(block: Block): Promise<{ told: string; difference: Difference | undefined }> {
    this.#blocks++
    const file = this.#directory.file(`block-${this.#blocks}.sh`, `set -o pipefail\n${block.commands}`)
    const told = await this.#terminal(block.terminal).type(file, block)
    return { told, difference: check(block, told) }
  }

  #terminal(number: number): Terminal {
    let terminal = this.#terminals.get(number)
    if (terminal === undefined) {
      const { path } = this.#directory
      const enter = this.#network ? ['nsenter', '-t', `${this.#network.pid}`, '-n', '-m', `--wd=${path}/work`] : []
      const home = { HOME: `${path}/home`, XDG_STATE_HOME: '', TMPDIR: `${path}/tmp` }
      const env = { ...plainEnvironment(), ...home, PATH: `${path}/bin:${process.env.PATH}` }
      terminal = new Terminal(enter, join(path, 'work'), env)
      this.#terminals.set(number, terminal)
    }
    return terminal
  }

  async close(): Promise<void> {
    await Promise.all([...this.#terminals.values()].map((terminal) => terminal.end()))
    this.#network?.kill('SIGKILL')
    this.#directory.dispose()
  }
}

/** A page of docs, by its path there. */
export const readPage = (page: string): string => readFileSync(join(packageRoot(), 'docs', page), 'utf8')
