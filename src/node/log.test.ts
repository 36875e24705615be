/** The node's own log: its two formats, and what never gets into it. */
import { expect, test } from 'vitest'
import { createLog } from './log.ts'

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
