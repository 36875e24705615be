/**
 * Sends `count` packets as fast as the graph takes them through a loopback of 50 Mbit/s, in a network namespace of this
 * process's own (`unshare -n`), and says as JSON what arrived and what was counted. Uses the built code.
 */

import dgram from 'node:dgram'
import { once } from 'node:events'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { RegionReader } from '../../dist/src/dataplane/engine/metrics.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const count = Number(process.argv[2])
const sink = dgram.createSocket({ type: 'udp4', recvBufferSize: 8 << 20 })
sink.bind(0, '127.0.0.1')
await once(sink, 'listening')
const sequence = []
// The probe header: magic, source, then the sequence as eight bytes.
sink.on('message', (bytes) => sequence.push(Number(bytes.readBigUInt64BE(8))))
const pool = openRunPool({ warm: 1 })
const size = { min_packet_size: 1200, max_packet_size: 1200 }
const pipeline = {
  flood: { uniform_traffic_source: { output: 'a', total_packets: count, interval: 0, ...size } },
  out: { udp: { input: 'a', remote_address: `127.0.0.1:${sink.address().port}`, socket_buffer_size: 106_496 } },
}
const { config, problems } = checkPipelineConfig(
  JSON.stringify({ version: 1, engine_config: { pipeline } }),
  components,
)
if (!config) throw new Error(JSON.stringify(problems))
const run = pool.start({ runId: 'flood', config, performanceMode: false, level: 'INFO' }, () => {})
await run.running
const reader = new RegionReader(run.region)
/** Nothing before the run has published for the first time. */
const metrics = () => {
  const { values } = reader.snapshot() ?? {}
  if (!values) return {}
  const own = reader.entries.filter(({ path }) => path === 'out')
  return Object.fromEntries(own.map(({ name, index }) => [name, values[index]]))
}
const deadline = performance.now() + 15_000
const settled = () => {
  const { input_packets, sent_packets, send_queue_drops } = metrics()
  return input_packets === count && sent_packets + send_queue_drops === count && sequence.length === sent_packets
}
while (!settled() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10))
run.stop()
await run.ended
const ordered = sequence.every((value, i) => i === 0 || value > sequence[i - 1])
console.log(JSON.stringify({ arrived: sequence.length, ordered, ...metrics() }))
sink.close()
await pool.close()
