/** Frames as bytes: what has once been on a wire stays what it is. */
import { expect, test } from 'vitest'
import {
  decodeFrame,
  decodeRecord,
  decodeVerdictBody,
  encodeFrame,
  encodeHubHelloBody,
  encodeMessageFrame,
  encodeRecord,
  encodeRecordFrame,
  encodeVerdictBody,
  endFrame,
  type Frames,
  MAX_FRAGMENT_BYTES,
} from './messages.ts'
import { record } from './testing.ts'

const key = new Uint8Array(32).fill(1)
const nonce = new Uint8Array(32).fill(2)
const signature = new Uint8Array(64).fill(3)
const [keyHex, nonceHex, signatureHex] = ['01'.repeat(32), '02'.repeat(32), '03'.repeat(64)]

/** Recorded from versions 1 and 2 of the protocol as they first were: the member, its value, its frame. */
const recorded: { [Name in Exclude<keyof Frames, 'record'>]: readonly (readonly [Frames[Name], string])[] } = {
  hello: [
    [
      { version: 1, nodeKey: key, nonce, intent: 'JOIN', certificateFingerprint: new Uint8Array(0), newestVersion: 0 },
      `0a4808011220${keyHex}1a20${nonceHex}2001`,
    ],
    [
      { version: 1, nodeKey: key, nonce, intent: 'CONNECT', certificateFingerprint: nonce, newestVersion: 0 },
      `0a6a08011220${keyHex}1a20${nonceHex}20022a20${nonceHex}`,
    ],
    [
      { version: 1, nodeKey: key, nonce, intent: 'JOIN', certificateFingerprint: new Uint8Array(0), newestVersion: 2 },
      `0a4a08011220${keyHex}1a20${nonceHex}20013002`,
    ],
  ],
  hubHello: [[{ body: key, signature }, `12640a20${keyHex}1240${signatureHex}`]],
  proof: [[{ record: key, signature }, `1a640a20${keyHex}1240${signatureHex}`]],
  pending: [[{}, '2200']],
  verdict: [[{ body: key, signature }, `2a640a20${keyHex}1240${signatureHex}`]],
  open: [
    [
      {
        stream: 1,
        operation: 'getNodes',
        target: '',
        requestContinues: false,
        deadlineMs: 0,
        origin: 'node',
      },
      '4212080112086765744e6f6465733a046e6f6465',
    ],
    [
      {
        stream: 0xffff_fffe,
        operation: 'getNodes',
        target: 'x',
        request: new Uint8Array(0),
        requestContinues: true,
        deadlineMs: 0xffff_ffff,
        origin: '',
      },
      '421d08feffffff0f12086765744e6f6465731a01782200280130ffffffff0f',
    ],
    [
      {
        stream: 300,
        operation: 'getNodes',
        target: 'x',
        request: Uint8Array.of(1, 2, 3),
        requestContinues: false,
        deadlineMs: 15_000,
        origin: '',
      },
      '421808ac0212086765744e6f6465731a01782203010203309875',
    ],
  ],
  message: [
    [{ stream: 1, payload: new Uint8Array(0), more: false }, '4a020801'],
    [{ stream: 0, payload: new Uint8Array(0), more: true }, '4a021801'],
    [{ stream: 128, payload: Uint8Array.of(7, 8), more: true }, '4a09088001120207081801'],
    [
      { stream: 1, payload: new Uint8Array(MAX_FRAGMENT_BYTES), more: false },
      `4a868002080112808002${'00'.repeat(MAX_FRAGMENT_BYTES)}`,
    ],
  ],
  halfClose: [[{ stream: 5 }, '52020805']],
  end: [
    [{ stream: 7, code: 0, message: '', details: [], notHere: false }, '5a020807'],
    [{ stream: 7, code: 14, message: '', details: [], notHere: true }, '5a060807100e2801'],
    [
      {
        stream: 7,
        code: 5,
        message: 'no pipeline “x”',
        details: [
          { pointer: '/id', message: 'unknown' },
          { pointer: '', message: '' },
        ],
        notHere: false,
      },
      '5a2b080710051a136e6f20706970656c696e6520e2809c78e2809d220e0a032f69641207756e6b6e6f776e2200',
    ],
  ],
  cancel: [[{ stream: 0 }, '6200']],
  window: [[{ stream: 2, credit: 65_536 }, '6a06080210808004']],
  ping: [[{ sequence: 0 }, '820100']],
  pong: [[{ sequence: 4_000_000_000 }, '8a01060880d0acf30e']],
  removed: [[{ signature }, `9a01420a40${signatureHex}`]],
  leave: [[{}, 'a20100']],
  left: [[{}, 'aa0100']],
  servers: [[{ body: key, signature }, `b201640a20${keyHex}1240${signatureHex}`]],
  lookElsewhere: [[{}, 'ba0100']],
  stay: [[{}, 'c20100']],
  memberRemoved: [[{ nodeId: 'n', revision: 300n }, 'ca01060a016e10ac02']],
}

