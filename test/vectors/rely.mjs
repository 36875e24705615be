/**
 * `node test/vectors/rely.mjs` writes rely.json: packets as rely_encoder makes them. Written from docs/wire-formats.md alone, without anything of src, so
 * that it says what another program would make.
 */
import { writeFileSync } from 'node:fs'

const SESSION = 0x5a17c3

function tinymt32(seed) {
  const state = Uint32Array.of(seed, 0x8f7011ee, 0xfc78ff1f, 0x3793fdff)
  const step = () => {
    let y = state[3]
    let x = (state[0] & 0x7fffffff) ^ state[1] ^ state[2]
    x ^= x << 1
    y ^= (y >>> 1) ^ x
    state[0] = state[1]
    state[1] = state[2]
    state[2] = x ^ (y << 10)
    state[3] = y
    if ((y & 1) === 0) return
    state[1] ^= 0x8f7011ee
    state[2] ^= 0xfc78ff1f
  }
  for (let i = 1; i < 8; i++) {
    const before = state[(i - 1) % 4]
    state[i % 4] ^= i + Math.imul(1812433253, before ^ (before >>> 30))
  }
  for (let i = 0; i < 8; i++) step()
  return () => {
    step()
    const sum = state[0] + (state[2] >>> 8)
    return (state[3] ^ sum ^ (sum % 2 === 1 ? 0x3793fdff : 0)) >>> 0
  }
}

function coefficients(key, count) {
  const draw = tinymt32(key)
  const drawn = []
  while (drawn.length < count) {
    const byte = draw() & 255
    if (byte !== 0) drawn.push(byte)
  }
  return drawn
}

function multiply(a, b) {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) {
    product <<= 1
    if (product & 0x100) product ^= 0x11d
    if ((b >> bit) & 1) product ^= a
  }
  return product
}

function number(value, bytes) {
  return Array.from({ length: bytes }, (_, i) => Math.floor(value / 2 ** (8 * (bytes - 1 - i))) % 256)
}

const symbolOf = (payload) => [...number(payload.length, 2), ...payload]
const source = (payload, n) => [0xb8, ...number(SESSION, 3), ...number(n, 4), ...symbolOf(payload)]

function repair(payloads, first, key) {
  const symbols = payloads.map(symbolOf)
  const sum = new Array(Math.max(...symbols.map(({ length }) => length))).fill(0)
  const factors = coefficients(key, symbols.length)
  symbols.forEach((symbol, i) => {
    symbol.forEach((byte, at) => {
      sum[at] ^= multiply(byte, factors[i])
    })
  })
  return [0xb9, ...number(SESSION, 3), ...number(first, 4), ...number(payloads.length, 2), ...number(key, 2), ...sum]
}

/** The packets of one encoder that was given `payloads` within its time window. */
function packetsOf(payloads, { repair_target_rate: rate, max_payloads: window }) {
  const packets = []
  let credit = 0
  let key = 0
  payloads.forEach((payload, n) => {
    packets.push(source(payload, n))
    for (credit += rate; credit >= 1; credit--) {
      const first = Math.max(0, n + 1 - window)
      packets.push(repair(payloads.slice(first, n + 1), first, key++))
    }
  })
  return packets
}

const hex = (bytes) => Buffer.from(bytes).toString('hex')
const bytes = (length, salt) => Array.from({ length }, (_, i) => (i * i + 37 * salt + 11 * i) % 256)
const CASES = [
  { what: 'one payload, one repair', sizes: [5], rate: 1, window: 8, lost: [0] },
  { what: 'an empty payload', sizes: [0, 3, 0], rate: 1, window: 8, lost: [0, 2] },
  { what: 'payloads of several lengths', sizes: [20, 1, 33, 7, 12, 40, 2, 2], rate: 0.25, window: 64, lost: [1, 5] },
  {
    what: 'a window that moves on',
    sizes: Array.from({ length: 24 }, (_, i) => 3 + (i % 5)),
    rate: 0.5,
    window: 6,
    lost: [4, 12, 13],
  },
  { what: 'more repairs than sources', sizes: [9, 9, 9], rate: 2, window: 4, lost: [0, 1, 2] },
]

const cases = CASES.map(({ what, sizes, rate, window, lost }) => {
  const payloads = sizes.map((length, i) => bytes(length, i + 1))
  const encoder = { repair_target_rate: rate, max_payloads: window }
  return { what, encoder, payloads: payloads.map(hex), packets: packetsOf(payloads, encoder).map(hex), lost }
})
const told = { session: SESSION, cases }
writeFileSync(new URL('rely.json', import.meta.url), `${JSON.stringify(told, null, 2)}\n`)
