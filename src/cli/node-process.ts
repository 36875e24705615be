/** A node in a process of its own, started through the command line and taken down again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageRoot } from '../api/package-root.ts'
import { Failure } from './failure.ts'

/** How long a node may take to get ready, and to go down, ms. */
const PATIENCE_MS = 20_000

export class NodeProcess {
  readonly http: string
  readonly grpc: string
  readonly id: string
  private readonly child: ChildProcess
  private readonly directory: string

  private constructor(child: ChildProcess, directory: string, ready: Record<string, string>) {
    this.child = child
    this.directory = directory
    this.http = ready.http
    this.grpc = ready.grpc
    this.id = ready.node
  }

  /** `penstock up` on free ports, with a data directory that goes away with it. */
  static async start(): Promise<NodeProcess> {
    const directory = await mkdtemp(join(tmpdir(), 'penstock-'))
    const free = '127.0.0.1:0'
    const flags = ['--data-dir', directory, '--http', free, '--grpc', free, '--log-level', 'warn']
    const child = spawn(process.execPath, [join(packageRoot(), 'bin/penstock.js'), 'up', ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C in the terminal reaches the foreground group: the node is told to stop once the summary is made.
      detached: true,
    })
    const said: string[] = []
    child.stderr.on('data', (text: Buffer) => said.push(text.toString()))
    const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        if (!line.startsWith('penstock ready ')) continue
        const ready = Object.fromEntries(line.split(' ').map((word) => word.split('=', 2)))
        return new NodeProcess(child, directory, ready)
      }
    } finally {
      clearTimeout(timer)
    }
    await rm(directory, { recursive: true, force: true })
    throw new Failure(`the node did not start:\n${said.join('').trim() || 'it said nothing'}`)
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const gone = once(this.child, 'exit')
      const timer = setTimeout(() => this.child.kill('SIGKILL'), PATIENCE_MS)
      this.child.kill('SIGTERM')
      await gone
      clearTimeout(timer)
    }
    await rm(this.directory, { recursive: true, force: true })
  }
}
