/**
 * Multicast, link-local addresses and interfaces, IPv4 and IPv6, between this namespace and another that socat is in (namespaces of
 * this process's own, `unshare -n -m`); says as JSON what was heard where. Uses the built code.
 */

import { execFileSync, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { checkPipelineConfig } from '../../dist/src/dataplane/engine/check.js'
import { openRunPool } from '../../dist/src/dataplane/product.js'

const NEAR = { v4: '10.91.8.1', link: 'fe80::8:1', global: 'fd00:8::1' }
const FAR = { v4: '10.91.8.2', link: 'fe80::8:2', global: 'fd00:8::2' }
const GROUP = { v4: '239.255.78.1', other: '239.255.78.2', v6: 'ff02::78:1', site: 'ff05::78:1' }

const ip = (...args) => execFileSync('ip', args, { stdio: 'pipe' })
/** Of a namespace: its loopback and its end of the cable, with fixed addresses that are usable at once. */
function furnish(namespace, { v4, link, global }) {
  const within = (...args) => (namespace ? ip('-n', namespace, ...args) : ip(...args))
  within('link', 'set', 'lo', 'up')
  within('link', 'set', 'cable', 'addrgenmode', 'none')
  within('link', 'set', 'cable', 'up')
  within('address', 'add', `${v4}/30`, 'dev', 'cable')
  for (const address of [link, global]) within('-6', 'address', 'add', `${address}/64`, 'dev', 'cable', 'nodad')
}

ip('netns', 'add', 'far')
ip('link', 'add', 'cable', 'type', 'veth', 'peer', 'name', 'cable', 'netns', 'far')
furnish('', NEAR)
// What is of one link and names none would go here.
ip('link', 'add', 'decoy', 'type', 'veth', 'peer', 'name', 'decoy2')
for (const end of ['decoy', 'decoy2']) ip('link', 'set', end, 'up')
ip('-6', 'route', 'add', 'fe80::/64', 'dev', 'decoy', 'metric', '1')
ip('-6', 'route', 'add', 'multicast', 'ff00::/8', 'dev', 'decoy', 'table', 'local', 'metric', '1')
ip('route', 'add', '224.0.0.0/4', 'dev', 'decoy')
furnish('far', FAR)

const children = []
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** socat in the other namespace; what it writes comes to `said`. */
function socat(...args) {
  const child = spawn('ip', ['netns', 'exec', 'far', 'socat', ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(child)
  const far = { said: '', send: (text) => child.stdin.write(text) }
  child.stdout.on('data', (bytes) => {
    far.said += bytes
  })
  return far
}

/** Runs a pipeline whose connection `in` is fed at 127.0.0.1:7000 and whose `out` is heard by this process. */
const heard = []
const ear = dgram.createSocket('udp4')
ear.on('message', (bytes) => heard.push(String(bytes)))
ear.bind(7001, '127.0.0.1')
await once(ear, 'listening')

const pool = openRunPool({ warm: 1, maximum: 1 })
const lines = []
function configure(pipeline) {
  const ends = {
    feed: { udp_local: { address: '127.0.0.1:7000', output: 'in' } },
    ear: { udp: { remote_address: '127.0.0.1:7001', input: 'out' } },
  }
  const text = JSON.stringify(pipeline)
  const whole = { ...pipeline }
  if (text.includes('"in"')) whole.feed = ends.feed
  if (text.includes('"out"')) whole.ear = ends.ear
  return checkPipelineConfig(JSON.stringify({ version: 1, engine_config: { pipeline: whole } }), components)
}

/** What `act` gives while the pipeline runs, or is `changed` into another. */
async function during(pipeline, act, changed) {
  const { config, problems } = configure(pipeline)
  if (!config) return JSON.stringify(problems)
  heard.length = 0
  const options = { runId: 'test', config, performanceMode: false, level: 'INFO' }
  const run = pool.start(options, (more) => lines.push(...more.map(({ message }) => message)))
  try {
    await run.running
    if (changed) await run.reconfigure(configure(changed).config)
    return await act()
  } catch (error) {
    return String(error.message)
  } finally {
    run.stop()
    await run.ended
  }
}

/** Sends `text` into the pipeline, or does `act`, again and again until `seen` gives something. */
async function until(seen, act = () => ear.send('hello', 7000, '127.0.0.1')) {
  const deadline = performance.now() + 20_000
  for (;;) {
    act()
    await new Promise((resolve) => setTimeout(resolve, 50))
    const found = seen()
    if (found) return found
    if (performance.now() > deadline) return `nothing; ${lines.splice(0).join('; ')}`
  }
}

const result = {}
const sent = (what, far, pipeline, changed) => {
  far.said = ''
  return during(pipeline, () => until(() => /hello(hops=\d*)/.exec(far.said)?.[1]), changed).then((found) => {
    result[what] = found
  })
}
const came = (what, pipeline, far) =>
  during(pipeline, () =>
    until(
      () => heard.includes('far') && 'far',
      () => far.send('far'),
    ),
  ).then((found) => {
    result[what] = found
  })
const to = (more) => ({ it: { udp: { input: 'in', ...more } } })
const from = (more) => ({ it: { udp: { output: 'out', ...more } } })
const via = (remote_address, more) => ({
  address: { peer_writer: { input: 'in', output: 'addressed', remote_address } },
  it: { ...more },
})
// Each datagram, and how many more routers it might have passed.
const show = (variable) => `SYSTEM:cat; echo hops=$${variable}`

// To a group.
const v4 = socat(
  '-u',
  `UDP4-RECVFROM:7100,fork,ip-recvttl,ip-add-membership=${GROUP.v4}:${FAR.v4}`,
  show('SOCAT_IP_TTL'),
)
const v4group = `${GROUP.v4}:7100`
await sent('IPv4 group by interface', v4, to({ remote_address: v4group, interface: 'cable', multicast_ttl: 3 }))
const hops = (multicast_ttl) => to({ remote_address: v4group, interface: 'cable', multicast_ttl })
await sent('IPv4 group, other hops while it runs', v4, hops(3), hops(7))
await sent('IPv4 group, hops unset while it runs', v4, hops(3), hops(undefined))
await sent('IPv4 group by local address', v4, to({ remote_address: v4group, local_address: `${NEAR.v4}:0` }))
await sent('IPv4 group by annotation', v4, via(v4group, { udp_remote: { input: 'addressed', interface: 'cable' } }))
const v6 = (group, port) =>
  socat(
    '-u',
    `UDP6-RECVFROM:${port},fork,ipv6-recvhoplimit,ipv6-join-group=[${group}]:cable`,
    show('SOCAT_IPV6_HOPLIMIT'),
  )
const link = v6(GROUP.v6, 7101)
const zone = `[${GROUP.v6}%cable]:7101`
await sent('IPv6 group by zone', link, to({ remote_address: zone, multicast_ttl: 5 }))
await sent('IPv6 group by interface', link, to({ remote_address: `[${GROUP.v6}]:7101`, interface: 'cable' }))
await sent(
  'IPv6 group, other hops while it runs',
  link,
  to({ remote_address: zone }),
  to({ remote_address: zone, multicast_ttl: 7 }),
)
await sent(
  'IPv6 group by local address',
  link,
  to({ remote_address: `[${GROUP.v6}]:7101`, local_address: `[${NEAR.link}%cable]:0` }),
)
await sent('IPv6 group by annotation', link, via(zone, { udp_remote: { input: 'addressed' } }))
const site = v6(GROUP.site, 7102)
await sent(
  'IPv6 site group',
  site,
  to({ remote_address: `[${GROUP.site}]:7102`, interface: 'cable', multicast_ttl: 9 }),
)

// To one host.
const host = socat('-u', 'UDP6-RECVFROM:7103,fork,ipv6-recvhoplimit', show('SOCAT_IPV6_HOPLIMIT'))
const far6 = `[${FAR.link}%cable]:7103`
await sent('link-local by zone', host, to({ remote_address: far6 }))
await sent('link-local by interface', host, to({ remote_address: `[${FAR.link}]:7103`, interface: 'cable' }))
await sent('link-local by annotation', host, via(far6, { udp_remote: { input: 'addressed' } }))
await sent('udp without addresses, IPv6', host, via(`[${FAR.global}]:7103`, { udp: { input: 'addressed' } }))
await sent('udp without addresses, link-local', host, via(far6, { udp: { input: 'addressed' } }))

// What comes back to a socket without addresses.
socat('UDP4-RECVFROM:7104,fork', 'PIPE')
result['udp without addresses, IPv4, and back'] = await during(
  via(`${FAR.v4}:7104`, { udp: { input: 'addressed', output: 'out' } }),
  () => until(() => heard.includes('hello') && 'hello'),
)

// From a group.
const into4 = socat('STDIN', `UDP4-DATAGRAM:${GROUP.v4}:7200,ip-multicast-if=${FAR.v4}`)
await came(
  'joined IPv4 by interface',
  from({ local_address: '0.0.0.0:7200', multicast_group: GROUP.v4, interface: 'cable' }),
  into4,
)
await came(
  'joined IPv4 at the group',
  {
    ...from({ local_address: `${GROUP.v4}:7200`, multicast_group: GROUP.v4, interface: 'cable' }),
  },
  into4,
)
const into6 = socat('STDIN', `UDP6-DATAGRAM:[${GROUP.v6}%cable]:7201`)
await came('joined IPv6 by zone', from({ local_address: '[::]:7201', multicast_group: `${GROUP.v6}%cable` }), into6)
await came(
  'joined IPv6 by interface',
  from({ local_address: '[::]:7201', multicast_group: GROUP.v6, interface: 'cable' }),
  into6,
)

/** Two sockets at one port, of which only `right` hears what comes; the other is heard after it. */
async function apart(what, right, wrong, far, proof) {
  result[what] = await during(
    {
      right: { udp: { output: 'a', ...right } },
      wrong: { udp: { output: 'b', ...wrong } },
      first: { udp: { input: 'a', local_address: '127.0.0.1:7011', remote_address: '127.0.0.1:7001' } },
      second: { udp: { input: 'b', local_address: '127.0.0.1:7012', remote_address: '127.0.0.1:7001' } },
    },
    async () => {
      const by = (port, text) => heard.some((line, i) => line.includes(text) && ports[i] === port)
      ports.length = 0
      const right = await until(
        () => by(7011, 'far') && 'heard',
        () => far.send('far'),
      )
      const control = await until(() => by(7012, 'proof') && 'heard', proof)
      return [right, by(7012, 'far') ? 'by the other too' : 'by one', control]
    },
  )
}
const ports = []
ear.on('message', (_bytes, { port }) => ports.push(port))
const port = { local_address: '0.0.0.0:7300' }
const single = socat('STDIN', `UDP4-SENDTO:${NEAR.v4}:7300`)
await apart('bound to interfaces', { ...port, interface: 'cable' }, { ...port, interface: 'lo' }, single, () =>
  ear.send('proof', 7300, '127.0.0.1'),
)
const one = socat('STDIN', `UDP4-DATAGRAM:${GROUP.v4}:7301,ip-multicast-if=${FAR.v4}`)
const two = socat('STDIN', `UDP4-DATAGRAM:${GROUP.other}:7301,ip-multicast-if=${FAR.v4}`)
const joined = (multicast_group) => ({ local_address: '0.0.0.0:7301', interface: 'cable', multicast_group })
await apart('joined to groups, IPv4', joined(GROUP.v4), joined(GROUP.other), one, () => two.send('proof'))
const one6 = socat('STDIN', `UDP6-DATAGRAM:[${GROUP.v6}%cable]:7302`)
const two6 = socat('STDIN', `UDP6-DATAGRAM:[${GROUP.site}]:7302,so-bindtodevice=cable`)
const joined6 = (multicast_group) => ({ local_address: '[::]:7302', interface: 'cable', multicast_group })
await apart('joined to groups, IPv6', joined6(GROUP.v6), joined6(GROUP.site), one6, () => two6.send('proof'))

/** Sockets without a group, beside two that have joined one: to each goes `stray` to the group, then `proof` to itself. */
result['joined to none'] = await during(
  {
    member4: { udp: { output: 'a', local_address: '0.0.0.0:7310', multicast_group: GROUP.v4, interface: 'cable' } },
    member6: { udp: { output: 'b', local_address: '[::]:7311', multicast_group: GROUP.v6, interface: 'cable' } },
    udp4: { udp: { output: 'c', local_address: '0.0.0.0:7312' } },
    udp6: { udp: { output: 'd', local_address: '[::]:7313' } },
    local4: { udp_local: { output: 'e', address: '0.0.0.0:7314' } },
    local6: { udp_local: { output: 'f', address: '[::]:7315' } },
    all: { flow_combiner: { inputs: ['a', 'b', 'c', 'd', 'e', 'f'], output: 'out' } },
  },
  async () => {
    const four = dgram.createSocket('udp4').bind(0)
    const six = dgram.createSocket('udp6').bind(0)
    await Promise.all([once(four, 'listening'), once(six, 'listening')])
    four.setMulticastInterface(NEAR.v4)
    six.setMulticastInterface('::%cable')
    const send = () => {
      four.send('member 7310', 7310, GROUP.v4)
      six.send('member 7311', 7311, GROUP.v6)
      for (const port of [7312, 7313, 7314, 7315]) {
        four.send(`stray ${port}`, port, GROUP.v4)
        four.send(`proof ${port}`, port, '127.0.0.1')
      }
      for (const port of [7313, 7315]) {
        six.send(`stray6 ${port}`, port, GROUP.v6)
        six.send(`proof6 ${port}`, port, '::1')
      }
    }
    const found = await until(() => {
      const texts = new Set(heard)
      return texts.size >= 8 && [...texts].sort()
    }, send)
    four.close()
    six.close()
    return found
  },
)

// Heard at a link-local address, and answered there.
const asking = socat(`UDP6:[${NEAR.link}%cable]:7400`, 'STDIO')
result['answered at a link-local address'] = await during(
  {
    it: { udp_local: { address: `[${NEAR.link}%cable]:7400`, output: 'heard', input: 'answer' } },
    observe: { observer: { input: 'heard', output: 'answer' } },
  },
  () =>
    until(
      () => /question/.exec(asking.said)?.[0],
      () => asking.send('question'),
    ),
)

// What is refused.
result['no such zone'] = await during(
  via('[fe80::1%nowhere]:9', { udp_remote: { input: 'addressed' } }),
  () => 'it runs',
)
result['no zone'] = await during(to({ remote_address: `[${FAR.link}]:9` }), () => 'it runs')
result['no such zone of a socket'] = await during(to({ remote_address: '[fe80::1%nowhere]:9' }), () => 'it runs')
result['from the loopback'] = await during(
  to({ local_address: '127.0.0.1:0', remote_address: `${FAR.v4}:9` }),
  () => 'it runs',
)
ip('route', 'flush', 'table', 'main')
result['no way to the group'] = await during(
  {
    heard: { udp: { local_address: '0.0.0.0:0', multicast_group: '239.9.9.9', output: 'a' } },
    sink: { traffic_sink: { input: 'a' } },
  },
  () => 'it runs',
)
console.log(JSON.stringify(result))
process.exit()
