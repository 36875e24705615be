/**
 * Where a listener can be started, stopped and started again. The system gives its own ports to whoever connects or listens next, so that one of them
 * may be gone by then: these are others.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ListenOptions, type Server } from 'node:net'

/** Below are ports that services are known by. */
const FIRST_PORT = 10_000
/** Fewer ports than this are not enough to choose from. */
const LEAST_PORTS = 1_000

export interface PortChoice {
  /** Uniform in [0, 1). */
  readonly random?: () => number
  /** The lowest port that the system gives away by itself. */
  readonly lowestOfSystem?: number
}

/** A port of this machine that nobody listens on, `127.0.0.1:port`; nobody else is given it here while this process lives. */
export async function freeAddress({ random = Math.random, ...choice }: PortChoice = {}): Promise<string> {
  const count = (choice.lowestOfSystem ?? lowestOfSystem()) - FIRST_PORT
  if (count < LEAST_PORTS) return `127.0.0.1:${await closedAgain(await listening({ port: 0, host: '127.0.0.1' }))}`
  for (;;) {
    const port = FIRST_PORT + Math.floor(random() * count)
    if ((await reserve(port)) && (await isFree(port))) return `127.0.0.1:${port}`
  }
}

/** ip(7), ip_local_port_range. */
function lowestOfSystem(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/)[0])
  } catch {
    return 0
  }
}

/** Whether nobody was faster: one listener has an abstract name, which is of the network that the port is of too, see unix(7). */
async function reserve(port: number): Promise<boolean> {
  return await listening({ path: `\0penstock-port-${port}` }).then(
    (server) => server.unref() === server,
    () => false,
  )
}

async function isFree(port: number): Promise<boolean> {
  return await listening({ port, host: '127.0.0.1' }).then(
    async (server) => (await closedAgain(server)) === port,
    () => false,
  )
}

async function listening(options: ListenOptions): Promise<Server> {
  const server = createServer().listen(options)
  await once(server, 'listening')
  return server
}

/** The port that it had. */
async function closedAgain(server: Server): Promise<number> {
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
