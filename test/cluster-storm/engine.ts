/** NATS servers that reach one another, and that the servers of a hub reach, through proxies that spoil what they carry. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import type { Random } from '../../src/dataplane/engine/random.ts'
import { autoCertificate } from '../../src/link/certificate.ts'
import { NatsServer, startCluster } from '../harness/nats.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import { FaultyProxy } from '../storm/proxy.ts'
import type { Path } from './strikes.ts'

/** How long NATS servers may take until they have leaders again, milliseconds: an election takes up to nine seconds, and there may be several. */
const RECOVERY_MS = 60_000
const REQUEST_MS = 1_000
/** How long it may take until they keep their leaders when it is over. */
const RELAPSING_MS = 120_000
/** Between two looks, milliseconds. */
const LOOK_MS = 200

/** Since then a cluster of NATS servers takes only one of several writes on one condition (nats-io/nats-server #4320). */
const FIRST_SERIALIZABLE = [2, 9, 21]

/** The NATS server of this machine: its version, and with how many replicas it keeps the conditions of writes. */
export function natsOfMachine(): { readonly version: string; readonly replicas: number } {
  const said = execFileSync('nats-server', ['--version'], { encoding: 'utf8' })
  const [, version = ''] = /v(\d+\.\d+\.\d+)/.exec(said) ?? []
  const numbers = version.split('.').map(Number)
  const differing = FIRST_SERIALIZABLE.findIndex((least, i) => numbers[i] !== least)
  const isReliable = differing < 0 || (numbers[differing] as number) > (FIRST_SERIALIZABLE[differing] as number)
  return { version, replicas: isReliable ? 3 : 1 }
}

const portOf = (address: string) => Number(address.split(':')[1])

export class Engine {
  readonly names: readonly string[]
  readonly servers: readonly NatsServer[]
  readonly paths: readonly Path[]
  /** The certificate that all NATS servers have, PEM. */
  readonly certFile: string
  readonly #directory: string

  private constructor(options: Pick<Engine, 'names' | 'servers' | 'paths' | 'certFile'> & { directory: string }) {
    const { names, servers, paths, certFile, directory } = options
    this.names = names
    this.servers = servers
    this.paths = paths
    this.certFile = certFile
    this.#directory = directory
  }

  /** `count` NATS servers, as one cluster where they are several; `dialling`: the servers of the hub. */
  static async start(count: number, dialling: readonly string[], random: Random): Promise<Engine> {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-storm-'))
    const { certFile, keyFile } = autoCertificate({ directory, hostnames: [] })
    const names = Array.from({ length: count }, (_, i) => `n${i + 1}`)
    const clients = await Promise.all(names.map(() => freeAddress()))
    const routes = await Promise.all(names.map(() => freeAddress()))
    const paths: Path[] = []
    const servers: NatsServer[] = []
    for (const [i, name] of names.entries()) {
      for (const from of dialling) {
        paths.push({ from, to: name, proxy: await FaultyProxy.listen(portOf(clients[i] as string), random) })
      }
      const others: string[] = []
      for (const [j, to] of names.entries()) {
        if (j === i) continue
        const proxy = await FaultyProxy.listen(portOf(routes[j] as string), random)
        paths.push({ from: name, to, proxy })
        others.push(`nats://127.0.0.1:${proxy.port}`)
      }
      const settings = [
        // A bit that changes on the way breaks the connection, instead of arriving as something else.
        `tls { cert_file: "${certFile}", key_file: "${keyFile}", timeout: 5 }`,
        `jetstream { store_dir: "${join(directory, name)}" }`,
        // What drops everything is noticed soon.
        'ping_interval: "1s", ping_max: 2',
      ]
      if (count > 1) {
        // Told of an address that nobody has, they go the way that they are given only.
        const where = `listen: "${routes[i]}", advertise: "127.0.0.1:1", no_advertise: true`
        settings.push(`cluster { name: storm, ${where}, routes: [${others.join(', ')}] }`)
      }
      const port = portOf(clients[i] as string)
      servers.push(new NatsServer({ name, directory, port, settings: settings.join('\n') }))
    }
    const engine = new Engine({ names, servers, paths, certFile, directory })
    await startCluster(servers, engine.certificate)
    return engine
  }

  /** How a server of the hub reaches them. */
  addressesFor(from: string): string[] {
    return this.paths.filter((path) => path.from === from).map(({ proxy }) => `127.0.0.1:${proxy.port}`)
  }

  get certificate(): string {
    return readFileSync(this.certFile, 'utf8')
  }

  /** The ends of their logs. */
  get said(): string {
    return this.servers.map(({ said }, i) => `${this.names[i]}:\n${said}`).join('\n')
  }

  server(name: string): NatsServer {
    return this.servers[this.names.indexOf(name)] as NatsServer
  }

  /** Resolves when both buckets of the hub are written and read again. */
  async recovered(): Promise<void> {
    await until(() => this.#isWell(), 'NATS servers that are well again', RECOVERY_MS)
  }

  /**
   * Resolves when something is so, which it has to be within `milliseconds` of the NATS servers being well; to when these were. A server that led and was stopped
   * may cost them their leaders when it goes on, and those whose routes were cut may for a while close new ones as duplicates.
   */
  async calm(isSo: () => Promise<boolean>, milliseconds: number): Promise<number> {
    const begun = performance.now()
    for (;;) {
      await this.recovered()
      const since = performance.now()
      let isWell = true
      while (isWell && performance.now() - since < milliseconds) {
        if (await isSo()) return since
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
        isWell = await this.#isWell()
      }
      if (isWell) throw new Error(`not within ${milliseconds / 1000} s of calm`)
      if (performance.now() - begun > RELAPSING_MS) throw new Error('the NATS servers do not stay well')
    }
  }

  async #isWell(): Promise<boolean> {
    const { addresses: servers, certificate: ca } = this
    try {
      const connection = await connect({ servers, tls: { ca }, timeout: REQUEST_MS, reconnect: false })
      try {
        const members = await new Kvm(connection).open('penstock_storm_members', { timeout: REQUEST_MS })
        await members.put('barrier', new Uint8Array(0), { timeout: REQUEST_MS })
        const manager = await jetstreamManager(connection, { timeout: REQUEST_MS })
        const infos = await Promise.all(
          ['members', 'presence'].map((name) => manager.streams.info(`KV_penstock_storm_${name}`)),
        )
        return infos.every(({ cluster }) => (cluster?.replicas ?? []).every(({ current }) => current))
      } finally {
        await connection.close()
      }
    } catch {
      return false
    }
  }

  get addresses(): string[] {
    return this.servers.map(({ address }) => address)
  }

  async close(): Promise<void> {
    for (const { proxy } of this.paths) proxy.close()
    await Promise.all(this.servers.map((server) => server.kill()))
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 })
  }
}
