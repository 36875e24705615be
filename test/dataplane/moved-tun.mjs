/**
 * A TUN interface of a run that is moved to another network namespace and back, and renamed, in namespaces of this process's own (`unshare -n -m`);
 * says as JSON what the log says of it. Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import { startBuilt, waiting } from './built-run.mjs'

const ip = (words) => execFileSync('ip', words.split(' '), { stdio: 'pipe', encoding: 'utf8' })
ip('netns add far')

const pipeline = {
  device: { tun: { interface_name: 'pen', ip: '10.99.9.1', is_default_route: true, input: 'in', output: 'out' } },
  sink: { traffic_sink: { input: 'out' } },
  enter: { udp_local: { address: '127.0.0.1:0', output: 'in' } },
}
const log = []
const { end } = await startBuilt(pipeline, ({ level, component, message }) => {
  if (component === 'device') log.push(`${level}: ${message}`)
})
const until = waiting(() => `${ip('address')}; ${log.join('\n')}`)
const told = (text) => log.some((line) => line.includes(text))
const shown = (name) => JSON.parse(ip('-json address show')).find(({ ifname }) => ifname === name)
const owned = (name) =>
  shown(name)
    .addr_info.filter(({ family }) => family === 'inet')
    .map(({ local }) => local)

await until('it is up', () => told('is up with'))
log.length = 0
const { ifindex } = shown('pen')
const result = {}

ip('link set pen netns far')
await until('the log says that it is elsewhere', () => told('in another network namespace'))

// Somebody else's have its name and its number meanwhile.
ip('link add pen type veth peer name end')
ip('link set pen up')
ip(`link add other index ${ifindex} type veth peer name end2`)
ip('link set other up')
ip('-n far link set pen name pen9')
await until('the log says what it is called there', () => told('is called pen9 now'))
result.others = [...owned('pen'), ...owned('other')]

ip(`-n far link set pen9 netns ${process.pid}`)
await until('the log says that it is back and down', () => told('is down'))
ip('link set pen9 up')
await until('it has its address again', () => told('pen9 had lost'))
result.back = owned('pen9')
result.sameNumber = shown('pen9').ifindex === ifindex
result.route = /default dev (\S+)/.exec(ip('route show default'))?.[1]
result.others.push(...owned('pen'), ...owned('other'))

const { ended, descriptors } = await end()
Object.assign(result, { end: ended.outcome, log, descriptors })
console.log(JSON.stringify(result))
process.exit()
