/**
 * cluster: three servers of one hub on three NATS servers, with simulated nodes at each: what they cost while nothing happens, and what becomes of the nodes of one server
 * that is killed, stopped, or cut off from NATS, or whose nodes are cut off from it. PENSTOCK_BENCH_NODES: how many at each server (`ulimit -n` of as many and
 * more); PENSTOCK_BENCH_FAILURE: kill, stop, cut (from NATS) or partition (of the nodes, and of the other servers, from it).
 * Nodes have CPUs of their own, and the simulated ones of a server share one process: PENSTOCK_BENCH_DIALS (default 32) of them dial at once, and the others wait in
 * line for as long as that takes. With as many as there are nodes all wait for all in the middle of their handshakes; those beyond MAX_UNPROVEN are refused and dial again. PENSTOCK_BENCH_SAYS_AGAIN=1: each says what it is a second time once it has its link.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clientOf } from '../src/cli/client.ts'
import { freeAddress } from '../src/cli/free-address.ts'
import { RequestSocket } from '../src/cli/request-socket.ts'
import { writeMembers } from '../src/hub/cluster/moving.ts'
import { writeHubKey } from '../src/link/hub-key.ts'
import { newIdentity, nodeIdOfRaw } from '../src/link/identity.ts'
import { rawKey } from '../src/link/keys.ts'
import { hubIdOf } from '../src/node/cluster.ts'
import { Nats, NatsProxy } from '../test/harness/nats.ts'
import { until } from '../test/harness/waiting.ts'
import { type Bench, type BenchRow, runAlone } from './measure.ts'
import { Asking, cpuSeconds, HeldPath, LinkedNodes, recordOf, residentKb, UpProcess } from './support/cluster-nodes.ts'

const NODES = Number(process.env.PENSTOCK_BENCH_NODES ?? 300)
const FAILURE = process.env.PENSTOCK_BENCH_FAILURE ?? 'kill'
const NAME = 'bench'
const REPLICAS = 3
/** s. */
const STEADY = 10
/** From one call to the next of those that go on all the time, ms. */
const PAUSE_MS = 20
/** What a node needs to find that its server is silent (src/link/heartbeat.ts), and far more than it then may take; ms. */
const PATIENCE_MS = 75_000
/** By when the nodes are to be back: s after the others have noticed a kill, and after a heartbeat would have noticed anything else. */
const GOAL_S = 5
const HEARTBEAT_S = 30

/** The value that a share of `ascending` is not above. */
const at = (ascending: readonly number[], share: number): number =>
  ascending[Math.min(ascending.length - 1, Math.floor(share * ascending.length))] ?? Number.NaN

interface Hub {
  readonly nats: Nats
  /** Between the first server and NATS. */
  readonly proxy: NatsProxy
  /** Between everybody else and the first server, in a partition. */
  readonly path: HeldPath | undefined
  readonly servers: readonly UpProcess[]
  readonly groups: readonly LinkedNodes[]
  /** Kilobytes of the servers and of NATS before the nodes came. */
  readonly before: { readonly servers: readonly number[]; readonly nats: number }
  /** s until all nodes had a link. */
  readonly connecting: number
}

