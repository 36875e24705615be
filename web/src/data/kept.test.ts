import { expect, test } from 'vitest'
import { Kept } from './kept.ts'

/** Storage of a browser, of which `broken` says what fails. */
function storage(broken: readonly ('use' | 'getItem' | 'setItem' | 'removeItem')[] = []): () => Storage {
  const texts = new Map<string, string>()
  const fail = (what: (typeof broken)[number]) => {
    if (broken.includes(what)) throw new Error(what)
  }
  return () => {
    fail('use')
    return {
      getItem: (key: string) => {
        fail('getItem')
        return texts.get(key) ?? null
      },
      setItem: (key: string, text: string) => {
        fail('setItem')
        texts.set(key, text)
      },
      removeItem: (key: string) => {
        fail('removeItem')
        texts.delete(key)
      },
    } as Storage
  }
}

test.each([
  ['keeps', []],
  ['says that it keeps nothing', ['use']],
  ['has no room', ['setItem']],
  ['gives nothing back', ['getItem']],
  ['keeps nothing anew', ['setItem', 'removeItem']],
] as const)('a text is kept, and forgotten, where the browser %s', (_, broken) => {
  const kept = new Kept('key', storage(broken))
  expect(kept.get()).toBe(undefined)
  kept.set('one')
  expect(kept.get()).toBe('one')
  kept.set('two')
  expect(kept.get()).toBe('two')
  kept.set(undefined)
  expect(kept.get()).toBe(undefined)
})
