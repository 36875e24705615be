/** Problems at places that variables set. */
import { expect, test } from 'vitest'
import { components } from '../components/registry.ts'
import { checkPipelineConfig } from './check.ts'

const problemsOf = (loss: unknown, variables: unknown, casing: 'snake' | 'camel' = 'snake') => {
  const pipeline = {
    source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
    loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: loss } },
    sink: { traffic_sink: { input: 'b' } },
  }
  const json = casing === 'snake' ? { engine_config: { pipeline } } : { engineConfig: { pipeline } }
  return checkPipelineConfig(JSON.stringify({ ...json, variables }), components).problems
}
const path = '/engine_config/pipeline/loss/uniform_loss/loss_prob'
const variable = (more: object = {}) => ({ id: 'loss', label: 'Loss of the uplink', paths: [path], ...more })

test.each([
  ['a value of the wrong type', 'much', [variable()], 'variable "Loss of the uplink": must be a number, not a string'],
  [
    'a value out of range',
    2,
    [variable()],
    expect.stringMatching(/^variable "Loss of the uplink": 2 is above the maximum of 1/),
  ],
  ['a variable without a label', 'much', [variable({ label: '' })], 'variable "loss": must be a number, not a string'],
  [
    'a path in the other casing',
    'much',
    [variable({ paths: ['/engineConfig/pipeline/loss/uniformLoss/lossProb'] })],
    expect.stringMatching(/^variable /),
  ],
  ['no variable there', 'much', [variable({ paths: ['/version'] })], 'must be a number, not a string'],
])('%s', (_name, loss, variables, message) => {
  expect(problemsOf(loss, variables)).toEqual([{ pointer: path, message }])
})

test('variables that are none are told of as before', () => {
  expect(problemsOf(0.1, [{ id: 5, paths: 'x' }]).map(({ pointer }) => pointer)).toEqual([
    '/variables/0/id',
    '/variables/0/paths',
  ])
})
