import type { Level, LogMessage } from '@penstock/client'
import { describe, expect, test } from 'vitest'
import { linesInView } from '../views/pipeline/log-window.ts'
import { logAfter, MAX_LINES } from './log.ts'
import { filtered, speakers } from './log-filter.ts'

const line = (level: Level, component: string, message: string, fields = {}): LogMessage => ({
  ...{ level, component, message, fields },
})
const lines = [
  line('STATE', '', 'running'),
  line('DEBUG', 'udp', 'opened'),
  line('WARN', 'udp', 'Peer ignored', { address: '192.0.2.1:9' }),
  line('ERROR', 'sink', 'broken'),
]
const shown = (filter: object) => filtered(lines, { level: 'DEBUG', text: '', ...filter }).map(({ message }) => message)

describe('filters', () => {
  test.each([
    ['none', {}, ['running', 'opened', 'Peer ignored', 'broken']],
    ['a level, with what the run says of its state', { level: 'WARN' }, ['running', 'Peer ignored', 'broken']],
    ['a component', { component: 'udp' }, ['opened', 'Peer ignored']],
    ['the run itself', { component: '' }, ['running']],
    ['a text in the message, in either case', { text: ' peer ' }, ['Peer ignored']],
    ['a text in a field', { text: 'address=192.0.2.1' }, ['Peer ignored']],
    ['all together', { level: 'ERROR', component: 'udp', text: 'x' }, []],
  ])('%s', (_, filter, messages) => {
    expect(shown(filter)).toEqual(messages)
  })

  test('speakers are named once', () => {
    expect(speakers(lines)).toEqual(['', 'sink', 'udp'])
  })
})

test('of more lines than are kept the oldest give way, and lines keep their numbers', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => line('INFO', '', String(i)))
  const log = logAfter(logAfter({ lines: [], first: 0 }, many(MAX_LINES - 1)), many(3))
  expect([log.lines.length, log.first, log.lines[0]?.message]).toEqual([MAX_LINES, 2, '2'])
})

describe('lines in view', () => {
  test.each([
    ['at the top', 1000, 0, { from: 0, to: 30 }],
    ['in the middle', 1000, 12_000, { from: 490, to: 530 }],
    ['beyond the end', 1000, 99_000, { from: 960, to: 1000 }],
    ['few lines', 3, 0, { from: 0, to: 3 }],
    ['none', 0, 500, { from: 0, to: 0 }],
  ])('%s', (_, count, top, range) => {
    expect(linesInView(count, { top, height: 480 }, 24)).toEqual(range)
  })
})
