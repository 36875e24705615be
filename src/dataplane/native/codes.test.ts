/** GF(2^8) kernels against each other and the definition, AEAD against node:crypto and the RFCs, CRC-32C. */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { usableAeadBackends } from '../../../test/harness/aead-backends.ts'
import { aeadTag, chacha, poly1305 } from '../../../test/harness/chacha.ts'
import { bytesOf, freePacket, openPackets, packetMemory, packetOf, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

/** Multiplication in GF(2^8) with 0x11D, from the definition. */
function multiply(a: number, b: number): number {
  let product = 0
  let x = a
  for (let bits = b; bits; bits >>= 1) {
    if (bits & 1) product ^= x
    x <<= 1
    if (x & 0x100) x ^= 0x11d
  }
  return product
}

describe('GF(2^8) kernels', () => {
  const fastest = native.gfKernel()
  afterEach(() => native.gfUse(fastest))

  test('the fastest is in use and the last one is scalar', () => {
    expect(native.gfKernels()[0]).toBe(fastest)
    expect(native.gfKernels().at(-1)).toBe('scalar')
    expect(() => native.gfUse('abacus')).toThrow(/abacus/)
  })

  for (const kernel of native.gfKernels()) {
    test(`${kernel}: every product of two elements`, () => {
      native.gfUse(kernel)
      expect(native.gfKernel()).toBe(kernel)
      const all = Uint8Array.from({ length: 256 }, (_, i) => i)
      const row = new Uint8Array(256)
      for (let a = 0; a < 256; a++) {
        native.gfMultiplyRows(Uint8Array.of(a), all, row, 1, 1, 256, 256)
        expect(row.every((value, b) => value === multiply(a, b))).toBe(true)
      }
    })

    test(`${kernel}: shapes, tails, offsets and lengths agree with the definition, and nothing else is touched`, () => {
      native.gfUse(kernel)
      const slab = packetMemory(80, 2048)
      const id = native.memoryOpen(slab)
      const shapes: [number, number, number][] = []
      for (const bytes of [0, 1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1200, 1279]) {
        shapes.push([3, 2, bytes])
      }
      for (let m = 0; m <= 14; m++) shapes.push([4, m, 200])
      for (let m = 1; m <= 6; m++) for (const bytes of [256, 300, 383, 449, 520, 700]) shapes.push([2 + m, m, bytes])
      shapes.push([0, 3, 100], [1, 1, 77], [50, 10, 1200], [20, 5, 1199])
      let seed = 1
      for (const [k, m, bytes] of shapes) {
        for (const ragged of [false, true]) {
          slab.data.set(pattern(slab.data.length, seed++))
          const original = slab.data.slice()
          const matrix = pattern(k * m, seed++)
          const shifts = pattern(k + m, seed++)
          const sources = Int32Array.from({ length: k }, (_, i) => i * 2048 + shifts[i]!)
          const targets = Int32Array.from({ length: m }, (_, j) => (60 + j) * 2048 + shifts[k + j]!)
          const cuts = pattern(k, seed++)
          const lengths = ragged ? Int32Array.from({ length: k }, (_, i) => (cuts[i]! * (bytes + 20)) >> 8) : null
          native.gfMatrixMultiply(id, matrix, Int32Array.of(...sources, ...targets), k, m, bytes, lengths)
          const expected = original
          for (let j = 0; j < m; j++) {
            for (let x = 0; x < bytes; x++) {
              let sum = 0
              for (let i = 0; i < k; i++) {
                if (lengths && x >= lengths[i]!) continue
                sum ^= multiply(matrix[j * k + i]!, original[sources[i]! + x]!)
              }
              expected[targets[j]! + x] = sum
            }
          }
          expect(Buffer.compare(slab.data, expected), `k ${k}, m ${m}, ${bytes} bytes, ragged ${ragged}`).toBe(0)
        }
      }
      native.memoryClose(id)
    })
  }

  test.each(native.gfKernels())(
    '%s: symbols lie anywhere in a cache line, and at the beginning of the slab',
    (kernel) => {
      native.gfUse(kernel)
      const [k, m] = [5, 2]
      const matrix = pattern(k * m, 3)
      for (let place = 0; place < 64; place++) {
        const slab = packetMemory(8, 1024)
        const id = native.memoryOpen(slab)
        slab.data.set(pattern(8192, place))
        const bytes = 256 + 7 * place
        const places = Int32Array.from({ length: k + m }, (_, n) => n * 1024 + place)
        const expected = slab.data.slice()
        for (let j = 0; j < m; j++) {
          for (let x = 0; x < bytes; x++) {
            let sum = 0
            for (let i = 0; i < k; i++) sum ^= multiply(matrix[j * k + i]!, slab.data[places[i]! + x]!)
            expected[places[k + j]! + x] = sum
          }
        }
        native.gfMatrixMultiply(id, matrix, places, k, m, bytes)
        expect(Buffer.compare(slab.data, expected), `place ${place}`).toBe(0)
        native.memoryClose(id)
      }
    },
  )

  test('the last bytes of the slab are reached, the ones behind refused', () => {
    const slab = packetMemory(4, 256, 16, 16)
    const id = native.memoryOpen(slab)
    slab.data.set(pattern(1024, 1))
    for (const kernel of native.gfKernels()) {
      native.gfUse(kernel)
      const call = (source: number, target: number, bytes: number, lengths: Int32Array | null) =>
        native.gfMatrixMultiply(id, Uint8Array.of(3), Int32Array.of(source, target), 1, 1, bytes, lengths)
      call(1024 - 77, 0, 77, null)
      expect(slab.data[76]).toBe(multiply(3, slab.data[1023]!))
      call(0, 1024 - 77, 77, null)
      call(1000, 0, 77, Int32Array.of(24))
      expect(slab.data[24]).toBe(0)
      expect(() => call(1024 - 76, 0, 77, null)).toThrow(RangeError)
      expect(() => call(0, 1024 - 76, 77, null)).toThrow(RangeError)
      expect(() => call(-1, 0, 77, null)).toThrow(RangeError)
      expect(() => call(1000, 0, 77, Int32Array.of(25))).toThrow(RangeError)
      expect(() => call(0, 512, 77, Int32Array.of(-1))).toThrow(RangeError)
    }
    native.memoryClose(id)
  })

  describe('products of packets', () => {
    const [k, m, skip] = [3, 2, 5]
    const matrix = pattern(k * m, 7)
    const sizes = [
      [40, 205, 5],
      [77, 77, 77],
      [9, 8, 300],
    ]
    /** What `block` gives, from the definition. */
    const productsOf = (block: Uint8Array[], bytes: number) =>
      Array.from({ length: m }, (_, j) =>
        Uint8Array.from({ length: bytes }, (_, x) =>
          block.reduce((sum, source, i) => sum ^ multiply(matrix[j * k + i]!, source[skip + x] ?? 0), 0),
        ),
      )
    const blocksOf = (memory: PacketMemory) => {
      const sources = sizes.map((block) => block.map((size, i) => pattern(size, size + i)))
      const handles = sources.map((block) => block.map((bytes) => packetOf(memory, bytes)))
      return { sources, list: Int32Array.from(handles.flatMap((block) => [...block, ...Array(m).fill(-7)])) }
    }

    for (const kernel of native.gfKernels()) {
      test(`${kernel}: every block has its own, as long as its longest source, where that lies in its slot`, () => {
        native.gfUse(kernel)
        const memory = packetMemory(40)
        const id = native.memoryOpen(memory)
        const { sources, list } = blocksOf(memory)
        memory.offset[list[1]!]! -= 100
        memory.data.copyWithin(memory.offset[list[1]!]!, memory.offset[list[1]!]! + 100, memory.offset[list[1]!]! + 305)
        expect(native.gfMultiplyPackets(id, matrix, list, sizes.length, k, m, skip)).toBe(sizes.length * m)
        expect(memory.free[0]).toBe(40 - sizes.length * (k + m))
        sources.forEach((block, b) => {
          const made = list.subarray(b * (k + m) + k, (b + 1) * (k + m))
          const longest = Math.max(...sizes[b]!)
          expect([...made].map((packet) => [...bytesOf(memory, packet).subarray(skip)])).toEqual(
            productsOf(block, longest - skip).map((bytes) => [...bytes]),
          )
          for (const packet of made) {
            expect(memory.offset[packet]! - packet * memory.slotBytes).toBe(memory.headroom - (b === 0 ? 100 : 0))
          }
          expect(block.map((_, i) => [...bytesOf(memory, list[b * (k + m) + i]!)])).toEqual(
            block.map((bytes) => [...bytes]),
          )
        })
        expect(new Set(list).size).toBe(list.length)
        native.memoryClose(id)
      })
    }

    test('their annotations are those of the last source of their block, or of the packet that is named', () => {
      for (const like of [undefined, 2]) {
        const memory = packetMemory(40)
        const id = native.memoryOpen(memory)
        const { list } = blocksOf(memory)
        memory.client.set(memory.client.map((_, packet) => packet * 1000))
        memory.arrival.set(memory.arrival.map((_, packet) => packet * 7))
        memory.remote.set(pattern(memory.remote.length, 3))
        const remoteOf = (packet: number) => [...memory.remote.subarray(packet * 32, packet * 32 + 32)]
        const wanted = sizes.map((_, b) => like ?? list[b * (k + m) + k - 1]!)
        const remotes = wanted.map(remoteOf)
        native.gfMultiplyPackets(id, matrix, list, sizes.length, k, m, skip, 0, like ?? -1)
        wanted.forEach((packet, b) => {
          for (const made of list.subarray(b * (k + m) + k, (b + 1) * (k + m))) {
            expect([memory.client[made], memory.arrival[made]]).toEqual([packet * 1000, packet * 7])
            expect(remoteOf(made)).toEqual(remotes[b])
          }
        })
        native.memoryClose(id)
      }
    })

    test('they are as long as asked, sources that are longer count as far as that', () => {
      const memory = packetMemory(40)
      const id = native.memoryOpen(memory)
      const { sources, list } = blocksOf(memory)
      expect(native.gfMultiplyPackets(id, matrix, list, sizes.length, k, m, skip, 150)).toBe(sizes.length * m)
      sources.forEach((block, b) => {
        const made = list.subarray(b * (k + m) + k, (b + 1) * (k + m))
        expect([...made].map((packet) => [...bytesOf(memory, packet).subarray(skip)])).toEqual(
          productsOf(block, 150).map((bytes) => [...bytes]),
        )
      })
      native.memoryClose(id)
    })

    test('of sources in a train they have headroom', () => {
      const memory = packetMemory(8, 2048, 128, 64, 1)
      const id = native.memoryOpen(memory)
      const list = Int32Array.of(packetOf(memory, pattern(60, 1)), -7)
      const at = 8 * 2048
      memory.data.set(pattern(60, 1), at)
      memory.offset[list[0]!] = at
      memory.train[list[0]!] = 1
      memory.trainReferences[0] = 1
      expect(native.gfMultiplyPackets(id, Uint8Array.of(1), list, 1, 1, 1, 0)).toBe(1)
      expect([...bytesOf(memory, list[1]!)]).toEqual([...pattern(60, 1)])
      expect(memory.offset[list[1]!]! - list[1]! * 2048).toBe(128)
      native.memoryClose(id)
    })

    test('where slots run out the last ones are not made, and it says how many were', () => {
      const memory = packetMemory(12)
      const id = native.memoryOpen(memory)
      const { sources, list } = blocksOf(memory)
      expect(native.gfMultiplyPackets(id, matrix, list, sizes.length, k, m, skip)).toBe(3)
      expect(memory.free[0]).toBe(0)
      expect([...list].filter((packet) => packet === -7)).toHaveLength(3)
      expect([...bytesOf(memory, list[k + m + k]!).subarray(skip)]).toEqual([...productsOf(sources[1]!, 72)[0]!])
      native.memoryClose(id)
    })

    test('wrong packets, lists and sizes throw, and nothing is taken', () => {
      const memory = packetMemory(40)
      const id = native.memoryOpen(memory)
      const { list } = blocksOf(memory)
      const call = (change: (list: Int32Array) => void, count = sizes.length, bytes = 0, own = matrix) => {
        const copy = list.slice()
        change(copy)
        return () => native.gfMultiplyPackets(id, own, copy, count, k, m, skip, bytes)
      }
      const as = (at: number, value: number) => (copy: Int32Array) => copy.fill(value, at, at + 1)
      for (const wrong of [-1, 40, 2 ** 31 - 1]) expect(call(as(11, wrong))).toThrow(/packets\[11\]|handle/)
      expect(call(() => {}, 4)).toThrow(/packets/)
      expect(call(() => {}, 3, 0, matrix.subarray(1))).toThrow(/matrix/)
      expect(call(() => {}, 3, 2048)).toThrow(RangeError)
      expect(call(() => {}, 3, 2044)).toThrow(/slot/)
      memory.length[list[10]!] = skip - 1
      expect(call(() => {})).toThrow(/shorter/)
      memory.length[list[10]!] = 5000
      expect(call(() => {})).toThrow(RangeError)
      memory.length[list[10]!] = 100
      memory.free[40 - 9]! = -3 - 40 + (40 - 9)
      memory.free[0] = 31
      expect(call(() => {})).toThrow(/free/)
      native.memoryClose(id)
    })
  })

  test('a matrix times its inverse gives the sources back', () => {
    // [[1, 1], [1, 2]] has determinant 3; its inverse is 1/3 * [[2, 1], [1, 1]].
    let inverse = 1
    while (multiply(inverse, 3) !== 1) inverse++
    const sources = pattern(2 * 999, 4)
    const middle = new Uint8Array(2 * 999)
    const back = new Uint8Array(2 * 999)
    native.gfMultiplyRows(Uint8Array.of(1, 1, 1, 2), sources, middle, 2, 2, 999, 999)
    const undo = Uint8Array.of(multiply(inverse, 2), inverse, inverse, inverse)
    native.gfMultiplyRows(undo, middle, back, 2, 2, 999, 999)
    expect(Buffer.compare(back, sources)).toBe(0)
  })
})

const suites = [
  ['aes-128-gcm', 0, 16],
  ['aes-256-gcm', 1, 32],
  ['chacha20-poly1305', 2, 32],
] as const

describe.each(usableAeadBackends)('AEAD by %s', (backend) => {
  let owner = 0
  const salt = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)
  beforeEach(() => {
    native.aeadUse(backend)
    owner = native.ownerOpen()
  })
  afterEach(() => {
    native.aeadUse('auto')
    native.ownerRelease(owner)
    expect(native.openDescriptors()).toBe(0)
  })

  for (const [name, suite, keyBytes] of suites) {
    test(`${name}: node:crypto opens what was sealed, and the other way round`, () => {
      const memory = packetMemory(32)
      const id = native.memoryOpen(memory)
      const key = pattern(keyBytes, 9)
      const aead = native.aeadOpen(owner, suite, key, salt)
      const sizes = [0, 1, 15, 16, 17, 1200, 1500, 64]
      const handles = Int32Array.from(sizes, (size, i) => packetOf(memory, pattern(size, i)))
      const counter = Float64Array.of(4294967290)
      expect(native.aeadSeal(aead, id, handles, sizes.length, counter, new Int32Array(8), false)).toBe(0)
      expect(counter[0]).toBe(4294967290 + sizes.length)
      handles.forEach((handle, i) => {
        const sealed = Buffer.from(bytesOf(memory, handle))
        expect(sealed.length).toBe(sizes[i]! + 32)
        expect([...sealed.subarray(0, 8)]).toEqual([...salt])
        expect(sealed.readBigUInt64BE(8)).toBe(4294967290n + BigInt(i))
        const nonce = Buffer.concat([Buffer.alloc(4), sealed.subarray(8, 16)])
        const decipher = createDecipheriv(name as 'aes-128-gcm', key, nonce, { authTagLength: 16 })
        decipher.setAAD(sealed.subarray(0, 16))
        decipher.setAuthTag(sealed.subarray(-16))
        const plain = Buffer.concat([decipher.update(sealed.subarray(16, -16)), decipher.final()])
        expect(Buffer.compare(plain, pattern(sizes[i]!, i))).toBe(0)
      })
      expect(openPackets(aead, id, handles)).toEqual(sizes.map(() => 'opened'))
      handles.forEach((handle, i) => {
        expect(Buffer.compare(bytesOf(memory, handle), pattern(sizes[i]!, i))).toBe(0)
      })

      const header = Buffer.concat([salt, Buffer.from([0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])])
      const cipher = createCipheriv(name as 'aes-128-gcm', key, Buffer.concat([Buffer.alloc(4), header.subarray(8)]), {
        authTagLength: 16,
      })
      cipher.setAAD(header)
      const foreign = Buffer.concat([header, cipher.update(pattern(333, 5)), cipher.final(), cipher.getAuthTag()])
      const one = Int32Array.of(packetOf(memory, foreign))
      expect(openPackets(aead, id, one)).toEqual(['opened'])
      expect(Buffer.compare(bytesOf(memory, one[0]!), pattern(333, 5))).toBe(0)
      native.memoryClose(id)
    })

    test(`${name}: any changed bit, a short packet and a foreign key are refused one by one`, () => {
      const memory = packetMemory(400)
      const id = native.memoryOpen(memory)
      const aead = native.aeadOpen(owner, suite, pattern(keyBytes, 9), salt)
      const first = packetOf(memory, pattern(10, 1))
      native.aeadSeal(aead, id, Int32Array.of(first), 1, new Float64Array(1), new Int32Array(1), false)
      const sealed = bytesOf(memory, first)
      const bad: Uint8Array[] = []
      for (let bit = 0; bit < sealed.length * 8; bit += 3) {
        const copy = sealed.slice()
        copy[bit >> 3]! ^= 1 << (bit & 7)
        bad.push(copy)
      }
      bad.push(sealed.slice(0, 31), sealed.slice(0, -1), new Uint8Array(0))
      const list = Int32Array.from([...bad, sealed], (bytes) => packetOf(memory, bytes))
      const expected = bad.map(({ length }, i) => (length < 32 ? 'malformed' : 3 * i < 64 ? 'foreign' : 'forged'))
      expect(openPackets(aead, id, list)).toEqual([...expected, 'opened'])
      expect(Buffer.compare(bytesOf(memory, list.at(-1)!), pattern(10, 1))).toBe(0)
      const other = native.aeadOpen(owner, suite, pattern(keyBytes, 10), salt)
      expect(openPackets(other, id, Int32Array.of(packetOf(memory, sealed)))).toEqual(['forged'])
      native.memoryClose(id)
    })
  }

  test('suite 3 leaves the payload in clear and signs it with the tag of RFC 8439, section 2.8, of an empty text', () => {
    // The vectors of sections 2.5.2 and 2.8.2, of what is compared with.
    const text = new TextEncoder().encode('Cryptographic Forum Research Group')
    const oneTime = Buffer.from('85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b', 'hex')
    expect(Buffer.from(poly1305(oneTime, text)).toString('hex')).toBe('a8061dc1305136c6c22b8baf0c0127a9')
    const sunscreen =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
    const rfcKey = Uint8Array.from({ length: 32 }, (_, i) => 0x80 + i)
    const rfcNonce = Buffer.from('070000004041424344454647', 'hex')
    const rfcStream = chacha(rfcKey, rfcNonce, sunscreen.length, 1)
    const cipherText = new TextEncoder().encode(sunscreen).map((byte, i) => byte ^ rfcStream[i]!)
    const rfcAssociated = Buffer.from('50515253c0c1c2c3c4c5c6c7', 'hex')
    expect(Buffer.from(aeadTag(rfcKey, rfcNonce, rfcAssociated, cipherText)).toString('hex')).toBe(
      '1ae10b594f09e26a7e902ecbd0600691',
    )

    const memory = packetMemory(32)
    const id = native.memoryOpen(memory)
    const key = pattern(32, 9)
    const signing = native.aeadOpen(owner, 3, key, salt)
    const sizes = [0, 1, 15, 16, 17, 1200, 1500, 64]
    const handles = Int32Array.from(sizes, (size, i) => packetOf(memory, pattern(size, i)))
    const counter = Float64Array.of(4294967290)
    expect(native.aeadSeal(signing, id, handles, sizes.length, counter, new Int32Array(8), false)).toBe(0)
    expect(counter[0]).toBe(4294967290 + sizes.length)
    handles.forEach((handle, i) => {
      const signed = Buffer.from(bytesOf(memory, handle))
      const clear = signed.subarray(0, -16)
      expect([...clear.subarray(0, 8)]).toEqual([...salt])
      expect(clear.readBigUInt64BE(8)).toBe(4294967290n + BigInt(i))
      expect(Buffer.compare(clear.subarray(16), pattern(sizes[i]!, i))).toBe(0)
      const nonce = Buffer.concat([Buffer.alloc(4), clear.subarray(8, 16)])
      expect(Buffer.compare(signed.subarray(-16), aeadTag(key, nonce, clear, new Uint8Array(0)))).toBe(0)
    })
    const wire = bytesOf(memory, handles[4]!)
    expect(openPackets(signing, id, handles)).toEqual(sizes.map(() => 'opened'))
    handles.forEach((handle, i) => {
      expect(Buffer.compare(bytesOf(memory, handle), pattern(sizes[i]!, i))).toBe(0)
    })

    const one = handles.subarray(0, 1)
    for (let bit = 0; bit < wire.length * 8; bit++) {
      const bad = wire.slice()
      bad[bit >> 3]! ^= 1 << (bit & 7)
      freePacket(memory, one[0]!)
      one[0] = packetOf(memory, bad)
      const context = bit < 64 ? native.aeadOpen(owner, 3, key, bad.subarray(0, 8)) : signing
      expect(openPackets(context, id, one), `bit ${bit}`).toEqual(['forged'])
    }
    // What a sealing context of the same key makes is none of a signing one's, and the other way round.
    const sealing = native.aeadOpen(owner, 2, key, salt)
    const pair = Int32Array.of(packetOf(memory, pattern(40, 1)), packetOf(memory, pattern(40, 1)))
    native.aeadSeal(sealing, id, pair.subarray(0, 1), 1, Float64Array.of(1), new Int32Array(1), false)
    native.aeadSeal(signing, id, pair.subarray(1), 1, Float64Array.of(1), new Int32Array(1), false)
    expect(openPackets(signing, id, pair.subarray(0, 1))).toEqual(['forged'])
    expect(openPackets(sealing, id, pair.subarray(1))).toEqual(['forged'])
    native.memoryClose(id)
  })

  test('packets without headroom or tailroom are left alone and named', () => {
    const memory = packetMemory(4, 256, 16, 16)
    const id = native.memoryOpen(memory)
    const aead = native.aeadOpen(owner, 0, pattern(16, 1), salt)
    const handles = Int32Array.from([0, 1, 2], (i) => packetOf(memory, pattern(100, i)))
    memory.offset[handles[0]!]! -= 1
    memory.length[handles[1]!] = 225
    const failed = new Int32Array(3)
    const counter = Float64Array.of(7)
    expect(native.aeadSeal(aead, id, handles, 3, counter, failed, false)).toBe(2)
    expect([...failed]).toEqual([0, 1, 0])
    expect(counter[0]).toBe(8)
    expect(memory.length[handles[0]!]).toBe(100)
    expect(memory.length[handles[2]!]).toBe(132)
    native.memoryClose(id)
  })

  test('wrong keys, suites and counters throw', () => {
    const memory = packetMemory(4)
    const id = native.memoryOpen(memory)
    expect(() => native.aeadOpen(owner, 0, new Uint8Array(15), salt)).toThrow(/15 bytes/)
    expect(() => native.aeadOpen(owner, 4 as 0, new Uint8Array(16), salt)).toThrow(RangeError)
    expect(() => native.aeadOpen(owner, 3, new Uint8Array(16), salt)).toThrow(/16 bytes/)
    expect(() => native.aeadOpen(owner, 0, 'key' as unknown as Uint8Array, salt)).toThrow(TypeError)
    const aead = native.aeadOpen(owner, 2, new Uint8Array(32), salt)
    const list = Int32Array.of(packetOf(memory, pattern(5, 1)))
    for (const wrong of [-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => native.aeadSeal(aead, id, list, 1, Float64Array.of(wrong), new Int32Array(1), false)).toThrow(
        RangeError,
      )
    }
    expect(Buffer.compare(bytesOf(memory, list[0]!), pattern(5, 1))).toBe(0)
    native.memoryClose(id)
  })
})

test('CRC-32C of the check string and of RFC 3720 B.4', () => {
  const memory = packetMemory(2)
  const id = native.memoryOpen(memory)
  memory.data.set(new TextEncoder().encode('123456789'), 100)
  expect(native.crc32c(id, 100, 9)).toBe(0xe3069283)
  memory.data.fill(0, 0, 32)
  expect(native.crc32c(id, 0, 32)).toBe(0x8a9136aa)
  memory.data.fill(0xff, 0, 32)
  expect(native.crc32c(id, 0, 32)).toBe(0x62a8ab43)
  for (let i = 0; i < 32; i++) memory.data[i] = i
  expect(native.crc32c(id, 0, 32)).toBe(0x46dd794e)
  expect(native.crc32c(id, 4096, 0)).toBe(0)
  expect(() => native.crc32c(id, 4090, 7)).toThrow(RangeError)
  native.memoryClose(id)
})
