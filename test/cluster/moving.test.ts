/** A hub that goes from one server to several and back, as an operator does it, while its node is up. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../api/running-node.ts'
import { lineOf, penstock, start } from '../cli/cli.ts'
import { Nats } from '../harness/nats.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const path = (name: string) => join(root, name)
const running = new Set<ChildProcess>()
let nats: Nats

async function up(name: string, ...flags: string[]) {
  const own = ['--data-dir', path(name), '--node-name', name, '--grpc', 'none', '--log-level', 'warn']
  const child = start(['up', ...own, ...flags])
  running.add(child)
  const [, address, id] = await lineOf(child, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
  const down = async () => {
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
    running.delete(child)
  }
  return { id: id as string, url: `http://${address}`, down }
}

async function output(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await penstock(args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}
const json = async (...args: string[]) => JSON.parse(await output(...args, '--json'))
async function failure(...args: string[]): Promise<string> {
  const { code, stderr } = await penstock(args)
  expect(code).toBe(1)
  return stderr
}

/** The configuration of the server with this name, at this address. */
function configuration(name: string, http: string): string {
  const cluster = `{ name: moved, replicas: 1, natsServers: ["nats://${nats.addresses[0]}"] }`
  const hubServer = `  keyFile: hub.key\n  address: http://${http}\n  cluster: ${cluster}\n`
  writeFileSync(path(`${name}.yaml`), `dataDirectory: ${name}\nhttp: { address: "${http}" }\nhubServer:\n${hubServer}`)
  return path(`${name}.yaml`)
}

async function approve(joiner: { url: string }, hub: { url: string }): Promise<number> {
  const joined = penstock(['authenticate-by-request', hub.url, '--url', joiner.url])
  let requests: { requestId: string }[] = []
  const isThere = async () => {
    requests = await json('authentication-requests', 'list', '--url', hub.url)
    return requests.length === 1
  }
  await until(isThere)
  await output('authentication-requests', 'approve', '--all', '--url', hub.url)
  expect((await joined).code).toBe(0)
  return Number(requests[0]?.requestId)
}

/** When the node `edge` joined, as a file says. */
function joinedAt(file: string): string {
  const lines = readFileSync(path(file), 'utf8').trim().split('\n')
  const edge = lines.map((line) => JSON.parse(line)).find(({ record }) => record?.name === 'edge')
  return edge.joinedAt
}

let edge: Awaited<ReturnType<typeof up>>
const isBack = () => until(async () => (await json('status', '--url', edge.url)).state === 'CONNECTED')

beforeAll(async () => {
  nats = await Nats.alone()
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await nats.close()
})

test('from one server to several and back: its node comes along by itself, and ids of requests rise', async () => {
  const [http, other] = [await freeAddress(), await freeAddress()]
  const key = ['--hub-key-file', path('hub.key')]
  await output('hub', 'key', 'create', path('hub.key'))
  const alone = ['--hub', ...key, '--hub-address', `http://${http}`, '--http', http]
  const single = await up('a', ...alone)
  edge = await up('edge', '--http', '127.0.0.1:0')
  const first = await approve(edge, single)
  await single.down()
  const exported = await json('hub', 'export', path('one.jsonl'), '--data-dir', path('a'), ...key)
  expect(exported.members).toBe(1)

  const files = [configuration('a', http), configuration('b', other)] as const
  const imported = await json('hub', 'import', path('one.jsonl'), '-c', files[0])
  expect(imported).toMatchObject({ hubId: exported.hubId, members: 1 })
  // Cut off in the middle, it can be done again.
  await output('hub', 'import', path('one.jsonl'), '-c', files[0])
  const servers = [await up('a', '-c', files[0]), await up('b', '-c', files[1])] as const
  await isBack()
  expect(await json('status', '--url', servers[1].url)).toMatchObject({
    servers: expect.arrayContaining([
      { id: servers[0].id, name: 'a', online: true },
      { id: servers[1].id, name: 'b', online: true },
    ]),
  })
  expect(await output('status', '--url', servers[1].url)).toMatch(/servers +2, 2 up: .*b \(this node\)/)
  const late = await up('late', '--http', '127.0.0.1:0')
  const second = await approve(late, servers[1])
  expect(second).toBeGreaterThan(first)
  const taken = await json('hub', 'export', path('several.jsonl'), '-c', files[1])
  expect(taken).toMatchObject({ hubId: exported.hubId, members: 2 })
  expect(joinedAt('several.jsonl')).toBe(joinedAt('one.jsonl'))
  const names = readFileSync(path('several.jsonl'), 'utf8').matchAll(/"name":"(\w+)"/g)
  expect([...names].map(([, name]) => name).sort()).toEqual(['edge', 'late'])
  await servers[0].down()
  expect(await failure('hub', 'import', path('one.jsonl'), '-c', files[0])).toContain(
    'this hub has 1 members that are not in the file',
  )
  expect(await failure('hub', 'import', path('several.jsonl'), '-c', files[0])).toContain('servers of this hub are up')
  await servers[1].down()

  const back = ['hub', 'import', path('several.jsonl'), '--data-dir', path('a'), ...key]
  expect(await failure(...back)).toContain('this hub has 1 members: what is imported goes into a hub without any, or')
  await output(...back, '--replace')
  const again = await up('a', ...alone)
  await isBack()
  expect((await json('nodes', 'list', '--url', again.url)).map(({ name }: { name: string }) => name)).toEqual([
    'a',
    'edge',
    'late',
  ])
  const third = await approve(await up('last', '--http', '127.0.0.1:0'), again)
  expect(third).toBeGreaterThan(Math.max(first, second))
})
