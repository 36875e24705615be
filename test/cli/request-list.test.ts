/** What the keys do to the list of requests, moment by moment. */
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { RequestList } from '../../src/cli/authentication-screen.ts'

const request = (requestId: string, name = `node-${requestId}`) => ({
  requestId,
  node: { id: `id-${requestId}`, name, online: true, services: [] },
})

test('requests stand in the order of their ids, whenever they are told of, each once', () => {
  const list = new RequestList()
  for (const id of ['10', '9', '11', '9']) list.add(request(id), 0)
  expect(list.ids).toEqual(['9', '10', '11'])
})

test('the cursor stays on its request while others come and go', () => {
  const list = new RequestList()
  for (const id of ['5', '6', '7']) list.add(request(id), 0)
  list.move(1)
  expect(list.chosen?.requestId).toBe('6')
  list.remove('5', 1)
  list.add(request('8'), 2)
  expect(list.chosen?.requestId).toBe('6')
  list.move(10)
  expect(list.chosen?.requestId).toBe('8')
  list.move(-10)
  expect(list.chosen?.requestId).toBe('6')
})

test('a key meant for a request that has just gone does not answer the next one', () => {
  const list = new RequestList()
  list.add(request('1'), 0)
  list.add(request('2'), 0)
  expect(list.answerable(499)).toBeUndefined()
  expect(list.answerable(500)?.requestId).toBe('1')
  list.remove('1', 1_000)
  expect(list.chosen?.requestId).toBe('2')
  expect(list.answerable(1_499)).toBeUndefined()
  expect(list.answerable(1_500)?.requestId).toBe('2')
  list.add(request('3'), 1_500)
  list.remove('2', 2_000)
  list.move(1)
  expect(list.answerable(2_000)?.requestId).toBe('3')
  list.remove('3', 2_000)
  expect(list.chosen).toBeUndefined()
  expect(list.answerable(9_000)).toBeUndefined()
})

test('what was answered and waits still is back, once an answer has come to nothing since', () => {
  const list = new RequestList()
  for (const id of ['1', '2', '3']) list.add(request(id), 0)
  const compare = (ids: string[], meanwhile = () => {}) => {
    const take = list.comparison()
    meanwhile()
    take(
      ids.map((id) => request(id)),
      9,
    )
    return list.ids
  }
  list.answer('1', 1)
  list.answer('2', 1)
  // Not taken by the hub yet, or being written there.
  expect(compare(['1', '2', '3'])).toEqual(['3'])
  expect(compare(['3'])).toEqual(['3'])
  // The hub may have been asked before it came to nothing.
  expect(compare(['1', '3'], () => list.answerLost())).toEqual(['3'])
  expect(compare(['1', '3'])).toEqual(['1', '3'])
  expect(list.text('http://x')).toMatch(/\nnode-1 id-1 still waits for an answer$/)
  list.answer('1', 10)
  expect(compare(['1', '3'])).toEqual(['3'])
  list.answerLost()
  expect(compare(['3'])).toEqual(['3'])
  expect(compare(['1', '3'])).toEqual(['1', '3'])
  expect(compare(['3'])).toEqual(['3'])
  // Whose answer by another operator came to nothing.
  expect(compare([])).toEqual([])
  expect(compare(['3'])).toEqual(['3'])
})

test('what is gone is not back for an older list that comes late', () => {
  const list = new RequestList()
  list.add(request('1'), 0)
  const [older, newer] = [list.comparison(), list.comparison()]
  newer([], 1)
  older([request('1')], 2)
  expect(list.ids).toEqual([])
})

test('the title counts nodes, and requests where those are more', () => {
  const list = new RequestList()
  const title = () => stripVTControlCharacters(list.text('http://x').split('\n')[0] ?? '')
  expect(title()).toBe('no node asks to join the hub of http://x')
  list.add(request('1'), 0)
  expect(title()).toBe('1 node asks to join the hub of http://x')
  list.add({ ...request('2'), node: request('1').node }, 0)
  expect(title()).toBe('1 node asks to join, by 2 requests, the hub of http://x')
  list.add(request('3'), 0)
  expect(title()).toBe('2 nodes ask to join, by 3 requests, the hub of http://x')
  list.remove('2', 0)
  expect(title()).toBe('2 nodes ask to join the hub of http://x')
})

test('of more requests than there are lines for, those around the cursor are shown', () => {
  const list = new RequestList()
  for (let id = 1; id <= 40; id++) list.add(request(String(id)), 0)
  const lines = (room: number) => stripVTControlCharacters(list.text('http://x', room)).split('\n')
  expect(lines(43)).toHaveLength(43)
  for (const room of [42, 12, 6, 5]) {
    list.move(-100)
    for (let id = 1; id <= 40; id++) {
      expect(lines(room)).toHaveLength(room)
      expect(lines(room).filter((line) => line.startsWith('❯'))).toEqual([expect.stringContaining(` node-${id} `)])
      list.move(1)
    }
  }
  expect(lines(12).at(-2)).toBe('33 to 40 of 40 requests')
  for (const note of ['one', 'two']) list.note(note)
  expect(lines(12).slice(-4, -2)).toEqual([
    '35 to 40 of 40 requests',
    '↑ ↓ choose   enter approves   r rejects   q quits',
  ])
  expect(lines(12)).toHaveLength(12)
})

test('names from outside cannot write to the terminal', () => {
  const list = new RequestList()
  list.add(request('1', 'evil\x1b[2J\x1b[8m\x07\nq quits\r\u009b31m\u202egnp'), 0)
  const text = list.text('http://x')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
  expect(text.replaceAll('\n', '')).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  expect(text.split('\n')).toHaveLength(4)
})
