/**
 * Connected sockets on a machine whose addresses and routes change, between this namespace and `far`, joined by two cables (namespaces of this process's
 * own, `unshare -n -m`); says as JSON from where each of them was heard after each change. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { createInterface } from 'node:readline'
import { native } from '../../dist/src/dataplane/native/native.js'
import { startBuilt, waiting } from './built-run.mjs'

/** The peer, which either cable leads to. */
const PEER = { v4: '203.0.113.1', v6: '2001:db8:3::1' }

const ip = (...words) => execFileSync('ip', words.join(' ').split(' '), { stdio: 'pipe' })
const six = (address) => (address.includes(':') ? '-6 ' : '')
/** An address of this end or the other, usable at once. */
const add = (address, cable, far = '') =>
  ip(`${far && '-n far '}${six(address)}address add ${address} dev ${cable}${six(address) && ' nodad'}`)
const remove = (address, cable) => ip(`${six(address)}address del ${address} dev ${cable}`)
function routeBy(cable) {
  ip(`route replace default via ${cable === 'wlan' ? '192.0.2.2' : '198.51.100.2'} dev ${cable}`)
  ip(`-6 route replace default via ${cable === 'wlan' ? '2001:db8:1::2' : '2001:db8:2::2'} dev ${cable}`)
}

ip('netns add far')
for (const cable of ['wlan', 'lte']) {
  ip(`link add ${cable} type veth peer name ${cable} netns far`)
  for (const where of ['', '-n far ']) {
    ip(`${where}link set ${cable} addrgenmode none`)
    ip(`${where}link set ${cable} up`)
    ip(`${where}-6 address add fe80::${where === '' ? 1 : 2}/64 dev ${cable} nodad`)
  }
}
ip('-n far link set lo up')
for (const address of ['192.0.2.2/24', '2001:db8:1::2/64']) add(address, 'wlan', 'far')
for (const address of ['198.51.100.2/24', '2001:db8:2::2/64']) add(address, 'lte', 'far')
for (const address of [`${PEER.v4}/32`, `${PEER.v6}/128`]) add(address, 'lo', 'far')
for (const address of ['192.0.2.1/24', '2001:db8:1::1/64']) add(address, 'wlan')
routeBy('wlan')

const SOCKETS = {
  free: { remote_address: `${PEER.v4}:9601` },
  any: { remote_address: `${PEER.v4}:9602`, local_address: '0.0.0.0:7002' },
  bound: { remote_address: `${PEER.v4}:9603`, interface: 'wlan' },
  boundAny: { remote_address: `${PEER.v4}:9604`, interface: 'wlan', local_address: '0.0.0.0:7004' },
  free6: { remote_address: `[${PEER.v6}]:9605` },
  any6: { remote_address: `[${PEER.v6}]:9606`, local_address: '[::]:7006' },
  fixed: { remote_address: `${PEER.v4}:9607`, local_address: '192.0.2.1:7007' },
}
const names = Object.keys(SOCKETS)
const following = names.filter((name) => name !== 'fixed')

// Whoever is heard is answered, and named: the number of the socket and the address it sends from.
const echo = `
  ;[${names.map((name) => SOCKETS[name].remote_address.split(':').at(-1))}].forEach((port, i) => {
    const type = ${JSON.stringify(names)}[i].endsWith('6') ? 'udp6' : 'udp4'
    const socket = require('node:dgram').createSocket(type)
    socket.on('error', () => {})
    socket.on('message', (bytes, from) => {
      console.log(i + ' ' + from.address + ' ' + from.port)
      socket.send(bytes, from.port, from.address)
    })
    socket.bind(port, type === 'udp6' ? '${PEER.v6}' : '${PEER.v4}', () => console.log('ready'))
  })`
