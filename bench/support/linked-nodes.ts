/**
 * Simulated nodes in a process of their own, each with the membership that a node has, without a disk. Nodes have CPUs of their own, and these share one: so few of
 * them dial at once that none waits for the others in the middle of a handshake. Told `{ count }` it makes them and says `{ keys }`, their raw public keys as
 * hexadecimal text; told `{ hub }` it has them connect and says `{ connected }`. It ends with its parent.
 */
import { type Clock, systemClock } from '../../src/contract/clock.ts'
import { Membership } from '../../src/hub/membership.ts'
import { type Identity, newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import type { Dialled } from '../../src/link/link.ts'
import { dialWith } from '../../src/node/hub-links.ts'
import { createLog } from '../../src/node/log.ts'
import type { SignInRecord } from '../../src/store/sign-in.ts'
import { type HubAsked, recordOf } from './cluster-nodes.ts'

/** Nodes that connect at once at the beginning. */
const AT_ONCE = 32
/** Dials under way at once. */
const DIALS = Number(process.env.PENSTOCK_BENCH_DIALS ?? 32)
/** Each says what it is a second time once it has a link, as one does whose details were set while it was on its way. */
const SAYS_AGAIN = process.env.PENSTOCK_BENCH_SAYS_AGAIN === '1'
/** A dial that takes longer waits for somebody else, and others go on; ms. */
const LONG_MS = 500

const clock: Clock = systemClock
const log = createLog({ level: 'silent', format: 'json' })
let identities: Identity[] = []
const memberships: Membership[] = []
/** How many dial, and those that wait for their turn. */
let dialling = 0
const inLine: (() => void)[] = []

/** Waits in line, then dials: a node is away for as long as both take. */
async function inTurn(dial: () => Promise<Dialled>): Promise<Dialled> {
  if (dialling < DIALS) dialling++
  else await new Promise<void>((resolve) => inLine.push(resolve))
  let isOver = false
  const next = () => {
    if (isOver) return
    isOver = true
    const first = inLine.shift()
    if (first === undefined) dialling--
    else first()
  }
  const timer = setTimeout(next, LONG_MS)
  try {
    return await dial()
  } finally {
    clearTimeout(timer)
    next()
  }
}

function connect(identity: Identity, record: SignInRecord): Promise<void> {
  let signIn: SignInRecord | undefined = record
  const dial = dialWith({ identity, signer: undefined, log, clock, certificateKey: () => undefined })
  const said = recordOf(identity.nodeId)
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
    dial: (request) => inTurn(() => dial(request)),
    record: () => (SAYS_AGAIN ? { ...said } : said),
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
