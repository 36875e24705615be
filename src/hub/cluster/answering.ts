/** Which NATS servers say something now. The client library gives up on one that accepts connections and is silent, but leaves the connection open, each time it tries. */
import { connect } from 'node:net'

const DEFAULT_PORT = 4222

/** Those of `servers` that send something within `milliseconds` of being called, as each does first of all. Throws why the first does not where none does. */
export async function answering(servers: readonly string[], milliseconds: number): Promise<string[]> {
  const calls = await Promise.allSettled(servers.map((server) => call(server, milliseconds)))
  const answered = servers.filter((_, i) => calls[i]?.status === 'fulfilled')
  if (answered.length > 0) return answered
  throw (calls.find((each) => each.status === 'rejected') as PromiseRejectedResult).reason
}

/** `server`: `host:port`, or a `nats://` or `tls://` address. */
function call(server: string, milliseconds: number): Promise<void> {
  const { hostname, port } = new URL(server.includes('://') ? server : `nats://${server}`)
  return new Promise((resolve, reject) => {
    // An address of IPv6 stands in brackets there.
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || DEFAULT_PORT })
    const end = (outcome: () => void): void => {
      clearTimeout(timer)
      socket.destroy()
      outcome()
    }
    const timer = setTimeout(() => end(() => reject(new Error(`${server} does not answer`))), milliseconds)
    socket.once('data', () => end(resolve))
    socket.once('end', () => end(() => reject(new Error(`${server} ends the connection at once`))))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      end(() => reject(error.code === 'ECONNREFUSED' ? new Error('connection refused', { cause: error }) : error))
    })
  })
}
