/** The key of a hub, as an operator makes it, and how a hub that was one node goes over to it: its nodes stay, with TLS pinned and without. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import { lineOf, lossy, penstock, scratch, start } from './cli.ts'
import '../harness/slow.ts'

const directory = scratch()
const nodes = new Set<ChildProcess>()
afterAll(() => {
  for (const node of nodes) node.kill('SIGKILL')
  directory.dispose()
})
const path = (name: string) => join(directory.path, name)

interface RunningNode {
  process: ChildProcess
  id: string
  address: string
}

async function up(name: string, http: string, ...flags: string[]): Promise<RunningNode> {
  const own = ['--data-dir', path(name), '--node-name', name, '--http', http, '--grpc', 'none', '--log-level', 'error']
  const process = start(['up', ...own, ...flags])
  nodes.add(process)
  const [, address, id] = await lineOf(process, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
  return { process, id: id as string, address: address as string }
}

async function down({ process }: RunningNode): Promise<void> {
  const gone = once(process, 'exit')
  process.kill('SIGTERM')
  await gone
  nodes.delete(process)
}

async function output(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await penstock(args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

describe('penstock hub key', () => {
  it('makes a key for its owner only, and shows whose it is', async () => {
    const { hubId } = JSON.parse(await output('hub', 'key', 'create', path('made.key'), '--json'))
    expect(hubId).toMatch(/^[a-z2-7]{26}$/)
    expect(statSync(path('made.key')).mode & 0o777).toBe(0o600)
    expect(await output('hub', 'key', 'show', path('made.key'))).toBe(`hub ${hubId}, key in ${path('made.key')}\n`)
  })

  it('writes over no file', async () => {
    const file = directory.file('there.key', 'mine')
    for (const args of [
      ['create', file],
      ['adopt', file, '--data-dir', path('none')],
    ]) {
      expect((await penstock(['hub', 'key', ...args])).code).toBe(1)
    }
    expect(readFileSync(file, 'utf8')).toBe('mine')
    const { stderr } = await penstock(['hub', 'key', 'create', file])
    expect(stderr).toContain('there.key is there already: a key is never written over')
  })

  it('shows none of a directory', async () => {
    const { code, stderr } = await penstock(['hub', 'key', 'show', directory.path])
    expect(code).toBe(1)
    expect(stderr).toContain(`${directory.path} is a directory, not a file`)
  })

  it('adopts no key where there is no node', async () => {
    const { code, stderr } = await penstock(['hub', 'key', 'adopt', path('of-none.key'), '--data-dir', path('empty')])
    expect(code).toBe(1)
    expect(stderr).toContain(`there is no node in ${path('empty')}`)
    expect([existsSync(path('empty')), existsSync(path('of-none.key'))]).toEqual([false, false])
  })
})

describe('a node with a key file', () => {
  it.each<[string, () => string[], string]>([
    ['that is missing', () => ['--hub', '--hub-key-file', path('missing.key')], 'there is no hub key in'],
    ['that holds no key', () => ['--hub', '--hub-key-file', directory.file('no.key', 'x')], 'holds no private key'],
    [
      'that hosts no hub',
      () => ['--hub-key-file', path('made.key'), '-c', directory.file('no-hub.yaml', 'hubServer: false\n')],
      'this node hosts no hub',
    ],
  ])('%s does not start', async (name, flags, message) => {
    const own = ['--data-dir', path(name), '--http', '127.0.0.1:0', '--grpc', 'none']
    const { code, stderr } = await penstock(['up', ...own, ...flags()])
    expect(code).toBe(1)
    expect(stderr).toContain('hubServer.keyFile')
    expect(stderr).toContain(message)
  })
})

it.each([
  ['without TLS', 'http', []],
  ['with a certificate that the node has pinned', 'https', ['--http-tls', 'auto']],
])('a hub that was one node goes over to a hub key, %s', async (_what, scheme, tls) => {
  const name = `${scheme}-hub`
  let hub = await up(name, await freeAddress(), '--hub', ...tls)
  const address = `${scheme}://${hub.address}`
  const edge = await up(`${scheme}-edge`, '127.0.0.1:0', '--log-level', 'warn')
  const joined = penstock(['authenticate-by-request', address, '--url', `http://${edge.address}`])
  const at = ['--url', address]
  await until(async () => (await output('authentication-requests', 'list', ...at)).includes('edge'))
  await output('authentication-requests', 'approve', '--all', ...at)
  expect((await joined).code).toBe(0)
  const config = directory.file('lossy.json', lossy)
  const busy = await penstock(['hub', 'key', 'adopt', path(`${name}.key`), '--data-dir', path(name)])
  expect({ code: busy.code, stderr: busy.stderr }).toEqual({ code: 1, stderr: expect.stringContaining('is in use') })
  await output('pipelines', 'create', 'on-the-hub', config, ...at)
  await down(hub)

  const adopt = ['hub', 'key', 'adopt', path(`${name}.key`), '--data-dir', path(name)]
  const adopted = JSON.parse(await output(...adopt, '--json'))
  expect(adopted).toMatchObject({ hubId: hub.id, pipelines: [{ name: 'on-the-hub' }] })
  expect(adopted.nodeId).not.toBe(hub.id)
  const again = await penstock(['hub', 'key', 'adopt', path(`${name}.again.key`), '--data-dir', path(name)])
  expect({ code: again.code, stderr: again.stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining(`know it by the key ${hub.id}, which is not the node's (${adopted.nodeId})`),
  })
  expect(existsSync(path(`${name}.again.key`))).toBe(false)
  // Without the key: its nodes would not be back, and whoever looks at the hub would not see why.
  const keyless = await up(name, '127.0.0.1:0', '--hub', '--log-level', 'warn', ...tls)
  await new Promise<void>((resolve) =>
    keyless.process.stderr?.on('data', (text) => String(text).includes(`known=${hub.id}`) && resolve()),
  )
  await down(keyless)
  // With the key that it had, and the certificate that it had: nothing is to be done at the edge.
  hub = await up(name, hub.address, '--hub', '--hub-key-file', path(`${name}.key`), ...tls)
  expect(hub.id).toBe(adopted.nodeId)
  const state = async () => JSON.parse(await output('status', '--json', '--url', `http://${edge.address}`))
  await until(async () => (await state()).state === 'CONNECTED', 'the node has come back by itself')
  expect(await output('pipelines', 'list', '--node', hub.id, '--url', `http://${edge.address}`)).toContain('on-the-hub')
  const seen = JSON.parse(await output('nodes', 'list', '--json', '--url', `http://${edge.address}`))
  expect(seen.map((node: { id: string }) => node.id).sort()).toEqual([hub.id, edge.id].sort())
  await down(hub)

  // A third key: another hub, whatever its certificate.
  await output('hub', 'key', 'create', path(`${name}.other.key`))
  hub = await up(name, hub.address, '--hub', '--hub-key-file', path(`${name}.other.key`), ...tls)
  await new Promise<void>((resolve) => edge.process.stderr?.on('data', (text) => /another key/.test(text) && resolve()))
  expect((await state()).state).toBe('DISCONNECTED')
  await Promise.all([down(hub), down(edge)])
})
