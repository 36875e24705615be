/** Two network namespaces joined by a cable, and processes in them. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** What is missing to make namespaces; empty: nothing. */
export function namespacesLack(): string[] {
  if (spawnSync('which', ['ip']).status !== 0) return ['ip']
  if (process.getuid?.() !== 0) return ['root']
  if (spawnSync('unshare', ['-n', 'true']).status !== 0) return ['the right to make network namespaces']
  return []
}

const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: 'pipe' })

/** Addresses of the two ends; they exist in the namespaces only. */
export const NEAR = '10.91.7.1'
export const FAR = '10.91.7.2'

/** Namespaces `near` and `far` whose only ways are loopback and the cable between NEAR and FAR. */
export class Cable {
  readonly near = `penstock-near-${process.pid}`
  readonly far = `penstock-far-${process.pid}`
  readonly #children: ChildProcess[] = []

  constructor() {
    ip('netns', 'add', this.near)
    ip('netns', 'add', this.far)
    ip('-n', this.near, 'link', 'add', 'cable', 'type', 'veth', 'peer', 'name', 'cable', 'netns', this.far)
    for (const [namespace, address] of [
      [this.near, NEAR],
      [this.far, FAR],
    ] as const) {
      ip('-n', namespace, 'address', 'add', `${address}/30`, 'dev', 'cable')
      ip('-n', namespace, 'link', 'set', 'cable', 'up')
      ip('-n', namespace, 'link', 'set', 'lo', 'up')
    }
  }

  /** Starts a node.js program in a namespace; it ends with the cable. */
  spawn(namespace: string, program: string, args: readonly string[] = []): ChildProcess {
    const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, program, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#children.push(child)
    return child
  }

  /** Ends the processes and removes the namespaces. */
  async dispose(): Promise<void> {
    await Promise.all(
      this.#children.map((child) => {
        if (child.exitCode !== null || child.signalCode !== null) return undefined
        const gone = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGKILL')
        return gone
      }),
    )
    for (const namespace of [this.near, this.far]) spawnSync('ip', ['netns', 'delete', namespace])
  }
}

export interface Answer {
  status?: number
  body?: string
  code?: number
  open?: boolean
  error?: string
  text?: string
  over?: boolean
}

/** The caller of caller.mjs in a namespace. */
export class Caller {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #last = 0

  constructor(cable: Cable, namespace: string) {
    this.#child = cable.spawn(namespace, fileURLToPath(new URL('caller.mjs', import.meta.url)))
    this.#child.stderr?.pipe(process.stderr)
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { id, ...answer } = JSON.parse(line) as Answer & { id: number }
      this.#waiting.get(id)?.(answer)
      this.#waiting.delete(id)
    })
  }

  /** Id of the command sent last, by which `read` knows its stream. */
  get last(): number {
    return this.#last
  }

  call(command: Record<string, unknown>): Promise<Answer> {
    this.#last++
    const id = this.#last
    this.#child.stdin?.write(`${JSON.stringify({ id, ...command })}\n`)
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }
}
