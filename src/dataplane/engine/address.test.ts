/** Socket addresses: text to record and back, in the one form of RFC 5952. */
import { expect, test } from 'vitest'
import { formatRemote, formatSocketAddress, parseSocketAddress, remoteRecord, socketAddress } from './address.ts'

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
