/** The node's own log: its two formats, and what never gets into it. */
import { expect, test } from 'vitest'
import { until } from '../../test/harness/waiting.ts'
import { NotStored, ServiceError } from '../contract/errors.ts'
import { createLog, DISK_LINE_MS } from './log.ts'
import { LogOutput } from './log-output.ts'

function logger(format: 'text' | 'json', level: 'debug' | 'info' | 'warn' = 'info') {
  const lines: string[] = []
  return { lines, log: createLog({ level, format, destination: { write: (line) => void lines.push(line) } }) }
}

test('text: time, level, message, fields; the stack of an error below', () => {
  const { lines, log } = logger('text')
  log.info({ node: 'abc', count: 3 }, 'node is up')
  log.error({ err: new Error('broke') }, 'failed')
  expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z INFO node is up node=abc count=3\n$/)
  expect(lines[1]).toMatch(/ERROR failed\n {2}Error: broke\n {2} +at /)
})

test('json: one object a line, the level by name', () => {
  const { lines, log } = logger('json')
  log.warn({ node: 'abc' }, 'careful')
  expect(JSON.parse(lines[0] as string)).toMatchObject({ level: 'warn', node: 'abc', msg: 'careful' })
})

test("an error of the system's that Node.js has no name for is told by its own", () => {
  const code = 'Unknown system error -116'
  const cause = Object.assign(new Error(`${code}: ${code}, unlink '/data/log'`), { code, errno: -116 })
  const { lines, log } = logger('json')
  log.error({ err: cause }, 'failed')
  log.error({ err: new Error('not removed', { cause }) }, 'failed')
  expect(JSON.parse(lines[0] as string).err).toMatchObject({
    code: 'ESTALE',
    message: "ESTALE: Stale file handle, unlink '/data/log'",
  })
  for (const line of lines) expect(line).not.toContain('Unknown')
})

test('lines below the level are not written', () => {
  const { lines, log } = logger('json', 'warn')
  log.info('quiet')
  expect(lines).toEqual([])
})

test.each(['text', 'json'] as const)('secrets are not written (%s)', (format) => {
  const { lines, log } = logger(format)
  log.info({ token: 'hunter2', request: { authorization: 'Bearer hunter2', jsonConfig: '{"key":"hunter2"}' } }, 'call')
  expect(lines[0]).toContain('[secret]')
  expect(lines[0]).not.toContain('hunter2')
})

test('text: what comes from elsewhere stays within its line and its quotes', () => {
  const { lines, log } = logger('text')
  log.info({ name: 'a b="c"\n2026-01-01T00:00:00.000Z INFO forged\x1b[2J\x9b' }, 'node\nasks\r')
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(/ INFO node\\nasks\\u000d name="a b=\\"c\\"\\n2026[^\n]*forged\\u001b\[2J\\u009b"\n$/)
})

test('text: a fault has its stack below the line, what an operation has answered is a field', () => {
  const { lines, log } = logger('text')
  log.error({ err: new ServiceError('UNAVAILABLE', 'no "majority"\nnow'), node: 'abc' }, 'could not be noted')
  expect(lines.splice(0)).toEqual([
    expect.stringMatching(/ ERROR could not be noted node=abc error="no \\"majority\\"\\nnow"\n$/),
  ])
  log.error({ err: new TypeError('x is undefined') }, 'operation failed')
  expect(lines[0]).toMatch(/ERROR operation failed\n {2}TypeError: x is undefined\n {6}at /)
})

test('where no file can be opened any more a line has what to do, in text without the stack', () => {
  const full = Object.assign(new Error("EMFILE: too many open files, scandir '/data/logs'"), { code: 'EMFILE' })
  const { lines, log } = logger('text')
  log.error({ err: full }, 'not removed')
  expect(lines).toEqual([
    expect.stringMatching(
      /ERROR not removed error="EMFILE: too many open files, scandir '\/data\/logs' \(.*ulimit -n.*\)"\n$/,
    ),
  ])
  const json = logger('json')
  json.log.error({ err: full }, 'not removed')
  expect(JSON.parse(json.lines[0] as string).err).toMatchObject({
    code: 'EMFILE',
    message: expect.stringMatching(/ulimit -n/),
  })
})