const far = spawn('ip', ['netns', 'exec', 'far', process.execPath, '-e', echo], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
process.on('exit', () => far.kill('SIGKILL'))
/** Where each was heard from last. */
const source = {}
let ready = 0
createInterface({ input: far.stdout }).on('line', (line) => {
  const [i, address, port] = line.split(' ')
  if (i === 'ready') ready++
  else source[names[i]] = `${address} ${port}`
})

const log = []
const until = waiting(() => `${JSON.stringify([received(), source])}; ${log.join('\n')}`)
await until('the peer is there', () => ready === names.length)

const pipeline = {
  feed: { udp_local: { address: '127.0.0.1:7000', output: 'fresh' } },
  copy: { splitter: { input: 'fresh', outputs: names.map((name) => `to ${name}`) } },
  ...Object.fromEntries(
    names.map((name) => [name, { udp: { ...SOCKETS[name], input: `to ${name}`, output: `of ${name}` } }]),
  ),
  join: { flow_combiner: { inputs: names.map((name) => `of ${name}`), output: 'all' } },
  sink: { traffic_sink: { input: 'all' } },
}
const { figure, end } = await startBuilt(pipeline, ({ level, component, message }) =>
  log.push(`${level} ${component}: ${message}`),
)
const metric = (name) => names.map((socket) => figure(socket, name))
const received = () => metric('received_packets')
const talker = dgram.createSocket('udp4')

/** Sends until each of `sockets` has got an answer; where they were heard from. */
async function heard(what, sockets) {
  const earlier = received()
  const all = () => received().every((count, i) => count > earlier[i] || !sockets.includes(names[i]))
  await until(what, all, () => talker.send('hello', 7000, '127.0.0.1'))
  return Object.fromEntries(sockets.map((socket) => [socket, source[socket]]))
}
const lines = (...texts) => log.filter((line) => texts.every((text) => line.includes(text)))
const addressed = (sources) =>
  Object.fromEntries(Object.entries(sources).map(([name, from]) => [name, from.split(' ')[0]]))

const result = {}
const first = await heard('everything is heard at first', names)
const ports = metric('local_port')
const held = native.openDescriptors()
result.first = addressed(first)

// Nobody looks at anything while nothing changes.
const breaths = () => figure('/engine', 'breaths')
let [seen, since] = [breaths(), performance.now()]
await until('the run sleeps for a second', () => {
  const now = breaths()
  if (now !== seen) [seen, since] = [now, performance.now()]
  return performance.now() - since > 1000
})

// The address is gone for a while, and another comes.
remove('192.0.2.1/24', 'wlan')
remove('2001:db8:1::1/64', 'wlan')
await until('each says that nothing leads to its peer', () =>
  following.every((name) => lines(`WARN ${name}: no way leads to`).length > 0),
)
add('192.0.2.3/24', 'wlan')
add('2001:db8:1::3/64', 'wlan')
routeBy('wlan')
result.readdressed = addressed(await heard('everything is heard at another address', following))
result.warnings = following.map((name) => lines(`WARN ${name}: `).length)
result.told = following.map((name) => lines(`INFO ${name}: bound to`, ' in place of ').length)
result.free = lines('INFO free: bound to', ' in place of ')[0]?.replaceAll(/:\d{4,5}\b/g, ':PORT')

// Between two looks, with the way to the peer in place.
add('192.0.2.4/25', 'wlan')
add('2001:db8:1::4/64', 'wlan')
remove('192.0.2.3/24', 'wlan')
remove('2001:db8:1::3/64', 'wlan')
await until('the old address is left', () =>
  following.every((name) => lines(`INFO ${name}: `, ' in place of ').length > 1),
)
result.again = addressed(await heard('everything is heard at a third address', following))

// Another interface, while the old one and its addresses stay.
add('198.51.100.1/24', 'lte')
add('2001:db8:2::1/64', 'lte')
routeBy('lte')
const roaming = ['free', 'any', 'free6', 'any6']
await until('the way is another', () => roaming.every((name) => lines(`INFO ${name}: `, ' in place of ').length > 2))
result.rerouted = addressed(await heard('everything is heard by another interface', following))

// Back again, and the interface that was left goes away at the same time.
routeBy('wlan')
ip('link delete lte')
await until('it is back', () => roaming.every((name) => lines(`INFO ${name}: `, ' in place of ').length > 3))
const last = await heard('everything is heard by the first interface', following)
result.back = addressed(last)

// No way for a while, from the same address.
ip('route del default')
await until('nothing leads to the peer', () => lines('WARN', ': no way leads to').length === 8)
routeBy('wlan')
await heard('everything is heard once there is a route', following)

await until('the log says that it is reached again', () => lines('INFO', 'can be reached from').length === 2)
result.reached = lines('INFO', 'can be reached from 192.0.2.4').map((line) => /(\w+):/.exec(line)[1])
const later = metric('local_port')
result.ports = names.filter((_, i) => ports[i] === later[i])
result.sources = following.filter((name) => first[name].split(' ')[1] === last[name].split(' ')[1])
result.held = native.openDescriptors() - held
const { ended, descriptors } = await end()
Object.assign(result, { end: ended.outcome, descriptors })
talker.close()
if (process.env.SHOW_LOG) console.error(log.join('\n'))
console.log(JSON.stringify(result))
process.exit()
