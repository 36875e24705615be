/** What becomes of a run's lines under filters and a level. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import { collectGarbage } from '../dataplane/engine/garbage.ts'
import type { LogFilter } from '../dataplane/engine/log-filters.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { LineFile } from './line-file.ts'
import { LineSelection, matches } from './log-filters.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-filters-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const line = (component: string, level: LogLine['level'], message = `${component} ${level}`): LogLine => ({
  timestamp: 0,
  level,
  component,
  message,
  fields: {},
})
const all = ['', 'udp', 'fec'].flatMap((component) =>
  (['STATE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const).map((level) => line(component, level)),
)
const filter = (
  level: LogFilter['level'],
  actions: LogFilter['actions']['actions'],
  more: Partial<LogFilter> = {},
) => ({
  level,
  actions: { actions },
  ...more,
})

function selection(filters: LogFilter[], level: LogLine['level'] = 'INFO') {
  const stopped: string[] = []
  const select = new LineSelection({
    level,
    filters,
    onStop: ({ message }) => stopped.push(message),
    onLost: (path, lines, error) => {
      throw new Error(`${lines} lines for ${path} are lost`, { cause: error })
    },
  })
  return { select, stopped }
}
const kept = (filters: LogFilter[], level?: LogLine['level']) =>
  selection(filters, level)
    .select.select(all)
    .map(({ message }) => message.trim())

const without = (...gone: string[]) =>
  all
    .filter(({ level }) => level !== 'DEBUG')
    .flatMap(({ message }) => (gone.includes(message.trim()) ? [] : message.trim()))

test.each<[string, LogFilter[], string[]]>([
  ['no filter: the level decides, STATE lines are always in', [], without()],
  [
    'log: in, whatever the level',
    [filter('DEBUG', ['log'], { path_filter: 'udp' })],
    [...without().slice(0, 6), 'udp DEBUG', ...without().slice(6)],
  ],
  [
    'discard: nothing that matches',
    [filter('WARN', ['discard'], { path_filter: 'f*' })],
    without('fec WARN', 'fec ERROR', 'fec FATAL'),
  ],
  ['discard without a name takes no STATE line', [filter('STATE', ['discard'])], ['STATE', 'udp STATE', 'fec STATE']],
  [
    'discard with a name does',
    [filter('STATE', ['discard'], { path_filter: '?ec' })],
    without(...without().filter((each) => each.startsWith('fec'))),
  ],
  [
    'what matched for another end than the log is not in it',
    [filter('ERROR', ['stop'], { path_filter: 'udp' })],
    without('udp ERROR', 'udp FATAL'),
  ],
  [
    'an earlier log stands, a later one comes too late',
    [
      filter('FATAL', ['log'], { path_filter: 'udp' }),
      filter('ERROR', ['discard'], { path_filter: 'udp' }),
      filter('DEBUG', ['log'], { path_filter: 'udp' }),
    ],
    [
      'STATE',
      'INFO',
      'WARN',
      'ERROR',
      'FATAL',
      'udp STATE',
      'udp DEBUG',
      'udp INFO',
      'udp WARN',
      'udp FATAL',
      'fec STATE',
      'fec INFO',
      'fec WARN',
      'fec ERROR',
      'fec FATAL',
    ],
  ],
])('%s', (_name, filters, expected) => {
  expect(kept(filters)).toEqual(expected)
})

test('the level and the filters can be changed', () => {
  const { select } = selection([], 'ERROR')
  const count = () => select.select(all).length
  expect(count()).toBe(9)
  select.level = 'STATE'
  expect(count()).toBe(18)
  select.filters = [filter('STATE', ['discard'], { path_filter: '*' })]
  expect(count()).toBe(0)
})

test('stop is told of each line', () => {
  const { select, stopped } = selection([filter('ERROR', ['log', 'stop'], { path_filter: 'fec' })])
  select.select(all)
  expect(stopped).toEqual(['fec ERROR', 'fec FATAL'])
})

const messages = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((text) => (JSON.parse(text) as LogLine).message)

test('a file is appended to, or cut once a run', async () => {
  const [kept, cut] = [join(directory, 'deep', 'kept'), join(directory, 'cut')] as const
  writeFileSync(cut, 'before\n')
  const { select } = selection([
    filter('ERROR', ['file'], { file: kept, mode: 'APPEND' }),
    filter('ERROR', ['file', 'log'], { file: cut, mode: 'TRUNCATE' }),
  ])
  expect(select.select([line('a', 'ERROR', '1'), line('a', 'INFO', '2')]).map(({ message }) => message)).toEqual([
    '1',
    '2',
  ])
  await select.written()
  select.select([line('a', 'FATAL', '3')])
  await select.written()
  expect(messages(kept)).toEqual(['1', '3'])
  expect(messages(cut)).toEqual(['1', '3'])
})

const linesOf = (path: string) => readFileSync(path, 'utf8').trim().split('\n').length

test('a file that no filter names any more is let go of once its lines are in it, however often filters change', async () => {
  const files = new Set<WeakRef<LineFile>>()
  const { append } = LineFile.prototype
  LineFile.prototype.append = function (text) {
    files.add(new WeakRef(this))
    append.call(this, text)
  }
  onTestFinished(() => {
    LineFile.prototype.append = append
  })
  const { select } = selection([])
  const path = (i: number) => join(directory, `${i}`)
  for (let i = 0; i < 40; i++) {
    select.filters = [filter('ERROR', ['file'], { file: path(i), mode: 'TRUNCATE' })]
    select.select([line('a', 'ERROR')])
  }
  await select.written()
  await new Promise((resolve) => setImmediate(resolve)) // what a WeakRef was made of stays until then
  collectGarbage()
  expect(files.size).toBe(40)
  expect([...files].filter((file) => file.deref() !== undefined)).toHaveLength(1)
  expect(Array.from({ length: 40 }, (_, i) => linesOf(path(i)))).toEqual(Array(40).fill(1))
})

test('a file that a filter names again is not emptied again, and lines on their way to it stay in their order', async () => {
  const [one, other] = [join(directory, 'one'), join(directory, 'other')] as const
  const { select } = selection([])
  for (const path of [one, other, one, other, one]) {
    select.filters = [filter('ERROR', ['file'], { file: path, mode: 'TRUNCATE' })]
    select.select(Array.from({ length: 100 }, () => line('a', 'ERROR')))
    if (path === other) await select.written()
  }
  await select.written()
  expect([linesOf(one), linesOf(other)]).toEqual([300, 200])
})

test('a file that is named again and dropped while lines of the first time are on their way is let go of with the last of them', async () => {
  const path = join(directory, 'file')
  const { select } = selection([])
  const naming = [filter('ERROR', ['file'], { file: path })]
  let made = 0
  const write = (lines: number, width = 0) => {
    select.filters = naming
    select.select(Array.from({ length: lines }, () => line('a', 'ERROR', `${made++}`.padEnd(width))))
    select.filters = []
  }
  write(1)
  // More than is written at once: the one before is in the file long before the last of them.
  write(300, 10_000)
  for (let size = 0; size < 3e6; size = statSync(path, { throwIfNoEntry: false })?.size ?? 0) {
    await settle(1)
    write(1)
  }
  await select.written()
  expect(messages(path).map((message) => message.trim())).toEqual(Array.from({ length: made }, (_, i) => `${i}`))
})

test.each([
  ['*', '', true],
  ['*', 'abc', true],
  ['', '', true],
  ['', 'a', false],
  ['abc', 'abc', true],
  ['abc', 'abcd', false],
  ['a*c', 'abbc', true],
  ['a*c', 'abcb', false],
  ['*b*', 'abc', true],
  ['a?c', 'abc', true],
  ['a?c', 'ac', false],
  ['a*b*c*', 'a1b2b3c', true],
  ['*a', 'aaab', false],
  ['[a]', 'a', false],
  ['.*', 'abc', false],
])('%j fits %j: %s', (pattern, name, fits) => {
  expect(matches(pattern, name)).toBe(fits)
})

test('a pattern made to take long does not', () => {
  expect(matches('*a'.repeat(2_000), 'a'.repeat(256))).toBe(false)
  expect(matches('*a'.repeat(200), `${'a'.repeat(255)}b`)).toBe(false)
})
