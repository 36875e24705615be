/** hub: nodes on one hub process, each with a proven link over a socket: memory per node, and the time and the CPU until all are back after the hub was killed. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { WebSocket } from 'ws'
import { reconnectDelay } from '../src/actors/reconnect-delay.ts'
import { freeAddress } from '../src/cli/free-address.ts'
import type { Clock } from '../src/contract/clock.ts'
import { MAX_PENDING_PER_ADDRESS } from '../src/hub/request-limits.ts'
import { dialHub } from '../src/link/dial.ts'
import { type Identity, newIdentity } from '../src/link/identity.ts'
import type { Intent, LinkSession } from '../src/link/link.ts'
import { packageRoot } from '../src/package-root.ts'
import { type Bench, cpuOf, runAlone } from './measure.ts'
import { cpuTime } from './support/cpu-time.ts'

/** PENSTOCK_BENCH_NODES says otherwise; each takes a descriptor here and one in the hub. */
const NODES = Number(process.env.PENSTOCK_BENCH_NODES ?? 1_000)

const clock: Clock = {
  now: () => performance.now(),
  setTimeout: (fn, milliseconds) => setTimeout(fn, milliseconds),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}

class Hub {
  readonly #directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
  readonly address: string
  #child!: ChildProcess

  constructor(address: string) {
    this.address = address
  }

  async start(): Promise<void> {
    const args = ['up', '--hub', '--data-dir', this.#directory, '--http', this.address, '--grpc', 'none']
    this.#child = spawn(process.execPath, [join(packageRoot(), 'bin/penstock.js'), ...args, '--log-level', 'error'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const line of createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })) {
      if (line.startsWith('penstock ready')) return
    }
    throw new Error('the hub did not start')
  }

