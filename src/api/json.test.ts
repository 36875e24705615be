/** proto3 JSON, queries and the binary format: round trips, and what is refused. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { node } from '../../test/contract/handlers.ts'
import { decodeBinary } from '../contract/binary-decode.ts'
import { encodeBinary, encodeInParts } from '../contract/binary-encode.ts'
import { ServiceError } from '../contract/errors.ts'
import { decodeJson } from '../contract/json-decode.ts'
import { jsonEncoder } from '../contract/json-encode.ts'
import { loadSchema } from '../contract/load-schema.ts'
import { loadOperations } from '../contract/operations.ts'
import { type FieldSchema, type MessageSchema, TIMESTAMP } from '../contract/schema.ts'
import { readRequest } from './http-request.ts'
import { HttpRoutes } from './http-routes.ts'
import { parseJson } from './json-parse.ts'

const schema = loadSchema()

function message(name: string): MessageSchema {
  const found = schema.messages.get(`servicegrpc.${name}`)
  if (found === undefined) throw new Error(`no message ${name}`)
  return found
}

function problemsOf(run: () => unknown): readonly { pointer: string; message: string }[] {
  try {
    run()
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'INVALID_ARGUMENT') return error.problems
    throw error
  }
  throw new Error('nothing was refused')
}

describe('encoding', () => {
  test('carries every field, leaves unset optional and one-of members out', () => {
    const text = jsonEncoder(message('pipeline.Pipeline'))({ id: 'p', currentRun: undefined })
    expect(JSON.parse(text)).toEqual({
      id: 'p',
      name: '',
      jsonConfig: '',
      defaultLoggingLevel: 'STATE',
      instructionsTimeout: 0,
      performanceMode: false,
      started: false,
    })
  })

  test('64-bit integers are strings, bytes base64, timestamps RFC 3339, enums names', () => {
    expect(JSON.parse(jsonEncoder(message('hub.Node'))(node))).toEqual({
      id: 'n1',
      name: 'Node "one"',
      metadata: {
        items: {
          region: { stringValue: 'eu' },
          key: { bytesValue: 'AQL/' },
          big: { intValue: '-1152921504606846976' },
        },
      },
      online: true,
      services: ['HUB_SERVER', 'PIPELINES'],
      lastSeen: '2026-01-02T03:04:05.678Z',
    })
  })

  test('numbers that JSON does not know are strings', () => {
    const encode = jsonEncoder(message('hub.NodeMetadataItem'))
    expect(encode({ doubleValue: Number.NaN })).toBe('{"doubleValue":"NaN"}')
    expect(encode({ doubleValue: -Infinity })).toBe('{"doubleValue":"-Infinity"}')
    expect(Object.is(JSON.parse(encode({ doubleValue: -0 })).doubleValue, -0)).toBe(true)
  })
})

describe('decoding', () => {
  test('takes both spellings, strings for numbers, names or numbers for enums, and fills defaults in', () => {
    const request = { name: 'x', json_config: '{}', defaultLoggingLevel: 2, cpu_pin: '3', instructionsTimeout: 5 }
    expect(decodeJson(message('pipeline.CreatePipelineRequest'), request)).toEqual({
      nodeId: '',
      name: 'x',
      jsonConfig: '{}',
      defaultLoggingLevel: 'INFO',
      cpuPin: 3,
      instructionsTimeout: 5,
    })
    const answer = message('hub.AuthenticationByRequestAnswer')
    expect(decodeJson(answer, { requestId: '18446744073709551615' })).toEqual({
      requestId: 2n ** 64n - 1n,
      accept: false,
    })
    expect(decodeJson(answer, { request_id: 7, accept: null })).toEqual({ requestId: 7n, accept: false })
  })

  test('names every problem with its pointer and the nearest known field', () => {
    const body = {
      jsonConfg: '{}',
      cpuPin: -1,
      restartPolicy: { never: {}, always: {} },
      performanceMode: 'yes',
      name: 5,
    }
    expect(problemsOf(() => decodeJson(message('pipeline.CreatePipelineRequest'), body))).toEqual([
      { pointer: '/jsonConfg', message: 'unknown field "jsonConfg"; did you mean "jsonConfig"?' },
      { pointer: '/cpuPin', message: 'must be an integer from 0 to 4294967295, not -1' },
      { pointer: '/restartPolicy/always', message: 'cannot be set together with "never"; leave one out' },
      { pointer: '/performanceMode', message: 'must be true or false, not "yes"' },
      { pointer: '/name', message: 'must be a string, not 5' },
    ])
  })

  test.each([
    ['hub.AuthenticationByRequestAnswer', { requestId: -1 }, '/requestId'],
    ['hub.AuthenticationByRequestAnswer', { requestId: 1.5 }, '/requestId'],
    ['hub.AuthenticationByRequestAnswer', { requestId: 2 ** 53 }, '/requestId'],
    ['hub.AuthenticationByRequestAnswer', { requestId: '18446744073709551616' }, '/requestId'],
    ['hub.AuthenticationByRequestAnswer', { requestId: 1, request_id: 1 }, '/request_id'],
    ['hub.GetNodesRequest', { serviceFilters: ['HUB_SERVER', 'NOPE'] }, '/serviceFilters/1'],
    ['hub.GetNodesRequest', { serviceFilters: 'HUB_SERVER' }, '/serviceFilters'],
    ['hub.GetNodesRequest', { metadataFilters: { 'a/b': { stringValue: 1 } } }, '/metadataFilters/a~1b/stringValue'],
    ['hub.GetNodesRequest', { metadataFilters: { a: { bytesValue: '*' } } }, '/metadataFilters/a/bytesValue'],
    ['hub.Node', { lastSeen: '2026-13-01T00:00:00Z' }, '/lastSeen'],
    ['hub.Node', { name: 'a\ud800b' }, '/name'],
    ['hub.Node', [], ''],
  ])('%s refuses %j', (name, value, pointer) => {
    expect(problemsOf(() => decodeJson(message(name), value)).map((problem) => problem.pointer)).toEqual([pointer])
  })

  test.each(['9223372036854775807', '-9007199254740992', '9007199254740993', '1e400'])(
    '%s as a number is refused with what to do, and not as a number that was not sent',
    (number) => {
      const item = JSON.parse(`{"intValue": ${number}}`)
      const [wide] = problemsOf(() => decodeJson(message('hub.NodeMetadataItem'), item))
      expect(wide?.message).toBe(
        'must be sent as a string: JSON readers round numbers of 2^53 and more (an integer from -9223372036854775808 to 9223372036854775807)',
      )
      const narrow = problemsOf(() => decodeJson(message('pipeline.CreatePipelineRequest'), { cpuPin: item.intValue }))
      expect(narrow).toContainEqual({
        pointer: '/cpuPin',
        message: 'must be an integer from 0 to 4294967295, not a number of 2^53 or more',
      })
    },
  )

  test.each(['1e400', '-1e400', '"1e400"'])(
    '%s as a double is refused, and not taken for an infinite one',
    (number) => {
      const decode = (text: string) =>
        decodeJson(message('hub.NodeMetadataItem'), JSON.parse(`{"doubleValue": ${text}}`))
      expect(problemsOf(() => decode(number))).toEqual([
        { pointer: '/doubleValue', message: 'the number is beyond the largest that is read, some 1.8e308' },
      ])
      expect(decode('"-Infinity"')).toEqual({ doubleValue: Number.NEGATIVE_INFINITY })
    },
  )

  test('a problem that is cut is cut between two characters', () => {
    const [problem] = problemsOf(() => decodeJson(message('hub.NodeMetadataItem'), { ['👍'.repeat(600)]: 1 }))
    expect([problem?.pointer.isWellFormed(), problem?.message.isWellFormed()]).toEqual([true, true])
  })

  test('a key named __proto__ is data', () => {
    const value: unknown = JSON.parse('{"items": {"__proto__": {"stringValue": "x"}}}')
    const decoded = decodeJson(message('hub.NodeMetadata'), value) as { items: object }
    expect(Object.keys(decoded.items)).toEqual(['__proto__'])
    expect(jsonEncoder(message('hub.NodeMetadata'))(decoded)).toBe('{"items":{"__proto__":{"stringValue":"x"}}}')
    expect(decodeBinary(message('hub.NodeMetadata'), encodeBinary(message('hub.NodeMetadata'), decoded))).toEqual(
      decoded,
    )
  })
})

describe('malformed JSON', () => {
  test.each([
    ['{"a": tru}', 6],
    ['{"a":1,}', 7],
    ['{"a":1', 6],
    ['[1,2,,3]', 5],
    ['{"a":"x\ny"}', 7],
    ['{"a":1} x', 8],
    ['{a:1}', 1],
    [`{"name": "x", "jsonConfig": bogus, "y": "${'z'.repeat(100)}"}`, 28],
  ])('%j is refused at its position', (text, position) => {
    expect(problemsOf(() => parseJson(text))[0]?.message).toContain(`malformed JSON at position ${position}`)
  })

  test('the line and column are given', () => {
    expect(problemsOf(() => parseJson('{\n  "a": 1,\n  "b": nope\n}'))[0]?.message).toContain('(line 3, column 8)')
  })
})

describe('queries', () => {
  const routes = new HttpRoutes(loadOperations())

  function read(verb: string, path: string, query: string, body = ''): unknown {
    const match = routes.match(verb, path)
    if (match.kind !== 'route') throw new Error(`${verb} ${path}: ${match.kind}`)
    return readRequest(match.route, match.path, query, body)
  }

  test('maps in brackets, fields after dots, lists by repetition, percent-encoding', () => {
    const query =
      'metadataFilters[region].stringValue=eu%20west&metadata_filters%5Ba.b%5Bc%5D%5D.bytes_value=%2B/8=&serviceFilters=HUB_SERVER&service_filters=1&metadataFilters[n].boolValue=true'
    expect(read('GET', '/v1/nodes', query)).toEqual({
      metadataFilters: {
        region: { stringValue: 'eu west' },
        'a.b[c]': { bytesValue: Uint8Array.of(0xfb, 0xff) },
        n: { boolValue: true },
      },
      serviceFilters: ['HUB_SERVER', 'PIPELINES'],
    })
    expect(read('GET', '/v1/streams/nodes/n%2F1/pipeline-runs/r%201/logs', 'options.lines=100')).toEqual({
      nodeId: 'n/1',
      runId: 'r 1',
      options: { lines: 100n },
    })
  })

  test.each([
    ['metadataFilter[a].stringValue=x', 'did you mean metadataFilters'],
    ['blubb=x', 'unknown field "blubb"; known are metadataFilters, serviceFilters'],
    ['metadataFilters.stringValue=x', 'is a map'],
    ['metadataFilters[a]=x', 'name one of its fields'],
    ['serviceFilters[0]=HUB_SERVER', 'is no map'],
    ['serviceFilters.x=1', 'has no fields'],
    ['metadataFilters[a].stringValue=x&metadataFilters[a].stringValue=y', 'given twice'],
    ['metadataFilters[a].stringValue=x&metadataFilters[a].boolValue=true', 'cannot be set together'],
    ['metadataFilters[a].boolValue=maybe', 'must be true or false'],
    ['serviceFilters=NOPE', 'must be one of HUB_SERVER, PIPELINES'],
    ['serviceFilters=%E0%A4', 'not percent-encoded'],
    ['a..b=1', 'names joined by dots'],
  ])('%s is refused', (query, text) => {
    expect(
      problemsOf(() => read('GET', '/v1/nodes', query))
        .map((problem) => problem.message)
        .join(),
    ).toContain(text)
  })

  test('a body may not reach the prototype of the request', () => {
    const problems = problemsOf(() => read('PUT', '/v1/nodes/n1', '', '{"__proto__":{"name":"x"}}'))
    expect(problems.map((problem) => problem.pointer)).toEqual(['/__proto__'])
    expect(problemsOf(() => read('POST', '/v1/nodes/search', '', '[]'))[0]?.message).toContain('must be a JSON object')
  })

  test('what the path says already is not offered for an unknown field', () => {
    const body = '{"blubb":1,"nodeIdd":"x","jsonConf":"{}"}'
    const [blubb, nodeId, jsonConfig] = problemsOf(() => read('POST', '/v1/nodes/n1/pipelines', '', body)).map(
      ({ message }) => message,
    )
    expect(blubb).toBe(
      'unknown field "blubb"; known are name, jsonConfig, restartPolicy, startupPolicy, defaultLoggingLevel, nodeReferenceId, instructionsTimeout, cpuPin, performanceMode',
    )
    expect(nodeId).not.toContain('did you mean')
    expect(jsonConfig).toContain('did you mean "jsonConfig"?')
    const inQuery = problemsOf(() => read('GET', '/v1/streams/nodes/n1/pipeline-runs/r/logs', 'nodeIdd=x'))
    expect(inQuery[0]?.message).not.toContain('did you mean')
    const below = problemsOf(() => read('POST', '/v1/nodes/n1/pipelines', '', '{"restartPolicy":{"alwys":{}}}'))
    expect(below[0]?.message).toContain('did you mean "always"?')
  })

  test('path, query and body may not contradict each other', () => {
    expect(read('PUT', '/v1/nodes/n1', '', '{"nodeId":"n1","name":"x"}')).toEqual({ nodeId: 'n1', name: 'x' })
    expect(problemsOf(() => read('PUT', '/v1/nodes/n1', '', '{"node_id":"n2"}'))[0]?.pointer).toBe('/node_id')
    expect(problemsOf(() => read('PUT', '/v1/nodes/n1', 'name=x', '{}'))[0]?.message).toContain('from the body')
    expect(read('POST', '/v1/nodes/n1/pipelines/p/start', '', ' {} ')).toEqual({ nodeId: 'n1', id: 'p' })
    expect(problemsOf(() => read('POST', '/v1/nodes/n1/pipelines/p/start', '', '{"name":"x"}'))[0]?.message).toContain(
      'no body',
    )
    expect(problemsOf(() => read('POST', '/v1/nodes/n1/pipelines/p/start', 'name=x'))[0]?.message).toContain('together')
  })
})

describe('round trips', () => {
  const names = [...schema.messages.values()].filter(({ name }) => name !== TIMESTAMP && !name.endsWith('.Component'))

  test.each(names.map((type) => [type.name, type] as const))('%s', (_name, type) => {
    fc.assert(
      fc.property(arbitrary(type, 3), (value) => {
        const complete = decodeBinary(type, encodeBinary(type, value))
        expect(decodeJson(type, JSON.parse(jsonEncoder(type)(value)))).toEqual(complete)
        expect(decodeBinary(type, encodeBinary(type, complete))).toEqual(complete)
        const parts = [...encodeInParts(type, value, 40)]
        expect(decodeBinary(type, Buffer.concat(parts))).toEqual(complete)
      }),
      { numRuns: 20, seed: 7 },
    )
  })

  test('any bytes decode or are refused as INVALID_ARGUMENT', () => {
    const type = message('hub.Node')
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64, size: 'max' }), (bytes) => {
        try {
          decodeBinary(type, bytes)
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
        }
      }),
      { numRuns: 2000, seed: 7 },
    )
  })

  test('of a one-of, the last member on the wire holds', () => {
    const type = message('hub.NodeMetadataItem')
    const both = Buffer.concat([encodeBinary(type, { stringValue: 'x' }), encodeBinary(type, { boolValue: true })])
    expect(decodeBinary(type, both)).toEqual({ boolValue: true })
  })
})

/** Any service object of a message. */
function arbitrary(type: MessageSchema, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const shape: Record<string, fc.Arbitrary<unknown>> = {}
  const oneofs = new Map<string, fc.Arbitrary<[string, unknown]>[]>()
  for (const field of type.fields) {
    const one = field.type.kind === 'message' && depth === 0 ? undefined : single(field, depth)
    if (one === undefined) continue
    if (field.oneof !== undefined) {
      const members = oneofs.get(field.oneof) ?? []
      oneofs.set(field.oneof, members)
      members.push(one.map((value) => [field.key, value]))
    } else if (field.mapKey !== undefined) shape[field.key] = fc.dictionary(fc.string(), one, { maxKeys: 2 })
    else if (field.repeated) shape[field.key] = fc.array(one, { maxLength: 2 })
    else shape[field.key] = field.presence ? fc.option(one, { nil: undefined }) : one
  }
  const members = fc.tuple(...[...oneofs.values()].map((list) => fc.option(fc.oneof(...list), { nil: undefined })))
  return fc.tuple(fc.record(shape), members).map(([record, chosen]) => {
    const value: Record<string, unknown> = {}
    for (const [key, member] of Object.entries(record)) if (member !== undefined) value[key] = member
    for (const pair of chosen) if (pair !== undefined) value[pair[0]] = pair[1]
    return value
  })
}

function single({ type }: FieldSchema, depth: number): fc.Arbitrary<unknown> {
  if (type.kind === 'enum') return fc.constantFrom(...Object.keys(type.enum.values))
  if (type.kind === 'message') {
    if (type.message.name === TIMESTAMP)
      return fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
    return arbitrary(type.message, depth - 1)
  }
  switch (type.scalar) {
    case 'string':
      return fc.string({ unit: 'grapheme' })
    case 'bool':
      return fc.boolean()
    case 'bytes':
      return fc.uint8Array({ maxLength: 8 })
    case 'int32':
      return fc.integer()
    case 'uint32':
      return fc.integer({ min: 0, max: 0xffffffff })
    case 'int64':
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    case 'uint64':
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
    case 'double':
      return fc.double()
    case 'float':
      return fc.float()
  }
}
