/** Endpoints on the virtual clock: simulated sockets joined by their addresses, however those are spelt. */
import { describe, expect, it } from 'vitest'
import { drive, payload } from '../../../../test/harness/component.ts'
import { isMulticast } from './datagram-endpoint.ts'
import { prefixLength } from './interface-endpoint.ts'
import { clientId } from './unix-peers.ts'

describe('simulated datagrams', () => {
  it.each([
    ['127.0.0.1:7000', '127.0.0.1:7000'],
    ['[::1]:7000', '[0:0:0:0:0:0:0:1]:7000'],
    ['[2001:DB8::a]:7000', '[2001:db8:0::0a]:7000'],
  ])('sent to %s are heard at %s and answered', (heardAt, sentTo) => {
    const bench = drive({
      client: { udp: { remote_address: sentTo, input: 'question', output: 'answer' } },
      server: { udp_local: { address: heardAt, output: 'a', input: 'b' } },
      echo: { flow_combiner: { inputs: ['a'], output: 'b' } },
    })
    bench.send('question', [payload(100, 1), payload(1452, 2)])
    bench.advance(1000)
    expect(bench.take('answer').map(({ bytes }) => bytes)).toEqual([payload(100, 1), payload(1452, 2)])
    bench.check()
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  it('of a udp without addresses go where they are annotated to go, and what comes back is heard', () => {
    const bench = drive({
      both: { udp: { input: 'question', output: 'answer' } },
      server: { udp_local: { address: '[::1]:7000', output: 'a', input: 'b' } },
      echo: { flow_combiner: { inputs: ['a'], output: 'b' } },
    })
    bench.send('question', [payload(100, 1), payload(1453, 2)], { remote: '[::1]:7000' })
    bench.send('question', payload(100, 3))
    bench.advance(1000)
    expect(bench.take('answer').map(({ bytes, remote }) => [bytes, remote])).toEqual([[payload(100, 1), '[::1]:7000']])
    expect(bench.metrics().both).toMatchObject({ oversize_packets: 1, unaddressed_packets: 1 })
    bench.check()
    bench.stop()
  })

  it('without an address or over the MTU are dropped and counted', () => {
    const bench = drive({ out: { udp_remote: { input: 'a' } } })
    bench.send('a', payload(10))
    bench.send('a', [payload(1472), payload(1473)], { remote: '192.0.2.1:9' })
    bench.send('a', [payload(1452), payload(1453)], { remote: '[2001:db8::1]:9' })
    const { out } = bench.simulation.metrics()
    expect(out).toMatchObject({ unaddressed_packets: 1, oversize_packets: 2, sent_packets: 2 })
    // Once, of the first.
    const told = bench.log.filter(({ message }) => message.includes('oversize_packets'))
    expect(told.map(({ level, component, fields }) => [level, component, fields])).toEqual([
      ['WARN', 'out', { length: 1473, mtu: 1472 }],
    ])
    bench.send('a', payload(10))
    bench.simulation.metrics()
    const unaddressed = bench.log.filter(({ message }) => message.includes('unaddressed_packets'))
    expect(unaddressed.map(({ level, component }) => [level, component])).toEqual([['WARN', 'out']])
    bench.check()
    bench.stop()
  })

  it('to a first peer of IPv6 are dropped over its MTU, as those to any other are', () => {
    const bench = drive({
      client: { udp: { remote_address: '[::1]:7000', input: 'question', output: 'answer' } },
      locked: { udp: { local_address: '[::]:7000', lock_to_first_peer: true, input: 'out', output: 'heard' } },
    })
    bench.send('question', payload(100, 1))
    bench.advance(1000)
    bench.send('out', [payload(1452, 2), payload(1453, 3), payload(1452, 4)])
    bench.advance(1000)
    expect(bench.take('answer').map(({ bytes }) => bytes)).toEqual([payload(1452, 2), payload(1452, 4)])
    expect(bench.metrics().locked).toMatchObject({ sent_packets: 2, oversize_packets: 1 })
    bench.check()
    bench.stop()
  })

  it('of somebody else than the first peer are told of once a minute, as the peer itself may have moved', () => {
    const locked = { local_address: '127.0.0.1:7000', lock_to_first_peer: true, input: 'out', output: 'heard' }
    const bench = drive({
      first: { udp: { remote_address: '127.0.0.1:7000', input: 'a' } },
      moved: { udp: { remote_address: '127.0.0.1:7000', input: 'b' } },
      locked: { udp: locked },
    })
    const told = () => bench.log.filter(({ component, level }) => component === 'locked' && level === 'WARN')
    bench.send('out', payload(10))
    expect(bench.metrics().locked).toMatchObject({ unaddressed_packets: 1 })
    // That nobody has been heard yet is nothing to be warned of.
    expect(told()).toEqual([])
    for (const [output, lines] of [
      ['a', 0],
      ['b', 1],
      ['b', 1],
      ['b', 2],
    ] as const) {
      bench.send(output, payload(10))
      bench.advance(31e9)
      expect(told()).toHaveLength(lines)
    }
    expect(told()[1].message).toContain('set it to false and back')
    bench.take('heard')
    bench.check()
    bench.stop()
  })

  it('of somebody else than the first peer are left out of a batch, whose bytes are those of the rest', () => {
    const bench = drive({
      first: { udp: { remote_address: '127.0.0.1:7000', input: 'a' } },
      second: { udp: { remote_address: '127.0.0.1:7000', input: 'b' } },
      splitter: { splitter: { input: 'both', outputs: ['a', 'b'] } },
      locked: { udp: { local_address: '127.0.0.1:7000', lock_to_first_peer: true, output: 'heard' } },
    })
    bench.send('both', [payload(100, 1), payload(200, 2)])
    bench.advance(1000)
    expect(bench.take('heard').map(({ bytes }) => bytes)).toEqual([payload(100, 1), payload(200, 2)])
    expect(bench.metrics().locked).toMatchObject({ ignored_packets: 2, output_bytes: 300 })
    bench.check()
    bench.stop()
  })

  it('peer_writer gives every packet its address', () => {
    const bench = drive({ it: { peer_writer: { input: 'a', output: 'b', remote_address: '[2001:db8::1]:9' } } })
    bench.send('a', payload(10), { remote: '192.0.2.1:9' })
    expect(bench.take('b')).toMatchObject([{ remote: '[2001:db8::1]:9' }])
    bench.stop()
  })
})

describe('simulated TCP', () => {
  const tunnel = {
    client: {
      tcp: { remote_address: '127.0.0.1:7000', application_facing: true, input: 'question', output: 'answer' },
    },
    server: { tcp: { listen_address: '0.0.0.0:7000', application_facing: true, output: 'a', input: 'b' } },
    echo: { flow_combiner: { inputs: ['a'], output: 'b' } },
  }

  it('is a stream whose pieces have at most 1,200 bytes', () => {
    const bench = drive(tunnel)
    const sent = [payload(100, 1), payload(2048, 2), payload(1200, 3)]
    bench.send('question', sent)
    bench.advance(1e9)
    const heard = bench.take('answer')
    expect(Buffer.concat(heard.map(({ bytes }) => bytes))).toEqual(Buffer.concat(sent))
    expect(Math.max(...heard.map(({ bytes }) => bytes.length))).toBe(1200)
    expect(heard[0]?.remote).toBe('127.0.0.1:7000')
    bench.check()
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  it('is not read while every slot is taken, and loses nothing by that', () => {
    const bench = drive(tunnel)
    const taken: number[] = []
    while (bench.packets.available > 1) taken.push(bench.packets.allocate())
    bench.send('question', payload(2048, 1))
    bench.advance(1e9)
    expect(bench.take('answer')).toEqual([])
    expect(bench.metrics().server).toMatchObject({ received_packets: 0, received_without_slot_packets: 0 })
    for (const packet of taken.splice(0, 2)) bench.packets.release(packet)
    bench.advance(2e6)
    expect(Buffer.concat(bench.take('answer').map(({ bytes }) => bytes))).toEqual(Buffer.from(payload(2048, 1)))
    for (const packet of taken) bench.packets.release(packet)
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  it('is frames that stay as they are, on connections that answers find again', () => {
    const bench = drive({
      one: { tcp: { remote_address: '127.0.0.1:7000', input: 'in 1', output: 'out 1' } },
      two: { tcp: { remote_address: '127.0.0.1:7000', input: 'in 2', output: 'out 2' } },
      server: { tcp: { listen_address: '127.0.0.1:7000', output: 'a', input: 'b' } },
      echo: { flow_combiner: { inputs: ['a'], output: 'b' } },
    })
    for (let step = 0; step < 20; step++) {
      bench.send('in 1', [payload(2048, step), payload(1, step)])
      bench.send('in 2', payload(300, step + 100))
      bench.advance(20e6)
      expect(bench.take('out 1').map(({ bytes }) => bytes)).toEqual([payload(2048, step), payload(1, step)])
      expect(bench.take('out 2').map(({ bytes }) => bytes)).toEqual([payload(300, step + 100)])
    }
    bench.check()
    bench.stop()
  })

  it('drops empty packets, and those that have no connection to go to', () => {
    const bench = drive({ it: { tcp: { listen_address: '127.0.0.1:7000', input: 'a' } } })
    bench.send('a', [payload(0), payload(10)])
    expect(bench.metrics().it).toMatchObject({ empty_packets: 1, unconnected_packets: 1 })
    bench.check()
    bench.stop()
  })

  it('gives the newest connection what another socket has received, unless it was addressed on its way', () => {
    const addressed = (remote_address?: string) =>
      drive({
        tunnel: { udp_local: { address: '127.0.0.1:6000', output: remote_address ? 'b' : 'a' } },
        ...(remote_address && { to: { peer_writer: { input: 'b', output: 'a', remote_address } } }),
        it: { tcp: { listen_address: '127.0.0.1:7000', input: 'a' } },
        client: { tcp: { remote_address: '127.0.0.1:7000', output: 'heard' } },
        far: { udp: { remote_address: '127.0.0.1:6000', input: 'sent' } },
      })
    for (const [remote, taken] of [
      [undefined, 1],
      ['192.0.2.1:9', 0],
    ] as const) {
      const bench = addressed(remote)
      bench.advance(1e9)
      bench.send('sent', payload(10, 1))
      bench.advance(1e9)
      expect(bench.take('heard')).toHaveLength(taken)
      expect(bench.metrics().it).toMatchObject({ connections: 1, unconnected_packets: 1 - taken })
      bench.check()
      bench.stop()
    }
  })

  it('gives the newest connection what has no address, and nobody what is addressed to somebody else', () => {
    const bench = drive({
      it: { tcp: { listen_address: '127.0.0.1:7000', input: 'a' } },
      client: { tcp: { remote_address: '127.0.0.1:7000', output: 'heard' } },
    })
    bench.advance(1e9)
    bench.send('a', payload(10, 1), { remote: '192.0.2.1:9' })
    bench.send('a', payload(10, 2))
    bench.advance(1e9)
    expect(bench.take('heard').map(({ bytes }) => bytes)).toEqual([payload(10, 2)])
    expect(bench.metrics().it).toMatchObject({ connections: 1, unconnected_packets: 1, sent_packets: 1 })
    bench.check()
    bench.stop()
  })

  it('waits for its server, with no more than its queue holds', () => {
    const bench = drive({ it: { tcp: { remote_address: '127.0.0.1:7000', input: 'a' } } })
    for (let i = 0; i < 200; i++) bench.send('a', payload(2048, i))
    expect(bench.metrics().it).toMatchObject({ send_queue_drops: 72, connections: 0 })
    bench.advance(60e9)
    // Waits of 10 ms, 20 ms and so on: 11 attempts in the first 10.23 s, then one in 10 s.
    expect(bench.metrics().it.socket_errors).toBe(15)
    bench.check()
    bench.stop()
    expect(bench.metrics().it).toMatchObject({ held_at_end_packets: 128 })
  })

  /** A client's stream from one listener of the run by `way`, from `up` to `late`, to another. */
  const stream = (way: Record<string, Record<string, unknown>>) => ({
    client: { tcp: { remote_address: '127.0.0.1:7000', application_facing: true, input: 'said' } },
    near: { tcp: { listen_address: '127.0.0.1:7000', application_facing: true, output: 'up' } },
    way,
    far: { tcp: { remote_address: '127.0.0.1:7001', application_facing: true, input: 'late' } },
    service: { tcp: { listen_address: '127.0.0.1:7001', application_facing: true, output: 'heard' } },
  })

  it('reads a stream no further than it is taken at its end, however long that lasts', () => {
    const bench = drive(stream({ delay_constant: { flows: [{ input: 'up', output: 'late' }], delay: 60_000 } }))
    bench.advance(1e9)
    for (let i = 0; i < 5000; i++) {
      bench.send('said', payload(1200, i))
      if (i % 100 === 99) bench.advance(1e6)
    }
    bench.advance(50e9)
    expect(bench.metrics().near.received_packets).toBe(4096)
    bench.advance(100e9)
    const heard = Buffer.concat(bench.take('heard').map(({ bytes }) => bytes))
    expect(heard.length).toBe(5000 * 1200)
    for (let i = 0; i < 5000; i++) expect(heard.subarray(i * 1200, (i + 1) * 1200).equals(payload(1200, i))).toBe(true)
    for (const name of ['client', 'near', 'far']) expect(bench.metrics()[name].reset_connections).toBe(0)
    bench.check()
    bench.stop()
  })

  it('breaks a stream off that has lost a packet, at both ends, before what is behind it is heard', () => {
    const bench = drive(stream({ periodic_burst_loss: { input: 'up', output: 'late', interval: 4, burst: 1 } }))
    bench.advance(1e9)
    for (let i = 0; i < 6; i++) bench.send('said', payload(1200, i))
    bench.advance(5e9)
    expect(bench.take('heard').map(({ bytes }) => bytes)).toEqual([0, 1, 2, 3].map((i) => payload(1200, i)))
    expect(bench.metrics()).toMatchObject({ near: { reset_connections: 1 }, far: { reset_connections: 1 } })
    bench.check()
    bench.stop()
  })

  it.each([
    [{}, 'listen_address or remote_address is needed'],
    [{ listen_address: '127.0.0.1:1', remote_address: '127.0.0.1:1' }, 'leave one of them out'],
    [{ remote_address: '127.0.0.1:0' }, 'a port other than 0'],
    [{ listen_address: 'localhost' }, 'listen_address'],
  ])('%j is refused', (fields, message) => {
    expect(() => drive({ it: { tcp: { output: 'a', ...fields } } })).toThrow(message)
    expect(() => drive({ it: { tcp: { listen_address: '127.0.0.1:1' } } })).toThrow('neither input nor output')
  })
})

describe('a simulated Unix socket', () => {
  const server = (fields: Record<string, unknown> = {}) => ({
    unix_socket: { server: { listen_address: '@x' }, output: 'heard', input: 'back', ...fields },
  })
  const client = (bind_address: number, name: string) => ({
    unix_socket: { client: { server_address: '@x', bind_address }, input: `in ${name}`, output: `out ${name}` },
  })

  it('gives packets the id of their client, and clients those with theirs', () => {
    const bench = drive({ server: server(), one: client(1, 'one'), two: client(2, 'two') })
    // The server is made before its clients, so that they are connected at once.
    bench.send('in one', payload(10, 1))
    bench.send('in two', payload(10, 2))
    expect(bench.take('heard').map(({ client: id }) => id)).toEqual([1, 2])
    bench.send('back', payload(10, 3), { client: 1 })
    bench.send('back', payload(10, 4))
    bench.send('back', [payload(10, 5), payload(0)], { client: 3 })
    expect(bench.take('out one').map(({ bytes }) => bytes)).toEqual([payload(10, 3)])
    expect(bench.take('out two').map(({ bytes, client: id }) => [bytes, id])).toEqual([[payload(10, 4), -1]])
    expect(bench.metrics().server).toMatchObject({ unconnected_packets: 1, empty_packets: 1, sent_packets: 2 })
    bench.check()
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  it('drops and counts what is over the MTU at both ends', () => {
    const bench = drive({ server: server({ mtu: 100 }), one: client(0, 'one') })
    bench.send('in one', [payload(100), payload(101)])
    bench.send('back', [payload(100), payload(101)])
    expect(bench.take('heard').map(({ client: id }) => id)).toEqual([-1])
    expect(bench.metrics().server).toMatchObject({ received_packets: 2, received_oversize_packets: 1 })
    expect(bench.metrics().server).toMatchObject({ oversize_packets: 1, sent_packets: 1 })
    const told = bench.log.filter(({ level }) => level === 'WARN').map(({ fields }) => fields)
    expect(told).toEqual([{ metric: 'received_oversize_packets', mtu: 100 }])
    bench.check()
    bench.stop()
  })

  const long = `/${'x'.repeat(106)}`
  it.each([
    [{}, 'server or client is needed'],
    [{ server: { listen_address: '/a' }, client: { server_address: '/a' } }, 'leave one of them out'],
    [{ server: { listen_address: '@' } }, 'neither a path'],
    [{ server: { listen_address: '' } }, 'must not be empty'],
    [{ server: { listen_address: '@a\0b' } }, 'without NUL'],
    [{ server: { listen_address: `${long}x` } }, 'listen_address'],
    [{ server: { listen_address: `/${'ä'.repeat(60)}` } }, 'has 121 bytes'],
    [{ client: { server_address: long, bind_address: 1 } }, "makes the client's own name"],
    [{ client: { server_address: '/a', bind_address: -1 } }, 'bind_address'],
  ])('%j is refused', (fields, message) => {
    expect(() => drive({ it: { unix_socket: { output: 'a', ...fields } } })).toThrow(message)
  })

  it('has names of up to 107 bytes, and ids of canonical digits only', () => {
    drive({ it: { unix_socket: { output: 'a', server: { listen_address: long } } } }).stop()
    expect(clientId('@7./x', '/x')).toBe(7)
    for (const name of ['', '/x', '@7./y', '@07./x', '@0./x', '@-1./x', '@2147483648./x', '@7.', '@7./x.', 'x@7./x']) {
      expect(clientId(name, '/x'), name).toBe(-1)
    }
  })
})

describe('tap', () => {
  it.each([
    [1400, 1422],
    [65_517, 65_535],
  ])('with an MTU of %i takes frames of %i bytes, as with two VLAN tags, and no longer ones', (mtu, longest) => {
    const bench = drive({ it: { tap: { input: 'a', output: 'b', interface_name: 'pst0', ip: '10.0.0.1', mtu } } })
    bench.send('a', [payload(longest), payload(longest + 1)])
    expect(bench.metrics().it).toMatchObject({ sent_packets: 1, oversize_packets: 1 })
    bench.check()
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  it.each([
    [{ interface_name: 'a/b' }, 'must be the name of a network interface'],
    [{ netmask: '33' }, '"33" is no netmask'],
    [{ ip: 'fd00::1', mtu: 1000 }, '1000 is below 1280'],
    [{ mtu: 65_518 }, 'mtu'],
    [{ generic_offload: true }, 'unknown field "generic_offload"'],
  ])('%j is refused', (fields, message) => {
    const config = { input: 'a', output: 'b', interface_name: 'pst0', ip: '10.0.0.1', ...fields }
    expect(() => drive({ it: { tap: config } })).toThrow(message)
  })
})

describe('addresses', () => {
  it('multicast', () => {
    const yes = ['224.0.0.1', '239.255.255.255', 'ff02::1', 'FF0e::1']
    const no = ['223.255.255.255', '240.0.0.1', '127.0.0.1', 'fe80::1', '::ffff:224.0.0.1', 'nonsense', '']
    expect(yes.filter((text) => !isMulticast(text))).toEqual([])
    expect(no.filter(isMulticast)).toEqual([])
  })

  it.each([
    ['10.0.0.1', undefined, 24],
    ['10.0.0.1', '255.255.255.0', 24],
    ['10.0.0.1', '255.255.255.255', 32],
    ['10.0.0.1', '0.0.0.0', 0],
    ['10.0.0.1', '/30', 30],
    ['10.0.0.1', '33', null],
    ['10.0.0.1', '255.0.255.0', null],
    ['10.0.0.1', 'ffff::', null],
    ['fd00::1', undefined, 64],
    ['fd00::1', '128', 128],
    ['fd00::1', 'ffff:ffff::', 32],
    ['fd00::1', '255.255.255.0', null],
    ['fd00::1', '129', null],
    ['fd00::1', 'f:::', null],
  ])('netmask of %s: %s is %s', (ip, netmask, prefix) => {
    expect(prefixLength(ip, netmask)).toBe(prefix)
  })
})
