import { openSync } from 'node:fs'
import { expect, test } from 'vitest'
import { until } from '../test/harness/waiting.ts'
import { HttpConnections } from './api/http-connections.ts'
import { OpenDescriptors } from './open-descriptors.ts'

test('an eighth of a low limit is kept from newcomers, 64 of a high one', () => {
  const shortFrom = (limit: number): number => {
    for (let open = 0; ; open++) if (new OpenDescriptors(limit, () => open).areShort) return limit - open
  }
  expect([shortFrom(80), shortFrom(256), shortFrom(1024), shortFrom(65_536)]).toEqual([9, 31, 63, 63])
})

test('what comes between two readings counts, and where none is left to read with all are in use', () => {
  let reads = 0
  const slowly = new OpenDescriptors(100, () => {
    // Slow enough for the next one to be far off.
    for (const end = performance.now() + 20; performance.now() < end; );
    reads++
    return 80
  })
  expect([slowly.count, slowly.areShort]).toEqual([80, false])
  slowly.changed(10)
  expect([slowly.count, slowly.areShort, slowly.left, reads]).toEqual([90, true, 10, 1])
  const none = new OpenDescriptors(100, () => {
    throw new Error('EMFILE')
  })
  expect([none.count, none.left]).toEqual([100, 0])
})

test('a limit that is unknown is never reached', () => {
  const unknown = new OpenDescriptors(Number.POSITIVE_INFINITY, () => {
    throw new Error('ENOENT')
  })
  expect([unknown.areShort, unknown.left]).toEqual([false, Number.POSITIVE_INFINITY])
})

test('a machine that opens no more files is told of, whatever this process has open: HTTP connections wait meanwhile', async () => {
  let code = 'ENFILE'
  const none = new OpenDescriptors(
    256,
    () => 10,
    () => {
      if (code === '') return openSync('/dev/null', 'r')
      throw Object.assign(new Error(code), { code })
    },
  )
  const told: string[] = []
  const connections = new HttpConnections((message) => told.push(message), none)
  connections.watch()
  await until(() => told.length > 0)
  connections.unwatch()
  expect(told).toEqual([
    'HTTP connections cannot be accepted: this machine opens no more files: raise its limit, sysctl fs.file-max',
  ])
  code = ''
  expect([none.areRefused, none.text]).toEqual([false, expect.stringMatching(/^10 of the 256 file descriptors/)])
})
