import { expect, test } from 'vitest'
import type { Configuration, Point } from '../../data/configuration.ts'
import { BOX, layoutOf } from './layout.ts'

function graph(
  names: readonly string[],
  joined: readonly (readonly [string, string])[],
  places: object = {},
): Configuration {
  const component = (name: string) => ({ name, key: 'k', family: '', schema: {}, fields: {}, path: [], ports: [] })
  return {
    components: names.map(component),
    connections: joined.map(([from, to], i) => {
      return { name: `n${i}`, from: { component: from, port: 'output' }, to: { component: to, port: 'input' } }
    }),
    places: new Map<string, Point>(Object.entries(places)),
  }
}

const fork = graph(
  ['s', 'a', 'b', 't'],
  [
    ['s', 'a'],
    ['s', 'b'],
    ['a', 't'],
    ['b', 't'],
  ],
)

test.each(['right', 'down'] as const)('packets go %s, and no box covers another', (direction) => {
  const points = layoutOf(fork, direction)
  const along = ({ x, y }: Point): number => (direction === 'right' ? x : y)
  const [s, a, b, t] = ['s', 'a', 'b', 't'].map((name) => points.get(name) as Point) as [Point, Point, Point, Point]
  expect(along(s)).toBeLessThan(along(a))
  expect(along(a)).toBe(along(b))
  expect(along(b)).toBeLessThan(along(t))
  const all = [s, a, b, t]
  for (const [i, one] of all.entries()) {
    for (const two of all.slice(i + 1)) {
      expect(Math.abs(one.x - two.x) >= BOX.width || Math.abs(one.y - two.y) >= BOX.height).toBe(true)
    }
  }
})

/** A chain of so many. */
function chain(length: number): Configuration {
  const names = Array.from({ length }, (_, i) => `c${i}`)
  return graph(
    names,
    names.slice(1).map((name, i) => [`c${i}`, name] as const),
  )
}

test.each([
  [3, 1],
  [4, 1],
  [7, 2],
  [12, 3],
])('a chain of %i goes to the right in %i rows, each from the left, no wider than a screen', (length, rows) => {
  const points = [...layoutOf(chain(length), 'right').values()]
  const lines = [...new Set(points.map(({ y }) => y))]
  expect(lines).toHaveLength(rows)
  for (const line of lines) {
    const row = points.filter(({ y }) => y === line).map(({ x }) => x)
    expect(row[0]).toBe(0)
    expect(row).toEqual([...row].sort((a, b) => a - b))
    expect((row.at(-1) ?? 0) + BOX.width).toBeLessThan(1400)
  }
})

test('a chain of any length goes straight down', () => {
  const points = [...layoutOf(chain(12), 'down').values()]
  expect(new Set(points.map(({ x }) => x)).size).toBe(1)
})

test('places that are given are kept, the others come below', () => {
  const points = layoutOf(
    graph(
      ['a', 'b', 'c'],
      [
        ['a', 'b'],
        ['b', 'c'],
      ],
      { a: { x: 50, y: -20 } },
    ),
    'right',
  )
  expect(points.get('a')).toEqual({ x: 50, y: -20 })
  expect((points.get('b') as Point).y).toBeGreaterThanOrEqual(-20 + BOX.height)
  expect((points.get('b') as Point).x).toBeLessThan((points.get('c') as Point).x)
})

test('components may be called as what every object has', () => {
  const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', '__proto__']
  const points = layoutOf(
    graph(
      names,
      names.slice(1).map((name, i) => [names[i] as string, name] as const),
    ),
    'down',
  )
  expect([...points.keys()]).toEqual(names)
  expect(new Set([...points.values()].map(({ y }) => y)).size).toBe(names.length)
})

test('a graph without components has no places', () => {
  expect(layoutOf(graph([], []), 'right').size).toBe(0)
})

test('what goes in a circle is drawn too', () => {
  expect(
    layoutOf(
      graph(
        ['a', 'b'],
        [
          ['a', 'b'],
          ['b', 'a'],
        ],
      ),
      'right',
    ).size,
  ).toBe(2)
})
