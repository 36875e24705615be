/** Problems at places that variables set, and variables that cannot be set. */
import { describe, expect, test } from 'vitest'
import { components } from '../components/registry.ts'
import { checkPipelineConfig } from './check.ts'

const check = (loss: unknown, variables: unknown, casing: 'snake' | 'camel' = 'snake') => {
  const pipeline = {
    source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
    loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: loss } },
    sink: { traffic_sink: { input: 'b' } },
  }
  const json = casing === 'snake' ? { engine_config: { pipeline } } : { engineConfig: { pipeline } }
  return checkPipelineConfig(JSON.stringify({ ...json, variables }), components)
}
const problemsOf = (...given: Parameters<typeof check>) => check(...given).problems
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
  [
    'two variables of one place',
    'much',
    [variable(), variable({ id: 'other', label: '' }), variable({ id: 'elsewhere', paths: ['/version'] })],
    'variables "Loss of the uplink", "other": must be a number, not a string',
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

describe('warnings tell of', () => {
  const warningsOf = (...variables: object[]) => {
    const { config, warnings } = check(0.1, variables)
    expect(config).not.toBeNull()
    return warnings.map(({ pointer, message }) => [pointer, message])
  }

  test('none that can be set, of what is not there yet too', () => {
    const absent = '/engine_config/pipeline/loss/uniform_loss/seed'
    const camel = '/engineConfig/pipeline/loss/uniformLoss/lossProb'
    expect(warningsOf(variable({ paths: [path, absent, camel] }), variable({ id: 'other' }))).toEqual([])
  })

  test('entries of lists that are not there', () => {
    const at = '/variables/0/paths'
    expect(
      warningsOf(variable({ paths: [`${at}/0`, `${at}/9`, `${at}/-`, `${at}/length`] })).map(([pointer]) => pointer),
    ).toEqual(['/variables/0/paths/1', '/variables/0/paths/2', '/variables/0/paths/3'])
  })

  test('fields that nothing has', () => {
    const unknown = ['/nope', '/engine_config/pipeline/loss/uniform_loss/lossProbability', '/variables/0/name']
    const elsewhere = ['/engine_config/pipeline/loss/delay_fixed', '/engine_config/pipelines']
    const known = ['/version', '/meta', '/engineConfig/shmConfig', '/variables/0/label', '/$schema']
    const found = warningsOf(variable({ paths: [...unknown, ...elsewhere, ...known] }))
    expect(found).toEqual(
      [...unknown, ...elsewhere].map((at, i) => [
        `/variables/0/paths/${i}`,
        `"${at}" leads to nothing in the configuration: the variable cannot be set`,
      ]),
    )
  })

  test('an id that two have', () => {
    expect(warningsOf(variable(), variable())).toEqual([
      ['/variables/1/id', '"loss" is the id of /variables/0 too: one of them cannot be set'],
    ])
  })

  test('paths that lead nowhere, that are none, and their absence', () => {
    const nowhere = '/engine_config/pipeline/loss/delay_fixed/delay'
    expect(warningsOf(variable({ paths: [path, nowhere, 'loss', `${path}/x`] }), { id: 'b' })).toEqual([
      ['/variables/0/paths/1', expect.stringContaining(`"${nowhere}" leads to nothing`)],
      ['/variables/0/paths/2', '"loss" is no JSON pointer, which starts with /'],
      ['/variables/0/paths/3', expect.stringContaining('leads to nothing')],
      ['/variables/1', 'variable "b" has no paths: it cannot be set'],
    ])
  })
})

describe('a configuration of its longest', () => {
  const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
  const members = (count: number, name: string, value: unknown) =>
    Object.fromEntries(many(count, (i) => [name + i, value]))
  const pipeline = {
    source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
    sink: { traffic_sink: { input: 'a' } },
  }
  /** Three characters that JSON writes as they are. */
  const short = (i: number) =>
    String.fromCharCode(...[1, 57, 57 * 57].map((place) => 35 + (Math.trunc(i / place) % 57)))
  const elsewhere = '/meta/component_display_order/nobody'
  /** Far more than each takes, and less than what took the square of its length. */
  const MAX_CPU_US = 3_000_000

  test.each([
    [
      'variables of one place, which has a problem',
      { x: 1, variables: many(25_000, () => ({ id: 'v', paths: ['/x'] })) },
      1,
    ],
    [
      'paths into an object with thousands of members',
      {
        meta: { component_display_order: members(4_000, 'c', 1) },
        variables: [{ id: 'v', paths: many(6_000, () => elsewhere) }],
      },
      0,
    ],
    ['numbers where texts belong', { variables: [{ id: 'v', paths: many(40_000, () => 1) }] }, 5_000],
    ['more unknown fields than a call takes arguments', Object.fromEntries(many(130_000, (i) => [short(i), 0])), 5_000],
    [
      'several components in the place of each, none of them known',
      { engine_config: { pipeline: members(999, 'c', members(80, 'f', 0)) } },
      5_000,
    ],
    [
      'as many mistakes in names of environment variables',
      { engine_config: { pipeline, lifecycle_handler: { env: { vars: members(70_000, '=', '') } } } },
      5_000,
    ],
    [
      'outputs of one name',
      {
        engine_config: {
          pipeline: { ...pipeline, ...members(70, 'c', { splitter: { input: 'b', outputs: many(2_000, () => 'c') } }) },
        },
      },
      5_000,
    ],
    [
      'mistakes of which not all are told, before others',
      {
        variables: many(6_000, () => 1),
        engine_config: { pipeline, log_filters: [{}], lifecycle_handler: { on_setup: [1] } },
      },
      5_000,
    ],
    [
      'thousands of connections behind each of its sockets',
      {
        engine_config: {
          pipeline: {
            ...Object.fromEntries(many(900, (i) => [`socket ${i}`, { udp: { output: `o${i}` } }])),
            combiner: { flow_combiner: { inputs: many(900, (i) => `o${i}`), output: 'all0' } },
            ...Object.fromEntries(
              many(8, (k) => [
                `splitter${k}`,
                { splitter: { input: `all${k}`, outputs: many(4096, (i) => `${k}x${i}`) } },
              ]),
            ),
            ...Object.fromEntries(
              many(8, (k) => [
                `combiner${k}`,
                { flow_combiner: { inputs: many(4096, (i) => `${k}x${i}`), output: `all${k + 1}` } },
              ]),
            ),
            sink: { traffic_sink: { input: 'all8' } },
          },
        },
      },
      0,
    ],
  ])('is checked in no time: %s', (_name, more, problems) => {
    const text = JSON.stringify({ version: 1, engine_config: { pipeline }, ...more })
    const before = process.cpuUsage()
    expect(checkPipelineConfig(text, components).problems).toHaveLength(problems)
    const { user, system } = process.cpuUsage(before)
    expect(user + system).toBeLessThan(MAX_CPU_US)
  })
})
