/** Forwarders under the same load: penstock in its worker thread, a C program, node:dgram; all pinned to the second CPU. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRunPool } from '../src/dataplane/engine/pool.ts'
import type { LogLine } from '../src/dataplane/engine/run.ts'
import { chainOf, checked, type Link } from './chain.ts'
import { nativeProgram } from './measure.ts'

export const IN_PORT = 19_100
export const OUT_PORT = 19_101
const BYTES = 1200
const LOAD_CPU = 0
const FORWARDER_CPU = 1

/** Floods the forwarder for `seconds` and returns the packets a second that came out of it. */
async function flood(seconds: number): Promise<number> {
  const child = spawn(nativeProgram('flood'), [IN_PORT, OUT_PORT, seconds, BYTES, LOAD_CPU].map(String), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  const { received, seconds: measured } = JSON.parse(output) as { received: number; seconds: number }
  return received / measured
}

async function underLoad(child: ChildProcess, seconds: number): Promise<number> {
  try {
    return await flood(seconds)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
}

/** The C forwarder: GRO receive, GSO send. */
export async function cForwarder(seconds: number): Promise<number> {
  const child = spawn(
    'taskset',
    ['-c', String(FORWARDER_CPU), nativeProgram('forward'), String(IN_PORT), String(OUT_PORT)],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  await new Promise((resolve) => setTimeout(resolve, 100))
  return underLoad(child, seconds)
}

/** What one writes in Node without penstock. */
export async function dgramForwarder(seconds: number): Promise<number> {
  const script = `
    const dgram = require('node:dgram')
    const out = dgram.createSocket('udp4')
    const inside = dgram.createSocket({ type: 'udp4', recvBufferSize: 4194304 })
    out.connect(${OUT_PORT}, '127.0.0.1', () => inside.bind(${IN_PORT}, '127.0.0.1', () => console.log('ready')))
    inside.on('message', (message) => out.send(message))`
  const child = spawn('taskset', ['-c', String(FORWARDER_CPU), process.execPath, '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return underLoad(child, seconds)
}

/** penstock: udp_local, the chain, udp; one run in its thread. */
export async function penstockForwarder(seconds: number, links: readonly Link[], backend: string): Promise<number> {
  const buffer = 4_194_304
  const config = checked({
    in: { udp_local: { address: `127.0.0.1:${IN_PORT}`, output: 'in', backend } },
    ...chainOf(links, 'in', 'out'),
    ...(backend === 'LINUX'
      ? {
          out: {
            udp: {
              remote_address: `127.0.0.1:${OUT_PORT}`,
              input: 'out',
              lock_to_first_peer: false,
              socket_buffer_size: buffer,
            },
          },
        }
      : {
          mark: { peer_writer: { remote_address: `127.0.0.1:${OUT_PORT}`, input: 'out', output: 'marked' } },
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
    return await flood(seconds)
  } finally {
    run.stop()
    const end = await run.ended
    await pool.close()
    if (end.outcome === 'FAILED') console.error(end.error, log)
  }
}
