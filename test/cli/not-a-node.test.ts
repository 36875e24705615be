/** Commands whose --url is that of something else than a node: each says so, and none waits for ever. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { penstock } from './cli.ts'

const COMMANDS = [
  ['disconnect'],
  ['status'],
  ['nodes'],
  ['nodes', '--watch'],
  ['nodes', 'remove', 'north'],
  ['authentication-requests', 'list'],
  ['authentication-requests', 'approve', '--all'],
  ['token', 'create', 'laptop'],
  ['token', 'list'],
  ['token', 'revoke', 'laptop'],
  ['pipelines', 'list'],
  ['pipelines', 'list', '--all-nodes'],
  ['pipelines', 'start', 'first'],
]

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

async function listening(server: Server): Promise<string> {
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const answering = (body: string) => listening(createHttpServer((_, response) => response.end(body)))

describe.each(['{}', '[]', 'null', '{"nodeId":"","isAuthenticated":false}'])(
  'a server whose answers are %s',
  (body) => {
    test('is no node', async () => {
      const url = await answering(body)
      for (const command of COMMANDS) {
        const { code, stdout, stderr } = await penstock([...command, '--url', url])
        expect({ command, code, stdout, stderr }).toEqual({
          command,
          code: 1,
          stdout: '',
          stderr: "penstock: the answer is 200 OK and not a node's\n",
        })
      }
    })
  },
)

describe('a server', () => {
  test.each([
    ['that never answers', () => listening(createServer((socket) => void socket.on('error', () => {})))],
    ['whose answers never end', () => listening(createHttpServer((_, response) => void response.write('{')))],
  ])('%s is given up', async (_, start) => {
    const url = await start()
    const outcomes = await Promise.all(
      [['nodes'], ['token', 'list'], ['disconnect']].map((command) => penstock([...command, '--url', url])),
    )
    for (const { code, stderr } of outcomes) {
      expect(code).toBe(1)
      expect(stderr).toBe(
        `penstock: ${url} did not answer within 10 s: no penstock node listens there, or one that is stuck: correct --url or PENSTOCK_URL, or restart the node\n`,
      )
    }
  })
})
