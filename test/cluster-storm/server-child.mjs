/**
 * A registry of a hub of several servers in a process of its own, and the ends of the nodes that are linked to it. Argument: JSON, see
 * ServerOptions of server-process.ts. Says `{ first }`, `{ told }`, `{ fact }` and `{ failed }`; answers `{ id, step, … }` with `{ id, answer }` or
 * `{ id, code, message }`.
 */
import { createPrivateKey } from 'node:crypto'
import { systemClock } from '../../dist/src/contract/clock.js'
import { ClusterRegistry } from '../../dist/src/hub/cluster/cluster-registry.js'
import { ClaimOvertaken } from '../../dist/src/hub/cluster/links.js'
import { hubPolicy } from '../../dist/src/hub/policy.js'
import { identityOf } from '../../dist/src/link/identity.js'
import { rawKey } from '../../dist/src/link/keys.js'
import { connectPair } from '../../dist/src/link/pair.js'

const { name, key, servers, replicas, tls, isWithoutBarrier } = JSON.parse(process.argv[2])
const identity = identityOf(createPrivateKey(key))
const record = (named, services = ['PIPELINES']) => ({ name: named, metadata: { items: {} }, services })
const say = (message) => process.connected && process.send(message)
process.on('disconnect', () => process.exit(0))

async function open() {
  for (;;) {
    try {
      return await ClusterRegistry.open({
        selfId: identity.nodeId,
        selfKey: rawKey(identity.publicKey),
        self: record(name, ['HUB_SERVER', 'PIPELINES']),
        engine: {
          servers,
          name: 'storm',
          hubId: new Uint8Array(32).fill(1),
          replicas,
          connectionName: name,
          access: () => ({ tls }),
        },
        clock: systemClock,
        onFact: ({ kind, error }) => say({ fact: error === undefined ? kind : `${kind}: ${error.message}` }),
        onError: (message, error) => say({ failed: `${message}: ${error?.message}` }),
      })
    } catch (error) {
      // As whoever supervises a process does.
      say({ failed: `the registry could not be opened: ${error.message}` })
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

const registry = await open()
const policy = hubPolicy({ registry, serve: () => {} })
/** The nodes' own ends of the links that stand, by node id. */
const links = new Map()
const notMade = (message) => Object.assign(new Error(message), { code: 'NOT_TRIED' })
const shown = ({ id, name: named, online }) => ({ id, name: named, online })

const steps = {
  admit: ({ nodeId, rawKey: raw, name: named }) =>
    registry.admit({ nodeId, key: Buffer.from(raw, 'hex'), record: record(named), remoteAddress: '' }),
  expel: async ({ place }) => ({ done: await registry.expel(place) }),
  remove: async ({ nodeId }) => ({ done: await registry.remove(nodeId) }),
  // As at a connect whose record differs, without a link: whatever stands after it would be written again by itself.
  update: async ({ nodeId, name: named }) => {
    // UNAVAILABLE may be said where it is not known whether the record was written: in these cases it is certain that it was not.
    if (!registry.directory.isInTouch) throw notMade('no touch with the engine')
    const claim = await registry.claim(nodeId, record(named), new AbortController().signal).catch((error) => {
      throw error instanceof ClaimOvertaken ? notMade(error.message) : error
    })
    claim?.release()
    return { done: claim !== undefined }
  },
  read: async ({ nodeId }) => {
    if (!isWithoutBarrier) await registry.current()
    return { name: registry.nodes().find(({ id }) => id === nodeId)?.name }
  },
  connect: async ({ nodeKey, name: named }) => {
    const node = identityOf(createPrivateKey(nodeKey))
    const report = () => {}
    const hub = { identity, policy, clock: systemClock, report }
    const details = { identity: node, record: record(named), intent: 'CONNECT', clock: systemClock, report }
    try {
      const { session } = await connectPair(hub, details)
      links.set(node.nodeId, session)
      session.closed.then(() => links.get(node.nodeId) === session && links.delete(node.nodeId))
      return { connected: true }
    } catch (error) {
      return { connected: false, isNoMember: error.reason === 'NOT_A_MEMBER' && error.signed }
    }
  },
  disconnect: async ({ nodeId }) => links.get(nodeId)?.close('SHUTDOWN', 'the node has ended') ?? {},
  picture: async () => ({
    nodes: registry
      .nodes()
      .map((node) => ({ ...shown(node), route: registry.route(node.id) }))
      .map(({ route: { kind, server }, ...node }) => ({ ...node, route: server ?? kind })),
    links: [...links.keys()],
    isInTouch: registry.directory.isInTouch,
  }),
}

registry.follow(({ type, node }) => say({ told: { type, node: shown(node) } }))
process.on('message', async ({ id, step, ...given }) => {
  try {
    say({ id, answer: (await steps[step](given)) ?? {} })
  } catch (error) {
    say({ id, code: error.code ?? 'INTERNAL', message: error.stack })
  }
})
say({ first: registry.nodes().map(shown) })
