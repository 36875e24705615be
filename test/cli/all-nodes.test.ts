/** The pipelines and the state of every node of a hub at once, with nodes that are gone and one that hangs. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { lossy, scratch } from './cli.ts'
import { CommandNode } from './running-node.ts'
import '../harness/slow.ts'

const directory = scratch()
const config = directory.file('lossy.json', lossy)
let hub: CommandNode
let east: CommandNode
let west: CommandNode

interface Node {
  id: string
  name: string
  pipelines?: unknown
  running?: number
  error?: { code: string; message: string }
}

beforeAll(async () => {
  ;[hub, east, west] = await Promise.all([
    CommandNode.up(`${directory.path}/hub`, '--hub', '--node-name', 'hub'),
    CommandNode.up(`${directory.path}/east`, '--node-name', 'east'),
    CommandNode.up(`${directory.path}/west`, '--node-name', 'west'),
  ])
})
afterAll(async () => {
  west?.process.kill('SIGCONT')
  await Promise.all([hub, east, west].map((node) => node?.end()))
  directory.dispose()
})

it('shows all that answer, names the others with their reason, and exits 2', async () => {
  // On no hub there is one node.
  expect(await east.json<Node[]>('pipelines', 'list', '--all-nodes')).toEqual([
    { id: east.id, name: 'east', pipelines: [] },
  ])
  await east.join(hub)
  await west.join(hub)
  for (const node of [hub, east, west]) await node.json('pipelines', 'create', 'one', config)
  await east.json('pipelines', 'start', 'one')

  const listed = await hub.json<Node[]>('pipelines', 'list', '--all-nodes')
  expect(listed.map(({ name }) => name)).toEqual(['east', 'hub', 'west'])
  for (const { pipelines } of listed) expect(pipelines).toMatchObject([{ name: 'one' }])
  const { stdout } = await west.call(['pipelines', 'list', '--all-nodes'])
  expect(stdout).toMatch(/^NODE +ID .*\neast +\S+ +one +running .*\nhub +\S+ +one +stopped.*\nwest +\S+ +one/)
  const status = await west.json<Node[]>('status', '--all-nodes')
  expect(status.map(({ name, pipelines, running }) => [name, pipelines, running])).toEqual([
    ['east', 1, 1],
    ['hub', 1, 0],
    ['west', 1, 0],
  ])

  await east.end()
  const isOffline = async () => /east +\S+ +no/.test((await hub.call(['nodes'])).stdout)
  await until(isOffline, 'the hub sees that it has gone')
  west.process.kill('SIGSTOP')
  for (const verb of [['pipelines', 'list'], ['status']]) {
    const part = await hub.call([...verb, '--all-nodes', '--timeout', '4s', '-o', 'json'])
    expect(part.code).toBe(2)
    expect(part.stderr).toContain(`east ${east.id}: it is offline, last seen`)
    expect(part.stderr).toContain(`west ${west.id}: no answer within 4 s`)
    expect(JSON.parse(part.stdout)).toMatchObject([
      { name: 'east', error: { code: 'UNAVAILABLE' } },
      { name: 'hub', pipelines: expect.anything() },
      { name: 'west', error: { code: 'DEADLINE_EXCEEDED' } },
    ])
  }
  for (const wrong of [['--node', 'hub'], ['--watch']]) {
    expect((await hub.call(['pipelines', 'list', '--all-nodes', ...wrong])).code).toBe(2)
  }
})
