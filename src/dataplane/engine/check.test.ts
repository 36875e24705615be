import { describe, expect, it } from 'vitest'
import { components } from '../components/registry.ts'
import { checkPipelineConfig, MAX_COMPONENT_NAME_LENGTH, MAX_COMPONENTS, MAX_CONFIG_BYTES } from './check.ts'

const at = '/engine_config/pipeline'
const wrap = (pipeline: unknown, rest: object = {}) =>
  JSON.stringify({ version: 1, engine_config: { pipeline, ...rest } })
const problemsOf = (json: string) =>
  checkPipelineConfig(json, components).problems.map((p) => `${p.pointer}: ${p.message}`)
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
    [
      'a word that several components have in their key',
      wrap({ a: { Delay: {} } }),
      /unknown component "Delay"\. Of that kind there are delay_constant, delay_dynamic, delay_fixed, delay_fixed_sequencer, delay_jitter\./,
    ],
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
      'a command without anything to run, given in lowerCamelCase',
      wrap(ring, { lifecycleHandler: { preStart: [{ cmd: '' }] } }),
      /^\/engine_config\/lifecycleHandler\/preStart\/0\/cmd: must not be empty/,
    ],
  ])('refuses %s', (_, json, wanted) => {
    const { config } = checkPipelineConfig(json, components)
    expect(config).toBeNull()
    expect(problemsOf(json)).toEqual(expect.arrayContaining([expect.stringMatching(wanted)]))
  })

  it('says of two components in one that, and nothing of their connections', () => {
    const one = { uniform_loss: { input: 'x', output: 'y', loss_prob: 0 } }
    const other = { delay_fixed: { input: 'x', output: 'y', delay: 1 } }
    const source = { uniform_traffic_source: { output: 'x', total_packets: 1, interval: 1 } }
    const sink = { traffic_sink: { input: 'y' } }
    expect(problemsOf(wrap({ source, sink, both: { ...other, ...one } }))).toEqual([
      `${at}/both: exactly one component must be set here, found "delay_fixed", "uniform_loss"`,
    ])
    expect(problemsOf(wrap({ source, sink, both: { traffic_sink: { input: 'z' }, ...one } }))).toHaveLength(1)
  })

  it('says once that a number stands for no name of an enumeration', () => {
    const streams = [{ input: 'x', stream_handle: 1, realtime_stream: { timeout: 100, delivery_policy: 2 } }]
    const { problems } = checkPipelineConfig(wrap({ r: { raft: { streams, carriers: [] } } }), components)
    const at = '/streams/0/realtime_stream/delivery_policy'
    expect(problems.filter(({ pointer }) => pointer.endsWith(at)).map(({ message }) => message)).toEqual([
      '2 is none of ON_TIMEOUT, ON_ORDERED.',
    ])
  })

  it('lists every problem at once, with pointers as the text has them', () => {
    const json = wrap({ 'a/b': { splitter: { inputs: 'x', outputs: [3] } }, c: { uniformLoss: { lossProb: 'x' } } })
    const pointers = checkPipelineConfig(json, components).problems.map((problem) => problem.pointer)
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

  it('lists what is wrong with graph, filters, commands and KPIs beside what is wrong elsewhere', () => {
    const { config, problems } = checkPipelineConfig(
      JSON.stringify({
        version: 'one',
        engineConfig: {
          pipeline: {
            source: { uniformTrafficSource: { output: 'a', total_packets: 1, interval: 1 } },
            sink: { traffic_sink: { input: 'b' } },
          },
          logFilters: [{ actions: { actions: ['file'] } }],
        },
        kpis: { metrics: [{ id: 'k', value: { expression: '{sink/nothing}' } }] },
      }),
      components,
    )
    expect(config).toBeNull()
    const pointers = problems.map(({ pointer }) => pointer)
    expect(pointers).toContain('/version')
    expect(pointers).toContain('/engineConfig/pipeline/source/uniformTrafficSource/output')
    expect(pointers).toContain('/engineConfig/pipeline/sink/traffic_sink/input')
    expect(pointers).toContain('/kpis/metrics/0/value/expression')
    expect(pointers.some((pointer) => pointer === '/engineConfig/logFilters/0/file')).toBe(true)
  })

  it('leaves graph and KPIs alone where a component is not known', () => {
    const pipeline = {
      source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
      sink: { sinc: {} },
    }
    const kpis = { metrics: [{ id: 'k', value: { expression: '{sink/nothing}' } }] }
    const { problems } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline }, kpis }), components)
    expect(problems.map(({ pointer }) => pointer)).toEqual(['/engine_config/pipeline/sink/sinc'])
  })

  it('tells of what is nested as deep as a text may', () => {
    const nested = `${'['.repeat(990)}${']'.repeat(990)}`
    const text = `{"meta": ${nested}, "engine_config": {"pipeline": {"s": {"traffic_sink": {"input": ${nested}}}}}}`
    const pointers = checkPipelineConfig(text, components).problems.map(({ pointer }) => pointer)
    expect(pointers).toEqual(expect.arrayContaining(['/meta', '/engine_config/pipeline/s/traffic_sink/input']))
  })

  it.each(['', 'a'])('quotes the beginning of a long value without half a character (after "%s")', (before) => {
    const filters = [{ level: before + '👍'.repeat(60) }]
    const { problems } = checkPipelineConfig(wrap({}, { log_filters: filters }), components)
    const { message } = problems.find(({ pointer }) => pointer.endsWith('/level')) ?? {}
    expect(message).toMatch(/^"a?👍+ is none of /u)
  })

  it('tells of a number that is beyond what is read', () => {
    const text =
      '{"engine_config": {"pipeline": {"l": {"uniform_loss": {"input": "a", "output": "b", "loss_prob": 1e400}}}}}'
    expect(checkPipelineConfig(text, components).problems).toEqual([
      {
        pointer: '/engine_config/pipeline/l/uniform_loss/loss_prob',
        message: 'the number is beyond the largest that is read, some 1.8e308',
      },
    ])
  })

  it.each([
    ['{"engine_config": {"pipeline": {}, "log_filters": null, "logFilters": 5}}', '/engine_config/logFilters'],
    [
      '{"engine_config": {"pipeline": {}, "lifecycle_handler": null, "lifecycleHandler": 5}}',
      '/engine_config/lifecycleHandler',
    ],
    ['{"engine_config": null, "engineConfig": {"pipeline": {}, "log_filters": 5}}', '/engineConfig/log_filters'],
  ])('tells of a field that is faulty beside itself in the other casing, null: %s', (text, pointer) => {
    const pointers = checkPipelineConfig(text, components).problems.map((problem) => problem.pointer)
    expect(pointers).toEqual([pointer, expect.stringMatching(/pipeline$/)])
  })

  it('refuses a configuration that is too large before parsing it', () => {
    expect(problemsOf(' '.repeat(MAX_CONFIG_BYTES + 1))[0]).toMatch(/has 1048577 bytes, more than the 1048576/)
  })

  it('takes up to 1,000 components', () => {
    const chain = (count: number) => ({
      source: { uniform_traffic_source: { output: '1', total_packets: 1, interval: 1 } },
      ...Object.fromEntries(
        Array.from({ length: count - 2 }, (_, n) => [
          `c${n}`,
          { uniform_loss: { input: `${n + 1}`, output: `${n + 2}`, loss_prob: 0 } },
        ]),
      ),
      sink: { traffic_sink: { input: `${count - 1}` } },
    })
    expect(problemsOf(wrap(chain(MAX_COMPONENTS)))).toEqual([])
    expect(problemsOf(wrap(chain(MAX_COMPONENTS + 1)))).toEqual([
      `${at}: 1001 components are more than the 1000 that are taken`,
    ])
  })

  it('takes names of components of 1 to 256 characters', () => {
    const longest = '👍'.repeat(MAX_COMPONENT_NAME_LENGTH)
    const named = (name: string) =>
      wrap({
        source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
        [name]: { traffic_sink: { input: 'a' } },
      })
    expect(problemsOf(named(longest))).toEqual([])
    for (const name of ['', `${longest}x`]) {
      expect(problemsOf(named(name))).toEqual([`${at}/${name}: a component needs a name of 1 to 256 characters`])
    }
  })

  it('takes lists of up to 4,096 entries', () => {
    const outputs = (count: number) => Array.from({ length: count }, (_, n) => `o${n}`)
    const wide = (count: number) => ({
      source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
      copy: { splitter: { input: 'a', outputs: outputs(count) } },
      join: { flow_combiner: { inputs: outputs(count), output: 'z' } },
      sink: { traffic_sink: { input: 'z', mtu: 1500 } },
    })
    expect(problemsOf(wrap(wide(4096)))).toEqual([])
    expect(problemsOf(wrap(wide(4097)))).toEqual([
      `${at}/copy/splitter/outputs: takes at most 4096 entries`,
      `${at}/join/flow_combiner/inputs: takes at most 4096 entries`,
    ])
  })

  it('takes $schema, which is for editors, as text', () => {
    const pipeline = {
      source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const given = (schema: unknown) => JSON.stringify({ $schema: schema, engine_config: { pipeline } })
    expect(problemsOf(given('./pipeline.schema.json'))).toEqual([])
    expect(problemsOf(given(1))).toEqual([expect.stringMatching(/^\/\$schema: must be a string/)])
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
    const { config, problems } = checkPipelineConfig(json, components)
    expect(problems).toEqual([])
    expect(Object.keys(config?.components ?? {})).toEqual(['__proto__', 'constructor', 'source', 'sink'])
    expect(config?.components.constructor).toEqual({
      key: 'uniform_loss',
      config: { input: 'a', output: 'b', loss_prob: 0.1 },
    })
  })
})

