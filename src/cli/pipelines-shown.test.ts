/** Pipelines in tables, also those of nodes of a later version. */
import type { Pipeline } from '@penstock/client'
import { expect, test } from 'vitest'
import { pipelineRow } from './pipelines-shown.ts'

test('a state and an outcome that this version does not know are shown as their numbers', () => {
  const pipeline = { id: 'p', name: 'n', started: false, currentRun: { id: 'r', state: 99, outcome: 98 } }
  expect(pipelineRow(pipeline as unknown as Pipeline)[2]).toBe('99 (98)')
})