  async kill(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  /** Memory that is in RAM, kB. */
  memory(): number {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.#child.pid}/status`, 'latin1'))?.[1])
  }

  /** CPU time used so far by all its threads, s. */
  cpu(): number {
    return cpuOf(this.#child.pid as number)
  }

  /** The same in ns, of the threads that there are now. */
  cpuTime(): number {
    return cpuTime(this.#child.pid as number)
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** The link of a node: what src/hub/membership.ts does, without a disk. */
class Node {
  readonly #hub: Hub
  readonly #identity: Identity
  readonly #name: string
  #hubKey: Uint8Array | undefined
  #session: LinkSession | undefined
  #isOver = false
  /** When its link was back, on the clock of performance.now(). */
  backAt = 0

  constructor(hub: Hub, name: string) {
    this.#hub = hub
    this.#name = name
    this.#identity = newIdentity()
  }

  async connect(intent: Intent): Promise<void> {
    const record = {
      name: this.#name,
      metadata: { items: { region: { stringValue: 'eu' } } },
      services: ['PIPELINES' as const],
    }
    const { session, hubKey } = await dialHub({
      address: new URL(`http://${this.#hub.address}`),
      identity: this.#identity,
      record,
      intent,
      pinnedHubKey: this.#hubKey,
      clock,
      report: () => {},
    })
    this.#hubKey = hubKey
    this.#session = session
    if (intent === 'JOIN') session.sendRecord(record)
  }

  /** Resolves once the link was lost and is back. */
  async comeBack(): Promise<void> {
    await this.#session?.closed
    for (let attempts = 0; !this.#isOver; attempts++) {
      await new Promise((resolve) => setTimeout(resolve, reconnectDelay(attempts, Math.random())))
      try {
        await this.connect('CONNECT')
        this.backAt = performance.now()
        return
      } catch {
        // The hub is not back yet.
      }
    }
  }

  close(): void {
    this.#isOver = true
    this.#session?.close('SHUTDOWN', 'the bench is over')
  }
}

/** Accepts everybody who asks. */
async function operator(hub: Hub): Promise<WebSocket> {
  const socket = new WebSocket(`ws://${hub.address}/v1/streams/hub-server/authentication-requests`)
  socket.on('message', (data) => {
    const { result } = JSON.parse(String(data)) as { result: { requestId: string } }
    socket.send(JSON.stringify({ requestId: result.requestId, accept: true }))
  })
  await once(socket, 'open')
  return socket
}

async function online(hub: Hub): Promise<number> {
  const response = await fetch(`http://${hub.address}/v1/nodes`)
  const { nodes } = (await response.json()) as { nodes: { online: boolean }[] }
  return nodes.filter((node) => node.online).length - 1
}

/** A process of its own that asks the hub's API again and again: the one with the nodes is too busy to see how fast an answer comes. */
class Caller {
  readonly #child: ChildProcess

  constructor(hub: Hub) {
    this.#child = fork(join(packageRoot(), 'dist/bench/support/caller.js'), [
      `http://${hub.address}/v1/hub-client/local-node-id`,
    ])
  }

  /** How long answers took, ms, ascending. */
  async times(): Promise<number[]> {
    const told = once(this.#child, 'message')
    this.#child.send('end')
    const [times] = (await told) as [number[]]
    return times
  }
}

/** The value that a share of `ascending` is not above. */
const at = (ascending: readonly number[], share: number): number =>
  ascending[Math.min(ascending.length - 1, Math.floor(share * ascending.length))] ?? Number.NaN

export interface HubFigures {
  /** Memory of the hub with the nodes joined, and how much more each of the last four fifths takes; kB. */
  readonly memory: number
  readonly memoryPerNode: number
  readonly joinsPerSecond: number
  /** Times after a kill, ms: until the hub is up again, and from then on until half of the nodes and all are back. */
  readonly start: number
  readonly halfBack: number
  readonly allBack: number
  /** What the API took to answer meanwhile, ms. */
  readonly answerMedian: number
  readonly answerSlowest: number
  /** CPU of a return, at the hub and at the node; ms. */
  readonly hubCpuPerReturn: number
  readonly nodeCpuPerReturn: number
  /** CPU that the hub takes for a node that only keeps its link up, µs a second; NaN without a pause. */
  readonly idleCpuPerNode: number
}

/** `count` nodes join, lose their hub and come back; `pause`: s that the hub is watched without and with them while nothing else happens. */
export async function measureHub(count: number, pause = 0): Promise<HubFigures> {
  const hub = new Hub(await freeAddress())
  const nodes = Array.from({ length: count }, (_, i) => new Node(hub, `node ${i}`))
  try {
    await hub.start()
    const without = await idleCpu(hub, pause)
    const accepting = await operator(hub)
    const join = async (some: readonly Node[]) => {
      const waiting = [...some]
      const joinNext = async () => {
        for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) await node.connect('JOIN')
      }
      await Promise.all(Array.from({ length: MAX_PENDING_PER_ADDRESS }, joinNext))
    }
    // A fifth before the count: the heap and buffers that any number of nodes needs are there then.
    const first = Math.ceil(count / 5)
    await join(nodes.slice(0, first))
    const some = hub.memory()
    const begun = performance.now()
    await join(nodes.slice(first))
    const joined = performance.now() - begun
    accepting.close()
    if ((await online(hub)) !== count) throw new Error('not every node is on the hub')
    const full = hub.memory()
    const back = Promise.all(nodes.map((node) => node.comeBack()))
    await hub.kill()
    const restarted = performance.now()
    await hub.start()
    const up = performance.now()
    const before = hub.cpu()
    const ownBefore = process.cpuUsage()
    const caller = new Caller(hub)
    await back
    const done = performance.now()
    const answers = await caller.times()
    const returns = nodes.map(({ backAt }) => backAt - up).sort((a, b) => a - b)
    const used = hub.cpu() - before
    const own = process.cpuUsage(ownBefore)
    if ((await online(hub)) !== count) throw new Error('not every node is back')
    const idle = (await idleCpu(hub, pause)) - without
    return {
      memory: full,
      memoryPerNode: (full - some) / (count - first),
      joinsPerSecond: (count - first) / (joined / 1000),
      start: up - restarted,
      halfBack: at(returns, 0.5),
      allBack: done - up,
      answerMedian: at(answers, 0.5),
      answerSlowest: at(answers, 0.99),
      hubCpuPerReturn: (used / count) * 1000,
      nodeCpuPerReturn: (own.user + own.system) / 1000 / count,
      idleCpuPerNode: (idle / count) * 1e6,
    }
  } finally {
    for (const node of nodes) node.close()
    await hub.kill()
    hub.remove()
  }
}

/** The share of a CPU that the hub takes while it is left alone for so many seconds. */
async function idleCpu(hub: Hub, seconds: number): Promise<number> {
  const before = hub.cpuTime()
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  return (hub.cpuTime() - before) / 1e9 / seconds
}

export const bench: Bench = async () => {
  const figures = await measureHub(NODES)
  return {
    name: `hub: ${NODES} nodes on one hub process`,
    rows: [
      { label: 'memory of the hub per node', value: figures.memoryPerNode, unit: 'kB', goal: '≤ 30' },
      { label: 'memory of the hub with all of them', value: figures.memory / 1024, unit: 'MB' },
      { label: 'joins by request', value: figures.joinsPerSecond, unit: '/s' },
      { label: 'hub killed and started again: start', value: figures.start / 1000, unit: 's' },
      { label: 'half of the nodes back after that', value: figures.halfBack / 1000, unit: 's' },
      { label: 'all nodes back after that', value: figures.allBack / 1000, unit: 's', goal: '≤ 5' },
      { label: 'API of the hub meanwhile, median', value: figures.answerMedian, unit: 'ms' },
      { label: 'API of the hub meanwhile, slowest of a hundred', value: figures.answerSlowest, unit: 'ms' },
      { label: 'CPU of the hub per returning node', value: figures.hubCpuPerReturn, unit: 'ms', goal: '≤ 0.8' },
      { label: 'CPU of the node itself', value: figures.nodeCpuPerReturn, unit: 'ms' },
    ],
  }
}

await runAlone(import.meta.url, bench)
