import { describe, expect, it } from 'vitest'
import { checkPipelineConfig, diffConfig, MAX_CONFIG_BYTES } from './check.ts'

const at = '/engine_config/pipeline'
const wrap = (pipeline: unknown, rest: object = {}) =>
  JSON.stringify({ version: 1, engine_config: { pipeline, ...rest } })
const problemsOf = (json: string) => checkPipelineConfig(json).problems.map((p) => `${p.pointer}: ${p.message}`)
const ring = {
  a: { flow_combiner: { inputs: ['one'], output: 'two' } },
  b: { splitter: { input: 'two', outputs: ['one'] } },
}

describe('configuration check', () => {
  it.each([
    [
      'text that is not JSON',
      '{"engine_config": {,}}',
      /^: malformed JSON at position 19 \(line 1, column 20\): here a key in quotes or } is wanted/,
    ],
    ['a list', '[]', /must be a JSON object, not a list/],
    ['no engine_config', '{}', /^\/engine_config: required field "engine_config" is missing/],
    ['no components', wrap({}), /^\/engine_config\/pipeline: the pipeline has no components/],
    [
      'a newer version',
      JSON.stringify({ version: 2, engine_config: { pipeline: ring } }),
      /^\/version: version 2 is newer than 1/,
    ],
    [
      'an unknown member',
      JSON.stringify({ versoin: 1, engine_config: { pipeline: ring } }),
      /^\/versoin: unknown field "versoin"\. Did you mean "version"\?/,
    ],
    [
      'an unknown component',
      wrap({ a: { spliter: {} } }),
      /^\/engine_config\/pipeline\/a\/spliter: unknown component "spliter"\. Did you mean "splitter"\?/,
    ],
    ['a component to come', wrap({ a: { raft: {} } }), /\/a\/raft: component "raft" is known but not available yet/],
    [
      'two components in one',
      wrap({ a: { splitter: {}, raft: {} } }),
      /\/a: exactly one component must be set here, found "splitter", "raft"/,
    ],
    ['none', wrap({ a: {} }), /\/a: exactly one component must be set here, found none/],
    ['a string for a component', wrap({ a: 'x' }), /\/a: must be an object with one component in it, not a string/],
    [
      'an unknown field',
      wrap({ a: { splitter: { input: 'x', outptus: ['y'] } } }),
      /\/a\/splitter\/outptus: unknown field "outptus"\. Did you mean "outputs"\?/,
    ],
    [
      'a missing field',
      wrap({ a: { splitter: { input: 'x' } } }),
      /\/a\/splitter\/outputs: required field "outputs" is missing/,
    ],
    [
      'a wrong type',
      wrap({ a: { splitter: { input: 5, outputs: ['y'] } } }),
      /\/a\/splitter\/input: must be a string, not a number/,
    ],
    [
      'an empty list',
      wrap({ a: { splitter: { input: 'x', outputs: [] } } }),
      /\/a\/splitter\/outputs: needs at least 1 entry/,
    ],
    [
      'an empty name',
      wrap({ a: { splitter: { input: '', outputs: ['y'] } } }),
      /\/a\/splitter\/input: must not be empty/,
    ],
    [
      'a probability in percent',
      wrap({ l: { uniform_loss: { input: 'x', output: 'y', loss_prob: 5 } } }),
      /\/l\/uniform_loss\/loss_prob: 5 is above the maximum of 1 \(a probability is 0\.\.1: 5 % is 0\.05\)/,
    ],
    [
      'a dangling output',
      wrap({ a: { splitter: { input: 'x', outputs: ['y'] } } }),
      /\/a\/splitter\/outputs\/0: connection "y" is written by "a" \(splitter\) but nobody reads it/,
    ],
    [
      'a dangling input',
      wrap({ a: { splitter: { input: 'x', outputs: ['y'] } } }),
      /\/a\/splitter\/input: connection "x" is read by "a" \(splitter\) but nobody writes it/,
    ],
    [
      'two writers',
      wrap({ ...ring, c: { splitter: { input: 'z', outputs: ['two', 'z'] } } }),
      /\/c\/splitter\/outputs\/0: connection "two" is written twice, by "a" \(flow_combiner\) and by "c" \(splitter\)/,
    ],
    [
      'two readers',
      wrap({ ...ring, c: { splitter: { input: 'two', outputs: ['q'] } } }),
      /connection "two" is read twice, by "b" \(splitter\) and by "c" \(splitter\); copy it with a splitter/,
    ],
    ['a circle', wrap(ring), /packets would go round for ever: "a" → "b" → "a"/],
    [
      'a lifecycle handler',
      wrap(ring, { lifecycle_handler: {} }),
      /^\/engine_config\/lifecycle_handler: .*not available yet/,
    ],
    ['kpis', JSON.stringify({ engine_config: { pipeline: ring }, kpis: {} }), /^\/kpis: .*not available yet/],
  ])('refuses %s', (_, json, wanted) => {
    const { config } = checkPipelineConfig(json)
    expect(config).toBeNull()
    expect(problemsOf(json)).toEqual(expect.arrayContaining([expect.stringMatching(wanted)]))
  })

  it('lists every problem at once, with pointers as the text has them', () => {
    const json = wrap({ 'a/b': { splitter: { inputs: 'x', outputs: [3] } }, c: { uniformLoss: { lossProb: 'x' } } })
    const pointers = checkPipelineConfig(json).problems.map((problem) => problem.pointer)
    expect(pointers).toEqual(
      expect.arrayContaining([
        `${at}/a~1b/splitter/inputs`,
        `${at}/a~1b/splitter/input`,
        `${at}/a~1b/splitter/outputs/0`,
        `${at}/c/uniformLoss/lossProb`,
        `${at}/c/uniformLoss/input`,
      ]),
    )
  })

  it('refuses a configuration that is too large before parsing it', () => {
    expect(problemsOf(' '.repeat(MAX_CONFIG_BYTES + 1))[0]).toMatch(/has 1048577 bytes, more than the 1048576/)
  })

  it('takes snake_case and lowerCamelCase, and names that objects inherit', () => {
    const pipeline = (loss: object, combiner: object) => `{"version":0,"engineConfig":{"pipeline":{
      "__proto__": ${JSON.stringify(combiner)}, "constructor": ${JSON.stringify(loss)},
      "source": {"uniformTrafficSource": {"output": "a", "totalPackets": 1, "interval": 1}},
      "sink": {"trafficSink": {"input": "c", "mtu": 1500}}}}}`
    const json = pipeline(
      { uniformLoss: { input: 'a', output: 'b', lossProb: 0.1 } },
      { flowCombiner: { inputs: ['b'], output: 'c' } },
    )
    const { config, problems } = checkPipelineConfig(json)
    expect(problems).toEqual([])
    expect(Object.keys(config?.components ?? {})).toEqual(['__proto__', 'constructor', 'source', 'sink'])
    expect(config?.components.constructor).toEqual({
      key: 'uniform_loss',
      config: { input: 'a', output: 'b', loss_prob: 0.1 },
    })
  })
})

describe('configuration difference', () => {
  const loss = (loss_prob: number, seed?: number) =>
    checkPipelineConfig(
      wrap({
        source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
        loss: { uniform_loss: { input: 'a', output: 'b', loss_prob, ...(seed !== undefined && { seed }) } },
        sink: { traffic_sink: { input: 'b', mtu: 1500 } },
      }),
    ).config ?? expect.fail('the configuration is good')

  it('tells live fields from those that need a restart', () => {
    expect(diffConfig(loss(0.1), loss(0.1))).toEqual({ restart: [], live: [] })
    expect(diffConfig(loss(0.1), loss(0.2))).toEqual({ restart: [], live: [`${at}/loss/uniform_loss/loss_prob`] })
    expect(diffConfig(loss(0.1), loss(0.1, 5)).restart).toEqual([`${at}/loss/uniform_loss/seed`])
    const other = structuredClone(loss(0.1))
    other.components.extra = { key: 'splitter', config: {} }
    expect(diffConfig(loss(0.1), other).restart).toEqual([`${at}/extra`])
  })
})
