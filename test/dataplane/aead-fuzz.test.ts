/** Random messages of all lengths, sealed by one backend and opened by another, and with a bit changed refused by both. */
import { describe, expect, test } from 'vitest'
import { Random } from '../../src/dataplane/engine/random.ts'
import type { AeadBackendName } from '../../src/dataplane/native/cipher-calls.ts'
import { bytesOf, freePacket, openPackets, packetMemory, packetOf } from '../../src/dataplane/native/fixture.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { usableAeadBackends } from '../harness/aead-backends.ts'
import { FuzzRound, SEED } from '../harness/fuzz-round.ts'

const SUITES = [
  ['AES-128-GCM', 0, 16],
  ['AES-256-GCM', 1, 32],
  ['ChaCha20-Poly1305', 2, 32],
  ['Poly1305', 3, 32],
] as const
/** Messages of the short round, for each suite. */
const SHORT = 10_000
const LONGEST = 9000
const BATCH = 64
/** Batches of one key. */
const ONE_KEY = 50

const alone = usableAeadBackends.length < 2
if (alone) console.warn('BACKENDS ARE NOT COMPARED: there is none but OpenSSL, install libipsec-mb-dev')

describe.skipIf(alone)(`seed ${SEED}`, () => {
  test.each(SUITES)(
    '%s',
    (name, suite, keyBytes) => {
      const round = new FuzzRound(SUITES.length, SHORT)
      const random = new Random(SEED + suite)
      const pool = new Uint8Array(1 << 20)
      random.fill(pool, 0, pool.length)
      const piece = (bytes: number) => {
        const at = random.below(pool.length - bytes)
        return pool.subarray(at, at + bytes)
      }
      const memory = packetMemory(BATCH, LONGEST + 192, 128, 64)
      const id = native.memoryOpen(memory)
      let messages = 0
      let altered = 0
      for (const { end } = round; messages < round.inputs && performance.now() < end; ) {
        const owner = native.ownerOpen()
        const key = piece(keyBytes).slice()
        const salt = piece(8).slice()
        const contexts = usableAeadBackends.map((backend: AeadBackendName) => {
          native.aeadUse(backend)
          return native.aeadOpen(owner, suite, key, salt)
        })
        const counter = Float64Array.of(random.below(2 ** 31) * 2 ** 21)
        for (let batch = 0; batch < ONE_KEY && messages < round.inputs; batch++, messages += BATCH) {
          const first = random.below(contexts.length)
          const sealing = contexts[first]
          const opening = contexts[(first + 1 + random.below(contexts.length - 1)) % contexts.length]
          const plain = Array.from({ length: BATCH }, () => piece(random.below(LONGEST + 1)))
          const handles = Int32Array.from(plain, (text) => packetOf(memory, text))
          if (native.aeadSeal(sealing, id, handles, BATCH, counter, new Int32Array(BATCH), false) !== 0)
            throw new Error(name)
          // One of them is altered, and refused by both.
          const victim = random.below(BATCH)
          const sealed = bytesOf(memory, handles[victim])
          sealed[random.below(sealed.length)] ^= 1 << random.below(8)
          const forged = Int32Array.of(handles[victim])
          for (const context of [sealing, opening]) {
            memory.data.set(sealed, memory.offset[forged[0]])
            if (openPackets(context, id, forged)[0] === 'opened') throw new Error(`${name}: a forged packet`)
            altered++
          }
          const outcomes = openPackets(opening, id, handles)
          expect(outcomes.filter((outcome) => outcome === 'opened')).toHaveLength(BATCH - 1)
          for (let i = 0; i < BATCH; i++) {
            if (i !== victim && Buffer.compare(bytesOf(memory, handles[i]), plain[i]) !== 0) {
              throw new Error(`${name}: message ${messages + i} of ${plain[i].length} bytes came out as another`)
            }
            freePacket(memory, handles[i])
          }
        }
        native.ownerRelease(owner)
      }
      native.aeadUse('auto')
      native.memoryClose(id)
      expect(messages).toBeGreaterThan(0)
      round.report(`${name}: ${messages} messages, ${altered} altered ones refused, seed ${SEED}`)
    },
    new FuzzRound(SUITES.length, SHORT).timeout,
  )
})
