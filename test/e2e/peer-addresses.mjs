/** Opens a link to a hub from each of some addresses, keeps them open, and prints the HTTP status of each answer as JSON. */
import { once } from 'node:events'
import { connect } from 'node:net'

const [host, port, head, ...addresses] = process.argv.slice(2)
const statuses = []
for (const localAddress of addresses) {
  const socket = connect({ host, port: Number(port), localAddress })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(Buffer.from(head, 'base64'))
  const [answer] = await once(socket, 'data')
  statuses.push(Number(/^HTTP\/1.1 (\d+)/.exec(String(answer))[1]))
}
console.log(JSON.stringify(statuses))
await new Promise(() => setInterval(() => {}, 1_000))
