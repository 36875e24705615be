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

  it.each([
    ['los=1', 'Did you mean "loss"?'],
    ['loss', 'write it variable=value'],
    ['lost=1', 'does not exist in the configuration'],
    ['empty=1', 'points to nothing'],
    ['loss=1e999', 'variable "loss": the number in 1e999 is too large'],
  ])('refuses %s', (assignment, message) => {
    expect(() => setVariables(config, [assignment])).toThrow(message)
  })
})
