/** A node in a process of its own, started through the command line and taken down again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageRoot } from '../package-root.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { temporaryDirectory } from './temporary-directory.ts'

/** How long a node may take to get ready, and to go down, ms. */
const PATIENCE_MS = 20_000

export class NodeProcess {
  readonly http: string
  readonly grpc: string
  readonly id: string
  private readonly child: ChildProcess
  /** Its data directory. */
  readonly directory: string
  private readonly flags: readonly string[]

  private constructor(child: ChildProcess, directory: string, flags: readonly string[], ready: Record<string, string>) {
    this.child = child
    this.directory = directory
    this.flags = flags
    this.http = ready.http
    this.grpc = ready.grpc
    this.id = ready.node
  }

  /** `penstock up` on free ports, with a data directory that goes away with it. */
  static async start(flags: readonly string[] = []): Promise<NodeProcess> {
    const directory = await temporaryDirectory('penstock-')
    const free = '127.0.0.1:0'
    try {
      return await NodeProcess.run(directory, ['--http', free, '--grpc', free, ...flags])
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      throw error
    }
  }

  private static async run(directory: string, flags: readonly string[]): Promise<NodeProcess> {
    // The demonstrations call it without a token, whatever the environment's settings are for other nodes.
    const access = ['--loopback', 'open']
    const args = ['up', '--until-stdin-ends', '--data-dir', directory, '--log-level', 'warn', ...access, ...flags]
    const child = spawn(process.execPath, [join(packageRoot(), 'bin/penstock.js'), ...args], {
      // Whatever ends this process, SIGKILL too, ends the pipe to the node's input, and with it the node.
      stdio: 'pipe',
      // Ctrl-C in the terminal reaches the foreground group: the node is told to stop once the summary is made.
      detached: true,
    })
    try {
      // It has no pipes either where there are no descriptors for them.
      await once(child, 'spawn')
    } catch (error) {
      throw new Failure(`the node did not start: ${messageOf(error)}`)
    }
    const said: string[] = []
    child.stderr.on('data', (text: Buffer) => said.push(text.toString()))
    const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        if (!line.startsWith('penstock ready ')) continue
        const ready = Object.fromEntries(line.split(' ').map((word) => word.split('=', 2)))
        return new NodeProcess(child, directory, flags, ready)
      }
    } finally {
      clearTimeout(timer)
    }
    throw new Failure(`the node did not start:\n${said.join('').trim() || 'it said nothing'}`)
  }

  /** Ends the process the hard way (SIGKILL); what it has on disk stays. */
  async kill(): Promise<void> {
    const gone = this.gone()
    this.child.kill('SIGKILL')
    await gone
  }

  /** Starts a node that was killed once more: the same data directory and settings, free ports again. */
  restart(): Promise<NodeProcess> {
    return NodeProcess.run(this.directory, this.flags)
  }

  async stop(): Promise<void> {
    const gone = this.gone()
    const timer = setTimeout(() => this.child.kill('SIGKILL'), PATIENCE_MS)
    this.child.kill('SIGTERM')
    await gone
    clearTimeout(timer)
    await rm(this.directory, { recursive: true, force: true })
  }

  private async gone(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit')
  }
}
