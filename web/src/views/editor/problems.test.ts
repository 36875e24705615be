import { expect, test } from 'vitest'
import { byComponent, componentAt, problemsAt } from './problems.ts'

test.each([
  ['/engine_config/pipeline/a~1b/udp/mtu', 'a/b'],
  ['/engineConfig/pipeline/x', 'x'],
  ['/engine_config/pipeline', undefined],
  ['/engine_config/log_filters/0', undefined],
  ['/name', undefined],
  ['', undefined],
])('%j is about %j', (pointer, name) => {
  expect(componentAt(pointer)).toBe(name)
})

test('problems are found at their field, in whichever casing it is written, and not at those around it', () => {
  const problems = ['lossProb', 'flows/0/input', 'flows/0'].map((path) => ({
    pointer: `/engineConfig/pipeline/a/lossConstant/${path}`,
    message: path,
  }))
  expect(problemsAt(problems, ['loss_prob']).map(({ message }) => message)).toEqual(['lossProb'])
  expect(problemsAt(problems, ['flows', 0]).map(({ message }) => message)).toEqual(['flows/0'])
  expect(problemsAt(problems, [])).toEqual([])
  expect([...byComponent(problems).keys()]).toEqual(['a'])
})
