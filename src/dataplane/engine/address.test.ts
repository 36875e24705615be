/** Socket addresses: text to record and back, in the one form of RFC 5952. */
import { expect, test } from 'vitest'
import {
  formatRemote,
  formatSocketAddress,
  parseHostAddress,
  parseSocketAddress,
  portOfAddress,
  remoteRecord,
  socketAddress,
} from './address.ts'

test.each([
  ['192.0.2.1:5000', '192.0.2.1:5000'],
  ['[2001:db8::1]:5000', '[2001:db8::1]:5000'],
  ['[2001:DB8:0:0:0:0:0:1]:1', '[2001:db8::1]:1'],
  ['[::1]:65535', '[::1]:65535'],
  ['[::]:0', '[::]:0'],
  ['[2001:db8:0:1:1:1:1:1]:9', '[2001:db8:0:1:1:1:1:1]:9'],
  ['[2001:0:0:1:0:0:0:1]:9', '[2001:0:0:1::1]:9'],
  ['[2001:db8:0:0:1:0:0:1]:9', '[2001:db8::1:0:0:1]:9'],
  ['[fe80::]:9', '[fe80::]:9'],
  ['[::ffff:192.0.2.1]:80', '[::ffff:192.0.2.1]:80'],
  ['[::ffff:c000:201]:80', '[::ffff:192.0.2.1]:80'],
])('%s is %s', (given, canonical) => {
  expect(formatSocketAddress(socketAddress(given))).toBe(canonical)
  expect(formatRemote(remoteRecord(socketAddress(given)))).toBe(canonical)
})

test('a zone stays', () => {
  expect(formatSocketAddress({ address: 'fe80:0::1%lo', port: 7 })).toBe('[fe80::1%lo]:7')
})

test.each(['192.0.2.1', '192.0.2.1:65536', '2001:db8::1:5000', '[192.0.2.1]:5', 'host:5', '[::1]', ':5', ''])(
  '"%s" is refused',
  (text) => {
    expect(parseSocketAddress(text)).toBe(null)
  },
)

const label = 'a'.repeat(63)
const longest = `${label}.${label}.${label}.${'b'.repeat(61)}`

test.each([
  ['relay.example:5000', 'relay.example', 5000],
  ['localhost:0', 'localhost', 0],
  ['Relay-2.example.:65535', 'Relay-2.example.', 65535],
  ['3com.example:1', '3com.example', 1],
  ['1.2.3.a:1', '1.2.3.a', 1],
  [`${longest}:1`, longest, 1],
])('%s is a host name and a port', (text, host, port) => {
  expect(parseHostAddress(text)).toEqual({ host, port })
  expect(portOfAddress(text)).toBe(port)
})

test.each([
  'relay.example',
  'relay.example:',
  'relay.example:65536',
  ':5000',
  '.:5000',
  'a..b:5000',
  '-a.example:5000',
  'a-.example:5000',
  'a_b.example:5000',
  'é.example:5000',
  'a b:5000',
  `${label}a:5000`,
  `${longest}c:5000`,
  '192.0.2.1:5000',
  '192.0.2.256:5000',
  '192.0.2:5000',
  '[::1]:5000',
  '[relay.example]:5000',
  'relay.example:5000:1',
])('"%s" is no host name and port', (text) => {
  expect(parseHostAddress(text)).toBe(null)
})
