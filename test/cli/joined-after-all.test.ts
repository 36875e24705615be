/** `penstock authenticate-by-request` that is interrupted while the node joins: it says that the node is on the hub. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { penstock } from './cli.ts'

const HUB = { id: 'h'.repeat(26), name: 'hub', online: true, services: ['HUB_SERVER'] }
let interrupt: () => void = () => {}
/** How often it was asked who it is. */
let looks = 0

/** As a node whose sign-in is being written when the caller goes, and is on disk when it is asked for the second time after that. */
const node = createServer(({ url = '' }, response) => {
  const json = (body: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  if (url.startsWith('/v1/hub-client/local-node-id')) json({ nodeId: 'n'.repeat(26), isAuthenticated: ++looks > 2 })
  else if (url.startsWith('/v1/hub-client/authenticate-by-request')) interrupt()
  else if (url.startsWith('/v1/nodes')) json({ nodes: [HUB] })
  else response.writeHead(404).end()
})
afterAll(() => {
  node.closeAllConnections()
  node.close()
})

test('the hub is named, and how to leave it', async () => {
  await once(node.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
  const { code, stdout, stderr } = await penstock(['authenticate-by-request', 'http://127.0.0.1:1', '--url', url], {
    onStart: (child) => {
      interrupt = () => void child.kill('SIGINT')
    },
  })
  expect({ code, stdout }).toEqual({ code: 130, stdout: '' })
  expect(stderr).toContain(
    `joined the hub hub (${HUB.id}) before the request was withdrawn\n  leave it: penstock disconnect\n`,
  )
  expect(looks).toBe(3)
})
