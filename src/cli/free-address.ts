/** Where a listener can be started, stopped and started again: a port that the system chose at the listening is not to be had again at once. */
import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port of this machine that nobody listens on, `127.0.0.1:port`. */
export async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return `127.0.0.1:${port}`
}
