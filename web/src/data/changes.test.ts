import type { Node, Pipeline } from '@penstock/client'
import { describe, expect, test } from 'vitest'
import { nodesAfter, pipelinesAfter } from './changes.ts'

const node = (id: string, online = true): Node => ({ id, name: id, online, services: [] })
const pipeline = (id: string, started = false): Pipeline => ({
  id,
  name: id,
  jsonConfig: '{}',
  defaultLoggingLevel: 'INFO',
  instructionsTimeout: 30,
  performanceMode: false,
  started,
})

describe('nodes', () => {
  const known = new Map([['a', node('a')]])

  test.each(['authenticatedNode', 'connectedNode', 'disconnectedNode', 'updatedNode'])(
    '%s brings it as it is now',
    (kind) => {
      expect([...nodesAfter(known, { [kind]: node('a', false) }).values()]).toEqual([node('a', false)])
      expect([...nodesAfter(known, { [kind]: node('b') }).keys()]).toEqual(['a', 'b'])
    },
  )

  test('a node that left is gone, and what was known stays as it was', () => {
    expect(nodesAfter(known, { deauthenticatedNode: node('a') }).size).toBe(0)
    expect(known.size).toBe(1)
  })

  test('a change of a later version changes nothing', () => {
    expect(nodesAfter(known, {})).toEqual(known)
  })
})

describe('pipelines', () => {
  const known = new Map([['a', pipeline('a')]])

  test('created and changed ones are as they are now, deleted ones gone', () => {
    expect([...pipelinesAfter(known, { create: { pipeline: pipeline('b') } }).keys()]).toEqual(['a', 'b'])
    expect(pipelinesAfter(known, { update: { pipeline: pipeline('a', true) } }).get('a')?.started).toBe(true)
    expect(pipelinesAfter(known, { delete: { pipeline: pipeline('a') } }).size).toBe(0)
    expect(known.get('a')?.started).toBe(false)
  })
})
