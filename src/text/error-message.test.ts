/** What was thrown, in words: the system's errors also where Node.js has no name for them. */
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { expect, test } from 'vitest'
import { codeOf, messageOf, named } from './error-message.ts'

/** An error of the system as Node.js makes it. */
function refused(errno: number): Error {
  const code = getSystemErrorName(-errno)
  const message = `${code}: ${code.startsWith('Unknown') ? code : 'words'}, open '/data'`
  return Object.assign(new Error(message), { code, errno: -errno, syscall: 'open' })
}

test.each([
  ['EDQUOT', constants.errno.EDQUOT, "EDQUOT: Disk quota exceeded, open '/data'"],
  ['ESTALE', constants.errno.ESTALE, "ESTALE: Stale file handle, open '/data'"],
  ['EUCLEAN', 117, "EUCLEAN: Structure needs cleaning, open '/data'"],
  ['EACCES', constants.errno.EACCES, "EACCES: words, open '/data'"],
])('%s', (code, errno, message) => {
  const error = refused(errno)
  expect([codeOf(error), messageOf(error)]).toEqual([code, message])
  expect(named(error, error.stack as string).split('\n')[0]).toBe(`Error: ${message}`)
})

test('an error of a synchronous call, which Node.js gives no number', () => {
  const error = (errno: number) =>
    Object.assign(new Error("UNKNOWN: unknown error, write '/UNKNOWN'"), { code: 'UNKNOWN', errno, syscall: 'write' })
  const full = error(-constants.errno.EDQUOT)
  expect([codeOf(full), messageOf(full)]).toEqual(['EDQUOT', "EDQUOT: Disk quota exceeded, write '/UNKNOWN'"])
  expect(named(full, full.stack as string)).toMatch(/^Error: EDQUOT: Disk quota exceeded, write/)
  // libuv's own of that name, which has no number of the system's.
  expect([codeOf(error(-4094)), messageOf(error(-4094))]).toEqual(['UNKNOWN', error(-4094).message])
})

test('every error of Linux that a file, a socket or a lock gives has a name', () => {
  const streams = new Set(['ENOMSG', 'EIDRM', 'ENOSTR', 'ENOSR', 'EDOM', 'ECHILD'])
  for (const [name, errno] of Object.entries(constants.errno)) {
    if (streams.has(name)) continue
    expect(codeOf(refused(errno)), name).not.toContain('Unknown')
  }
})

test('what is no error of the system', () => {
  const code = 'ERR__ERROR_FORMAT_CONTEXT_MAP_REPEAT'
  const others = [
    Object.assign(new Error('Decompression failed'), { code, errno: -constants.errno.ENOEXEC }),
    Object.assign(new Error('its name is undefined'), { errno: -constants.errno.EDQUOT }),
  ]
  expect(others.map((error) => [codeOf(error), messageOf(error)])).toEqual([
    [code, 'Decompression failed'],
    [undefined, 'its name is undefined'],
  ])
  expect([codeOf(new Error('a')), messageOf(new Error('a')), codeOf('b'), messageOf('b')]).toEqual([
    undefined,
    'a',
    undefined,
    'b',
  ])
})
