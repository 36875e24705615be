/** Forwarders under the same load, each pinned to the second CPU: what a forwarded datagram costs them in CPU time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { LogLine } from '../../src/dataplane/engine/run.ts'
import { openRunPool } from '../../src/dataplane/product.ts'
import { median, medianOfPairs, nativeProgram } from '../measure.ts'
import { chainOf, checked, type Link } from './chain.ts'
import { cpuTime } from './cpu-time.ts'

const BYTES = 1200
const LOAD_CPU = 0
const FORWARDER_CPU = 1
const SECONDS = 0.4
/** Each forwarder has two ports of its own from here on. */
let nextPort = 19_100

/** Where a forwarder listens and sends to on loopback. */
interface Ports {
  from: number
  to: number
}

/** What one flood of less than a second showed. */
export interface Forwarded {
  /** Packets a second of CPU time. */
  readonly perCpuSecond: number
  /** The same without the CPU time that the forwarder's process takes to start the load, which is this process for penstock alone. */
  readonly perCpuSecondOfLoad: number
  /** Packets a second, after a moment in which it warms up. */
  readonly perSecond: number
}

/** A forwarder that waits for load; it costs nothing meanwhile. */
export interface Forwarder {
  flood(): Promise<Forwarded>
  close(): Promise<void>
}

function ports(): Ports {
  const from = nextPort
  nextPort += 2
  return { from, to: from + 1 }
}

/** What flood.c tells of the packets that came out of a forwarder. */
interface Flooded {
  readonly total: number
  readonly received: number
  readonly seconds: number
}

async function flood({ from, to }: Ports, started: () => void): Promise<Flooded> {
  const child = spawn(nativeProgram('flood'), [from, to, SECONDS, BYTES, LOAD_CPU].map(String), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  started()
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return JSON.parse(output)
}

/**
 * Other work on the machine takes turns from the forwarder and from the load, but hardly changes what a packet costs; on a quiet
 * machine this is the rate that one CPU forwards.
 */
async function floodOf(pid: number, at: Ports): Promise<Forwarded> {
  const before = cpuTime(pid)
  let started = before
  const { total, received, seconds } = await flood(at, () => {
    started = cpuTime(pid)
  })
  const after = cpuTime(pid)
  return {
    perCpuSecond: total / ((after - before) / 1e9),
    perCpuSecondOfLoad: total / ((after - started) / 1e9),
    perSecond: received / seconds,
  }
}

function forwarderOf(child: ChildProcess, at: Ports): Forwarder {
  return {
    flood: () => floodOf(child.pid as number, at),
    async close() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}

const pinned = (command: string, ...rest: string[]) =>
  spawn('taskset', ['-c', String(FORWARDER_CPU), command, ...rest], { stdio: ['ignore', 'pipe', 'inherit'] })

/** The C forwarder: GRO receive, GSO send. */
export async function cForwarder(): Promise<Forwarder> {
  const at = ports()
  return forwarderOf(pinned(nativeProgram('forward'), String(at.from), String(at.to)), at)
}

/** What one writes in Node without penstock. */
export async function dgramForwarder(): Promise<Forwarder> {
  const at = ports()
  const script = `
    const dgram = require('node:dgram')
    const out = dgram.createSocket('udp4')
    const inside = dgram.createSocket({ type: 'udp4', recvBufferSize: 4194304 })
    out.connect(${at.to}, '127.0.0.1', () => inside.bind(${at.from}, '127.0.0.1', () => console.log('ready')))
    out.on('error', () => {}) // nobody listens between two floods
    inside.on('message', (message) => out.send(message))`
  const child = pinned(process.execPath, '-e', script)
  await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
  return forwarderOf(child, at)
}

/** penstock: udp_local, the chain, udp; one run in its thread. The main thread's CPU time counts as well. */
export async function penstockForwarder(links: readonly Link[], backend: string): Promise<Forwarder> {
  const at = ports()
  const to = `127.0.0.1:${at.to}`
  const config = checked({
    in: { udp_local: { address: `127.0.0.1:${at.from}`, output: 'in', backend } },
    ...chainOf(links, 'in', 'out'),
    ...(backend === 'LINUX'
      ? { out: { udp: { remote_address: to, input: 'out', lock_to_first_peer: false } } }
      : {
          mark: { peer_writer: { remote_address: to, input: 'out', output: 'marked' } },
          out: { udp_remote: { input: 'marked', backend } },
        }),
  })
  const pool = openRunPool({ warm: 1 })
  const log: LogLine[] = []
  const run = pool.start(
    { runId: 'bench', config, cpu: FORWARDER_CPU, performanceMode: false, level: 'WARN' },
    (lines) => log.push(...lines),
  )
  await run.running
  return {
    flood: () => floodOf(process.pid, at),
    async close() {
      run.stop()
      const end = await run.ended
      await pool.close()
      if (end.outcome === 'FAILED') console.error(end.error, log)
    },
  }
}

/** Floods forwarders in turn, `rounds` times each after one time that does not count; what each round showed. */
export async function race<K extends string>(
  rounds: number,
  forwarders: Record<K, Forwarder>,
): Promise<Record<K, Forwarded[]>> {
  const all = Object.entries(forwarders) as [K, Forwarder][]
  const seen = Object.fromEntries(all.map(([name]) => [name, [] as Forwarded[]])) as Record<K, Forwarded[]>
  try {
    for (const [, forwarder] of all) await forwarder.flood()
    for (let round = 0; round < rounds; round++) {
      for (const [name, forwarder] of all) seen[name].push(await forwarder.flood())
    }
    return seen
  } finally {
    for (const [, forwarder] of all) await forwarder.close()
  }
}

/** The median of what the rounds of one forwarder showed. */
export function medianOf(rounds: readonly Forwarded[], what: keyof Forwarded): number {
  return median(rounds.map((round) => round[what]))
}

/** The median of the ratios of one forwarder to another, each of two floods that followed each other. */
export function medianRatio(of: readonly Forwarded[], to: readonly Forwarded[], what: keyof Forwarded): number {
  return medianOfPairs(
    of.map((round) => round[what]),
    to.map((round) => round[what]),
  )
}