const pidsOf = ({ servers }: Nats): number[] => servers.map(({ pid }) => pid as number)
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Three servers whose hub has the members already, and the nodes connected. */
async function openHub(closing: (() => unknown)[]): Promise<Hub> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
  closing.push(() => rmSync(directory, { recursive: true, force: true }))
  const key = newIdentity()
  const keyFile = join(directory, 'hub.key')
  writeHubKey(keyFile, key)
  const nats = await Nats.three()
  closing.push(() => nats.close())
  process.once('exit', () => {
    for (const { pid } of nats.servers) if (pid !== undefined) process.kill(pid, 'SIGKILL')
  })
  const groups = [new LinkedNodes(), new LinkedNodes(), new LinkedNodes()]
  closing.push(() => Promise.all(groups.map((group) => group.close())))
  await Promise.all(groups.map((group) => group.make(NODES)))
  const now = Date.now()
  const members = groups.flatMap(({ keys }) =>
    keys.map((raw) => {
      const id = nodeIdOfRaw(raw)
      const { name, metadata, services } = recordOf(id)
      return {
        ...{ id, key: raw, name, metadata: metadata.items },
        services: [...services],
        joinedAt: now,
        lastSeen: now,
      }
    }),
  )
  const hubKey = rawKey(key.publicKey)
  const engine = { servers: nats.addresses, name: NAME, hubId: hubIdOf(hubKey), replicas: REPLICAS }
  await writeMembers(engine, { members, requestIds: 1 })
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const servers: UpProcess[] = []
  const addresses: string[] = []
  let path: HeldPath | undefined
  for (const name of ['a', 'b', 'c']) {
    const http = await freeAddress()
    if (name === 'a' && FAILURE === 'partition') {
      path = await HeldPath.to(http)
      closing.push(() => path?.close())
    }
    const address = `http://${name === 'a' && path !== undefined ? path.address : http}`
    addresses.push(address)
    const own = name === 'a' ? [proxy.address] : nats.addresses
    const hub = ['--hub', '--hub-key-file', keyFile, '--http', http, '--hub-address', address]
    const engines = own.map((each) => `nats://${each}`).join()
    const cluster = ['--hub-cluster-name', NAME, '--hub-cluster-nats-servers', engines]
    const server = await UpProcess.start(name, ...hub, ...cluster)
    closing.push(() => server.close())
    servers.push(server)
  }
  const before = { servers: servers.map(({ pid }) => residentKb(pid)), nats: sum(pidsOf(nats).map(residentKb)) }
  const begun = performance.now()
  const signIn = { hubId: key.nodeId, hubKey: Buffer.from(hubKey).toString('hex') }
  await Promise.all(groups.map((group, i) => group.connect({ address: addresses[i] as string, ...signIn })))
  return { nats, proxy, path, servers, groups, before, connecting: (performance.now() - begun) / 1000 }
}

/** When a server tells of what becomes of nodes, ms after `begin`. */
class Observer {
  readonly connected = new Map<string, number>()
  readonly disconnected = new Map<string, number>()
  #begun = Number.POSITIVE_INFINITY
  #isOpen = false

  static async open(server: UpProcess, signal: AbortSignal): Promise<Observer> {
    const observer = new Observer()
    observer.#follow(server, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
    await until(() => observer.#isOpen)
    return observer
  }

  begin(): void {
    this.connected.clear()
    this.disconnected.clear()
    this.#begun = performance.now()
  }

  async #follow({ url }: UpProcess, signal: AbortSignal): Promise<void> {
    for await (const { updateResponse: update } of clientOf(url).streamNodes({}, { signal })) {
      this.#isOpen = true
      const after = performance.now() - this.#begun
      const { connectedNode, disconnectedNode } = update ?? {}
      if (connectedNode !== undefined && !this.connected.has(connectedNode.id))
        this.connected.set(connectedNode.id, after)
      if (disconnectedNode !== undefined && !this.disconnected.has(disconnectedNode.id)) {
        this.disconnected.set(disconnectedNode.id, after)
      }
    }
  }
}

/** A real node at this server. */
async function joined(name: string, server: UpProcess, closing: (() => unknown)[]): Promise<UpProcess> {
  const node = await UpProcess.start(name, '--http', '127.0.0.1:0')
  closing.push(() => node.close())
  const socket = await RequestSocket.open(clientOf(server.url))
  const asked = clientOf(node.url).authenticateByRequest({ hubServerAddress: server.url }, { timeout: 60_000 })
  const frame = await socket.next()
  if ('failure' in frame) throw frame.failure
  socket.answer(frame.request.requestId, true)
  await asked
  socket.close()
  return node
}

/** What the servers and NATS take while nothing happens: CPUs each. */
async function steady({ servers, nats }: Hub): Promise<{ servers: number[]; nats: number }> {
  const pids = servers.map(({ pid }) => pid)
  const before = { servers: pids.map(cpuSeconds), nats: sum(pidsOf(nats).map(cpuSeconds)) }
  await new Promise((resolve) => setTimeout(resolve, STEADY * 1000))
  return {
    servers: pids.map((pid, i) => (cpuSeconds(pid) - (before.servers[i] as number)) / STEADY),
    nats: (sum(pidsOf(nats).map(cpuSeconds)) - before.nats) / STEADY,
  }
}

