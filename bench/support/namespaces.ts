/** Two network namespaces joined by a pair of interfaces, and commands run in them: needs root. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

export type Side = 'a' | 'b'

const SIDES: readonly Side[] = ['a', 'b']

/** Addresses of the two ends of the wire. */
export const WIRE: Record<Side, string> = { a: '10.201.0.1', b: '10.201.0.2' }

/** Runs a command to its end and returns what it wrote to standard output; throws with its error output when it fails. */
function command(program: string, ...options: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, options, { encoding: 'utf8' })
  if (error || status !== 0) throw new Error(`${program} ${options.join(' ')}: ${error?.message ?? stderr}`)
  return stdout
}

/** Two namespaces until `close`, which also ends what was spawned in them. */
export class Namespaces {
  private readonly names: Record<Side, string>
  private readonly children: ChildProcess[] = []

  constructor() {
    this.names = { a: `penstock-a-${process.pid}`, b: `penstock-b-${process.pid}` }
    for (const side of SIDES) command('ip', 'netns', 'add', this.names[side])
    try {
      this.ip('a', 'link', 'add', 'wire', 'type', 'veth', 'peer', 'name', 'wire', 'netns', this.names.b)
      for (const side of SIDES) {
        this.ip(side, 'link', 'set', 'lo', 'up')
        this.up(side, 'wire', WIRE[side], 1500)
      }
    } catch (error) {
      this.removeNames()
      throw error
    }
  }

  /** `ip` in a namespace. */
  ip(side: Side, ...options: string[]): string {
    return command('ip', '-n', this.names[side], ...options)
  }

  /** Gives an interface its address, of a network of 24 bits, and its MTU, bytes. */
  up(side: Side, device: string, address: string, mtu: number): void {
    this.ip(side, 'address', 'add', `${address}/24`, 'dev', device)
    this.ip(side, 'link', 'set', device, 'mtu', String(mtu), 'up')
  }

  /** Starts a command whose standard output is read by the caller; `close` ends it at the latest. */
  spawn(side: Side, program: string, options: readonly (string | number)[], env: NodeJS.ProcessEnv = {}): ChildProcess {
    const words = ['netns', 'exec', this.names[side], program, ...options.map(String)]
    const child = spawn('ip', words, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } })
    this.children.push(child)
    return child
  }

  async close(): Promise<void> {
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    this.removeNames()
  }

  private removeNames(): void {
    for (const side of SIDES) spawnSync('ip', ['netns', 'del', this.names[side]])
  }
}
