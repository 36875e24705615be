/** The kinds of IP addresses, held to what node:net says of them. */
import * as net from 'node:net'
import { expect, test } from 'vitest'
import { isIPv4, isIPv6 } from './ip-family.ts'

const PARTS = [
  '0',
  '00',
  '1',
  '9',
  '10',
  '01',
  '99',
  '100',
  '199',
  '200',
  '249',
  '250',
  '255',
  '256',
  '260',
  '300',
  '1000',
  '',
  ' 1',
  '-1',
  '-0',
  '+1',
  'NaN',
  '1e1',
  '1e2',
  '0x1',
  '١',
]

test('every four parts beside a dot', () => {
  let addresses = 0
  for (const first of PARTS) {
    for (const second of PARTS) {
      for (const text of [`${first}.${second}.3.4`, `1.2.${first}.${second}`]) {
        expect(isIPv4(text), text).toBe(net.isIPv4(text))
        expect(isIPv6(text), text).toBe(false)
        if (isIPv4(text)) addresses++
      }
    }
  }
  expect(addresses).toBe(2 * 11 ** 2)
})

test.each([
  '',
  '1',
  '1.2.3',
  '1.2.3.4.5',
  '1.2.3.4.',
  '.1.2.3.4',
  '1..2.3',
  '1.2.3.4\n',
  '\n1.2.3.4',
  '1.2.3.4%eth0',
  '1,2,3,4',
  '::',
  '::1',
  '1::8',
  '1:2:3:4:5:6:7:8',
  '1:2:3:4:5:6:7:8:9',
  '::ffff:192.0.2.1',
  '::ffff:192.0.2.256',
  'fe80::1%eth0',
  'fe80::1%',
  '[::1]',
  'g::',
  ':::',
  '12345::',
])('%j', (text) => {
  expect([isIPv4(text), isIPv6(text)]).toEqual([net.isIPv4(text), net.isIPv6(text)])
})
