/** Datagrams through real sockets and graphs in worker threads: every endpoint, every backend, IPv4 and IPv6. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { components } from '../../src/dataplane/components/registry.ts'
import { diffConfig } from '../../src/dataplane/engine/diff.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { conservation } from '../harness/component.ts'
import { until } from '../harness/waiting.ts'
import { configure, Peer, registry, startRun, type TestRun, testPool } from './running.ts'

const pool = testPool()
const before = native.openDescriptors()
const peers: Peer[] = []
const runs: TestRun[] = []

async function peer(family: 4 | 6 = 4): Promise<Peer> {
  peers.push(await Peer.open(family))
  return peers.at(-1) as Peer
}

async function start(...args: Parameters<typeof startRun> extends [unknown, ...infer R] ? R : never): Promise<TestRun> {
  const run = await startRun(pool, ...args)
  runs.push(run)
  return run
}

afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  for (const open of peers.splice(0)) open.close()
  expect(native.openDescriptors()).toBe(before)
})
afterAll(() => pool.close())

/** Texts of varying length, so that GSO groups form and break. */
const texts = (count: number) =>
  Array.from({ length: count }, (_, i) => `${i} `.padEnd(100 + (i % 7 === 0 ? 900 : 0), 'x'))

const hasSs = spawnSync('ss', ['-V']).status === 0
if (!hasSs) console.warn('SOCKET BUFFER TESTS ARE SKIPPED: ss (iproute2) is not installed')

