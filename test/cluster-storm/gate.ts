/** Where one server of the hub is dialled: each process that dials has a path of its own, with its own faults. */
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../../src/dataplane/engine/random.ts'
import { FaultyProxy } from '../storm/proxy.ts'
import type { Path } from './strikes.ts'

export interface GateOptions {
  /** Name of the server. */
  readonly to: string
  /** Where it listens, a port of this machine. */
  readonly target: number
  readonly random: Random
  /** Names of the processes that may dial it. */
  readonly from: readonly string[]
  /** The process of that name, if it runs. */
  readonly pidOf: (name: string) => number | undefined
}

export class Gate {
  readonly paths: readonly Path[]
  readonly #server: Server
  readonly #pidOf: GateOptions['pidOf']

  private constructor(server: Server, { to, target, random, from, pidOf }: GateOptions) {
    this.#server = server
    this.#pidOf = pidOf
    this.paths = from.map((name) => ({ from: name, to, proxy: FaultyProxy.to(target, random) }))
    server.on('connection', (socket) => this.#accept(socket))
  }

  static async listen(options: GateOptions): Promise<Gate> {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Gate(server, options)
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.close()
    for (const { proxy } of this.paths) proxy.close()
  }

  #accept(socket: Socket): void {
    const inode = inodeOf(socket.remotePort as number, this.port)
    const path = this.paths.find(({ from }) => inode !== undefined && hasSocket(this.#pidOf(from), inode))
    // Who dialled has ended since.
    if (path === undefined) socket.destroy()
    else path.proxy.accept(socket)
  }
}

/** The socket of this machine that is connected from one of its ports to another: proc(5), /proc/net/tcp. */
function inodeOf(from: number, to: number): string | undefined {
  const port = (text: string | undefined) => Number.parseInt(text?.split(':')[1] ?? '', 16)
  for (const line of readFileSync('/proc/self/net/tcp', 'utf8').split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/)
    if (port(fields[1]) === from && port(fields[2]) === to) return fields[9]
  }
  return undefined
}

function hasSocket(pid: number | undefined, inode: string): boolean {
  if (pid === undefined) return false
  const directory = `/proc/${pid}/fd`
  try {
    return readdirSync(directory).some((fd) => linkOf(`${directory}/${fd}`) === `socket:[${inode}]`)
  } catch {
    return false
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    // Closed since.
    return undefined
  }
}
