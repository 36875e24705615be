/** Forwarders under the same load, each pinned to the second CPU: what a forwarded datagram costs them in CPU time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createRunPool } from '../../src/dataplane/engine/pool.ts'
import type { LogLine } from '../../src/dataplane/engine/run.ts'
import { nativeProgram } from '../measure.ts'
import { chainOf, checked, type Link } from './chain.ts'

const IN_PORT = 19_100
const OUT_PORT = 19_101
const BYTES = 1200
const LOAD_CPU = 0
const FORWARDER_CPU = 1
const WARM_SECONDS = 0.5
const SECONDS = 1.5

/** Floods the forwarder for `seconds`; how many packets came out of it. */
async function flood(seconds: number): Promise<number> {
  const child = spawn(nativeProgram('flood'), [IN_PORT, OUT_PORT, seconds, BYTES, LOAD_CPU].map(String), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return (JSON.parse(output) as { total: number }).total
}

/** CPU time all threads of a process have had, nanoseconds. */
function cpuTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce((sum, thread) => {
    const [time] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    return sum + Number(time)
  }, 0)
}

/**
 * Packets a second of CPU time. Other work on the machine takes turns from the forwarder and from the load, but hardly changes
 * what a packet costs; on a quiet machine it is the rate that one CPU forwards.
 */
async function underLoad(pid: number): Promise<number> {
  await flood(WARM_SECONDS)
  const before = cpuTime(pid)
  const packets = await flood(SECONDS)
  return packets / ((cpuTime(pid) - before) / 1e9)
}

async function measured(child: ChildProcess): Promise<number> {
  try {
    return await underLoad(child.pid as number)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
}

const pinned = (command: string, ...rest: string[]) =>
  spawn('taskset', ['-c', String(FORWARDER_CPU), command, ...rest], { stdio: ['ignore', 'pipe', 'inherit'] })

/** The C forwarder: GRO receive, GSO send. */
export async function cForwarder(): Promise<number> {
  return measured(pinned(nativeProgram('forward'), String(IN_PORT), String(OUT_PORT)))
}

/** What one writes in Node without penstock. */
export async function dgramForwarder(): Promise<number> {
  const script = `
    const dgram = require('node:dgram')
    const out = dgram.createSocket('udp4')
    const inside = dgram.createSocket({ type: 'udp4', recvBufferSize: 4194304 })
    out.connect(${OUT_PORT}, '127.0.0.1', () => inside.bind(${IN_PORT}, '127.0.0.1', () => console.log('ready')))
    out.on('error', () => {}) // nobody listens between two floods
    inside.on('message', (message) => out.send(message))`
  const child = pinned(process.execPath, '-e', script)
  await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
  return measured(child)
}

/** penstock: udp_local, the chain, udp; one run in its thread. The idle main thread's CPU time counts as well. */
export async function penstockForwarder(links: readonly Link[], backend: string): Promise<number> {
  const to = `127.0.0.1:${OUT_PORT}`
  const config = checked({
    in: { udp_local: { address: `127.0.0.1:${IN_PORT}`, output: 'in', backend } },
    ...chainOf(links, 'in', 'out'),
    ...(backend === 'LINUX'
      ? { out: { udp: { remote_address: to, input: 'out', lock_to_first_peer: false } } }
      : {
          mark: { peer_writer: { remote_address: to, input: 'out', output: 'marked' } },
          out: { udp_remote: { input: 'marked', backend } },
        }),
  })
  const pool = createRunPool({ warm: 1 })
  const log: LogLine[] = []
  const run = pool.start(
    { runId: 'bench', config, cpu: FORWARDER_CPU, performanceMode: false, level: 'WARN' },
    (lines) => log.push(...lines),
  )
  try {
    await run.running
    return await underLoad(process.pid)
  } finally {
    run.stop()
    const end = await run.ended
    await pool.close()
    if (end.outcome === 'FAILED') console.error(end.error, log)
  }
}
