/** Three NATS servers as one cluster, as processes, with a directory that goes away with them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from './failure.ts'
import { freeAddress } from './free-address.ts'
import { temporaryDirectory } from './temporary-directory.ts'

/** How long one may take until it listens, ms. */
const PATIENCE_MS = 20_000
const NAMES = ['n1', 'n2', 'n3'] as const

export class NatsCluster {
  /** `host:port` of each. */
  readonly addresses: readonly string[]
  readonly #directory: string
  readonly #children: (ChildProcess | undefined)[] = []

  private constructor(addresses: readonly string[], directory: string) {
    this.addresses = addresses
    this.#directory = directory
  }

  static async start(): Promise<NatsCluster> {
    const directory = await temporaryDirectory('penstock-nats-')
    const addresses = await Promise.all(NAMES.map(() => freeAddress()))
    const routes = await Promise.all(NAMES.map(() => freeAddress()))
    const all = routes.map((route) => `nats://${route}`).join(', ')
    const cluster = new NatsCluster(addresses, directory)
    try {
      for (const [i, name] of NAMES.entries()) {
        const lines = [
          `server_name: ${name}`,
          `listen: "${addresses[i]}"`,
          `jetstream { store_dir: "${join(directory, name)}" }`,
          `cluster { name: demo, listen: "${routes[i]}", routes: [${all}] }`,
        ]
        await writeFile(join(directory, `${name}.conf`), lines.join('\n'))
      }
      await Promise.all(NAMES.map((_, i) => cluster.startServer(i)))
    } catch (error) {
      await cluster.stop()
      throw error
    }
    return cluster
  }

  /** Starts one, again with what it has on disk. */
  async startServer(i: number): Promise<void> {
    const child = spawn('nats-server', ['-c', join(this.#directory, `${NAMES[i]}.conf`)], {
      stdio: 'ignore',
      // Ctrl-C in the terminal is for who started it.
      detached: true,
    })
    this.#children[i] = child
    let failure: NodeJS.ErrnoException | undefined
    child.on('error', (error) => {
      failure = error
    })
    const end = performance.now() + PATIENCE_MS
    while (!(await listens(this.addresses[i]))) {
      if (failure?.code === 'ENOENT')
        throw new Failure('nats-server is not installed: apt install nats-server, or nats.io')
      if (failure !== undefined || child.exitCode !== null || performance.now() > end) {
        throw new Failure(`nats-server ${NAMES[i]} did not start`)
      }
      await pause(50)
    }
  }

  /** Ends one the hard way (SIGKILL). */
  async kill(i: number): Promise<void> {
    const child = this.#children[i]
    this.#children[i] = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  async stop(): Promise<void> {
    await Promise.all(NAMES.map((_, i) => this.kill(i)))
    await rm(this.#directory, { recursive: true, force: true })
  }
}

function listens(address: string): Promise<boolean> {
  const [host, port] = address.split(':')
  return new Promise((resolve) => {
    const socket = connect(Number(port), host)
    socket.on('error', () => resolve(false))
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
