/** Commands whose --url is that of something else than a node: each says so, and none waits for ever. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, expect, test } from 'vitest'
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

test.each([
  ['{}', COMMANDS],
  ['[]', [['nodes'], ['disconnect']]],
  ['null', [['status'], ['token', 'list']]],
  ['{"nodeId":"","isAuthenticated":false}', [['pipelines', 'list']]],
])('a server whose answers are %s is no node', async (body, commands) => {
  const url = await answering(body)
  for (const command of commands) {
    const { code, stdout, stderr } = await penstock([...command, '--url', url])
    expect({ command, code, stdout, stderr }).toEqual({
      command,
      code: 1,
      stdout: '',
      stderr: "penstock: the answer is 200 OK and not a node's\n",
    })
  }
})

test('a server that never answers, or whose answers never end, is given up', async () => {
  const silent = await listening(createServer((socket) => void socket.on('error', () => {})))
  const endless = await listening(createHttpServer((_, response) => void response.write('{')))
  const outcomes = await Promise.all(
    [silent, endless].flatMap((url) =>
      [['nodes'], ['token', 'list'], ['disconnect']].map(async (command) => ({
        url,
        ...(await penstock([...command, '--url', url])),
      })),
    ),
  )
  for (const { url, code, stderr } of outcomes) {
    expect(code).toBe(1)
    expect(stderr).toBe(
      `penstock: ${url} did not answer within 10 s: no penstock node listens there, or one that is stuck: correct --url or PENSTOCK_URL, or restart the node\n`,
    )
  }
})
