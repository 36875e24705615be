/** What cannot be watched leaves nothing open. */
import { expect, test } from 'vitest'
import { native } from '../native/native.ts'
import { watchOpened } from './watch-opened.ts'

test('what cannot be watched is closed', () => {
  const owner = native.ownerOpen()
  const [poller, other] = [native.pollerOpen(owner), native.pollerOpen(owner)]
  const source = native.tcpListen(owner, { address: '127.0.0.1', port: 0, framed: false })
  const before = native.openDescriptors()
  watchOpened(poller, source, 1)
  expect(native.openDescriptors()).toBe(before)
  // One poller each: what the kernel refuses, as beyond fs.epoll.max_user_watches, comes the same way.
  expect(() => watchOpened(other, source, 1)).toThrow('EEXIST')
  expect(native.openDescriptors()).toBe(before - 1)
  native.ownerRelease(owner)
})