describe('loops', () => {
  const chain = (links: Record<string, object>) =>
    problemsOf(
      wrap({
        source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
        ...links,
        sink: { traffic_sink: { input: 'z', mtu: 1500 } },
      }),
    )
  const delay = (...flows: [string, string][]) => ({
    delay_constant: { flows: flows.map(([input, output]) => ({ input, output })), delay: 1 },
  })

  it('are none where the flows of one component follow each other in a chain', () => {
    expect(chain({ slow: delay(['a', 'b'], ['b', 'c'], ['c', 'z']) })).toEqual([])
    const loss = { uniform_loss: { input: 'b', output: 'c', loss_prob: 0.1 } }
    expect(chain({ slow: delay(['a', 'b'], ['c', 'z']), loss })).toEqual([])
    // Whichever flow stands first.
    expect(chain({ slow: delay(['c', 'z'], ['a', 'b']), loss })).toEqual([])
    const link = {
      bandwidth_limit_constant: {
        flows: [
          { input: 'b', output: 'c' },
          { input: 'd', output: 'z' },
        ],
        bandwidth_limit_mbit: 1,
      },
    }
    expect(chain({ slow: delay(['a', 'b'], ['c', 'd']), link })).toEqual([])
  })

  it('are found where a flow comes back to its own input', () => {
    const back = {
      back: { splitter: { input: 'c', outputs: ['b', 'z'] } },
      join: { flow_combiner: { inputs: ['a', 'b'], output: 'd' } },
    }
    expect(chain({ slow: delay(['d', 'c']), ...back })).toEqual([
      `${at}/join/flow_combiner/inputs/1: packets would go round for ever: "join" → "slow" → "back" → "join", by the connections "d", "c", "b": give one of them another writer or reader, or break the circle with two simulated_networks, with a delay or a bandwidth limit in it`,
    ])
    expect(chain({ slow: delay(['x', 'x'], ['a', 'z']) })[0]).toMatch(/for ever: "slow" → "slow"/)
    expect(chain({ slow: delay(['x', 'y'], ['y', 'x'], ['a', 'z']) })[0]).toMatch(
      /: "slow" → "slow" → "slow", by the connections "y", "x":/,
    )
  })

  it('are a hundred at most that are told: each may have all connections in it', () => {
    const count = 300
    const circles = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [
        `copy${n}`,
        { splitter: { input: `c${n}`, outputs: [`c${n + 1}`, `b${n}`] } },
      ]),
    )
    const inputs = ['in', `c${count}`, ...Array.from({ length: count }, (_, n) => `b${n}`)]
    const problems = problemsOf(wrap({ join: { flow_combiner: { inputs, output: 'c0' } }, ...circles }))
    expect(problems).toHaveLength(101)
    expect(problems.filter((problem) => problem.includes('round for ever'))).toHaveLength(100)
  })

  it('are looked for in chains longer than the stack is deep', () => {
    const flows = Array.from({ length: 256 }, (_, n) => n)
    const links = Object.fromEntries(
      Array.from({ length: 60 }, (_, c) => [
        `slow${c}`,
        delay(
          ...flows.map((n): [string, string] => [
            c + n === 0 ? 'a' : `l${c * 256 + n}`,
            c === 59 && n === 255 ? 'z' : `l${c * 256 + n + 1}`,
          ]),
        ),
      ]),
    )
    expect(chain(links)).toEqual([])
  })
})

