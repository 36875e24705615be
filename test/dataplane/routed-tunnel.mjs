/**
 * A tunnel whose peer is reached by the default route, which the tunnel's own interface becomes, in a network namespace of this process's own
 * (`unshare -n`); says as JSON what the log says of it. Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import { startBuilt, waiting } from './built-run.mjs'

const ip = (words) => execFileSync('ip', words.split(' '), { stdio: 'pipe', encoding: 'utf8' })
ip('link add cable type veth peer name end')
for (const name of ['end', 'cable']) ip(`link set ${name} up`)
ip('address add 192.0.2.1/24 dev cable')
ip('address add 2001:db8:1::1/64 dev cable nodad')
ip('route add default via 192.0.2.2 metric 100')
ip('-6 route add default via 2001:db8:1::2 metric 2000')

const PEER = { v4: '203.0.113.1', v6: '2001:db8:3::1' }
const MTU = 9000
const pipeline = {
  device: { tun: { interface_name: 'four', ip: '10.99.5.1', is_default_route: true, input: 'in', output: 'out' } },
  copy: { splitter: { input: 'out', outputs: ['a', 'b', 'c'] } },
  free: { udp: { remote_address: `${PEER.v4}:9701`, input: 'a' } },
  fixed: { udp: { local_address: '192.0.2.1:7202', remote_address: `${PEER.v4}:9702`, input: 'b' } },
  // By a rule of routing for its port it does not go into the tunnel.
  ruled: { udp: { remote_address: `${PEER.v4}:9703`, input: 'c' } },
  bound: { udp: { remote_address: `${PEER.v4}:9704`, interface: 'cable', output: 'in' } },
  device6: { tun: { interface_name: 'six', ip: 'fd00:99:5::1', is_default_route: true, input: 'in6', output: 'd' } },
  free6: { udp: { remote_address: `[${PEER.v6}]:9705`, input: 'd', output: 'in6' } },
  // Its way leads through the tunnel too, but what goes through that does not come here.
  inner: { udp: { remote_address: `${PEER.v4}:9706`, input: 'e', output: 'f' } },
  feed: { udp_local: { address: '127.0.0.1:0', output: 'e', mtu: MTU } },
  sink: { traffic_sink: { input: 'f' } },
}
ip('rule add to 203.0.113.1 ipproto udp dport 9703 lookup 77')
ip('route add default via 192.0.2.2 table 77')

const log = []
const { end } = await startBuilt(pipeline, ({ level, component, message }) =>
  log.push(`${level} ${component}: ${message}`),
)
const until = waiting(() => `${ip('route')}; ${log.join('\n')}`)
const told = () => log.filter((line) => line.includes('the way to'))
const warned = () => log.filter((line) => line.startsWith('WARN'))

await until('all of whom that is so say so', () => warned().length >= 3)
// Once: all look again after each change, as the last of them says.
ip(`-6 route add ${PEER.v6} via 2001:db8:1::2`)
await until('the way of IPv6 is another', () => told().some((line) => line.startsWith('INFO free6')))
ip(`route add ${PEER.v4} via 192.0.2.2`)
await until('the way of IPv4 is another', () => told().some((line) => line.startsWith('INFO free:')))
const first = warned().sort()
log.length = 0
ip(`route del ${PEER.v4} via 192.0.2.2`)
await until('it is told again once it leads through the tunnel again', () =>
  warned().some((line) => line.startsWith('WARN free:')),
)

const { ended } = await end()
console.log(JSON.stringify({ end: ended.outcome, first }))
process.exit()
