/** One reading of addresses: what is loopback, how bytes read, what counts as one peer. */
import { expect, test } from 'vitest'
import { addressText, isLoopbackAddress, isLoopbackHost, networkOf, socketAddressText } from './address.ts'

test.each([
  [[127, 0, 0, 1], '127.0.0.1', true],
  [[10, 0, 0, 5], '10.0.0.5', false],
  [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], '::1', true],
  [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 9, 9, 9], '127.9.9.9', true],
  [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], '2001:db8::1', false],
  // RFC 5952, sections 4.2.2 and 4.2.3: one group of zeros stays, the first of two runs as long as each other is shortened.
  [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1], '2001:db8:0:1:1:1:1:1', false],
  [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1], '2001:db8::1:0:0:1', false],
  [[], '', false],
])('%j is %s', (bytes, text, isLoopback) => {
  expect(addressText(Uint8Array.from(bytes))).toBe(text)
  expect(isLoopbackAddress(text)).toBe(isLoopback)
})

test.each([
  ['::ffff:127.0.0.1', true],
  ['0:0:0:0:0:0:0:1', true],
  ['127.255.255.254', true],
  ['128.0.0.1', false],
  ['::', false],
  // Not as the kernel writes an address, whatever other programs read there.
  ['127.1', false],
  ['2130706433', false],
  ['localhost', false],
])('%s as an address of loopback: %s', (text, isLoopback) => {
  expect(isLoopbackAddress(text)).toBe(isLoopback)
})

test('a host of a URL is this machine by name or address, with or without brackets', () => {
  for (const host of ['localhost', '127.0.0.2', '[::1]', '::1']) expect(isLoopbackHost(host)).toBe(true)
  for (const host of ['localhost.example', '[2001:db8::1]', '127.0.0.1.example', '']) {
    expect(isLoopbackHost(host)).toBe(false)
  }
})

test('an IPv6 peer is counted by its /64, an IPv4 one by itself', () => {
  expect(networkOf('2001:db8::1:2:3:4')).toBe('2001:db8::/64')
  expect(networkOf('::ffff:192.0.2.7')).toBe('192.0.2.7')
  expect(networkOf('somewhere')).toBe('somewhere')
})

test('an IPv6 address with a port is in brackets', () => {
  expect(socketAddressText('::1', 8769)).toBe('[::1]:8769')
  expect(socketAddressText('127.0.0.1', 8769)).toBe('127.0.0.1:8769')
})
