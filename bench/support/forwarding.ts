/** Forwarders under the same load, each pinned to the second CPU: what a forwarded datagram costs them in CPU time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { LogLine } from '../../src/dataplane/engine/run.ts'
import { openRunPool } from '../../src/dataplane/product.ts'
import { inTurn, nativeProgram } from '../measure.ts'
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

/** A forwarder that waits for load; it costs nothing meanwhile. */
export interface Forwarder {
  /** Packets a second of CPU time, over one flood of less than a second. */
  rate(): Promise<number>
  close(): Promise<void>
}

function ports(): Ports {
  const from = nextPort
  nextPort += 2
  return { from, to: from + 1 }
}

/** Floods a forwarder; how many packets came out of it. */
async function flood({ from, to }: Ports): Promise<number> {
  const child = spawn(nativeProgram('flood'), [from, to, SECONDS, BYTES, LOAD_CPU].map(String), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return (JSON.parse(output) as { total: number }).total
}

/**
 * Other work on the machine takes turns from the forwarder and from the load, but hardly changes what a packet costs; on a quiet
 * machine this is the rate that one CPU forwards.
 */
async function rateOf(pid: number, at: Ports): Promise<number> {
  const before = cpuTime(pid)
  const packets = await flood(at)
  return packets / ((cpuTime(pid) - before) / 1e9)
}

function forwarderOf(child: ChildProcess, at: Ports): Forwarder {
  return {
    rate: () => rateOf(child.pid as number, at),
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
    rate: () => rateOf(process.pid, at),
    async close() {
      run.stop()
      const end = await run.ended
      await pool.close()
      if (end.outcome === 'FAILED') console.error(end.error, log)
    },
  }
}

/** Measures forwarders in turn, `rounds` times each after one that does not count; medians. */
export async function race<K extends string>(
  rounds: number,
  forwarders: Record<K, Forwarder>,
): Promise<Record<K, number>> {
  const all = Object.entries(forwarders) as [K, Forwarder][]
  try {
    for (const [, forwarder] of all) await forwarder.rate()
    const runs = Object.fromEntries(all.map(([name, forwarder]) => [name, () => forwarder.rate()]))
    return await inTurn(rounds, runs as Record<K, () => Promise<number>>)
  } finally {
    for (const [, forwarder] of all) await forwarder.close()
  }
}
