/**
 * Interfaces of a run that are set down and up again under it, in a network namespace of this process's own (`unshare -n`); says as JSON what
 * they have after it and what the log says. Uses the built code.
 */

import { execFileSync } from 'node:child_process'
import dgram from 'node:dgram'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { RegionReader } from '../../dist/src/dataplane/engine/metrics.js'
import { native } from '../../dist/src/dataplane/native/native.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const ip = (...args) => execFileSync('ip', args, { stdio: 'pipe', encoding: 'utf8' })
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const OWN = { four: '10.99.4.1', six: 'fd00:99:6::1', tapped: 'fd00:99:7::1' }
const pipeline = {
  four: { tun: { interface_name: 'four', ip: OWN.four, is_default_route: true, input: 'in4', output: 'a' } },
  six: { tun: { interface_name: 'six', ip: OWN.six, is_default_route: true, input: 'in6', output: 'b' } },
  tapped: { tap: { interface_name: 'tapped', ip: OWN.tapped, input: 'in7', output: 'c' } },
  lasting: {
    tun: { interface_name: 'lasting', ip: 'fd00:99:8::1', is_default_route: true, input: 'in8', output: 'd' },
  },
  join: { flow_combiner: { inputs: ['a', 'b', 'c', 'd'], output: 'all' } },
  sink: { traffic_sink: { input: 'all' } },
  enter: { udp_local: { address: '127.0.0.1:0', output: 'in' } },
  copy: { splitter: { input: 'in', outputs: ['in4', 'in6', 'in7', 'in8'] } },
}
function configOf(pipeline) {
  const text = JSON.stringify({ version: 1, engine_config: { pipeline } })
  const { config, problems } = checkPipelineConfig(text, components)
  if (!config) throw new Error(JSON.stringify(problems))
  return config
}

// Of somebody else's: an interface with default routes that come behind, and one that was made to last.
ip('link', 'add', 'other', 'type', 'veth', 'peer', 'name', 'away')
ip('link', 'set', 'dev', 'away', 'up')
ip('address', 'add', '10.98.0.1/24', 'dev', 'other')
ip('link', 'set', 'dev', 'other', 'up')
ip('route', 'add', 'default', 'via', '10.98.0.2', 'metric', '100')
ip('-6', 'route', 'add', 'default', 'dev', 'other', 'metric', '2000')
ip('tuntap', 'add', 'dev', 'lasting', 'mode', 'tun')
ip('address', 'add', 'fd00:99:8::1/64', 'dev', 'lasting', 'nodad')
ip('link', 'set', 'dev', 'lasting', 'up')

const before = native.openDescriptors()
const pool = openRunPool({ warm: 0 })
const log = []
const options = { runId: 'kept', config: configOf(pipeline), performanceMode: false, level: 'INFO' }
const run = pool.start(options, (lines) => {
  for (const { level, component, message } of lines) if (component !== '') log.push(`${component} ${level}: ${message}`)
})
await run.running

const routes = (family) => {
  const all = ip(family, 'route', 'show', 'default').trim().split('\n')
  return all.map((line) => `${/dev (\S+)/.exec(line)?.[1]} ${/metric (\d+)/.exec(line)?.[1] ?? 0}`)
}
const routed = () => ({ four: routes('-4'), six: routes('-6') })
const addresses = () => {
  const shown = JSON.parse(ip('-json', 'address', 'show'))
  const global = ({ addr_info }) => addr_info.filter(({ scope }) => scope === 'global').map(({ local }) => local)
  const named = (name) => shown.find(({ ifname }) => ifname === name)
  return Object.fromEntries([...Object.keys(OWN), 'lasting'].map((name) => [name, global(named(name))]))
}
const hardwareAddress = (name) => JSON.parse(ip('-json', 'link', 'show', 'dev', name))[0].address
const state = () => ({ routes: routed(), addresses: addresses() })
const first = state()
const isAsAtFirst = () => {
  const now = state()
  const own = Object.keys(OWN).every((name) => now.addresses[name].join() === first.addresses[name].join())
  return own && JSON.stringify(now.routes) === JSON.stringify(first.routes)
}

async function until(what, holds) {
  const deadline = performance.now() + 5_000
  while (!holds()) {
    if (performance.now() > deadline)
      throw new Error(`not within 5 s: ${what}; ${JSON.stringify(state())}; ${log.join('\n')}`)
    await pause(10)
  }
}
/** What the log has said since it was last asked. */
let said = 0
function news() {
  const lines = log.slice(said)
  said = log.length
  return lines.sort()
}

/** Without what a look that came just between down and up has seen. */
const unseen = (lines) => lines.filter((line) => !/is down:|is up again$/.test(line))

const reader = new RegionReader(run.region)
const entry = reader.entries.find(({ path, name }) => path === 'four' && name === 'received_packets')
const heard = () => reader.snapshot()?.values[entry.index] ?? 0

news() // what starting says
const result = { first }
const hardware = hardwareAddress('tapped')

// Quickly, so that nobody has seen them down.
for (const name of ['four', 'six', 'tapped', 'lasting']) {
  const input = `link set dev ${name} down\nlink set dev ${name} up\n`
  execFileSync('ip', ['-batch', '-'], { input, stdio: 'pipe' })
}
await until('all is as at first after a moment down', isAsAtFirst)
result.quick = state()
await pause(600)
result.quick.log = unseen(news())

// What has no better route leaves through it again.
const earlier = heard()
const socket = dgram.createSocket('udp4')
const leaves = () => {
  socket.send('to anybody', 9, '203.0.113.9')
  return heard() > earlier
}
await until('it leaves through the interface', leaves)
socket.close()

// For a while: told once.
for (const name of ['four', 'six']) ip('link', 'set', 'dev', name, 'down')
await until('the log says that they are down', () => log.length - said >= 2)
await pause(600)
result.down = news()
for (const name of ['four', 'six']) ip('link', 'set', 'dev', name, 'up')
await until('all is as at first after a while down', isAsAtFirst)
await pause(600)
result.up = news()

// Taken by hand.
ip('address', 'del', `${OWN.four}/24`, 'dev', 'four')
ip('-6', 'route', 'del', 'default', 'dev', 'six')
await until('what was taken is there again', isAsAtFirst)
await pause(600)
result.taken = news()

// Somebody has put another default route in its place meanwhile, with the same metric.
ip('link', 'set', 'dev', 'four', 'down')
ip('route', 'add', 'default', 'dev', 'other')
ip('link', 'set', 'dev', 'four', 'up')
await until('both default routes are there', () => routes('-4').length === 3)
await pause(600)
result.rival = { routes: routes('-4'), log: unseen(news()).filter((line) => line.includes('WARN')) }

run.stop()
result.end = await run.ended

// The next run has the interface as neighbours know it, beside another one.
const taps = {
  tapped: { tap: { interface_name: 'tapped', ip: OWN.tapped, input: 'a', output: 'b' } },
  beside: { tap: { interface_name: 'beside', ip: OWN.tapped, input: 'b', output: 'a' } },
}
const next = pool.start({ ...options, runId: 'next', config: configOf(taps) }, () => {})
await next.running
result.hardware = {
  again: hardwareAddress('tapped') === hardware,
  beside: hardwareAddress('beside') === hardware,
  // One host's, locally administered.
  kind: Number.parseInt(hardware.slice(0, 2), 16) & 3,
}
next.stop()
await next.ended
await pool.close()
result.descriptors = native.openDescriptors() - before
result.left = ip('-o', 'link', 'show')
  .match(/^\d+: (\w+)/gm)
  .map((line) => line.split(' ')[1])
console.log(JSON.stringify(result))
process.exit()
