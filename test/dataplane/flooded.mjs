/**
 * Interfaces of runs that are flooded while the process is stopped, in network namespaces of its own (`unshare -n -m`): one that is renamed and moved
 * meanwhile, and one that was there before and has lost packets before; and a socket in place of which another comes, as its interface is made anew. Says
 * as JSON what the metrics and the log have of it. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { startBuilt, waiting } from './built-run.mjs'

const ip = (words) => execFileSync('ip', words.split(' '), { stdio: 'pipe', encoding: 'utf8' })
ip('netns add far')
ip('tuntap add dev old mode tap')
ip('address add 10.99.8.1/24 dev old')
ip('neighbour add 10.99.8.2 lladdr 02:00:00:00:00:02 dev old')
ip('link set old up')
const GROUP = '239.255.78.3'
/** The interface that the socket is on. */
function make() {
  ip('link add card type veth peer name card2')
  ip('address add 10.99.7.1/24 dev card')
  for (const name of ['card', 'card2']) ip(`link set ${name} up`)
}
make()

/** What the kernel says. */
const lost = (name) => JSON.parse(ip(`-s -json link show ${name}`))[0].stats64.tx.dropped

const COUNT = 1500
/** More than the queues of the interfaces take, sent to each address while nobody reads. */
const FLOOD = `
  const socket = require('node:dgram').createSocket('udp4')
  socket.on('error', () => {})
  const to = process.argv.slice(1)
  let left = ${COUNT}
  const next = () => left-- > 0 ? to.forEach((address, i) => socket.send('flood'.repeat(40), 9, address, i === 0 ? next : undefined)) : socket.close()
  socket.bind(() => {
    socket.setMulticastInterface('10.99.7.1')
    next()
  })`
async function flood(...addresses) {
  const { execPath, pid } = process
  const script = `kill -STOP ${pid}; "$0" -e "$1" ${addresses.join(' ')}; kill -CONT ${pid}`
  await once(spawn('sh', ['-c', script, execPath, FLOOD], { stdio: 'inherit' }), 'exit')
}

const old = { tap: { interface_name: 'old', ip: '10.99.8.1', input: 'in2', output: 'out2' } }
const rest = {
  socket: {
    udp: {
      ...{ interface: 'card', multicast_group: GROUP, local_address: `${GROUP}:9` },
      ...{ socket_buffer_size: 8192, output: 'out3' },
    },
  },
  sinks: { flow_combiner: { inputs: ['out', 'out2', 'out3'], output: 'all' } },
  sink: { traffic_sink: { input: 'all' } },
  enter: { udp_local: { address: '127.0.0.1:0', output: 'in' } },
  enter2: { udp_local: { address: '127.0.0.1:0', output: 'in2' } },
}
const log = []
const tell = ({ level, component, message, fields }) => {
  if (fields.metric || component === 'socket') log.push(`${component} ${level}: ${message}`)
}
const first = await startBuilt(
  { pen: { tun: { interface_name: 'pen', ip: '10.99.9.1', input: 'in', output: 'out' } }, old, ...rest },
  tell,
)
const until = waiting(() => `${ip('-s link')}; ${log.join('\n')}`)
const counted = (name) => first.figure(name, 'kernel_dropped_packets')
const result = {}

ip('link set pen down')
ip('link set pen name pen2')
ip('link set pen2 up')
await until('it has its address again', () => ip('address show pen2').includes('10.99.9.1'))
await flood('10.99.9.2', '10.99.8.2', GROUP)
for (const [name, now] of [
  ['pen', 'pen2'],
  ['old', 'old'],
])
  await until(`what ${now} has lost is counted`, () => counted(name) > 0 && counted(name) === lost(now))
const heard = () => first.figure('socket', 'received_packets') + counted('socket')
await until('what the socket has lost is counted', () => counted('socket') > 0 && heard() === COUNT)
ip('link delete card')
make()
await until('it is in its group again', () => log.some((line) => line.includes('is another than before')))
await flood(GROUP)
await until('what the other socket has lost comes on top', () => heard() === 2 * COUNT)
// In another namespace nothing is known of it, though one of its name is here, which loses everything.
ip('link set pen2 netns far')
ip('link add pen2 type veth peer name end')
ip('address add 10.99.9.1/24 dev pen2')
ip('neighbour add 10.99.9.2 lladdr 02:00:00:00:00:02 dev pen2')
ip('link set end mtu 68 up')
ip('link set pen2 up')
const known = counted('pen')
await flood('10.99.9.2')
await until('the other loses more', () => lost('pen2') > known)
await first.end()
result.away = counted('pen') === known

const second = await startBuilt({ old, sink: { traffic_sink: { input: 'out2' } }, enter2: rest.enter2 }, tell)
const before = lost('old')
await flood('10.99.8.2')
const since = () => second.figure('old', 'kernel_dropped_packets')
await until('of what is lost since', () => since() > 0 && since() === lost('old') - before)
await second.end()
console.log(JSON.stringify({ ...result, log: log.filter((line) => line.includes('WARN: the kernel')) }))
process.exit()
