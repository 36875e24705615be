/** Runs the real command line, as a person would, in a process of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'

const launcher = join(packageRoot(), 'bin/penstock.js')

export interface Result {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  env?: Record<string, string>
  input?: string
  /** Told of the process once it runs. */
  onStart?: (child: ChildProcess) => void
}

/** What commands under test find in their environment: nothing that would steer them. */
export function plainEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(PENSTOCK_|COLUMNS|NODE_OPTIONS)/.test(name)),
  )
}

/** Starts `penstock …args` without waiting. */
export function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [launcher, ...args], { stdio: 'pipe', env: { ...plainEnvironment(), ...env } })
}

/** Runs `penstock …args` to its end. */
export async function penstock(args: string[], { env, input = '', onStart }: RunOptions = {}): Promise<Result> {
  const child = start(args, env)
  // A command that ends before it has read its input is its own affair.
  child.stdin!.on('error', () => {})
  child.stdin!.end(input)
  onStart?.(child)
  const ended = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout!), text(child.stderr!)])
  const [code, signal] = await ended
  return { code, signal, stdout, stderr }
}

/** Resolves with the first line of standard output that matches. */
export async function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const match = pattern.exec(line)
    if (match) return match
  }
  throw new Error(`the command ended without a line like ${pattern}`)
}

/** Runs `penstock …args` and sends it a signal once it is ready for that: before, signals end it at once. */
export async function interrupted(args: string[], name: NodeJS.Signals): Promise<Result> {
  // Node.js itself takes the two others from the start.
  const takesHangup = ({ pid }: ChildProcess) => {
    const [, caught] = /^SigCgt:\s+(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return (BigInt(`0x${caught}`) & (1n << BigInt(constants.signals.SIGHUP - 1))) > 0n
  }
  let told: Promise<unknown> = Promise.resolve()
  const onStart = (child: ChildProcess) => {
    told = until(() => takesHangup(child), 'it takes signals').then(() => child.kill(name))
    told.catch(() => undefined)
  }
  const result = await penstock(args, { onStart })
  await told
  return result
}

/** Starts a node on free ports of this machine that samples ten times a second; its process, and where its API is. */
export async function startNode(
  dataDirectory: string,
  ...more: string[]
): Promise<{ node: ChildProcess; url: string }> {
  const ports = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0']
  const flags = ['--data-dir', dataDirectory, '--log-level', 'error', '--telemetry-interval', '100ms']
  const node = start(['up', ...ports, ...flags, ...more])
  return { node, url: `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}` }
}

/** What runs a command as an ordinary user who may nothing; undefined where that cannot be, or where that user cannot read this tree. */
export const NOBODY = ordinaryUser()

function ordinaryUser(): string[] | undefined {
  const through = [
    'setpriv',
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    '--inh-caps=-all',
    '--bounding-set=-all',
  ]
  const [program, ...args] = [...through, process.execPath, launcher, 'version']
  return process.getuid?.() === 0 && spawnSync(program as string, args).status === 0 ? through : undefined
}

/** A directory that every user may enter, outside of the suite's own, which `dispose` removes. */
export function scratchForAll(): Scratch {
  const made = scratch('/tmp')
  chmodSync(made.path, 0o755)
  return made
}

interface Scratch {
  readonly path: string
  file(name: string, content: unknown): string
  dispose(): void
}

/** A directory that `dispose` removes. */
export function scratch(below = tmpdir()): Scratch {
  const path = mkdtempSync(join(below, 'penstock-test-'))
  return {
    path,
    file(name, content) {
      const at = join(path, name)
      writeFileSync(at, typeof content === 'string' ? content : JSON.stringify(content))
      return at
    },
    dispose: () => rmSync(path, { recursive: true, force: true }),
  }
}

/** Random losses between a source and a sink, without sockets. */
export const lossy = {
  version: 1,
  engine_config: {
    pipeline: {
      source: { uniform_traffic_source: { output: 'sent', total_packets: 0, interval: 1 } },
      loss: { uniform_loss: { input: 'sent', output: 'kept', loss_prob: 0.1 } },
      sink: { traffic_sink: { input: 'kept', mtu: 1500 } },
    },
  },
  variables: [{ id: 'loss', paths: ['/engine_config/pipeline/loss/uniform_loss/loss_prob'] }],
}
