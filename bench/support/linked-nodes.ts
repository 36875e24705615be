/**
 * Simulated nodes in a process of their own, each with the membership that a node has, without a disk. Told `{ count }` it makes them and says `{ keys }`, their
 * raw public keys as hexadecimal text; told `{ hub }` it has them connect and says `{ connected }`. It ends with its parent.
 */
import { type Clock, systemClock } from '../../src/contract/clock.ts'
import { Membership } from '../../src/hub/membership.ts'
import { type Identity, newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import { dialWith } from '../../src/node/hub-links.ts'
import { createLog } from '../../src/node/log.ts'
import type { SignInRecord } from '../../src/store/sign-in.ts'
import { type HubAsked, recordOf } from './cluster-nodes.ts'

/** Handshakes under way at once. */
const AT_ONCE = 32

const clock: Clock = systemClock
const log = createLog({ level: 'silent', format: 'json' })
let identities: Identity[] = []
const memberships: Membership[] = []

function connect(identity: Identity, record: SignInRecord): Promise<void> {
  let signIn: SignInRecord | undefined = record
  const membership = new Membership({
    signIn: {
      get: () => signIn,
      put: async (next) => {
        signIn = next
      },
      remove: async () => {
        signIn = undefined
      },
    },
    dial: dialWith({ identity, signer: undefined, log, clock }),
    record: () => recordOf(identity.nodeId),
    serve: () => {},
    onFact: () => {},
    clock,
  })
  memberships.push(membership)
  return new Promise((resolve) => {
    membership.onChange((state) => {
      if (state === 'CONNECTED') resolve()
    })
    membership.start()
  })
}

process.on('disconnect', () => process.exit(0))
process.on('message', async ({ count, hub }: { count?: number; hub?: HubAsked }) => {
  if (count !== undefined) {
    identities = Array.from({ length: count }, newIdentity)
    process.send?.({ keys: identities.map(({ publicKey }) => Buffer.from(rawKey(publicKey)).toString('hex')) })
  }
  if (hub === undefined) return
  const { address, hubId } = hub
  const hubKey = Buffer.from(hub.hubKey, 'hex')
  const waiting = [...identities]
  const connectNext = async () => {
    for (let identity = waiting.pop(); identity !== undefined; identity = waiting.pop()) {
      await connect(identity, { hubAddress: address, hubId, hubKey })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, connectNext))
  process.send?.({ connected: true })
})
