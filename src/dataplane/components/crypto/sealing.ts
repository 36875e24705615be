/** What puts salt and counter in front of every packet: batches sealed by a call of the addon, and what has no room dropped. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { ComponentContext } from '../../engine/component.ts'
import type { Receiver } from '../../engine/flow.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { aeadBackendText } from '../../native/aead-backends.ts'
import { native } from '../../native/native.ts'
import { ownSalts } from './own-salts.ts'
import { deriveKey, SALT_BYTES, SEALED_BYTES, type SuiteKey } from './suites.ts'

/** As `native.aeadSeal`: seals `handles[0..count)`, advances the counter, writes the indices of what has no room to `failed`. */
export type Seal = (handles: Int32Array, count: number, counter: Float64Array, failed: Int32Array) => number

/** The salt of this run of an encrypter or signer, known to the run's receivers as its own from now on. */
export function drawSalt(context: Pick<ComponentContext<never, never>, 'name' | 'entropy' | 'shared'>): Uint8Array {
  const salt = context.entropy(SALT_BYTES)
  ownSalts(context).add(salt, context.name)
  return salt
}

/** Seals every batch, whose packets grow by `bytes` bytes each, and sends it on; `sealed` and `noRoom` count packets. */
export function sealing(
  { packets }: Pick<ComponentContext<never, never>, 'packets'>,
  outlet: Outlet,
  sealed: Counter,
  noRoom: Counter,
  bytes: number,
  seal: Seal,
): Receiver {
  const counter = new Float64Array(1)
  const failed = new Int32Array(BATCH_CAPACITY)
  return (batch) => {
    const { handles, length } = batch
    const failures = seal(handles, length, counter, failed)
    if (failures === 0) {
      sealed.add(length)
      outlet.sendOf(batch, batch.bytes + length * bytes)
      return
    }
    for (let n = 0; n < failures; n++) {
      packets.release(handles[failed[n]])
      handles[failed[n]] = -1
    }
    let kept = 0
    for (let i = 0; i < length; i++) if (handles[i] >= 0) handles[kept++] = handles[i]
    batch.length = kept
    noRoom.add(failures)
    sealed.add(kept)
    outlet.send(batch)
  }
}

/** The input of ssl_encrypt and ssl_poly1305_signer, and what ends it: a key derived from that of `suite` for this run alone. */
export function aeadSealing(
  context: Pick<
    ComponentContext<never, never>,
    'name' | 'entropy' | 'shared' | 'packets' | 'memory' | 'owner' | 'log' | 'grows'
  >,
  suite: SuiteKey,
  outlet: Outlet,
  sealed: Counter,
  noRoom: Counter,
): { input: Receiver; stop(): void } {
  const salt = drawSalt(context)
  const key = deriveKey(suite, salt)
  const aead = native.aeadOpen(context.owner(), suite.code, key, salt)
  key.fill(0)
  context.log('INFO', `${suite.verb} with ${suite.name} by ${aeadBackendText()}`, { backend: native.aeadBackend() })
  const slab = context.memory()
  const together = !context.grows()
  const seal: Seal = (handles, count, counter, failed) =>
    native.aeadSeal(aead, slab, handles, count, counter, failed, together)
  return { input: sealing(context, outlet, sealed, noRoom, SEALED_BYTES, seal), stop: () => native.close(aead) }
}
