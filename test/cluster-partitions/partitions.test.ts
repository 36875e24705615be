/**
 * Three servers of a hub that are cut off from NATS, killed and stopped at random, for longer than their leases too, while nodes are renamed, removed, go and
 * come back; afterwards all servers list the same nodes, as they are, and every call succeeds. For `npm run test:long cluster-partitions`, which sets
 * PENSTOCK_STORM_LONG; PENSTOCK_STORM_SEED repeats the plans of one (default: drawn; printed).
 */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { Node } from '../../src/contract/types.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { readMembers } from '../../src/hub/cluster/moving.ts'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import { hubIdOf } from '../../src/node/cluster.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { serverFlags } from '../cluster/server-flags.ts'
import { Nats } from '../harness/nats.ts'
import { endProcesses } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { BrokenPromise } from '../storm/broken-promise.ts'
import { Lists, listOf, PATIENCE_MS } from './lists.ts'
import { Member } from './node-party.ts'
import { ServerParty } from './server-party.ts'
import '../harness/slow.ts'

const seed = Number(process.env.PENSTOCK_STORM_SEED ?? Math.floor(Math.random() * 2 ** 31))
const MILLISECONDS = 60_000
const SERVERS = ['a', 'b', 'c']
const MEMBERS = 6
/** Fewer are never left on the hub. */
const LEAST_MEMBERS = 4
/** How long all may take to be as if nothing had been, milliseconds. */
const CALM_MS = 60_000
/** Until a removed node hears of it: it tries again every half minute at most. */
const HEARD_MS = 60_000

const random = new Random(seed)
const begun = performance.now()
const log: string[] = []
const note = (line: string) => void log.push(`${(performance.now() - begun).toFixed(0).padStart(6)} ${line}`)
const pause = (least: number, most: number, by: Random) =>
  new Promise((resolve) => setTimeout(resolve, by.between(least, most)))
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await endProcesses()
})

async function started() {
  const root = temporaryDirectory()
  const hub = newIdentity()
  const keyFile = join(root, 'hub.key')
  writeHubKey(keyFile, hub)
  const nats = await Nats.alone()
  closing.push(() => nats.close())
  const [natsServer] = nats.addresses as [string]
  const starting = SERVERS.map(async (name) => {
    const flags = await serverFlags(name, keyFile, natsServer)
    const server = await ServerParty.start({ name, directory: join(root, name), natsServer, flags, note })
    closing.push(() => server.close())
    return server
  })
  const servers = await Promise.all(starting)
  const members: Member[] = []
  for (let i = 0; i < MEMBERS; i++) {
    const member = await Member.start(join(root, `n${i}`), `n${i}`)
    closing.push(() => member.close())
    await member.join(servers[i % servers.length] as ServerParty)
    members.push(member)
  }
  const settings = { servers: [natsServer], name: 'tests', hubId: hubIdOf(rawKey(hub.publicKey)), replicas: 1 }
  const joined = async () =>
    new Map((await readMembers(settings)).members.map(({ id, joinedAt }) => [id, joinedAt] as const))
  return { servers, members, joined }
}

/** What happens to one of the members, now and then. */
async function live(members: readonly Member[], servers: readonly ServerParty[], by: Random, isOver: () => boolean) {
  for (let names = 0; !isOver(); ) {
    await pause(500, 3_000, by)
    const left = members.filter(({ isMember }) => isMember)
    const member = left[by.below(left.length)] as Member
    const roll = by.below(4)
    if (roll < 2 && member.caller !== undefined) await member.rename(`${member.name.split(' ')[0]} ${++names}`)
    else if (roll === 2) await member.turn()
    else if (roll === 3 && left.length > LEAST_MEMBERS)
      await remove(member, servers[by.below(servers.length)] as ServerParty)
    note(`${member.name}: ${['named', 'named', 'turned', 'removed?'][roll]}`)
  }
}

