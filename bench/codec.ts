/** codec: answers and events as bytes and as JSON, against protobufjs with the same protos and against JSON.parse and JSON.stringify. */
import { decodeBinary } from '../src/contract/binary-decode.ts'
import { encodeBinary } from '../src/contract/binary-encode.ts'
import { decodeJson } from '../src/contract/json-decode.ts'
import { jsonEncoder } from '../src/contract/json-encode.ts'
import { loadOperations } from '../src/contract/operations.ts'
import { readProtoFiles } from '../src/contract/proto-files.ts'
import { type Bench, type BenchRow, runAlone } from './measure.ts'
import { nanoseconds } from './support/suite.ts'

/** The responses measured, as their JSON has them. */
const answers = {
  getLocalNodeId: { nodeId: 'zdom4rgg7bt7wouhietuw3vira' },
  getPipelineById: {
    pipeline: {
      id: 'jx5hz2ylwbbufpd7mdyvbt6o3e',
      name: 'uplink',
      jsonConfig: JSON.stringify({ engine_config: { pipeline: { in: { udp: { output: 'a' } } } } }),
      started: true,
      restartPolicy: { onFailure: { maxRestarts: 5 } },
      startupPolicy: { auto: {} },
      instructionsTimeout: 10,
    },
  },
}

export const bench: Bench = async () => {
  const rows: BenchRow[] = []
  for (const [name, json] of Object.entries(answers)) {
    const operation = loadOperations().find((candidate) => candidate.name === name)
    if (operation === undefined) throw new Error(`there is no operation ${name}`)
    const { response } = operation
    const value = decodeJson(response, json)
    const toJson = jsonEncoder(response)
    const text = toJson(value)
    const bytes = encodeBinary(response, value)
    const type = readProtoFiles('servicegrpc').root.lookupType(response.name)
    const message = type.decode(bytes)
    if (!Buffer.from(type.encode(message).finish()).equals(bytes)) throw new Error(`${name}: the codecs disagree`)
    const taken = nanoseconds({
      encode: () => encodeBinary(response, value),
      libraryEncode: () => type.encode(message).finish(),
      decode: () => decodeBinary(response, bytes),
      libraryDecode: () => type.decode(bytes),
      stringify: () => toJson(value),
      bareStringify: () => JSON.stringify(json),
      parse: () => decodeJson(response, JSON.parse(text)),
      bareParse: () => JSON.parse(text),
    })
    const row = (what: string, own: number, other: number): BenchRow => {
      return { label: `${name} ${what}`, value: own, unit: 'ns', ratio: other / own }
    }
    rows.push(
      row('to bytes, against protobufjs', taken.encode, taken.libraryEncode),
      row('from bytes, against protobufjs', taken.decode, taken.libraryDecode),
      row('to JSON, against JSON.stringify', taken.stringify, taken.bareStringify),
      row('from JSON, against JSON.parse', taken.parse, taken.bareParse),
    )
  }
  return { name: 'codec: messages of the API', rows }
}

await runAlone(import.meta.url, bench)
