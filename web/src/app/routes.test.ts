import { expect, test } from 'vitest'
import { hashOf, type Route, routeOf } from './routes.ts'

test.each<Route>([
  { view: 'overview' },
  { view: 'pipeline', nodeId: 'n', pipelineId: 'p/ä 1' },
  { view: 'pipeline', nodeId: 'n', pipelineId: 'p', tab: 'log' },
  { view: 'editor', nodeId: 'n' },
  { view: 'editor', nodeId: 'n', pipelineId: 'p' },
])('the address of $view leads back to it', (route) => {
  expect(routeOf(hashOf(route))).toEqual(route)
})

test.each(['', '#', '#/'])('%j is the overview', (hash) => {
  expect(routeOf(hash)).toEqual({ view: 'overview' })
})

test.each([
  '#/nope',
  '#/nodes/n',
  '#/nodes/n/pipelines',
  '#/nodes/n/editor/more',
  '#/nodes/n/pipelines/p/edit/more',
  '#/nodes/n/pipelines/p/%ff',
])('%s is nowhere', (hash) => {
  expect(routeOf(hash)).toEqual({ view: 'unknown', path: hash.slice(1) })
})
