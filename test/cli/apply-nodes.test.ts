/** `penstock pipelines apply` to several nodes of a hub at once: all get what the files ask for, and one that cannot keeps no other from it. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { until } from '../harness/waiting.ts'
import { lossy, scratch } from './cli.ts'
import { CommandNode } from './running-node.ts'
import '../harness/slow.ts'

const directory = scratch()
const config = directory.file('lossy.json', lossy)
const file = directory.file('site.yaml', stringify({ name: 'link', config: lossy }))
let hub: CommandNode
let east: CommandNode
let west: CommandNode

interface Applied {
  dryRun: boolean
  nodes: {
    id: string
    name: string
    pipelines: { name: string; result: string; started: boolean; error?: string }[]
    error?: { code: string; message: string }
  }[]
}

const apply = (...args: string[]) => hub.call(['pipelines', 'apply', file, ...args])
const results = ({ nodes }: Applied) =>
  nodes.map(({ name, pipelines }) => [name, ...pipelines.map((each) => `${each.result} ${each.name}`)])
const names = async (node: CommandNode) =>
  (await node.json<{ name: string }[]>('pipelines', 'list')).map(({ name }) => name).sort()

beforeAll(async () => {
  ;[hub, east, west] = await Promise.all([
    CommandNode.up(`${directory.path}/hub`, '--hub', '--node-name', 'hub'),
    CommandNode.up(`${directory.path}/east`, '--node-name', 'east'),
    CommandNode.up(`${directory.path}/west`, '--node-name', 'west'),
  ])
})
afterAll(async () => {
  await Promise.all([hub, east, west].map((node) => node?.end()))
  directory.dispose()
})

it('is done on those named, or on all, whatever becomes of the others', { timeout: 120_000 }, async () => {
  // On no hub there is one node.
  expect(results(await east.json<Applied>('pipelines', 'apply', file, '--all-nodes'))).toEqual([
    ['east', 'created link'],
  ])
  await east.json('pipelines', 'delete', 'link')
  await east.join(hub)
  await west.join(hub)

  const planned = await apply('--all-nodes', '--start', '--dry-run')
  expect(planned).toMatchObject({ code: 0, stderr: '' })
  expect(planned.stdout.replaceAll(/\b[a-z2-7]{26}\b/g, 'ID')).toBe(
    ['east', 'hub', 'west'].map((name) => `${name} ID\ncreate     link\nstart      link\n`).join('') +
      'dry run: nothing was changed\n',
  )
  for (const node of [hub, east, west]) expect(await names(node)).toEqual([])

  // In the order in which they are named, each once.
  const two = ['--node', 'west', '--node', 'east', '--node', west.id]
  const first = await hub.json<Applied>('pipelines', 'apply', file, ...two)
  expect(results(first)).toEqual([
    ['west', 'created link'],
    ['east', 'created link'],
  ])
  expect(first.nodes.map(({ id }) => id)).toEqual([west.id, east.id])
  expect(await names(hub)).toEqual([])
  const all = await hub.json<Applied>('pipelines', 'apply', file, '--all-nodes', '--start')
  expect(results(all)).toEqual([
    ['east', 'unchanged link'],
    ['hub', 'created link'],
    ['west', 'unchanged link'],
  ])
  for (const { pipelines } of all.nodes) expect(pipelines).toMatchObject([{ started: true }])

  for (const [wrong, code] of [
    [['--all-nodes', '--node', 'east'], 2],
    [['--node', 'east', '--node', 'north', '--prune', '--yes'], 1],
  ] as const) {
    expect(await apply(...wrong)).toMatchObject({ code, stdout: '' })
  }

  // What is to go is told, node by node, before anything is done.
  await west.json('pipelines', 'create', 'spare', config)
  await hub.json('pipelines', 'create', 'old', config)
  const unsure = await apply('--all-nodes', '--prune')
  expect(unsure).toMatchObject({ code: 1, stdout: '' })
  expect(unsure.stderr).toMatch(/2 pipelines .*\n {2}"old" \S+ on hub \S+\n {2}"spare" \S+ on west \S+\n/)
  expect(await names(west)).toEqual(['link', 'spare'])

  // A second of the name on one of them, made by somebody else: the others are brought to it all the same.
  await west.json('pipelines', 'create', 'link', config, '--force', '--node-reference', 'n1')
  const part = await apply('--all-nodes', '--prune', '--yes')
  expect(part.code).toBe(2)
  expect(part.stderr).toContain('"link" is refused: 2 pipelines of the node have this name')
  expect(part.stderr).toContain(`west ${west.id}: 1 of 1 pipelines were refused`)
  expect(await names(hub)).toEqual(['link'])
  expect(await names(west)).toEqual(['link', 'link', 'spare'])

  await east.end()
  await until(async () => /east +\S+ +no/.test((await hub.call(['nodes'])).stdout), 'the hub sees that it has gone')
  const gone = await apply('--node', 'east', '--node', 'hub', '-o', 'json')
  expect(gone.code).toBe(2)
  expect(gone.stderr).toContain(`east ${east.id}: it is offline, last seen`)
  expect(JSON.parse(gone.stdout)).toMatchObject({
    nodes: [
      { name: 'east', pipelines: [], error: { code: 'UNAVAILABLE' } },
      { name: 'hub', pipelines: [{ result: 'unchanged' }] },
    ],
  })
})