async function remove(member: Member, { caller, name }: ServerParty): Promise<void> {
  // From here on it may go.
  member.isMember = undefined
  const outcome = await caller.unary('removeNode', { nodeId: member.id }, AbortSignal.timeout(2 * PATIENCE_MS)).then(
    () => 'removed',
    ({ code }) => `${code}`,
  )
  note(`removal of ${member.name} at ${name}: ${outcome}`)
  if (outcome === 'removed') member.isMember = false
  // Nothing was sent, as at a server that is cut off. Whatever else was answered, it may be done yet.
  else if (outcome === 'UNAVAILABLE' || outcome === 'UNAUTHENTICATED') member.isMember = true
}

/** What is not as it should be, where everything is well; undefined: nothing. */
async function disagreement(servers: readonly ServerParty[], members: readonly Member[]): Promise<string | undefined> {
  const lists = await Promise.all(servers.map(listOf)).catch((error: Error) => error)
  if (lists instanceof Error) return `a server does not list its nodes: ${lists.message}`
  const texts = lists.map((nodes) =>
    nodes
      .map(({ id, name, online }) => `${id} ${name} ${online}`)
      .sort()
      .join('\n'),
  )
  if (new Set(texts).size > 1) return `lists that differ:\n${texts.join('\n\n')}`
  const nodes = new Map((lists[0] as Node[]).map((node) => [node.id, node]))
  const down = servers.find(({ id }) => nodes.get(id)?.online !== true)
  if (down !== undefined) return `server ${down.name} is not online`
  for (const { id, name, isMember, caller } of members) {
    const node = nodes.get(id)
    if (isMember !== undefined && isMember !== (node !== undefined)) return `${name} is listed: ${node !== undefined}`
    if (node === undefined) continue
    if (node.online !== (caller !== undefined)) return `${name} is shown online: ${node.online}`
    if (node.online && node.name !== name) return `${name} is shown as ${node.name}`
  }
  return undefined
}

test(`cut off, killed and stopped at random, seed ${seed}`, async () => {
  const { servers, members, joined } = await started()
  const agreed = async () => {
    let last: string | undefined
    const holds = async () => {
      last = await disagreement(servers, members)
      return last === undefined
    }
    await until(holds, () => `${last}`, CALM_MS)
  }
  try {
    await agreed()
    const before = await joined()
    const end = performance.now() + MILLISECONDS
    const isOver = () => performance.now() >= end
    const lists = servers.map((server) => new Lists(server, members))
    const following = lists.map((each) => each.follow(isOver))
    const striking = servers.map(async (server) => {
      const by = new Random(random.bits())
      for (;;) {
        await pause(500, 6_000, by)
        if (isOver()) return
        await server.strike(by)
      }
    })
    await Promise.all([...following, ...striking, live(members, servers, new Random(random.bits()), isOver)])
    note('calm')
    await agreed()
    const after = await joined()
    const shown = await listOf(servers[0] as ServerParty)
    const left = members.filter(({ id }) => shown.some((node) => node.id === id))
    expect([...after.keys()].sort()).toEqual(left.map(({ id }) => id).sort())
    for (const [id, time] of after) expect(time).toBe(before.get(id))
    const callers = [...servers, ...left].flatMap(({ name, caller }) =>
      caller === undefined ? [] : [{ name, caller }],
    )
    const reached = [...servers, ...left].filter(({ caller }) => caller !== undefined)
    for (const { name, caller } of callers) {
      for (const { id: nodeId, name: to } of reached) {
        const call = () =>
          caller.unary('getNode', { nodeId }, AbortSignal.timeout(PATIENCE_MS)).then(Boolean, () => false)
        await until(call, `${name} calls ${to}`, CALM_MS)
      }
    }
    for (const { name, caller } of members.filter((member) => !left.includes(member))) {
      if (caller === undefined) continue
      const isOut = async () => {
        const stream = await caller.stream('streamConnectionState')
        const { state } = await stream.next()
        stream.close()
        return state === 'UNAUTHENTICATED'
      }
      await until(isOut, `${name} hears that it was removed`, HEARD_MS)
    }
    expect(lists.flatMap(({ faults }) => faults)).toEqual([])
  } catch (error) {
    throw new BrokenPromise(`seed ${seed}: ${(error as Error).stack}\n\nlog:\n${log.join('\n')}`)
  }
})
