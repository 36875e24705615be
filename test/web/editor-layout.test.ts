/** Where the editor puts the components of chains of every length. */
import { describe, expect, test } from 'vitest'
import { pipelineConfigSchema } from '../../src/node/config-schema.ts'
import { catalogueOf, type Schema } from '../../web/src/data/schema.ts'
import { type Graph, graphOf } from '../../web/src/views/editor/model-graph.ts'
import { laidOut } from '../../web/src/views/editor/model-layout.ts'

const catalogue = catalogueOf(pipelineConfigSchema() as Schema)

function chain(length: number): Graph {
  const components = Array.from({ length }, (_, i) => [
    `c${i}`,
    { uniform_loss: { input: `n${i}`, output: `n${i + 1}`, loss_prob: 0 } },
  ])
  return graphOf({ engine_config: { pipeline: Object.fromEntries(components) } }, catalogue)
}

/** Width and height of a box with one input and one output. */
const BOX = [210, 78] as const

/** How large the drawing of a chain is shown on a canvas of 600 by 560 pixels. */
function zoomOf(length: number): number {
  const points = [...laidOut(chain(length)).values()]
  const span = (axis: 'x' | 'y'): number =>
    Math.max(...points.map((point) => point[axis])) - Math.min(...points.map((point) => point[axis]))
  return Math.min(1, 600 / (span('x') + BOX[0]), 560 / (span('y') + BOX[1]))
}

test.each([
  [2, 0.9],
  [4, 0.7],
  [6, 0.7],
  [9, 0.7],
  [20, 0.5],
  [40, 0.3],
])('a chain of %i components is drawn at a zoom of %d at least', (length, least) => {
  expect(zoomOf(length)).toBeGreaterThan(least)
})

describe.each([2, 3, 6, 13, 30])('a chain of %i', (length) => {
  const points = [...laidOut(chain(length)).values()]

  test('goes to the right, and on at the left of the next row', () => {
    for (const [i, { x, y }] of points.slice(1).entries()) {
      const before = points[i] as { x: number; y: number }
      if (y === before.y) expect(x).toBeGreaterThan(before.x)
      else expect([x, y > before.y]).toEqual([points[0]?.x, true])
    }
  })

  test('has no box on another', () => {
    for (const [i, a] of points.entries()) {
      for (const b of points.slice(i + 1)) {
        expect(Math.abs(a.x - b.x) >= BOX[0] || Math.abs(a.y - b.y) >= BOX[1]).toBe(true)
      }
    }
  })
})

test('what follows from one output to several stays side by side, in one layer', () => {
  const pipeline = {
    split: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0 } },
    x: { uniform_loss: { input: 'b', output: 'x', loss_prob: 0 } },
    y: { uniform_loss: { input: 'b', output: 'y', loss_prob: 0 } },
  }
  const points = laidOut(graphOf({ engine_config: { pipeline } }, catalogue))
  expect(points.get('x')?.x).toBe(points.get('y')?.x)
  expect(points.get('x')?.x).toBeGreaterThan(points.get('split')?.x ?? 0)
})

test('components may be called as what every object has', () => {
  const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf']
  const pipeline = names.map((name, i) => [
    name,
    { uniform_loss: { input: `n${i}`, output: `n${i + 1}`, loss_prob: 0 } },
  ])
  const points = laidOut(graphOf({ engine_config: { pipeline: Object.fromEntries(pipeline) } }, catalogue))
  expect([...points.keys()].sort()).toEqual([...names].sort())
})
