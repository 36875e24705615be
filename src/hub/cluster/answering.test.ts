/** Which servers say something: real sockets that answer, are silent, hang up or are not there. */
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { answering } from './answering.ts'

const servers: Server[] = []
const open = new Set<Socket>()
afterAll(() => {
  for (const socket of open) socket.destroy()
  for (const server of servers) server.close()
})

/** One that does this with each connection; where it listens. */
async function server(accepted: (socket: Socket) => void): Promise<string> {
  const made = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
    accepted(socket)
  })
  servers.push(made)
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve))
  return `127.0.0.1:${(made.address() as { port: number }).port}`
}

test('those that say something, without a wait for others, and no connection stays open', async () => {
  const talking = await server((socket) => socket.write('INFO {}\r\n'))
  const silent = await server(() => {})
  const leaving = await server((socket) => socket.end())
  const gone = await server(() => {})
  await new Promise((resolve) => servers.pop()?.close(resolve))
  // It would be a minute.
  expect(await answering([silent, talking, leaving, gone], 60_000)).toEqual([talking])
  await expect(answering([silent, gone], 200)).rejects.toThrow(`${silent} does not answer`)
  await expect(answering([gone, silent], 200)).rejects.toThrow(`${gone} refuses the connection`)
  await expect(answering([leaving], 60_000)).rejects.toThrow(`${leaving} ends the connection at once`)
  for (const socket of open) if (socket.readyState === 'readOnly') socket.destroy()
})