test('a full disk: one line a minute with how often it was met, without stacks, whoever met it; another where the node is to be restarted', () => {
  const lines: string[] = []
  let now = 0
  const destination = { write: (line: string) => void lines.push(line) }
  const log = createLog({ level: 'info', format: 'text', destination, now: () => now })
  const refused = () => new NotStored('/data/penstock.lmdb', 'No space left on device; 0 bytes are free')
  log.error({ err: refused(), operation: 'createPipeline' }, 'operation failed')
  for (let i = 0; i < 20; i++) log.error({ err: new Error('told to the caller', { cause: refused() }) }, 'not stored')
  log.info('something else')
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(/ERROR \/data\/penstock\.lmdb does not take changes \(No space .* 0 bytes .*refused=1\n$/)
  now = DISK_LINE_MS
  log.error({ err: refused() }, 'operation failed')
  expect(lines).toHaveLength(3)
  expect(lines[2]).toContain('refused=21')
  const failed = () => new NotStored('/data/penstock.lmdb', 'the disk has refused a page', { cure: 'restart the node' })
  for (let i = 0; i < 5; i++) {
    log.error({ err: failed() }, 'operation failed')
    log.error({ err: refused() }, 'operation failed')
  }
  expect(lines).toHaveLength(4)
  expect(lines[3]).toMatch(/\(the disk has refused a page\): restart the node .*refused=1\n$/)
  now += DISK_LINE_MS
  log.error({ err: refused() }, 'operation failed')
  expect(lines[4]).toMatch(/No space left.*refused=6\n$/)
})

/** Standard error with room for `room` bytes; then it fails with `code`. */
function output(level: 'info' | 'error' = 'info') {
  const state = { text: '', room: Number.POSITIVE_INFINITY, code: 'EAGAIN', errno: -11 }
  const destination = new LogOutput((bytes) => {
    const part = bytes.subarray(0, state.room)
    if (part.length === 0) throw Object.assign(new Error('no room'), { code: state.code, errno: state.errno })
    state.room -= part.length
    state.text += part.toString()
    return part.length
  })
  return { state, log: createLog({ level, format: 'json', destination }) }
}

const messages = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { msg: string; lines?: number })

test.each([
  ['EAGAIN', -11],
  ['ENOSPC', -28],
  // EDQUOT, which Node.js 20 has no name for.
  ['Unknown system error -122', -122],
])('what standard error does not take at once follows by itself, whole (%s)', async (code, errno) => {
  const { state, log } = output()
  Object.assign(state, { code, errno, room: 10 })
  for (const word of ['one', 'two', 'three']) log.info(word)
  expect(state.text).toHaveLength(10)
  state.room = Number.POSITIVE_INFINITY
  await until(() => state.text.includes('three'), 'what waited is written')
  expect(messages(state.text).map(({ msg }) => msg)).toEqual(['one', 'two', 'three'])
})

test('of more than may wait the rest is lost, which is told in its place', () => {
  const { state, log } = output()
  state.room = 0
  for (let n = 0; n < 10; n++) log.info(`${n}${'-'.repeat(100_000)}`)
  // There would be room for it, but not behind those that are lost.
  log.info('short')
  state.room = Number.POSITIVE_INFINITY
  log.info('after')
  const told = messages(state.text)
  expect(told.map(({ msg }) => msg.replace(/-+/, ''))).toEqual([
    '0',
    '1',
    'lines of this log are lost: standard error took no more',
    'after',
  ])
  expect(told[2]?.lines).toBe(9)
})

test('a line that is longer than what may wait is written where there is room, or waits alone', async () => {
  const { state, log } = output()
  const long = '-'.repeat(300_000)
  log.info(long)
  expect(messages(state.text)).toMatchObject([{ msg: long }])
  state.room = 100_000
  log.info(long)
  state.room = Number.POSITIVE_INFINITY
  log.info('after')
  expect(messages(state.text).map(({ msg }) => msg)).toEqual([long, long, 'after'])
})

test('of a log without warnings it is told as an error', () => {
  const { state, log } = output('error')
  state.room = 0
  for (let n = 0; n < 5; n++) log.error('-'.repeat(100_000))
  state.room = Number.POSITIVE_INFINITY
  log.error('after')
  expect(messages(state.text).slice(2)).toMatchObject([{ level: 'error', lines: 3 }, { msg: 'after' }])
})

test('where nobody reads standard error any more nothing waits', () => {
  const { state, log } = output()
  Object.assign(state, { code: 'EPIPE', room: 0 })
  log.info('unread')
  state.room = Number.POSITIVE_INFINITY
  log.info('read again')
  expect(messages(state.text).map(({ msg }) => msg)).toEqual(['read again'])
})
