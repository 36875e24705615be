/** The ring of a run's log lines and its followers. */
import { expect, test } from 'vitest'
import type { LogLine } from '../dataplane/engine/run.ts'
import { RunLog } from './run-log.ts'

const line = (message: string, level: LogLine['level'] = 'INFO'): LogLine => ({
  timestamp: 0,
  level,
  component: '',
  message,
  fields: {},
})
const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => line(`${from + i}`))
const messages = (log: RunLog, count: number) => log.past(count).map(({ message }) => message)

test('keeps the last lines, oldest first, over any number of wraps', () => {
  const log = new RunLog('STATE', 4)
  for (let at = 0; at < 11; at++) {
    log.append(lines(at, at + 1))
    const expected = lines(Math.max(0, at - 3), at + 1).map(({ message }) => message)
    expect(messages(log, 100)).toEqual(expected)
    expect(messages(log, 2)).toEqual(expected.slice(-2))
  }
  expect(messages(log, 0)).toEqual([])
  log.append(lines(100, 120))
  expect(messages(log, 9)).toEqual(['116', '117', '118', '119'])
})

test('drops lines below its level, which can change, but no STATE line', () => {
  const log = new RunLog('WARN')
  log.append([line('a', 'STATE'), line('b', 'INFO'), line('c', 'WARN'), line('d', 'FATAL')])
  log.level = 'STATE'
  log.append([line('e', 'DEBUG')])
  expect(messages(log, 9)).toEqual(['a', 'c', 'd', 'e'])
})

test('past lines and followed lines make the whole log, without gap or repetition', () => {
  const log = new RunLog('STATE', 1_000)
  log.append(lines(0, 50))
  const seen = log.past(20)
  const leave = log.follow((more) => seen.push(...more))
  log.append(lines(50, 60))
  log.append([line('quiet', 'DEBUG')])
  leave()
  log.append(lines(61, 70))
  expect(seen.map(({ message }) => message)).toEqual([...lines(30, 60).map(({ message }) => message), 'quiet'])
})
