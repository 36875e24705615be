/**
 * Runs a TUN device in a network namespace of this process's own (`unshare -n`) and says as JSON what happened. Takes the
 * tun component's configuration as JSON; uses the built code.
 */

import { execFileSync } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { native } from '../../dist/src/dataplane/native/native.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const own = JSON.parse(process.argv[2])
const six = own.ip.includes(':')
const loopback = six ? '::1' : '127.0.0.1'
const at = (port) => (six ? `[::1]:${port}` : `127.0.0.1:${port}`)

async function socket(address) {
  const made = dgram.createSocket(six ? 'udp6' : 'udp4')
  made.on('error', () => {})
  made.bind(0, address)
  await once(made, 'listening')
  return made
}

/** The device as the kernel has it. */
const link = () =>
  JSON.parse(execFileSync('ip', ['-json', 'address', 'show'])).find(({ ifname }) => ifname === own.interface_name)

const before = native.openDescriptors()
const collector = await socket(loopback)
const pool = openRunPool({ warm: 1 })
const pipeline = {
  device: { tun: { ...own, input: 'in', output: 'out' } },
  leave: { udp: { input: 'out', remote_address: at(collector.address().port), mtu: 9000 } },
  enter: { udp_local: { address: at(0), output: 'in', mtu: 9000 } },
}
const { config, problems } = checkPipelineConfig(
  JSON.stringify({ version: 1, engine_config: { pipeline } }),
  components,
)
if (!config) throw new Error(JSON.stringify(problems))
const log = []
const options = { runId: 'tun', config, performanceMode: false, level: 'INFO' }
const run = pool.start(options, (lines) => log.push(...lines))
const result = {}
let local
try {
  await run.running
  const found = link()
  result.mtu = found?.mtu
  const family = six ? '-6' : '-4'
  result.defaultRoute = execFileSync('ip', [family, 'route', 'show', 'default']).includes(own.interface_name)
  result.prefix = found?.addr_info.find(({ local }) => local === own.ip)?.prefixlen
  // What is sent to a neighbour on the device's network comes out of the graph as an IP packet...
  local = await socket(own.ip)
  const neighbour = own.ip.replace(/1$/, '2')
  const packets = []
  collector.on('message', (bytes) => packets.push(bytes))
  const text = 'to the neighbour'
  local.send(text, 4000, neighbour)
  const deadline = performance.now() + 20_000
  const leaving = () => packets.find((bytes) => bytes.includes(text))
  while (!leaving() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5))
  const packet = leaving()
  result.left = packet !== undefined
  result.version = packet && packet[0] >> 4
  // ... and the same packet with source and destination exchanged is heard by the socket.
  const addresses = six ? [8, 16] : [12, 4]
  const ports = six ? 40 : 20
  const answer = Buffer.from(packet)
  const [start, bytes] = addresses
  packet.copy(answer, start, start + bytes, start + 2 * bytes)
  packet.copy(answer, start + bytes, start, start + bytes)
  packet.copy(answer, ports, ports + 2, ports + 4)
  packet.copy(answer, ports + 2, ports, ports + 2)
  const entry = log.find(({ component }) => component === 'enter').fields.address
  const heard = once(local, 'message', { signal: AbortSignal.timeout(20_000) })
  collector.send(answer, Number(/\d+$/.exec(entry)[0]), loopback)
  const [message, from] = await heard
  result.returned = message.toString() === text && from.port === 4000
} catch (error) {
  result.error = error.message
}
local?.close()
run.stop()
result.end = await run.ended
result.gone = link() === undefined
collector.close()
// Threads kept ready have descriptors of their own until then.
await pool.close()
result.descriptors = native.openDescriptors() - before
console.log(JSON.stringify(result))
