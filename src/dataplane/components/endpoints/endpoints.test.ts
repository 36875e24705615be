/** Endpoints on the virtual clock: simulated sockets joined by their addresses, however those are spelt. */
import { describe, expect, it } from 'vitest'
import { drive, payload } from '../../../../test/harness/component.ts'
import { isMulticast } from './datagram-endpoint.ts'
import { prefixLength } from './interface-endpoint.ts'

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

  it('without an address or over the MTU are dropped and counted', () => {
    const bench = drive({ out: { udp_remote: { input: 'a' } } })
    bench.send('a', payload(10))
    bench.send('a', [payload(1472), payload(1473)], { remote: '192.0.2.1:9' })
    bench.send('a', [payload(1452), payload(1453)], { remote: '[2001:db8::1]:9' })
    const { out } = bench.simulation.metrics()
    expect(out).toMatchObject({ unaddressed_packets: 1, oversize_packets: 2, sent_packets: 2 })
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

describe('tap', () => {
  it('takes frames of 18 bytes more than the MTU, and no longer ones', () => {
    const bench = drive({ it: { tap: { input: 'a', output: 'b', interface_name: 'pst0', ip: '10.0.0.1', mtu: 1400 } } })
    bench.send('a', [payload(1418), payload(1419)])
    expect(bench.metrics().it).toMatchObject({ sent_packets: 1, oversize_packets: 1 })
    bench.check()
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  it.each([
    [{ interface_name: 'a/b' }, '"a/b" cannot name an interface'],
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
