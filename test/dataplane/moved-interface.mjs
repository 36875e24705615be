/**
 * Groups joined on an interface that leaves this network namespace and comes back under its old number, and a socket that is bound to it, in namespaces of this process's own
 * (`unshare -n -m`); says as JSON what the log says of it and how many the kernel counts as members. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { startBuilt, waiting } from './built-run.mjs'

const NEAR = { v4: '10.91.8.1', v6: 'fd00:91:8::1' }
const FAR = { v4: '10.91.8.2', v6: 'fd00:91:8::2' }
const GROUP = { v4: '239.255.78.1', v6: 'ff15::78:1' }
/** As the kernel lists them. */
const LISTED = { v4: '014EFFEF', v6: 'ff150000000000000000000000780001' }

const ip = (words) => execFileSync('ip', words.split(' '), { stdio: 'pipe', encoding: 'utf8' })

ip('netns add far')
// A number that nobody else gets: it stays the same in every namespace.
ip('link add near index 7100 type veth peer name distant netns far')
ip(`-n far address add ${FAR.v4}/24 dev distant`)
ip(`-n far address add ${FAR.v6}/64 dev distant nodad`)
ip('-n far link set distant up')
function address() {
  ip(`address add ${NEAR.v4}/24 dev near`)
  ip('link set near up')
  ip(`address add ${NEAR.v6}/64 dev near nodad`)
}
address()
const leave = () => ip('link set near netns far')
const comeBack = () => ip(`-n far link set near netns ${process.pid}`)
const number = () => JSON.parse(ip('-json link show near'))[0].ifindex

// Whoever is heard sends to the groups.
const echo = `
  const { createSocket } = require('node:dgram')
  const six = createSocket('udp6')
  const four = createSocket('udp4')
  for (const socket of [four, six]) socket.on('error', () => {})
  setInterval(() => {
    try { four.setMulticastInterface('${FAR.v4}') } catch {}
    try { six.setMulticastInterface('::%distant') } catch {}
    four.send('to all', 7101, '${GROUP.v4}')
    six.send('to all', 7102, '${GROUP.v6}')
    four.send('to one', 7103, '${NEAR.v4}')
  }, 10)
  six.bind(0, () => four.bind(0, () => console.log('ready')))`
const far = spawn('ip', ['netns', 'exec', 'far', process.execPath, '-e', echo], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
process.on('exit', () => far.kill('SIGKILL'))
await once(far.stdout, 'data')

const four = { udp: { local_address: '0.0.0.0:7101', interface: 'near', multicast_group: GROUP.v4 } }
const six = { udp: { local_address: '[::]:7102', interface: 'near', multicast_group: GROUP.v6 } }
const unbound = { udp: { local_address: `${GROUP.v4}:7101`, multicast_group: GROUP.v4 } }
const alone = { udp: { local_address: '0.0.0.0:7103', interface: 'near' } }
ip(`route add ${GROUP.v4}/32 dev near`)
const sockets = { four, four2: four, six, six2: six, unbound, alone }
const SOCKETS = Object.keys(sockets)
const pipeline = {
  ...Object.fromEntries(SOCKETS.map((name) => [name, { udp: { ...sockets[name].udp, output: `of ${name}` } }])),
  join: { flow_combiner: { inputs: SOCKETS.map((name) => `of ${name}`), output: 'all' } },
  sink: { traffic_sink: { input: 'all' } },
}
const log = []
const { figure, end } = await startBuilt(pipeline, ({ level, component, message }) =>
  log.push(`${level} ${component}: ${message}`),
)
const received = () => SOCKETS.map((socket) => figure(socket, 'received_packets'))
const until = waiting(() => `${JSON.stringify([received(), members()])}; ${log.join('\n')}`)
/** Sockets in each group on any interface, as the kernel counts them. */
function members() {
  const count = (file, group) =>
    Number(new RegExp(`${group}\\s+(\\d+)`).exec(readFileSync(`/proc/self/net/${file}`, 'latin1'))?.[1] ?? 0)
  return { v4: count('igmp', LISTED.v4), v6: count('igmp6', LISTED.v6) }
}
async function heard(what) {
  const earlier = received()
  await until(what, () => received().every((count, i) => count > earlier[i]))
}
const told = (text) => SOCKETS.filter((name) => log.some((line) => line.includes(` ${name}: `) && line.includes(text)))
const toldAll = (text) => () => told(text).length === SOCKETS.length

const result = {}
await heard('everything is heard at first')
const first = number()
result.first = members()

leave()
await until('all say that it is gone', toldAll('is gone'))
comeBack()
address()
ip(`route add ${GROUP.v4}/32 dev near`)
await until('all say that it is there again', toldAll('near is there again'))
await heard('everything is heard after it was elsewhere')
result.later = members()
result.sameNumber = number() === first

// Nobody has seen it gone, on a machine that is quick.
log.length = 0
leave()
comeBack()
address()
await until('the groups are joined again', () => {
  const again = told(' again: interface near ').join()
  return again.includes('four') && again.includes('six')
})
await heard('everything is heard after it was elsewhere for a moment')

// With an MTU that IPv6 does not have for a moment: its memberships are gone too.
log.length = 0
ip('link set near mtu 1000')
ip('link set near mtu 1500')
ip(`address add ${NEAR.v6}/64 dev near nodad`)
await until('the group of IPv6 is joined again', () => told('near had forgotten its groups').length > 0)
await heard('everything is heard after it had a short MTU')
result.forgotten = told('near had forgotten its groups').filter((name) => !name.startsWith('six'))

// Without a descriptor left nothing can be found out of the interface: the sockets stay in their groups.
log.length = 0
const limits = `prlimit --pid ${process.pid} --nofile=3: && echo && read line; prlimit --pid ${process.pid} --nofile=1024:`
const limiting = spawn('sh', ['-c', limits], { stdio: ['pipe', 'pipe', 'inherit'] })
await once(limiting.stdout, 'data')
const earlier = received()
// A packet comes every 10 ms, and the interface is looked at every 250 ms.
await until('much is heard without a descriptor left', () => received().every((count, i) => count > earlier[i] + 100))
result.short = [...log]
limiting.stdin.end()
await once(limiting, 'exit')

const { ended, descriptors } = await end()
Object.assign(result, { end: ended.outcome, left: members(), descriptors })
if (process.env.SHOW_LOG) console.error(log.join('\n'))
console.log(JSON.stringify(result))
process.exit()
