import { expect, test } from 'vitest'
import { answerable } from '../contract/errors.ts'
import { components } from '../dataplane/components/registry.ts'
import { settingsOfCreate } from './pipelines-settings.ts'
import { Trust } from './trust.ts'

test('an answer lists a thousand problems, says how many more there are, and cuts what is endless', () => {
  const problems = Array.from({ length: 40_000 }, (_, i) => ({ pointer: `/${i}`, message: 'x'.repeat(2000) }))
  const told = answerable(problems)
  expect(told).toHaveLength(1001)
  expect(told[999].pointer).toBe('/999')
  expect(told[0].message).toHaveLength(1001)
  expect(told[1000]).toEqual({ pointer: '', message: 'and 39000 more problems' })
  expect(answerable(problems.slice(0, 3))).toHaveLength(3)
})

const trust = new Trust({ files: '/files', trusted: 'local', isHubServer: () => false, hubId: () => undefined })
const rules = { cpus: [0], registry: components, trust }

test('a configuration of nothing but mistakes and an endless name get an answer of bounded size', () => {
  const jsonConfig = JSON.stringify(Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`unknown${i}`, 1])))
  try {
    settingsOfCreate({ nodeId: '', name: 'n'.repeat(300), jsonConfig }, rules, undefined)
    expect.unreachable()
  } catch (error) {
    const { code, message, problems } = error as { code: string; message: string; problems: { pointer: string }[] }
    expect(code).toBe('INVALID_ARGUMENT')
    expect(problems[0].pointer).toBe('/name')
    expect(problems).toHaveLength(1001)
    expect(message.length).toBeLessThan(200_000)
  }
})
