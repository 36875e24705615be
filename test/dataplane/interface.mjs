/**
 * Sockets bound to an interface that is deleted and made anew, in network namespaces of this process's own (`unshare -n -m`);
 * says as JSON what each of them heard after it. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { native } from '../../dist/src/dataplane/native/native.js'
import { startBuilt, waiting } from './built-run.mjs'

const NEAR = '10.91.7.1'
const FAR = '10.91.7.2'
const GROUP = '239.255.77.1'
const ROUTED_GROUP = '239.255.77.2'
const NEAR_LINK = 'fe80::91:1'
const FAR_LINK = 'fe80::91:2'

const ip = (...args) => execFileSync('ip', args, { stdio: 'pipe' })
const inFar = (...args) => ['netns', 'exec', 'far', ...args]

/** A cable between this namespace and `far`; its near end is up and has no address yet. */
function lay() {
  ip('link', 'add', 'cable', 'type', 'veth', 'peer', 'name', 'cable', 'netns', 'far')
  // No link-local addresses but those below: the far end would answer from either, and a connected socket hears one.
  for (const where of [[], ['-n', 'far']]) ip(...where, 'link', 'set', 'cable', 'addrgenmode', 'none')
  ip('-n', 'far', 'address', 'add', `${FAR}/30`, 'dev', 'cable')
  ip('-n', 'far', 'address', 'add', `${FAR_LINK}/64`, 'dev', 'cable', 'nodad')
  ip('-n', 'far', 'link', 'set', 'cable', 'up')
  ip('link', 'set', 'cable', 'up')
}

function address() {
  ip('address', 'add', `${NEAR}/30`, 'dev', 'cable')
  ip('address', 'add', `${NEAR_LINK}/64`, 'dev', 'cable', 'nodad')
}

ip('netns', 'add', 'far')
lay()
address()
// Goes with the interface, and does not come back: the group is joined again where it was.
ip('route', 'add', `${ROUTED_GROUP}/32`, 'dev', 'cable')

// Whoever is heard gets an answer; the port of udp_local and the group get something besides.
const echo = `
  const socket = require('node:dgram').createSocket('udp4')
  socket.on('error', () => {})
  socket.on('message', (bytes, from) => {
    socket.send(bytes, from.port, from.address)
    socket.send(bytes, 7003, '${NEAR}')
    socket.send(bytes, 7005, '${ROUTED_GROUP}')
    try { socket.setMulticastInterface('${FAR}') } catch {}
    socket.send(bytes, 7004, '${GROUP}')
  })
  const six = require('node:dgram').createSocket({ type: 'udp6', ipv6Only: true })
  six.on('error', () => {})
  six.on('message', (bytes, from) => six.send(bytes, from.port, from.address))
  six.bind(9000, () => socket.bind(9000, () => console.log('ready')))`
const far = spawn('ip', inFar(process.execPath, '-e', echo), { stdio: ['ignore', 'pipe', 'inherit'] })
process.on('exit', () => far.kill('SIGKILL'))
await once(far.stdout, 'data')

