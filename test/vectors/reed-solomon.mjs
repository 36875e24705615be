/**
 * Writes reed_solomon.json: `node test/vectors/reed-solomon.mjs && npx biome check --write test/vectors`. It shares no
 * code with the components: it follows docs/wire-formats.md.
 */
import { writeFileSync } from 'node:fs'

/** What an encoder draws at its start in a run with seed 1. */
const SESSION = 0xd4e5b3

const CASES = [
  { name: 'payloads of different sizes, one of them empty', symbols: 4, repair: 2, sizes: [10, 300, 0, 77] },
  { name: 'payloads of one size', symbols: 10, repair: 4, sizes: Array(10).fill(120) },
  { name: 'three blocks', symbols: 8, repair: 2, sizes: Array.from({ length: 24 }, (_, n) => (n * 7) % 40) },
  { name: 'a block closed early by FLUSH', symbols: 6, repair: 3, sizes: [64, 33] },
  { name: 'every packet repeated', symbols: 1, repair: 1, sizes: [5, 40] },
  {
    name: 'as many symbols as a block can have',
    symbols: 200,
    repair: 55,
    sizes: Array.from({ length: 200 }, (_, n) => n % 5),
  },
]

/** a · b in GF(2^8) with the polynomial 0x11D. */
function product(a, b) {
  let sum = 0
  for (let bit = 7; bit >= 0; bit--) {
    sum <<= 1
    if (sum & 0x100) sum ^= 0x11d
    if ((b >> bit) & 1) sum ^= a
  }
  return sum
}

function inverse(a) {
  let b = 1
  while (product(a, b) !== 1) b++
  return b
}

function packetOf(kind, { symbols, repair }, index, closing, block, symbol) {
  const packet = Buffer.alloc(12 + symbol.length)
  packet.set([kind, symbols, repair, index])
  packet.writeUInt32BE(SESSION * 256 + closing, 4)
  packet.writeUInt32BE(block, 8)
  symbol.copy(packet, 12)
  return packet
}

function blockOf(shape, payloads, block) {
  const symbols = payloads.map((payload) =>
    Buffer.concat([Buffer.from([payload.length >> 8, payload.length & 255]), payload]),
  )
  const bytes = Math.max(...symbols.map(({ length }) => length))
  const sources = symbols.map((symbol, i) => packetOf(0xb0, shape, i, 0, block, symbol))
  const repairs = Array.from({ length: shape.repair }, (_, j) => {
    const sum = Buffer.alloc(bytes)
    symbols.forEach((symbol, i) => {
      const coefficient = inverse((255 - j) ^ i)
      symbol.forEach((byte, at) => {
        sum[at] ^= product(coefficient, byte)
      })
    })
    return packetOf(0xb1, shape, j, payloads.length, block, sum)
  })
  return [...sources, ...repairs]
}

let state = 1
function bytesOf(length) {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at++) {
    state = (state * 75) % 65_537
    bytes[at] = state
  }
  return bytes
}

const hex = (list) => list.map((bytes) => bytes.toString('hex'))
const cases = CASES.map(({ name, sizes, ...shape }) => {
  const payloads = sizes.map(bytesOf)
  const packets = []
  for (let at = 0, block = 0; at < payloads.length; at += shape.symbols, block++) {
    packets.push(...blockOf(shape, payloads.slice(at, at + shape.symbols), block))
  }
  return { name, seed: 1, ...shape, payloads: hex(payloads), packets: hex(packets) }
})
writeFileSync(new URL('reed_solomon.json', import.meta.url), `${JSON.stringify({ cases }, null, 2)}\n`)
