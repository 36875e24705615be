/** NATS servers as processes, alone or as one cluster, for tests that kill, stop and start them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectSocket, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { freeAddress } from '../../src/cli/free-address.ts'
import { until } from './waiting.ts'

const freePort = async (): Promise<number> => Number((await freeAddress()).split(':')[1])

interface NatsServerOptions {
  readonly name: string
  readonly directory: string
  readonly port: number
  readonly settings: string
}

/** Characters kept of a server's log. */
const MAX_SAID = 8_192

/** One nats-server. */
export class NatsServer {
  readonly #options: NatsServerOptions
  #child: ChildProcess | undefined
  #said = ''

  constructor(options: NatsServerOptions) {
    this.#options = options
  }

  get address(): string {
    return `127.0.0.1:${this.#options.port}`
  }

  /** Of its process; undefined: it is not there. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** The end of its log. */
  get said(): string {
    return this.#said
  }

  /** Starts it, again with what it has on disk; resolves once it listens. */
  async start(): Promise<void> {
    const { name, directory, port, settings } = this.#options
    const file = join(directory, `${name}.conf`)
    writeFileSync(file, `server_name: ${name}\nlisten: 127.0.0.1:${port}\n${settings}\n`)
    const child = spawn('nats-server', ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child = child
    child.stderr?.on('data', (text: Buffer) => {
      this.#said = `${this.#said}${text}`.slice(-MAX_SAID)
    })
    let failure: unknown
    child.on('error', (error) => {
      failure = error
    })
    child.on('close', (code, signal) => {
      if (this.#child === child)
        console.error(`nats-server ${name} has ended by itself, ${signal ?? code}:\n${this.#said}`)
    })
    await until(
      async () => {
        if (failure !== undefined) throw failure
        if (child.exitCode !== null) throw new Error(`nats-server has ended: ${this.#said}`)
        return await listens(port)
      },
      () => `a NATS server that listens: ${this.#said}`,
    )
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
}

/** How long servers may take until they are one cluster: an election takes up to nine seconds. */
const FORMING_MS = 15_000
/** How often they are started before they are given up. */
const MAX_STARTS = 4

/**
 * Starts the servers of one cluster. Of those with version 2.10 that begin to dial each other in the same moment, one cluster in fifteen closes routes as duplicates
 * and never hears of the others' JetStream ("no suitable peers for placement"): these start again.
 */
export async function startCluster(servers: readonly NatsServer[], ca?: string): Promise<void> {
  const addresses = servers.map(({ address }) => address)
  for (let starts = 1; ; starts++) {
    await Promise.all(servers.map((server) => server.start()))
    try {
      await until(() => keepsReplicas(addresses, ca), 'NATS servers that are one cluster', FORMING_MS)
      return
    } catch (error) {
      await Promise.all(servers.map((server) => server.kill()))
      if (starts === MAX_STARTS) throw new Error(`${error}:\n${servers.map(({ said }) => said).join('\n')}`)
    }
  }
}

/** Whether a stream can be made that each of the servers has a replica of. */
async function keepsReplicas(servers: string[], ca?: string): Promise<boolean> {
  try {
    const connection = await connect({ servers, timeout: 2_000, reconnect: false, ...(ca && { tls: { ca } }) })
    try {
      const { streams } = await jetstreamManager(connection, { timeout: 2_000 })
      await streams.add({ name: 'formed', subjects: ['formed'], num_replicas: servers.length })
      return await streams.delete('formed')
    } finally {
      await connection.close()
    }
  } catch {
    return false
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectSocket(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

/** NATS servers with a directory of their own. */
export class Nats {
  readonly servers: readonly NatsServer[]
  readonly #directory: string

  private constructor(servers: readonly NatsServer[], directory: string) {
    this.servers = servers
    this.#directory = directory
  }

  /** One server, with JetStream in the directory given; `settings` makes the other lines of its configuration. */
  static async alone(settings = (store: string) => `jetstream { store_dir: "${store}" }`): Promise<Nats> {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-nats-'))
    const port = await freePort()
    const lines = settings(join(directory, 'store'))
    const server = new NatsServer({ name: 'n1', directory, port, settings: lines })
    await server.start()
    return new Nats([server], directory)
  }

  /** Three servers as one cluster. */
  static async three(): Promise<Nats> {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-nats-'))
    const names = ['n1', 'n2', 'n3']
    const routes = await Promise.all(names.map(freePort))
    const servers = names.map(async (name, i) => {
      const all = routes.map((port) => `nats://127.0.0.1:${port}`).join(', ')
      const settings = [
        `jetstream { store_dir: "${join(directory, name)}" }`,
        `cluster { name: tests, listen: "127.0.0.1:${routes[i]}", routes: [${all}] }`,
      ].join('\n')
      return new NatsServer({ name, directory, port: await freePort(), settings })
    })
    const all = await Promise.all(servers)
    await startCluster(all)
    return new Nats(all, directory)
  }

  get addresses(): string[] {
    return this.servers.map(({ address }) => address)
  }

  /** What the only server, which is down, has on disk; `putBack` makes it what it was. */
  copyOfStore(): { putBack(): void } {
    const [store, copy] = ['store', 'copy'].map((name) => join(this.#directory, name)) as [string, string]
    cpSync(store, copy, { recursive: true })
    return {
      putBack: () => {
        rmSync(store, { recursive: true })
        cpSync(copy, store, { recursive: true })
      },
    }
  }

  /** Fills what JetStream may have on its disk, to the last byte; resolves to what makes room again. */
  async fillDisk(): Promise<() => Promise<void>> {
    const connection = await connect({ servers: this.addresses })
    const { streams } = await jetstreamManager(connection)
    await streams.add({ name: 'filler', subjects: ['filler'] })
    const stream = jetstream(connection)
    const isTaken = (size: number) =>
      stream.publish('filler', new Uint8Array(size)).then(
        () => true,
        () => false,
      )
    for (let size = 100_000; size >= 1; size /= 10) while (await isTaken(size)) {}
    return async () => {
      await streams.delete('filler')
      await connection.close()
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()))
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** How what a NATS server says of itself begins. */
const INFO = Buffer.from('INFO ')

/** A TCP proxy in front of a NATS server that can be cut and opened again, and may change what either side says. */
export class NatsProxy {
  readonly address: string
  readonly #sockets: Set<Socket>
  readonly #fromServers = new Set<Socket>()
  readonly #close: () => void
  /** Whether what either side sends goes on; without it nothing arrives, and nothing is closed. */
  #isOpen = true
  #areAnswersHeld = false
  #toServer: (text: string) => string = (text) => text

  private constructor(port: number, sockets: Set<Socket>, close: () => void) {
    this.address = `127.0.0.1:${port}`
    this.#sockets = sockets
    this.#close = close
  }

  static async before(target: string, change: (fromServer: string) => string = (text) => text): Promise<NatsProxy> {
    const sockets = new Set<Socket>()
    const server = createServer((client) => {
      const [host, port] = target.split(':') as [string, string]
      const far = connectSocket(Number(port), host)
      for (const socket of [client, far]) {
        sockets.add(socket)
        socket.setNoDelay(true)
        socket.on('error', () => socket.destroy())
        socket.on('close', () => {
          sockets.delete(socket)
          proxy.#fromServers.delete(socket)
          client.destroy()
          far.destroy()
        })
        if (!proxy.#isOpen || (proxy.#areAnswersHeld && socket === far)) socket.pause()
        if (socket === far) proxy.#fromServers.add(socket)
      }
      client.on('data', (bytes: Buffer) => far.write(proxy.#toServer(bytes.toString('latin1')), 'latin1'))
      far.on('data', (bytes: Buffer) => {
        // What it says of itself comes first, and from some versions on once more after the log-in.
        client.write(bytes.includes(INFO) ? change(bytes.toString('latin1')) : bytes, 'latin1')
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const proxy: NatsProxy = new NatsProxy(port, sockets, () => server.close())
    return proxy
  }

  /** Nothing goes through any more, as on a path that drops everything. */
  cut(): void {
    this.#isOpen = false
    for (const socket of this.#sockets) socket.pause()
  }

  /** What was held goes on. */
  open(): void {
    this.#isOpen = true
    for (const socket of this.#sockets) socket.resume()
  }

  /** What the server says does not arrive any more; what is said to it does. */
  holdAnswers(): void {
    this.#areAnswersHeld = true
    for (const socket of this.#fromServers) socket.pause()
  }

  /** From now on changes what is said to the server, to something of the same length; without an argument nothing any more. */
  changeToServer(change: (text: string) => string = (text) => text): void {
    this.#toServer = change
  }

  /** Breaks all connections, with what was held in them; new ones go through. */
  break(): void {
    this.#areAnswersHeld = false
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
