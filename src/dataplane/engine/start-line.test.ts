/** The line of starts: whose turn it is, and who goes away. */
import { expect, test } from 'vitest'
import { settle } from '../../../test/harness/waiting.ts'
import { StartLine } from './start-line.ts'

/** Starts that say when it is their turn, and are over when the test says so. */
function starts(line: StartLine) {
  const turns: string[] = []
  return {
    turns,
    join(name: string, isAwaited = true) {
      let end = () => {}
      const over = new Promise<void>((resolve, reject) => {
        end = isAwaited ? resolve : () => reject(new Error('it failed'))
      })
      void line.join(over, isAwaited).then(() => turns.push(name))
      return async () => {
        end()
        await settle(1)
      }
    },
  }
}

test('so many start at once, and the next when one is over, in the order in which they came', async () => {
  const { turns, join } = starts(new StartLine(2))
  const [first, second] = [join('a'), join('b'), join('c'), join('d')]
  await settle(1)
  expect(turns).toEqual(['a', 'b'])
  await second()
  expect(turns).toEqual(['a', 'b', 'c'])
  await first()
  expect(turns).toEqual(['a', 'b', 'c', 'd'])
})

test('those for which somebody waits go before the others', async () => {
  const { turns, join } = starts(new StartLine(1))
  const ends = { a: join('a', false), b: join('b', false), c: join('c', false), d: join('d'), e: join('e') }
  await settle(1)
  for (const name of ['a', 'd', 'e', 'b'] as const) await ends[name]()
  expect(turns).toEqual(['a', 'd', 'e', 'b', 'c'])
})

test('who goes away before its turn leaves its place to the next, and takes none', async () => {
  const { turns, join } = starts(new StartLine(1))
  const [first, second] = [join('a'), join('b'), join('c'), join('d')]
  await second()
  await first()
  expect(turns).toEqual(['a', 'c'])
})
