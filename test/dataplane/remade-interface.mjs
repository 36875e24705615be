/**
 * A udp_remote on an interface that is made anew (network namespaces of this process's own, `unshare -n -m`): says as JSON from which of the machine's
 * addresses its packets come, before and after, as routes change. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const NEAR = ['192.0.2.1', '192.0.2.3']
const FAR = '192.0.2.2'
const ip = (words) => execFileSync('ip', words.split(' '), { stdio: 'pipe' })
ip('netns add far')

/** The interface, at both of its addresses. */
function make() {
  ip('link add cable type veth peer name cable netns far')
  ip('link set cable up')
  ip('-n far link set cable up')
  ip(`-n far address add ${FAR}/24 dev cable`)
  for (const address of NEAR) ip(`address add ${address}/24 dev cable`)
}
make()

const answering = `
  const peer = require('node:dgram').createSocket('udp4')
  peer.on('message', (bytes, { address, port }) => peer.send(bytes, port, address, () => console.log(address, port)))
  peer.bind(9000, () => console.log('ready'))`
const peer = spawn('ip', ['netns', 'exec', 'far', process.execPath, '-e', answering], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const lines = createInterface({ input: peer.stdout })[Symbol.asyncIterator]()
await lines.next()

const pool = openRunPool({ warm: 0 })
const pipeline = {
  enter: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  to: { peer_writer: { input: 'a', output: 'b', remote_address: `${FAR}:9000` } },
  way: { udp_remote: { input: 'b', output: 'c', interface: 'cable' } },
  heard: { udp: { input: 'c', remote_address: '127.0.0.1:7999' } },
}
const { config, problems } = checkPipelineConfig(
  JSON.stringify({ version: 1, engine_config: { pipeline } }),
  components,
)
if (!config) throw new Error(JSON.stringify(problems))
const log = []
const run = pool.start({ runId: 'way', config, performanceMode: false, level: 'INFO' }, (some) => log.push(...some))
await run.running
const port = Number(/\d+$/.exec(log.find(({ component }) => component === 'enter').fields.address)[0])
const near = dgram.createSocket('udp4')
near.bind(7999, '127.0.0.1')
await once(near, 'listening')

const ports = new Set()
/** Where a packet comes from; its answer has come back then. */
async function from() {
  const back = once(near, 'message')
  near.send('question', port, '127.0.0.1')
  const [address, own] = (await lines.next()).value.split(' ')
  await back
  ports.add(own)
  return address
}
/** From the first address, then, once routes say so, from the second. */
async function both() {
  const first = await from()
  ip(`route replace ${FAR}/32 dev cable src ${NEAR[1]}`)
  return [first, await from()]
}

const before = await both()
ip('link delete cable')
make()
while (!log.some(({ message }) => /^bound to .* again: /.test(message)))
  await new Promise((resolve) => setTimeout(resolve, 10))
const after = await both()
near.close()
run.stop()
await run.ended
await pool.close()
peer.kill()
console.log(JSON.stringify({ before, after, samePort: ports.size === 1 }))
process.exit()
