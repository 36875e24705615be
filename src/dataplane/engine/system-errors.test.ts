import { expect, test } from 'vitest'
import { errorName, errorText } from './system-errors.ts'

test.each([
  [111, 'ECONNREFUSED', 'ECONNREFUSED, connection refused'],
  // What sending says of an address that no peer of a WireGuard interface has: libuv knows it not, nor does Node.js.
  [126, 'ENOKEY', 'ENOKEY, Required key not available'],
  [500, 'errno 500', 'errno 500'],
])('%d', (errno, name, text) => {
  expect([errorName(errno), errorText(errno)]).toEqual([name, text])
})
