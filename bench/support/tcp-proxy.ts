/**
 * A TCP proxy in a process of its own: while it is stopped (SIGSTOP) nothing goes through and nothing is closed, as on a path that drops everything. Its argument is the
 * address behind it, `host:port`; it says `{ address }`, its own. It ends with its parent.
 */
import { connect, createServer, type Socket } from 'node:net'

const [host, port] = (process.argv[2] as string).split(':') as [string, string]
const server = createServer((client) => {
  const far = connect(Number(port), host)
  join(client, far)
  join(far, client)
})

function join(from: Socket, to: Socket): void {
  from.setNoDelay(true)
  from.pipe(to)
  // `close` follows.
  from.on('error', () => from.destroy())
  from.on('close', () => to.destroy())
}

process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => {
  const { port: own } = server.address() as { port: number }
  process.send?.({ address: `127.0.0.1:${own}` })
})
