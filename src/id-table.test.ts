import { expect, it } from 'vitest'
import { oldGeneration } from '../test/harness/old-generation.ts'
import { collectGarbage } from './dataplane/engine/garbage.ts'
import { IdTable } from './id-table.ts'

it('has each entry from when it is set until it is deleted', () => {
  const table = new IdTable<string>()
  expect([table.size, table.get(7), table.delete(7), [...table.values()]]).toEqual([0, undefined, false, []])
  table.set(7, 'seven').set(0, 'zero').set(4_294_967_294, 'last').set(7, 'again')
  expect([table.size, table.get(7), table.get(0), table.get(4_294_967_294)]).toEqual([3, 'again', 'zero', 'last'])
  expect([...table.values()]).toEqual(['zero', 'again', 'last'])
  expect([table.delete(0), table.delete(0), table.size, table.get(0)]).toEqual([true, false, 2, undefined])
})

it('may be changed while its entries are visited', () => {
  const table = new IdTable<string>().set(1, 'one').set(2, 'two').set(3, 'three')
  const visited: [string, number][] = []
  table.forEach((entry, id) => {
    visited.push([entry, id])
    table.delete(id)
    table.delete(2)
  })
  expect(visited).toEqual([
    ['one', 1],
    ['three', 3],
  ])
  expect(table.size).toBe(0)
})

it('leaves what is over to the young generation, after a full collection too', () => {
  const table = new IdTable<number[]>()
  let id = 0
  /** The most that the old generation has grown by. */
  const comeAndGo = () => {
    const before = oldGeneration()
    let most = 0
    for (let round = 0; round < 100; round++) {
      for (const end = id + 1_000; id < end; id++) {
        table.set(id, new Array(100).fill(id))
        table.delete(id - 32)
      }
      most = Math.max(most, oldGeneration() - before)
    }
    return most
  }
  comeAndGo()
  collectGarbage()
  // Of 80 MB; with a Map some 50.
  expect(comeAndGo()).toBeLessThan(4_000_000)
})
