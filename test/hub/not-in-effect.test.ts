/** What of a configuration or of a data directory a node does without: its log says so as it starts, and what to do. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { linesOf } from '../api/log-lines.ts'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { httpCaller, startReal } from './callers.ts'

const root = temporaryDirectory()
let directories = 0
const directory = () => join(root, `${directories++}`)

/** Starts a node, looks at its warnings, and stops it. */
async function warnings(
  at: string,
  flags: Record<string, string> = {},
  look: (node: RunningNode) => Promise<unknown> = async () => {},
  file?: { name: string; text: string },
) {
  const running = await startReal(at, flags, file)
  await look(running)
  await running.node.close()
  return linesOf(running, { level: 'warn' })
}

const ownNode = async (running: RunningNode) =>
  (await httpCaller(running).unary('getNode', { nodeId: running.node.id })).node

test('a name and metadata that setNode has given go before flags, which the log says', async () => {
  const at = directory()
  const metadata = { items: { rack: { intValue: 4n }, site: { stringValue: 'a' } } }
  const set = async (running: RunningNode) =>
    await httpCaller(running).unary('setNode', { nodeId: running.node.id, name: 'old', metadata })
  expect(await warnings(at, { 'node-name': 'first' }, set)).toEqual([])
  let id = ''
  const look = async (running: RunningNode) => {
    id = running.node.id
    expect(await ownNode(running)).toMatchObject({ name: 'old', metadata })
  }
  const told = await warnings(at, { 'node-name': 'new', 'node-metadata': '{rack: 5}' }, look)
  expect(told).toMatchObject([
    { setting: 'node.name', from: '--node-name', kept: 'old' },
    { setting: 'node.metadata', from: '--node-metadata', kept: ['rack', 'site'] },
  ])
  expect(told[0]?.msg).toMatch(
    new RegExp(`^node.name is not in effect: .* to change that: penstock nodes set ${id} --name NAME$`),
  )
  // The same, or nothing at all: nothing is without effect.
  expect(await warnings(at, { 'node-name': 'old', 'node-metadata': '{site: a, rack: 4}' }, look)).toEqual([])
  expect(await warnings(at, {}, look)).toEqual([])
  // A file fixes both.
  const file = { name: 'penstock.yaml', text: 'node: { name: filed }\n' }
  const lookFiled = async (running: RunningNode) => expect(await ownNode(running)).toMatchObject({ name: 'filed' })
  expect(await warnings(at, {}, lookFiled, file)).toEqual([])
})

test('a hub that is started as no hub, and a member that is started as one: what is not in effect, and what to do', async () => {
  const [hubAt, memberAt] = [directory(), directory()]
  const hub = await startReal(hubAt, { hub: 'true' })
  const hubServerAddress = `http://${hub.node.http}`
  const join = async (member: RunningNode) => {
    const { stream, answer } = await httpCaller(hub).converse('authenticationByRequests')
    const joined = httpCaller(member).unary('authenticateByRequest', { hubServerAddress })
    answer({ requestId: (await stream.next()).requestId, accept: true })
    await joined
    stream.close()
  }
  expect(await warnings(memberAt, {}, join)).toEqual([])
  await hub.node.close()
  expect(linesOf(hub, { level: 'warn' })).toEqual([])

  const flags = { 'authentication-request-timeout': '10m' }
  expect(await warnings(memberAt, flags)).toMatchObject([
    {
      hub: `${hubServerAddress}/`,
      from: '--authentication-request-timeout',
      msg: expect.stringMatching(
        /^the sign-in to the hub is not in effect, as this node hosts a hub itself: start it /,
      ),
    },
  ])
  expect(await warnings(hubAt)).toMatchObject([
    {
      nodes: 1,
      msg: expect.stringMatching(/^the hub of this data directory is not served, .* without hubServer \(--hub\): /),
    },
  ])
  expect(await warnings(hubAt, { hub: 'true' })).toEqual([])
})

test('what is below hubServer, where hubServer is false', async () => {
  const file = { name: 'penstock.yaml', text: 'hubServer: false\n' }
  expect(await warnings(directory(), { 'authentication-by-request': 'none' }, undefined, file)).toMatchObject([
    {
      setting: 'hubServer.authenticationByRequest',
      from: '--authentication-by-request',
      msg: 'hubServer.authenticationByRequest is not in effect, as hubServer is false (penstock.yaml:1): leave either out',
    },
  ])
})