describe('room around packets', () => {
  const key = '00'.repeat(16)
  const chainOf = (count: number, component: (input: string, output: string) => object) =>
    wrap({
      source: { uniform_traffic_source: { output: 'l0', total_packets: 1, interval: 1 } },
      ...Object.fromEntries(Array.from({ length: count }, (_, n) => [`c${n}`, component(`l${n}`, `l${n + 1}`)])),
      sink: { traffic_sink: { input: `l${count}`, mtu: 1500 } },
    })
  const encrypt = (input: string, output: string) => ({ ssl_encrypt: { input, output, aes_128_gcm_sha_256: { key } } })
  const protect = (input: string, output: string) => ({
    reed_solomon_encoder: { input, output, symbols: 4, repair: 1 },
  })

  it('is there for as much as can be had, and the sum is refused beyond', () => {
    expect(problemsOf(chainOf(128, encrypt))).toEqual([])
    expect(problemsOf(chainOf(146, protect))).toEqual([])
    const [front, back, ...more] = problemsOf(chainOf(140, encrypt))
    expect(front).toBe(
      `${at}/c128/ssl_encrypt: up to here components write 2064 bytes in front of a packet, more than the 2048 that can be kept free there: ` +
        '2240 in front and 2240 behind in the whole chain; split it over several pipelines',
    )
    expect(back).toContain(
      `${at}/c128/ssl_encrypt: up to here components write 2064 bytes behind a packet, more than the 2048`,
    )
    expect(more).toEqual([])
    expect(problemsOf(chainOf(147, protect))[0]).toContain('2058 bytes in front')
  })

  it('begins anew where packets leave the node', () => {
    const half = (from: number, input: string, output: string) =>
      Object.fromEntries(
        Array.from({ length: 100 }, (_, n) => [
          `c${from + n}`,
          encrypt(n === 0 ? input : `l${from + n}`, n === 99 ? output : `l${from + n + 1}`),
        ]),
      )
    const udp = { udp: { local_address: '127.0.0.1:1', remote_address: '127.0.0.1:2', input: 'there', output: 'back' } }
    const ends = {
      source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
      sink: { traffic_sink: { input: 'z' } },
    }
    expect(problemsOf(wrap({ ...ends, ...half(0, 'a', 'there'), udp, ...half(1000, 'back', 'z') }))).toEqual([])
    const joined = wrap({
      ...ends,
      ...half(0, 'a', 'there'),
      slow: { delay_constant: { flows: [{ input: 'there', output: 'back' }], delay: 1 } },
      ...half(1000, 'back', 'z'),
    })
    expect(problemsOf(joined)[0]).toContain('3200 in front and 3200 behind')
  })
})

