import { expect, test } from 'vitest'
import { StoredText } from './stored-text.ts'

test('an answer stands until the stream tells another text, and is forgotten then', () => {
  const stored = new StoredText('ten')
  stored.ask()('twenty')
  stored.tell('ten')
  expect(stored.text).toBe('twenty')
  stored.tell('twenty')
  expect(stored.text).toBe('twenty')
  stored.tell('ten')
  expect(stored.text).toBe('ten')
})

test('an answer counts for nothing once the stream has told another text', () => {
  const stored = new StoredText('ten')
  const answer = stored.ask()
  stored.tell('twenty')
  stored.tell('thirty')
  answer('twenty')
  expect(stored.text).toBe('thirty')
})

test('not even when that text was told before', () => {
  const stored = new StoredText('ten')
  const answer = stored.ask()
  stored.tell('twenty')
  stored.tell('ten')
  answer('twenty')
  expect(stored.text).toBe('ten')
})
