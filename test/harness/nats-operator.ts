/** An operator of NATS as `nsc` makes one: a server that lets in whoever shows a credentials file, and such files (docs.nats.io, JWT of NATS). */
import { createHash } from 'node:crypto'
import { nkeys } from '@nats-io/transport-node'

type KeyPair = ReturnType<typeof nkeys.createUser>

const base64url = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64url')

/** A claim about `subject` that `issuer` signs, version 2. */
function claim(issuer: KeyPair, subject: string, name: string, nats: object, more: object = {}): string {
  const header = base64url(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }))
  const about = { iss: issuer.getPublicKey(), sub: subject, name, iat: 0, ...more, nats: { version: 2, ...nats } }
  const jti = createHash('sha256').update(JSON.stringify(about)).digest('hex')
  const body = `${header}.${base64url(JSON.stringify({ ...about, jti }))}`
  return `${body}.${base64url(issuer.sign(Buffer.from(body)))}`
}

const UNLIMITED = { subs: -1, data: -1, payload: -1 }
const ACCOUNT_LIMITS = { ...UNLIMITED, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 }

export class NatsOperator {
  /** Lines for the configuration of a NATS server. */
  readonly settings: string
  readonly #account = nkeys.createAccount()

  constructor() {
    const operator = nkeys.createOperator()
    const system = nkeys.createAccount()
    const streams = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }
    const accounts = [
      [this.#account, 'hub', { ...ACCOUNT_LIMITS, ...streams }],
      [system, 'system', ACCOUNT_LIMITS],
    ] as const
    const known = accounts.map(([key, name, limits]) => {
      const id = key.getPublicKey()
      return `${id}: ${claim(operator, id, name, { type: 'account', limits })}`
    })
    const own = operator.getPublicKey()
    this.settings = [
      `operator: ${claim(operator, own, 'tests', { type: 'operator', system_account: system.getPublicKey() })}`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      `resolver_preload: { ${known.join(', ')} }`,
    ].join('\n')
  }

  /** The text of a credentials file for a user of the account, valid until then, in seconds since 1970. */
  credentials(name: string, exp?: number): string {
    const user = nkeys.createUser()
    const jwt = claim(this.#account, user.getPublicKey(), name, { type: 'user', ...UNLIMITED }, { exp })
    const seed = Buffer.from(user.getSeed()).toString()
    return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
  }
}