describe('warnings', () => {
  const warningsOf = (pipeline: object) => {
    const { config, problems, warnings } = checkPipelineConfig(wrap(pipeline), components)
    expect(problems).toEqual([])
    expect(config).not.toBeNull()
    return warnings
  }
  const ends = {
    source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
    sink: { traffic_sink: { input: 'z' } },
  }
  const loss = (input: string, output: string, seed?: number) => ({
    uniform_loss: { input, output, loss_prob: 0.1, ...(seed !== undefined && { seed }) },
  })

  it('tell of one seed given twice, wherever, and of no others', () => {
    expect(
      warningsOf({
        ...ends,
        one: loss('a', 'b', 7),
        two: loss('b', 'c', 8),
        three: loss('c', 'd'),
        four: loss('d', 'z'),
      }),
    ).toEqual([])
    const delay = { delay_constant: { flows: [{ input: 'c', output: 'z' }], delay: 1, jitter: 1, seed: 7 } }
    expect(warningsOf({ ...ends, one: loss('a', 'b', 7), two: loss('b', 'c', 8), three: delay })).toEqual([
      {
        component: 'three',
        pointer: `${at}/three/delay_constant/seed`,
        message:
          '7 is the seed of "one" (uniform_loss) too: both draw the same random numbers; give each a seed of its own',
      },
    ])
  })

  describe('tell of an interface whose packets are too long for what they go through', () => {
    const device = (key: string, mtu: number, ip = '10.0.0.1') => ({
      [key]: { interface_name: 't0', ip, mtu, output: 'a', input: 'back' },
    })
    const through = (end: object, mtu = 0) => ({
      end,
      seal: { ssl_encrypt: { aes_128_gcm_sha_256: { key: '01'.repeat(16) }, input: 'a', output: 'b' } },
      net: { udp: { local_address: '127.0.0.1:1', input: 'b', output: 'back', ...(mtu > 0 && { mtu }) } },
    })
    it.each<[string, object, number?]>([
      ['a tun that fits', through(device('tun', 1440))],
      ['one that does not', through(device('tun', 1441)), 1440],
      ['one that does where more is taken', through(device('tun', 1441), 1473)],
      ['a tap that fits', through(device('tap', 1426))],
      ['one that does not', through(device('tap', 1427)), 1426],
      [
        'one whose packets are cut',
        {
          end: device('tun', 9000),
          cut: { fragmentizer: { input: 'a', output: 'c', fragment_size: 1000 } },
          net: { udp: { local_address: '127.0.0.1:1', input: 'c', output: 'back' } },
        },
      ],
    ])('%s', (_what, pipeline, most) => {
      const found = warningsOf(pipeline)
      expect(found.map(({ component, pointer }) => [component, pointer.split('/').at(-1)])).toEqual(
        most === undefined ? [] : [['end', 'mtu']],
      )
      if (most !== undefined) expect(found[0]?.message).toContain(`set mtu to ${most} here`)
    })

    it.each(['0.0.0.0', '::'])('%s is no address of one', (ip) => {
      const { problems } = checkPipelineConfig(wrap(through(device('tun', 1400, ip))), components)
      expect(problems.map(({ pointer }) => pointer)).toEqual([`${at}/end/tun/ip`])
    })
  })

  it.each<[string, object, boolean]>([
    ['at once', { net: { udp: { local_address: '127.0.0.1:1', output: 'x', input: 'x' } } }, true],
    [
      'through a loss',
      { net: { udp: { local_address: '127.0.0.1:1', output: 'x', input: 'y' } }, loss: loss('x', 'y') },
      true,
    ],
    [
      'by one of two ways',
      {
        net: { udp: { local_address: '127.0.0.1:1', output: 'x', input: 'w' } },
        copy: { splitter: { input: 'x', outputs: ['y', 'z'] } },
        slow: { delay_constant: { flows: [{ input: 'y', output: 'w' }], delay: 1 } },
        sink: { traffic_sink: { input: 'z' } },
      },
      true,
    ],
    [
      'with another address',
      {
        net: { udp: { local_address: '127.0.0.1:1', output: 'x', input: 'y' } },
        to: { peer_writer: { input: 'x', output: 'y', remote_address: '192.0.2.1:5' } },
      },
      false,
    ],
    [
      'as other bytes',
      {
        net: { udp: { local_address: '127.0.0.1:1', output: 'x', input: 'y' } },
        seal: { ssl_encrypt: { input: 'x', output: 'y', aes_128_gcm_sha_256: { key: '00'.repeat(16) } } },
      },
      false,
    ],
    [
      'by another socket',
      {
        net: { udp: { local_address: '127.0.0.1:1', output: 'x', input: 'y' } },
        far: { udp: { local_address: '127.0.0.1:2', remote_address: '127.0.0.1:3', output: 'y', input: 'x' } },
      },
      false,
    ],
  ])('tell of a udp whose output comes back to its input unchanged, %s', (_, pipeline, warned) => {
    const warnings = warningsOf(pipeline)
    expect(warnings.map(({ component, pointer }) => [component, pointer])).toEqual(
      warned ? [['net', `${at}/net/udp/input`]] : [],
    )
    for (const { message } of warnings) expect(message).toContain('comes back here unchanged')
  })

  it.each([
    ['udp', { local_address: '239.1.1.1:5000' }, 'local_address'],
    ['udp', { local_address: '239.1.1.1:5000', multicast_group: '239.1.1.2' }, 'local_address'],
    ['udp', { local_address: '239.1.1.1:5000', multicast_group: '239.1.1.1' }, undefined],
    ['udp', { local_address: '[ff15::1]:5000', multicast_group: 'ff15:0::1' }, undefined],
    ['udp', { local_address: '0.0.0.0:5000', multicast_group: '239.1.1.1' }, undefined],
    ['udp', { local_address: 'group.example:5000' }, undefined],
    ['udp_local', { address: '[ff15::1]:5000' }, 'address'],
    ['udp_local', { address: '127.0.0.1:5000' }, undefined],
  ])('tell of a %s that is bound to a group which it does not join: %j', (key, config, field) => {
    const warnings = warningsOf({ net: { [key]: { output: 'x', ...config } }, sink: { traffic_sink: { input: 'x' } } })
    expect(warnings.map(({ pointer }) => pointer)).toEqual(field === undefined ? [] : [`${at}/net/${key}/${field}`])
    for (const { message } of warnings)
      expect(message).toMatch(/^(239\.1\.1\.1|ff15::1) is .* not join.*multicast_group/)
  })

  it.each([
    [{ local_address: '192.0.2.1:5000', multicast_group: '239.1.1.1' }, '239.1.1.1:5000'],
    [{ local_address: '[2001:db8::1]:5000', multicast_group: 'ff15::1' }, '[ff15::1]:5000'],
    [{ local_address: '0.0.0.0:5000', remote_address: '192.0.2.2:7', multicast_group: '239.1.1.1' }, '239.1.1.1:5000'],
    [{ local_address: '0.0.0.0:5000', remote_address: '239.1.1.1:7', multicast_group: '239.1.1.1' }, undefined],
    [{ local_address: '239.1.1.1:5000', remote_address: '192.0.2.2:7', multicast_group: '239.1.1.1' }, undefined],
  ])('tell of a udp that joins a group of which it hears nothing: %j', (config, cure) => {
    const warnings = warningsOf({ net: { udp: { output: 'x', ...config } }, sink: { traffic_sink: { input: 'x' } } })
    expect(warnings.map(({ pointer }) => pointer)).toEqual(cure ? [`${at}/net/udp/multicast_group`] : [])
    for (const { message } of warnings) expect(message).toContain(`make local_address that of the group, ${cure},`)
  })
})
