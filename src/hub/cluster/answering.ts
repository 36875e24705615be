/** Which NATS servers say something now. The client library gives up on one that accepts connections and is silent, but leaves the connection open, each time it tries. */
import { connect } from 'node:net'
import { withoutBrackets } from '../../contract/address.ts'

const DEFAULT_PORT = 4222

/** How long others have that may answer as well, once one has; milliseconds. */
const GRACE_MS = 100

/**
 * Those of `servers` that send something, as each does first of all, soon after they are called: the first within `milliseconds`, the others about
 * when it does. Throws why the first of the list does not where none does.
 */
export async function answering(servers: readonly string[], milliseconds: number): Promise<string[]> {
  const answered = new Set<string>()
  const calls = servers.map((server) => call(server, milliseconds).then(() => answered.add(server)))
  const all = Promise.allSettled(calls)
  // Fails once all have, which is told below.
  await Promise.any(calls).catch(() => undefined)
  if (answered.size > 0) {
    let timer: NodeJS.Timeout | undefined
    await Promise.race([all, new Promise((resolve) => (timer = setTimeout(resolve, GRACE_MS)))])
    clearTimeout(timer)
    return servers.filter((server) => answered.has(server))
  }
  throw ((await all)[0] as PromiseRejectedResult).reason
}

/** Host and port of `host:port`; an address of IPv6 without its brackets. */
export function placeOf(server: string): { host: string; port: number } {
  const { hostname, port } = new URL(`nats://${server}`)
  return { host: withoutBrackets(hostname), port: Number(port) || DEFAULT_PORT }
}

function call(server: string, milliseconds: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(placeOf(server))
    const end = (outcome: () => void): void => {
      clearTimeout(timer)
      socket.destroy()
      outcome()
    }
    const timer = setTimeout(() => end(() => reject(new Error(`${server} does not answer`))), milliseconds)
    socket.once('data', () => end(resolve))
    socket.once('end', () => end(() => reject(new Error(`${server} ends the connection at once`))))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      end(() =>
        reject(error.code === 'ECONNREFUSED' ? new Error(`${server} refuses the connection`, { cause: error }) : error),
      )
    })
  })
}
