/** Values that are written to the places of a configuration that a variable points to. */
import { describe, expect, it } from 'vitest'
import { setVariables } from '../../src/cli/variables.ts'

describe('setVariables', () => {
  const config = JSON.stringify({
    engineConfig: { pipeline: { 'a/b': { uniformLoss: { lossProb: 0.1, seed: 1 } }, text: { name: '7' } } },
    variables: [
      { id: 'loss', paths: ['/engine_config/pipeline/a~1b/uniform_loss/loss_prob'] },
      { id: 'all', paths: ['/engine_config/pipeline/a~1b/uniform_loss/seed', '/engine_config/pipeline/text/name'] },
      { id: 'lost', paths: ['/engine_config/pipeline/nowhere/x'] },
      { id: 'empty' },
    ],
  })
  const written = (...assignments: string[]) => JSON.parse(setVariables(config, assignments)).engineConfig.pipeline

  it('writes to every path, in the casing of the configuration, keeping text text', () => {
    expect(written('loss=0.5')['a/b'].uniformLoss).toEqual({ lossProb: 0.5, seed: 1 })
    expect(written('all=9')).toMatchObject({ 'a/b': { uniformLoss: { seed: 9 } }, text: { name: '9' } })
  })

  it('writes to fields of components, those that are not there yet too, in the casing of the configuration', () => {
    const nested = JSON.stringify({
      engine_config: {
        pipeline: {
          'a.b': { gate: null, delay_dynamic: { phases: [{ delay: 1 }, { delay: 2 }] } },
          a: { loss_constant: {} },
          loss: { uniformLoss: { lossProb: 0.1 } },
        },
      },
      variables: [{ id: 'loss.loss_prob', paths: ['/engine_config/pipeline/a/loss_constant/loss_probability'] }],
    })
    const assignments = ['a.b.phases.1.delay=5', 'a.b.phases[0].jitter=3', 'a.seed=7', 'loss.loss_prob=0.5']
    expect(JSON.parse(setVariables(nested, [...assignments, 'loss.lossProb=0.2'])).engine_config.pipeline).toEqual({
      'a.b': { gate: null, delay_dynamic: { phases: [{ delay: 1, jitter: 3 }, { delay: 5 }] } },
      a: { loss_constant: { seed: 7, loss_probability: 0.5 } },
      loss: { uniformLoss: { lossProb: 0.2 } },
    })
  })

  it.each([
    ['text=1', 'has no variable "text". It has a component of that name: name a field of it, text.FIELD=VALUE'],
    ['txt.name=1', 'Nor a component "txt". Did you mean "text"?'],
    ['text.list.0=1', 'field "text.list.0": "/engine_config/pipeline/text/name/list/0" does not exist'],
    ['los=1', 'Did you mean "loss"?'],
    ['loss', 'write it variable=value'],
    ['lost=1', 'does not exist in the configuration'],
    ['empty=1', 'points to nothing'],
    ['loss=1e999', 'variable "loss": the number in 1e999 is too large'],
  ])('refuses %s', (assignment, message) => {
    expect(() => setVariables(config, [assignment])).toThrow(message)
  })
})
