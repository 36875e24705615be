/** IP headers as they come, with options, extension headers and fragments, and as nobody should send them. */
import { describe, expect, test } from 'vitest'
import { IpHeader, TCP, UDP } from './ip-header.ts'

const header = new IpHeader()
const read = (bytes: readonly number[], length = bytes.length) =>
  header.read(new DataView(Uint8Array.from(bytes).buffer), 0, length)

const PORTS = [0x12, 0x34, 0xab, 0xcd]

function v4(
  options: { protocol?: number; words?: number; total?: number; fragment?: number; payload?: number[] } = {},
) {
  const { protocol = UDP, words = 5, fragment = 0, payload = [...PORTS, 0, 8, 0, 0] } = options
  const total = options.total ?? words * 4 + payload.length
  const fixed = [0x40 | words, 0, total >> 8, total & 255, 0, 0, fragment >> 8, fragment & 255, 64, protocol, 0, 0]
  const addresses = [192, 0, 2, 1, 255, 254, 253, 252]
  return [...fixed, ...addresses, ...Array(Math.max(0, words - 5) * 4).fill(1), ...payload]
}

function v6(next: number, payload: number[], told = payload.length) {
  const addresses = Array.from({ length: 32 }, (_, i) => 0xe0 + (i % 32))
  return [0x60, 0, 0, 0, told >> 8, told & 255, next, 64, ...addresses, ...payload]
}

describe('IPv4', () => {
  test('addresses, protocol, and ports behind the options', () => {
    for (const words of [5, 6, 15]) {
      expect(read(v4({ words }))).toBe(true)
      expect(header).toMatchObject({
        version: 4,
        headerBytes: words * 4,
        bytes: words * 4 + 8,
        protocol: UDP,
        laterFragment: false,
        portsAt: words * 4,
      })
      expect([header.source[0], header.destination[0]]).toEqual([0xc0000201, 0xfffefdfc])
    }
  })

  test.each<[string, object, object]>([
    ['the first fragment has ports', { fragment: 0x2000 }, { laterFragment: false, portsAt: 20 }],
    ['a later one has none', { fragment: 0x2001 }, { laterFragment: true, portsAt: -1 }],
    ['the last one has none', { fragment: 0x1fff }, { laterFragment: true, portsAt: -1 }],
    ['do not fragment is no fragment', { fragment: 0x4000 }, { laterFragment: false, portsAt: 20 }],
    ['ICMP has none', { protocol: 1 }, { protocol: 1, portsAt: -1 }],
    ['TCP that is cut has none', { protocol: TCP, payload: [1, 2, 3] }, { portsAt: -1 }],
    ['what follows the packet is none of it', { total: 22 }, { bytes: 22, portsAt: -1 }],
    ['a length beyond what is there counts as what is there', { total: 999 }, { bytes: 28, portsAt: 20 }],
    ['a length of nothing too', { total: 0 }, { bytes: 28, portsAt: 20 }],
  ])('%s', (_, options, expected) => {
    expect(read(v4(options))).toBe(true)
    expect(header).toMatchObject(expected)
  })

  test('a header that is too short or cut is none', () => {
    expect(read(v4({ words: 4 }))).toBe(false)
    expect(read(v4({ words: 8 }), 31)).toBe(false)
    expect(read(v4(), 19)).toBe(false)
    expect(read(v4({ payload: [] }))).toBe(true)
    expect(read([])).toBe(false)
    expect(read([0x50, ...Array(60).fill(0)])).toBe(false)
  })
})

describe('IPv6', () => {
  test('addresses, and ports behind the fixed header', () => {
    expect(read(v6(TCP, PORTS))).toBe(true)
    expect(header).toMatchObject({ version: 6, headerBytes: 40, bytes: 44, protocol: TCP, portsAt: 40 })
    expect(header.source).toEqual(Uint32Array.of(0xe0e1e2e3, 0xe4e5e6e7, 0xe8e9eaeb, 0xecedeeef))
    expect(header.destination).toEqual(Uint32Array.of(0xf0f1f2f3, 0xf4f5f6f7, 0xf8f9fafb, 0xfcfdfeff))
  })

  const hopByHop = (next: number) => [next, 1, ...Array(14).fill(0)]
  const authentication = (next: number) => [next, 4, ...Array(22).fill(0)]
  const fragment = (next: number, offset: number) => [next, 0, offset >> 8, offset & 255, 0, 0, 0, 9]

  test('extension headers are gone over, each by its own length', () => {
    const payload = [...hopByHop(43), ...hopByHop(51), ...authentication(60), ...hopByHop(44)]
    expect(read(v6(0, [...payload, ...fragment(UDP, 1), ...PORTS]))).toBe(true)
    const headerBytes = 40 + 16 + 16 + 24 + 16 + 8
    expect(header).toMatchObject({ headerBytes, protocol: UDP, laterFragment: false, portsAt: headerBytes })
  })

  test('a later fragment has no ports, though its header names TCP', () => {
    expect(read(v6(44, [...fragment(TCP, 8), ...PORTS, 0, 0, 0, 0]))).toBe(true)
    expect(header).toMatchObject({ protocol: TCP, laterFragment: true, portsAt: -1, headerBytes: 48 })
  })

  test('an extension header that is cut ends the way to the ports, not the packet', () => {
    expect(read(v6(0, hopByHop(TCP).slice(0, 12)))).toBe(true)
    expect(header).toMatchObject({ protocol: 0, headerBytes: 40, portsAt: -1 })
    expect(read(v6(59, PORTS))).toBe(true)
    expect(header.portsAt).toBe(-1)
    expect(read(v6(TCP, []).slice(0, 39))).toBe(false)
  })
})

test('a header read before leaves nothing behind', () => {
  read(v6(44, [TCP, 0, 0, 8, 0, 0, 0, 9, ...PORTS]))
  expect(read(v4())).toBe(true)
  expect(header).toMatchObject({ version: 4, laterFragment: false, portsAt: 20 })
})
