/**
 * In a network namespace of its own: tcpdump records datagrams on loopback, in every form that its arguments name; `penstock run` replays
 * one recording inside of datagrams, which tcpdump records again. The recordings are left in the directory of the first argument.
 */
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'

const [directory, penstock, count, ...forms] = process.argv.slice(2)
const COUNT = Number(count)
const RECORDED = 4000
const REPLAYED = 4001

/** Starts tcpdump, which ends by itself after so many packets; resolves once it listens. */
async function record(name, port, args) {
  const file = join(directory, `${name}.pcap`)
  const all = ['--immediate-mode', '-U', '-Z', 'root', '-c', COUNT, '-w', file, ...args, 'udp', 'dst', 'port', port]
  const child = spawn('tcpdump', all.map(String), { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const said = []
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line)
    if (line.includes('listening on')) return { ended }
  }
  throw new Error(`tcpdump ended: ${said.join('; ')}`)
}

const recorders = await Promise.all(
  forms.map((form) => {
    const [name, ...args] = form.split(' ')
    return record(name, RECORDED, args)
  }),
)
const four = createSocket('udp4')
const six = createSocket('udp6')
for (let i = 0; i < COUNT; i++) {
  const payload = Buffer.alloc((i * 37) % 1300, i)
  if (i % 3 === 2) six.send(payload, RECORDED, '::1')
  else four.send(payload, RECORDED, '127.0.0.1')
  if (i % 4 !== 0) await pause(25)
}
await Promise.all(recorders.map(({ ended }) => ended))
four.close()
six.close()

const again = await record('replayed', REPLAYED, ['-i', 'lo'])
const config = join(directory, 'replay.json')
const pipeline = {
  trace: { trace_traffic_source: { output: 'packets', trace_file: `${forms[0].split(' ')[0]}.pcap` } },
  out: {
    udp: { input: 'packets', output: 'back', local_address: '127.0.0.1:0', remote_address: `127.0.0.1:${REPLAYED}` },
  },
  sink: { traffic_sink: { input: 'back' } },
}
writeFileSync(config, JSON.stringify({ engine_config: { pipeline } }))
const run = spawn(process.execPath, [penstock, 'run', config], { stdio: ['ignore', 'inherit', 'inherit'] })
const failed = once(run, 'exit').then(([code]) => {
  throw new Error(`penstock run ended with ${code} before all was replayed`)
})
await Promise.race([again.ended, failed])
failed.catch(() => {})
run.kill('SIGINT')
