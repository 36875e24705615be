/** A node as a whole: up, who it is, what stops it from coming up, and down without leaving anything behind. */
import { readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory, traffic } from '../../test/api/running-node.ts'
import { native } from '../dataplane/native/native.ts'
import { DirectoryInUse, ofDirectory } from './data-directory.ts'

const withNode = async (flags: Record<string, string>, use: (node: RunningNode) => Promise<void>) => {
  const node = await runNode(temporaryDirectory(), flags)
  try {
    await use(node)
  } finally {
    await node.node.close()
  }
}

test('tells who it is', () =>
  withNode({ 'node-name': 'edge-1', 'node-metadata': '{region: eu, rack: 4}' }, async (node) => {
    const { id, http } = node.node
    expect(await node.call('GET', `http://${http}/v1/hub-client/local-node-id`)).toEqual({
      status: 200,
      body: { nodeId: id, isAuthenticated: false },
    })
    const { body } = await node.call('GET', `http://${http}/v1/nodes/${id}`)
    expect(body.node).toEqual({
      id,
      name: 'edge-1',
      metadata: { items: { region: { stringValue: 'eu' }, rack: { intValue: '4' } } },
      online: false,
      services: ['PIPELINES'],
      lastSeen: expect.any(String),
    })
    expect((await node.call('GET', `http://${http}/v1/nodes/other`)).body.code).toBe(14)
  }))

test('listeners can be switched off', () =>
  withNode({ grpc: 'none' }, async (node) => {
    expect(node.node.grpc).toBeUndefined()
    expect(node.node.http).toMatch(/^127\.0\.0\.1:\d+$/)
  }))

test('open access is warned about at every start', () =>
  withNode({ open: 'true' }, async (node) => {
    expect(node.logged.some((line) => line.includes('"level":"warn"') && line.includes('access.open'))).toBe(true)
  }))

test('a second node on the same directory is refused, and the first goes on', async () => {
  const directory = temporaryDirectory()
  const first = await runNode(directory)
  await expect(runNode(directory)).rejects.toThrow(DirectoryInUse)
  expect((await first.call('GET', '/pipelines')).status).toBe(200)
  await first.node.close()
  const again = await runNode(directory)
  expect(again.node.id).toBe(first.node.id)
  await again.node.close()
})

test('a file of the data directory for which the process has no descriptor: it says which limit to raise', () => {
  const path = '/data/identity.pem'
  const error = Object.assign(new Error(`EMFILE: too many open files, open '${path}'`), { code: 'EMFILE', path })
  const read = () => {
    throw error
  }
  expect(() => ofDirectory('/data', read)).toThrow(/^the data directory \/data cannot be used: EMFILE.*ulimit -n/)
})

test('a taken port: it says so and gives everything back', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => holder.once('listening', resolve))
  const { port } = holder.address() as { port: number }
  const directory = temporaryDirectory()
  await expect(runNode(directory, { grpc: `127.0.0.1:${port}` })).rejects.toThrow(`${port}`)
  await expect(runNode(directory, { http: `127.0.0.1:${port}` })).rejects.toThrow(`${port}`)
  holder.close()
  await (await runNode(directory, { http: `127.0.0.1:${port}` })).node.close()
})

test('a hub without HTTP is refused before anything is made', async () => {
  const directory = join(temporaryDirectory(), 'unused')
  await expect(runNode(directory, { hub: 'true', http: 'none' })).rejects.toThrow('http.address cannot be none')
  expect(() => readdirSync(directory)).toThrow('ENOENT')
})

test('a certificate that is not there is refused', async () => {
  const files = '{certificate: /nowhere/a.crt, key: /nowhere/a.key}'
  await expect(runNode(temporaryDirectory(), { 'http-tls': files })).rejects.toThrow(
    'http.tls: cannot read the certificate /nowhere/a.crt: there is no such file',
  )
})

test('open access is warned of at every start', async () => {
  const node = await runNode(temporaryDirectory(), { open: 'true' })
  await node.node.close()
  expect(node.logged.join('')).toContain('access.open is set: everyone who reaches this node can control it')
})

test('close stops the runs, ends the streams, and leaves no descriptor; twice is once', async () => {
  const directory = temporaryDirectory()
  const before = native.openDescriptors()
  const node = await runNode(directory)
  const id = await node.create({
    a: { udp: { local_address: '127.0.0.1:0', output: 'x' } },
    b: { traffic_sink: { input: 'x' } },
  })
  await node.start(id)
  await node.start(await node.create(traffic()))
  const events = await node.follow('/pipelines')
  const ended = expect(events.next()).rejects.toMatchObject({ code: 14 })
  await Promise.all([node.node.close(), node.node.close()])
  await ended
  expect(native.openDescriptors()).toBe(before)
  const again = await runNode(directory)
  expect(await again.get(id)).toMatchObject({ started: false, currentRun: { outcome: 'STOPPED' } })
  await again.node.close()
})