/** What the kernel has granted of `bytes` for a buffer of each direction: twice that, of those without CAP_NET_ADMIN up to its limit. */
function granted(bytes: number): { receive: number; send: number } {
  const capabilities = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]}`)
  const mayForce = ((capabilities >> 12n) & 1n) === 1n
  const most = (name: string) => Number(readFileSync(`/proc/sys/net/core/${name}`, 'utf8'))
  const of = (name: string) => 2 * (mayForce ? bytes : Math.min(bytes, most(name)))
  return { receive: of('rmem_max'), send: of('wmem_max') }
}

it.skipIf(!hasSs)(
  'sockets have buffers of 8 MiB in each direction, or as large as the configuration says',
  async () => {
    const run = await start({
      usual: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      small: {
        udp: { local_address: '127.0.0.1:0', socket_buffer_size: 65_536, lock_to_first_peer: true, output: 'b' },
      },
      sinks: { flow_combiner: { inputs: ['a', 'b'], output: 'c' } },
      end: { traffic_sink: { input: 'c' } },
    })
    const buffers = (component: string) => {
      const { stdout } = spawnSync('ss', ['-uamnH', 'sport', '=', `:${run.port(component)}`], { encoding: 'utf8' })
      return { receive: Number(/\brb(\d+)/.exec(stdout)?.[1]), send: Number(/\btb(\d+)/.exec(stdout)?.[1]) }
    }
    expect(buffers('usual')).toEqual(granted(8 << 20))
    expect(buffers('small')).toEqual(granted(65_536))
  },
)

/** A socket that answers whoever sent, and its configuration with other settings, which it takes over while it runs. */
async function answering(settings: object) {
  const pipeline = (more: object) => ({
    it: { udp: { local_address: '127.0.0.1:0', output: 'a', input: 'b', ...more } },
    back: { fragmentizer: { input: 'a', output: 'f' } },
    whole: { defragmentizer: { input: 'f', output: 'b' } },
  })
  let config = configure(pipeline(settings))
  const run = await start(pipeline(settings))
  return {
    run,
    async change(more: object) {
      const next = configure(pipeline(more))
      expect(diffConfig(config, next, components).restart).toEqual([])
      await run.handle.reconfigure(next)
      config = next
    },
  }
}

it.skipIf(!hasSs)('buffers of a socket that is open get another size', async () => {
  const { run, change } = await answering({})
  const { stdout: first } = spawnSync('ss', ['-uamnH', 'sport', '=', `:${run.port('it')}`], { encoding: 'utf8' })
  expect(first).toContain(`rb${granted(8 << 20).receive},`)
  for (const bytes of [65_536, 131_072, 0]) {
    await change({ socket_buffer_size: bytes })
    const { stdout } = spawnSync('ss', ['-uamnH', 'sport', '=', `:${run.port('it')}`], { encoding: 'utf8' })
    const { receive, send } = granted(bytes || 8 << 20)
    expect(stdout).toContain(`rb${receive},`)
    expect(stdout).toContain(`tb${send},`)
  }
})

it('a lock that is set while it runs is to the first peer heard then; unset, everybody is heard', async () => {
  const [first, second] = [await peer(), await peer()]
  const { run, change } = await answering({ lock_to_first_peer: false })
  const port = run.port('it')
  await first.send(port, 'one')
  await first.hears(1)
  await change({ lock_to_first_peer: true })
  await second.send(port, 'two')
  await second.hears(1)
  await first.send(port, 'three')
  await until(() => run.metrics().it.ignored_packets === 1, 'the other is ignored')
  await change({ lock_to_first_peer: false })
  await first.send(port, 'four')
  await first.hears(2)
  await change({ lock_to_first_peer: true })
  await first.send(port, 'five')
  await first.hears(3)
  await second.send(port, 'six')
  await until(() => run.metrics().it.ignored_packets === 2, 'the other is ignored again')
  expect(first.heard.map(({ text }) => text)).toEqual(['one', 'four', 'five'])
  expect(second.heard.map(({ text }) => text)).toEqual(['two'])
})

describe.each([4, 6] as const)('IPv%i', (family) => {
  const local = family === 4 ? '127.0.0.1:0' : '[::1]:0'

  it.each(['GENERIC', 'LINUX_NO_GRO', 'LINUX'])(
    'through udp_local and udp, there and back, with %s',
    async (backend) => {
      const far = await peer(family)
      const near = await peer(family)
      const pipeline = {
        front: { udp_local: { address: local, output: 'up', input: 'down', backend } },
        back: { udp: { remote_address: far.address, input: 'up' } },
        loop: { udp_local: { address: local, output: 'down', backend } },
      }
      const run = await start(pipeline)
      const sent = texts(200)
      // In bursts that fit a socket's buffer even when nobody reads it for a while.
      for (let at = 0; at < 200; at += 50) {
        await near.send(run.port('front'), ...sent.slice(at, at + 50))
        await far.hears(at + 50)
      }
      expect(far.heard.map(({ text }) => text)).toEqual(sent)
      // What arrives at loop is annotated with its sender, near, so front answers it.
      await near.send(run.port('loop'), 'home')
      await near.hears(1)
      expect(near.heard).toMatchObject([{ text: 'home', port: run.port('front') }])
      await run.stop()
      expect(conservation(configure(pipeline), run.metrics())).toEqual([])
      expect(run.metrics()).toMatchObject({
        front: { received_packets: 200, sent_packets: 1, output_bytes: sent.join('').length },
        back: { sent_packets: 200, local_port: run.port('back') },
      })
      expect(run.log.find(({ component }) => component === 'front')?.fields.backend).toBe(backend)
    },
  )

  it.each(['GENERIC', 'LINUX_NO_GRO', 'LINUX'])(
    'udp_remote sends to annotated peers and hears the answer, %s',
    async (backend) => {
      const [asker, server] = [await peer(family), await peer(family)]
      const run = await start({
        front: { udp_local: { address: local, output: 'a' } },
        peer: { peer_writer: { input: 'a', output: 'b', remote_address: server.address } },
        out: { udp_remote: { input: 'b', output: 'c', backend } },
        home: { peer_writer: { input: 'c', output: 'd', remote_address: asker.address } },
        last: { udp_remote: { input: 'd', backend } },
      })
      server.socket.on('message', (_, { port }) => server.send(port, 'answer'))
      await asker.send(run.port('front'), 'question')
      await asker.hears(1)
      expect(server.heard).toMatchObject([{ text: 'question', port: run.port('out') }])
      expect(asker.heard).toMatchObject([{ text: 'answer', port: run.port('last') }])
    },
  )

  it('a connected udp hears its peer only', async () => {
    const [friend, stranger] = [await peer(family), await peer(family)]
    const run = await start({
      only: { udp: { local_address: local, remote_address: friend.address, output: 'a', input: 'b' } },
      echo: { flow_combiner: { inputs: ['a'], output: 'b' } },
    })
    await stranger.send(run.port('only'), 'let me in')
    await friend.send(run.port('only'), 'hello')
    await friend.hears(1)
    await run.stop()
    expect(run.metrics().only).toMatchObject({ received_packets: 1, sent_packets: 1 })
    expect(stranger.heard).toEqual([])
  })

  it('udp without a peer answers whoever sent', async () => {
    const askers = [await peer(family), await peer(family)]
    const run = await start({
      echo: { udp: { local_address: local, output: 'a', input: 'b' } },
      back: { flow_combiner: { inputs: ['a'], output: 'b' } },
    })
    for (const [i, asker] of askers.entries()) await asker.send(run.port('echo'), `from ${i}`)
    for (const [i, asker] of askers.entries()) {
      await asker.hears(1)
      expect(asker.heard[0].text).toBe(`from ${i}`)
    }
  })

  it('udp locked to the first peer ignores and counts all others', async () => {
    const [first, second, aside] = [await peer(family), await peer(family), await peer(family)]
    const run = await start({
      locked: { udp: { local_address: local, lock_to_first_peer: true, output: 'a', input: 'b' } },
      other: { udp_local: { address: local, output: 'c' } },
      join: { flow_combiner: { inputs: ['a', 'c'], output: 'b' } },
    })
    await aside.send(run.port('other'), 'too early')
    await until(() => run.metrics().locked.unaddressed_packets === 1, 'a packet without an address')
    await first.send(run.port('locked'), 'one')
    await first.hears(1)
    await second.send(run.port('locked'), 'two', 'three')
    await until(() => run.metrics().locked.ignored_packets === 2, 'two ignored')
    const told = () => run.log.filter(({ level, fields }) => level === 'WARN' && fields.setting !== undefined)
    await until(() => told().length > 0, 'a word of it')
    const warnings = told()
    expect(warnings).toMatchObject([
      { component: 'locked', fields: { address: second.address, setting: 'lock_to_first_peer' } },
    ])
    expect(warnings[0].message).toContain(`ignores datagrams from ${second.address}`)
    expect(warnings[0].message).toContain(`${first.address} was first`)
    await until(() => run.metrics().locked.output_bytes === 'one'.length, 'the bytes of the one that was heard')
    // Whatever its annotation says, a packet goes to the peer.
    await aside.send(run.port('other'), 'four')
    await first.hears(2)
    expect(first.heard.map(({ text }) => text)).toEqual(['one', 'four'])
    expect([...second.heard, ...aside.heard]).toEqual([])
  })
})

describe('udp', () => {
  it('bound to [::] serves IPv4 and IPv6', async () => {
    const [four, six] = [await peer(4), await peer(6)]
    const run = await start({
      echo: { udp_local: { address: '[::]:0', output: 'a', input: 'b' } },
      back: { flow_combiner: { inputs: ['a'], output: 'b' } },
    })
    await four.send(run.port('echo'), 'four')
    await six.send(run.port('echo'), 'six')
    await four.hears(1)
    await six.hears(1)
  })

  it('drops and counts what is over the MTU, both ways', async () => {
    const far = await peer()
    const run = await start({
      narrow: { udp_local: { address: '127.0.0.1:0', mtu: 1000, output: 'a' } },
      wide: { udp_local: { address: '127.0.0.1:0', mtu: 9000, output: 'b' } },
      join: { flow_combiner: { inputs: ['a', 'b'], output: 'c' } },
      out: { udp: { remote_address: far.address, input: 'c' } },
    })
    const sizes = (bytes: number) => new Uint8Array(bytes)
    await far.send(run.port('narrow'), sizes(1000), sizes(1001), sizes(0), sizes(1), sizes(60_000))
    await far.send(run.port('wide'), sizes(1472), sizes(1473), sizes(9000), sizes(9001))
    await far.hears(4)
    await until(() => {
      const { narrow, wide, out } = run.metrics()
      return narrow.received_oversize_packets + wide.received_oversize_packets + out.oversize_packets === 5
    }, 'all counted')
    expect(far.heard.map(({ bytes }) => bytes.length).sort((a, b) => a - b)).toEqual([0, 1, 1000, 1472])
  })

  it('counts what the kernel drops while the run is kept from reading, and says so once', async () => {
    const near = await peer()
    near.socket.setMulticastInterface('127.0.0.1')
    const group = '239.255.78.2'
    const pipeline = {
      alone: { udp: { local_address: '127.0.0.1:0', output: 'a', socket_buffer_size: 8192 } },
      member: {
        udp: {
          ...{ local_address: `${group}:0`, multicast_group: group, interface: 'lo' },
          ...{ output: 'b', socket_buffer_size: 8192 },
        },
      },
      join: { flow_combiner: { inputs: ['a', 'b'], output: 'c' } },
      slow: { test_slow: { input: 'c', output: 'd', milliseconds: 50 } },
      end: { traffic_sink: { input: 'd' } },
    }
    const run = await start(pipeline)
    const names = ['alone', 'member']
    const dropped = () => names.map((name) => run.metrics()[name].kernel_dropped_packets)
    const flood = () => {
      for (let i = 0; i < 200; i++)
        for (const [name, host] of [
          ['alone', '127.0.0.1'],
          ['member', group],
        ])
          near.socket.send('flood', run.port(name), host)
    }
    flood()
    await until(
      () => names.every((name, i) => run.metrics()[name].received_packets + dropped()[i] === 200),
      'every datagram is received or dropped',
    )
    const first = dropped()
    expect(conservation(configure(pipeline), run.metrics(), registry)).toEqual([])
    flood()
    await until(() => run.metrics().end.input_packets > 400 - first[0] - first[1], 'it reads again')
    // What the kernel has not been asked for yet is counted at the end, and told once in a minute.
    await run.stop()
    expect(dropped().every((count, i) => count > first[i])).toBe(true)
    const said = run.log.filter(({ level }) => level === 'WARN')
    expect(said.map(({ component }) => component).sort()).toEqual(names)
    expect(said.map(({ fields }) => fields.metric)).toEqual(['kernel_dropped_packets', 'kernel_dropped_packets'])
    expect(said[0].message).toMatch(/^the kernel drops packets before the run reads them, .* socket_buffer_size/)
  })

  it('counts errors of the network and goes on', async () => {
    const gone = await peer()
    const { address } = gone
    gone.close()
    peers.splice(0)
    const asker = await peer()
    const run = await start({
      front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      out: { udp: { remote_address: address, input: 'a' } },
    })
    for (let i = 1; run.metrics().out.socket_errors === 0; i++) {
      expect(i).toBeLessThan(1000)
      await asker.send(run.port('front'), 'anybody?')
      await until(() => run.metrics().front.received_packets >= i, 'it was taken')
    }
    const seen = run.metrics().front.received_packets
    await asker.send(run.port('front'), 'still there')
    await until(() => run.metrics().front.received_packets > seen, 'it still runs')
    await run.stop()
    expect(await run.handle.ended).toEqual({ outcome: 'STOPPED' })
    // Said once, however many there were.
    expect(run.log.filter(({ level }) => level === 'WARN')).toMatchObject([
      { component: 'out', fields: { error: 'ECONNREFUSED', socket_errors: expect.any(Number) } },
    ])
    expect(run.log.find(({ level }) => level === 'WARN')?.message).toBe(
      'the network reports errors of packets that were sent (ECONNREFUSED, connection refused): they are counted as socket_errors',
    )
  })

  it('says once for each cause why the kernel refuses packets', async () => {
    const asker = await peer()
    const run = await start({
      front: { udp_local: { address: '127.0.0.1:0', output: 'in' } },
      copy: { splitter: { input: 'in', outputs: ['a', 'b'] } },
      // Nobody may send to all without SO_BROADCAST, and no socket of IPv4 to an address of IPv6.
      all: { peer_writer: { remote_address: '255.255.255.255:9', input: 'a', output: 'c' } },
      six: { peer_writer: { remote_address: '[::1]:9', input: 'b', output: 'd' } },
      broadcast: { udp: { local_address: '127.0.0.1:0', input: 'c' } },
      other: { udp: { local_address: '127.0.0.1:0', input: 'd' } },
    })
    for (let i = 1; i <= 20; i++) {
      await asker.send(run.port('front'), 'to all')
      const refused = () => run.metrics().broadcast.refused_packets + run.metrics().other.refused_packets
      await until(() => refused() === 2 * i, 'both refused')
    }
    const told = () => run.log.filter(({ level }) => level === 'WARN')
    await until(() => told().length === 2, 'both told')
    await run.stop()
    const causes = {
      broadcast: ['EACCES', 'EACCES, permission denied'],
      other: ['EAFNOSUPPORT', 'EAFNOSUPPORT, address family not supported'],
    }
    const lines = Object.entries(causes).map(([component, [error, text]]) => ({
      component,
      message: `the kernel refuses packets (${text}): they are counted as refused_packets`,
      fields: { error, refused_packets: 1 },
    }))
    const byName = told().sort((one, next) => one.component.localeCompare(next.component))
    expect(byName).toMatchObject(lines)
  })

  it('hears a multicast group and sends to it', async () => {
    const run = await start({
      member: {
        udp: {
          local_address: '0.0.0.0:0',
          multicast_group: '239.255.77.1',
          multicast_ttl: 0,
          interface: 'lo',
          output: 'a',
        },
      },
      drain: { udp: { input: 'a', remote_address: (await peer()).address } },
    })
    const talker = await start({
      front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      speak: {
        udp: {
          local_address: '127.0.0.1:0',
          remote_address: `239.255.77.1:${run.port('member')}`,
          multicast_ttl: 0,
          interface: 'lo',
          input: 'a',
        },
      },
    })
    await peers[0].send(talker.port('front'), 'to everybody')
    await peers[0].hears(1)
    expect(peers[0].heard[0].text).toBe('to everybody')
  })

  it('lives through datagrams of every kind', async () => {
    const far = await peer()
    const near = await peer()
    const pipeline = {
      front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      twice: { splitter: { input: 'a', outputs: ['b', 'c'] } },
      out: { udp: { remote_address: far.address, input: 'b' } },
      back: { udp_remote: { input: 'c' } },
    }
    const run = await start(pipeline)
    let state = 12345
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    let fitting = 0
    let oversize = 0
    for (let round = 0; round < 100; round++) {
      const junk = Array.from({ length: 10 }, () => {
        const bytes = new Uint8Array(random(3) === 0 ? random(8_000) : random(1500))
        for (let i = 0; i < bytes.length; i++) bytes[i] = random(256)
        if (bytes.length > 1472) oversize++
        else fitting++
        return bytes
      })
      await near.send(run.port('front'), ...junk)
      await until(() => {
        const { received_packets, received_oversize_packets } = run.metrics().front
        return received_packets === fitting + oversize && received_oversize_packets === oversize
      }, 'all of them seen')
    }
    const told = run.log.filter(({ level }) => level === 'WARN').map(({ fields }) => fields)
    expect(told).toEqual([{ metric: 'received_oversize_packets', mtu: 1472 }])
    await run.stop()
    expect(await run.handle.ended).toEqual({ outcome: 'STOPPED' })
    expect(conservation(configure(pipeline), run.metrics())).toEqual([])
    expect(run.metrics().back.sent_packets).toBe(fitting)
  })
})

describe('refused configurations', () => {
  const refused = (key: string, config: Record<string, unknown>) => {
    const ends = { input: 'a', output: 'a', ...config }
    try {
      configure({ it: { [key]: ends } })
      return []
    } catch (error) {
      return (error as { problems: { pointer: string }[] }).problems.map(({ pointer }) => pointer)
    }
  }
  const at = (key: string, field: string) => [`/engine_config/pipeline/it/${key}${field}`]

  it.each([
    [{ remote_address: '127.0.0.1:0' }, '/remote_address'],
    [{ local_address: '127.0.0.1:5', remote_address: '[::1]:5' }, '/remote_address'],
    [{ local_address: '-localhost:5' }, '/local_address'],
    [{ local_address: '127.0.0.1:70000' }, '/local_address'],
    [{ remote_address: '127.0.0.1:5', lock_to_first_peer: true }, '/lock_to_first_peer'],
    [{ local_address: '0.0.0.0:5', multicast_group: '10.0.0.1' }, '/multicast_group'],
    [{ local_address: '0.0.0.0:5', multicast_group: 'ff02::1' }, '/multicast_group'],
    [{ remote_address: '127.0.0.1:5', multicast_group: '239.0.0.1' }, '/multicast_group'],
    [{ local_address: '0.0.0.0:5', multicast_ttl: 256 }, '/multicast_ttl'],
    [{ local_address: '0.0.0.0:5', mtu: 67 }, '/mtu'],
    [{ local_address: '0.0.0.0:5', interface: 'sixteen-letters!' }, '/interface'],
    [{ local_address: '0.0.0.0:5', interface: 'é'.repeat(8) }, '/interface'],
    [{ local_address: '0.0.0.0:5', interface: 'a%b/ c' }, '/interface'],
    [{ local_address: '0.0.0.0:5', interface: '' }, '/interface'],
  ])('udp %j', (config, field) => {
    expect(refused('udp', config)).toEqual(at('udp', field))
  })

  it('udp with nothing to do', () => {
    expect(refused('udp', { local_address: '0.0.0.0:5', input: null, output: null })).toEqual(at('udp', ''))
  })

  const device = { interface_name: 'tun0', ip: '10.0.0.1' }
  it.each([
    [{ ...device, interface_name: 'a/b' }, '/interface_name'],
    [{ ...device, interface_name: 'é'.repeat(8) }, '/interface_name'],
    [{ ...device, interface_name: '..' }, '/interface_name'],
    [{ ...device, ip: '10.0.0' }, '/ip'],
    [{ ...device, netmask: '255.0.255.0' }, '/netmask'],
    [{ ...device, netmask: '33' }, '/netmask'],
    [{ ...device, ip: 'fd00::1', netmask: '255.255.255.0' }, '/netmask'],
    [{ ...device, ip: 'fd00::1', mtu: 1279 }, '/mtu'],
  ])('tun %j', (config, field) => {
    expect(refused('tun', config)).toEqual(at('tun', field))
  })

  it('peer_writer to port 0', () => {
    const pipeline = {
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      it: { peer_writer: { input: 'a', output: 'b', remote_address: '127.0.0.1:0' } },
      out: { udp_remote: { input: 'b' } },
    }
    expect(() => configure(pipeline)).toThrow('/engine_config/pipeline/it/peer_writer/remote_address')
  })
})