const bound = { interface: 'cable' }
const remote_address = `${FAR}:9000`
const pipeline = {
  feed: { udp_local: { address: '127.0.0.1:7000', output: 'fresh' } },
  copy: { splitter: { input: 'fresh', outputs: ['a', 'b', 'c', 'd', 'g', 'h'] } },
  any: { udp: { ...bound, local_address: '0.0.0.0:7001', remote_address, input: 'a', output: 'a2' } },
  fixed: { udp: { ...bound, local_address: `${NEAR}:7002`, remote_address, input: 'b', output: 'b2' } },
  free: { udp: { ...bound, remote_address, input: 'c', output: 'c2' } },
  address: { peer_writer: { remote_address, input: 'd', output: 'd1' } },
  remote: { udp_remote: { ...bound, input: 'd1', output: 'd2' } },
  local: { udp_local: { ...bound, address: '0.0.0.0:7003', output: 'e2' } },
  group: { udp: { ...bound, local_address: '0.0.0.0:7004', multicast_group: GROUP, output: 'f2' } },
  routed: { udp: { local_address: '0.0.0.0:7005', multicast_group: ROUTED_GROUP, output: 'i2' } },
  zone: { udp: { remote_address: `[${FAR_LINK}%cable]:9000`, input: 'g', output: 'g2' } },
  zoned: { peer_writer: { remote_address: `[${FAR_LINK}%cable]:9000`, input: 'h', output: 'h1' } },
  addressed: { udp: { local_address: '[::]:7006', input: 'h1', output: 'h2' } },
  listener: { tcp: { listen_address: `[${NEAR_LINK}%cable]:7007`, application_facing: true, output: 'k2' } },
  join: { flow_combiner: { inputs: ['a2', 'b2', 'c2', 'd2', 'e2', 'f2', 'g2', 'h2', 'i2', 'k2'], output: 'all' } },
  sink: { traffic_sink: { input: 'all' } },
}
const SOCKETS = ['any', 'fixed', 'free', 'remote', 'local', 'group', 'routed', 'zone', 'addressed']
/** Those that follow it with a line in the log. */
const FOLLOWING = [...SOCKETS.filter((socket) => socket !== 'addressed'), 'listener']
const log = []
const { figure, end } = await startBuilt(pipeline, ({ component, message }) => log.push(`${component}: ${message}`))
const metric = (name) => Object.fromEntries(SOCKETS.map((socket) => [socket, figure(socket, name)]))
const received = () => metric('received_packets')
const until = waiting(() => `${JSON.stringify(received())}; ${log.join('\n')}`)
const talker = dgram.createSocket('udp4')
const said = (text) =>
  FOLLOWING.filter((socket) => log.some((line) => line.startsWith(`${socket}: `) && line.includes(text)))

/** Sends until every socket has heard something again. */
async function heard(what) {
  const earlier = received()
  const all = () => Object.entries(received()).every(([socket, count]) => count > earlier[socket])
  await until(what, all, () => talker.send('hello', 7000, '127.0.0.1'))
}

await heard('everything is heard at first')
// Renamed it is the same to the kernel. One before Linux 6.2 renames none that is up.
try {
  ip('link', 'set', 'cable', 'name', 'renamed')
  await until('all say its new name', () => said('interface cable is called renamed now').length === FOLLOWING.length)
  await heard('everything is heard after the interface was renamed')
  ip('link', 'set', 'renamed', 'name', 'cable')
  await until('all say its old name', () => said('renamed is called cable again').length === FOLLOWING.length)
} catch (error) {
  if (!`${error.stderr}`.includes('busy')) throw error
}
const lost = said('is gone')

const ports = metric('local_port')
const first = native.openDescriptors()

// Away for a while; when it comes back its address comes later.
ip('link', 'delete', 'cable')
await until('all say that it is gone', () => said('is gone').length === FOLLOWING.length)
lay()
await until('what needs no address is bound', () => said('again: ').includes('local'))
address()
// Once for each time that the interface was made anew.
const listened = () => log.filter((line) => /^listener: .* again: /.test(line)).length
await heard('everything is heard after the interface was away')
await until('the listener listens again', () => listened() === 1)

// Replaced between two looks.
ip('link', 'delete', 'cable')
lay()
address()
await heard('everything is heard after the interface was replaced')

const later = metric('local_port')
const held = native.openDescriptors() - first
await until('the listener listens there again', () => listened() === 2)
const dial = `require('node:net').connect(7007, '${NEAR_LINK}%cable').end('hello')`
execFileSync('ip', inFar(process.execPath, '-e', dial), { stdio: ['ignore', 'ignore', 'inherit'] })
await until('a connection has come', () => figure('listener', 'received_packets') === 1)
const { ended, descriptors } = await end()
talker.close()
console.log(
  JSON.stringify({
    end: ended,
    lost,
    gone: said('is gone'),
    again: said('again: '),
    ports: SOCKETS.filter((socket) => ports[socket] === later[socket]),
    held,
    descriptors,
  }),
)
process.exit()