/** The first server fails; what becomes of its nodes, as the third tells it, and of calls among the others. */
async function fail({ servers, groups, nats, proxy, path }: Hub, closing: (() => unknown)[]): Promise<BenchRow[]> {
  const [a, b, c] = servers as [UpProcess, UpProcess, UpProcess]
  const [atB, atC] = [await joined('at b', b, closing), await joined('at c', c, closing)]
  const over = new AbortController()
  closing.push(() => over.abort())
  const observer = await Observer.open(c, over.signal)
  const call = ({ url }: UpProcess, { id: nodeId }: UpProcess) => {
    const client = clientOf(url)
    return new Asking(() => client.getNode({ nodeId }), PAUSE_MS)
  }
  // Until the links between the servers and of both nodes are there.
  await until(() =>
    clientOf(atB.url)
      .getNode({ nodeId: atC.id })
      .then(Boolean, () => false),
  )
  const asking = [call(atB, atC), call(atC, atB), call(b, atC), call(c, atB)]
  const ids = (groups[0] as LinkedNodes).keys.map(nodeIdOfRaw)
  const pids = { servers: [b.pid, c.pid], nats: pidsOf(nats), nodes: groups.map(({ pid }) => pid) }
  const used = () => Object.values(pids).map((some) => sum(some.map(cpuSeconds)))
  const before = used()
  observer.begin()
  if (FAILURE === 'cut') proxy.cut()
  else if (path !== undefined) path.hold()
  else a.signal(FAILURE === 'stop' ? 'SIGSTOP' : 'SIGKILL')
  const isBack = (id: string) => observer.connected.has(id)
  const back = () => ids.filter(isBack).length
  await until(
    () => observer.connected.size >= ids.length && ids.every(isBack),
    () => `${back()} of ${ids.length} nodes are back`,
    PATIENCE_MS,
  )
  // In a partition that server is there, and says itself that its nodes are not.
  if (path === undefined) await until(() => observer.disconnected.has(a.id))
  const cpu = used().map((after, i) => after - (before[i] as number))
  await Promise.all(asking.map((each) => each.stop()))
  const failures = asking.flatMap((each) => each.failures)
  if (failures.length > 0) console.log(failures)
  const returns = ids.map((id) => (observer.connected.get(id) as number) / 1000).sort((x, y) => x - y)
  const gone = ids.map((id) => (observer.disconnected.get(id) ?? Number.NaN) / 1000).sort((x, y) => x - y)
  const noticed = path === undefined ? (observer.disconnected.get(a.id) as number) / 1000 : at(gone, 0.5)
  const goal = `≤ ${((FAILURE === 'kill' ? noticed : HEARTBEAT_S) + GOAL_S).toFixed(1)}`
  return [
    {
      label: `${FAILURE} of one server: the others count ${path === undefined ? 'it' : 'half of its nodes'} as gone after`,
      value: noticed,
      unit: 's',
    },
    { label: 'its nodes online elsewhere after that failure, half', value: at(returns, 0.5), unit: 's' },
    { label: '99 of 100', value: at(returns, 0.99), unit: 's', goal },
    { label: 'the last', value: returns.at(-1) ?? Number.NaN, unit: 's' },
    { label: 'CPU of the two servers meanwhile', value: cpu[0] as number, unit: 's' },
    { label: 'CPU of NATS meanwhile', value: cpu[1] as number, unit: 's' },
    { label: 'CPU of all nodes meanwhile', value: cpu[2] as number, unit: 's' },
    {
      label: 'calls among nodes at the other servers meanwhile',
      value: sum(asking.map((each) => each.answers)),
      unit: '',
    },
    { label: 'of these failed', value: failures.length, unit: '', goal: '≤ 0' },
    { label: 'the slowest took', value: Math.max(...asking.map((each) => each.slowest)), unit: 'ms' },
  ]
}

export const bench: Bench = async () => {
  const closing: (() => unknown)[] = []
  const stop = () => process.exit(1)
  process.once('SIGTERM', stop)
  try {
    const hub = await openHub(closing)
    const { servers, nats, before, connecting } = hub
    const idle = await steady(hub)
    const full = servers.map(({ pid }) => residentKb(pid))
    const perNode = sum(full.map((kb, i) => kb - (before.servers[i] as number))) / (servers.length * NODES)
    const rows: BenchRow[] = [
      { label: 'all connect', value: connecting, unit: 's' },
      { label: 'memory of a server per node linked there', value: perNode, unit: 'kB' },
      { label: 'memory of a server', value: sum(full) / servers.length / 1024, unit: 'MB' },
      { label: 'memory of the three NATS servers', value: sum(pidsOf(nats).map(residentKb)) / 1024, unit: 'MB' },
      { label: 'CPU of a server, steady', value: (100 * sum(idle.servers)) / servers.length, unit: '%' },
      { label: 'CPU of the three NATS servers, steady', value: 100 * idle.nats, unit: '%' },
      ...(await fail(hub, closing)),
    ]
    return { name: `cluster: three servers with ${NODES} nodes each`, rows }
  } finally {
    process.off('SIGTERM', stop)
    for (const close of closing.reverse()) await close()
  }
}

await runAlone(import.meta.url, bench)