const frames = Object.entries(recorded).flatMap(([kind, rows]) =>
  rows.map(([value, hex]) => [kind as keyof typeof recorded, value, hex] as const),
)

test.each(frames)('%s %o is as recorded', (kind, value, hex) => {
  expect(hexOf(encodeFrame(kind, value as never))).toBe(hex)
})

test.each(frames)('%s %o is what was encoded', (kind, value, hex) => {
  const read = decodeFrame(Buffer.from(hex, 'hex'))
  expect(read.kind).toBe(kind)
  expect(plain(read.value)).toEqual(plain(value))
})

test.each([0, 1, 127, 128, 16_383, 16_384, 2 ** 21 - 1, 2 ** 21, 2 ** 28, 2 ** 32 - 1])(
  'a Message frame of stream %d is what the codec makes of it',
  (stream) => {
    for (const length of [0, 1, 113, 122, 123, 124, 125, 127, 128, 16_370, 16_384, MAX_FRAGMENT_BYTES]) {
      const payload = new Uint8Array(length).fill(5)
      for (const more of [false, true]) {
        expect(encodeMessageFrame(stream, payload, more)).toEqual(encodeFrame('message', { stream, payload, more }))
      }
    }
  },
)

test('records and signed bodies are as recorded', () => {
  const body =
    '0a056e6f72746812560a0e0a06726567696f6e12040a0265750a0f0a0673657269616c120512030102030a130a0472616e6b120b18ffffffffffffffffbf01' +
    '0a110a046c6f6164120921000000000000d03f0a0b0a057370617265120228001a0101'
  expect(hexOf(encodeRecord(record))).toBe(body)
  expect(hexOf(encodeRecordFrame(record))).toBe(`920162${body}`)
  const odd = {
    name: '',
    metadata: {
      items: {
        '': {},
        z: { intValue: 0n },
        b: { bytesValue: new Uint8Array(0) },
        m: { intValue: 2n ** 62n },
        d: { doubleValue: 0 },
      },
    },
    services: [],
  }
  const oddBody =
    '12390a040a0012000a070a017a120218000a070a0162120212000a0f0a016d120a188080808080808080400a0e0a01641209210000000000000000'
  expect(hexOf(encodeRecord(odd))).toBe(oddBody)
  expect(decodeRecord(Buffer.from(oddBody, 'hex'))).toEqual(odd)
  expect(hexOf(encodeRecord({ name: 'a', metadata: { items: {} }, services: ['HUB_SERVER', 'PIPELINES'] }))).toBe(
    '0a016112001a020001',
  )
  expect(hexOf(encodeHubHelloBody({ hubKey: key, nonce }))).toBe(`0a20${keyHex}1220${nonceHex}`)
  expect(hexOf(encodeVerdictBody({ welcome: {} }))).toBe('0a00')
  expect(hexOf(encodeVerdictBody({ refused: { reason: 'REJECTED', message: 'no' } }))).toBe('1206080312026e6f')
})

test('what a later version says is read as far as this one knows it', () => {
  // NodeRecord.services: PIPELINES, and a number that no service has yet.
  expect(decodeRecord(Buffer.from('1a020109', 'hex')).services).toEqual(['PIPELINES'])
  expect(decodeVerdictBody(Buffer.from('1206087812026e6f', 'hex'))).toEqual({ refused: { reason: 120, message: 'no' } })
  expect(decodeFrame(Buffer.from('520208059a06027a7a', 'hex'))).toMatchObject({
    kind: 'halfClose',
    value: { stream: 5 },
  })
})

test('a failure whose words hold half a surrogate pair is one that the other side can read', () => {
  // A key of a configuration, escaped in JSON, comes back in the pointer of its problem.
  const status = {
    code: 'INVALID_ARGUMENT',
    message: '\ud800',
    details: [{ pointer: '/\udfff', message: 'x' }],
  } as const
  expect(decodeFrame(endFrame(1, status))).toMatchObject({
    kind: 'end',
    value: { message: '\ufffd', details: [{ pointer: '/\ufffd', message: 'x' }] },
  })
})

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Its byte fields as arrays, whichever kind they are. */
function plain(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, member instanceof Uint8Array ? [...member] : member]),
  )
}
