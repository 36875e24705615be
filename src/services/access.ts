/** The tokens of callers from other machines: making, listing and revoking them, and whether one shown is ours. */
import { createHash, randomBytes } from 'node:crypto'
import { invalidArgument, ServiceError } from '../contract/errors.ts'
import type { CallContext, Handlers } from '../contract/handlers.ts'
import type { Token } from '../contract/types.ts'
import type { TokenCollection, TokenRecord } from '../store/tokens.ts'

/** Lets scanners for leaked secrets know one when they see it. */
const PREFIX = 'penstock_'
const SECRET_BYTES = 32
/** A use is noted on disk when it is this far from the last note, ms: before it where the clock was set back. */
const NOTE_AFTER_MS = 60_000
const MAX_TOKENS = 1_000

export interface AccessServiceOptions {
  tokens: TokenCollection
  /** Told of what went wrong in the background. */
  onError: (error: unknown) => void
  /** Milliseconds since the epoch. */
  now?: () => number
}

export type AccessHandlers = Pick<Handlers, 'createToken' | 'getTokens' | 'revokeToken'>

export class AccessService {
  readonly #tokens: TokenCollection
  readonly #onError: (error: unknown) => void
  readonly #now: () => number
  /** By hash. A guesser does not choose the hash of a guess, so the time of this look-up tells nothing about stored ones. */
  readonly #byHash: Map<string, TokenRecord>
  /** Names of tokens that are of no use any more, but whose records the disk did not let go of. */
  readonly #unremoved = new Set<string>()
  /** Names being made or revoked right now. */
  readonly #busy = new Set<string>()
  readonly #revoked: ((name: string) => void)[] = []

  /** Reads the tokens there are. */
  constructor({ tokens, onError, now = Date.now }: AccessServiceOptions) {
    this.#tokens = tokens
    this.#onError = onError
    this.#now = now
    this.#byHash = new Map(tokens.all().map((record) => [record.hash, record]))
  }

  /** The operations, for the dispatcher. */
  readonly handlers: AccessHandlers = {
    createToken: async ({ name }, call) => {
      admit(call)
      const { record, secret } = await this.#create(name)
      return { token: tokenOf(record), secret }
    },
    getTokens: async (_, call) => {
      admit(call)
      const records = [...this.#byHash.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
      return { tokens: records.map(tokenOf) }
    },
    revokeToken: async ({ name }, call) => {
      admit(call)
      await this.#revoke(name)
      return {}
    },
  }

  /** The name of the token with this secret, which counts as a use of it; undefined when it is none of ours. */
  readonly verify = (secret: string): string | undefined => {
    const record = this.#byHash.get(hashOf(secret))
    if (record === undefined) return undefined
    const now = this.#now()
    if (record.lastUsedAt === undefined || Math.abs(now - record.lastUsedAt) >= NOTE_AFTER_MS) {
      record.lastUsedAt = now
      this.#tokens.put({ ...record }).catch(this.#onError)
    }
    return record.name
  }

  /** Whether `secret` is the token called `name`; does not count as a use. */
  isToken(name: string, secret: string): boolean {
    return this.#byHash.get(hashOf(secret))?.name === name
  }

  /** Makes the token `name`, in place of one that has the name; returns its secret. For names that no caller can choose. */
  async replace(name: string): Promise<string> {
    const before = this.#named(name)
    const { record, secret } = this.#make(name)
    await this.#tokens.put(record)
    if (before !== undefined) this.#byHash.delete(before.hash)
    this.#byHash.set(record.hash, record)
    return secret
  }

  /** Adds a function called with the name of each token that was revoked. */
  onRevoked(listener: (name: string) => void): void {
    this.#revoked.push(listener)
  }

  async #create(name: string): Promise<{ record: TokenRecord; secret: string }> {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
      throw invalidArgument('/name', 'must be 1 to 64 letters, digits, dots, dashes and underscores')
    }
    // The path of revokeToken holds the name, and clients resolve both before they send it (https://url.spec.whatwg.org).
    if (name === '.' || name === '..')
      throw invalidArgument('/name', `must not be ${name}, which the path of a URL cannot hold`)
    if (this.#named(name) !== undefined || this.#busy.has(name) || this.#unremoved.has(name)) {
      throw new ServiceError('ALREADY_EXISTS', `there is a token ${name}: revoke it first, or choose another name`)
    }
    if (this.#byHash.size + this.#busy.size >= MAX_TOKENS) {
      throw new ServiceError('RESOURCE_EXHAUSTED', `there are ${MAX_TOKENS} tokens: revoke those not in use`)
    }
    const { record, secret } = this.#make(name)
    this.#busy.add(name)
    try {
      await this.#tokens.put(record)
    } finally {
      this.#busy.delete(name)
    }
    this.#byHash.set(record.hash, record)
    return { record, secret }
  }

  #make(name: string): { record: TokenRecord; secret: string } {
    const secret = PREFIX + randomBytes(SECRET_BYTES).toString('base64url')
    return { record: { name, hash: hashOf(secret), createdAt: this.#now() }, secret }
  }

  async #revoke(name: string): Promise<void> {
    const record = this.#named(name)
    const isLeft = this.#unremoved.has(name) && !this.#busy.has(name)
    if (record === undefined && !isLeft) {
      throw new ServiceError('NOT_FOUND', `there is no token ${name}`)
    }
    // Refused from now on, whatever the disk does; the name is free again once the record is gone.
    if (record !== undefined) this.#byHash.delete(record.hash)
    this.#busy.add(name)
    // Before anything is awaited: a call that revokes its own token is answered, others of that token end.
    for (const listener of this.#revoked) listener(name)
    try {
      await this.#tokens.remove(name)
      this.#unremoved.delete(name)
    } catch (error) {
      this.#unremoved.add(name)
      throw error
    } finally {
      this.#busy.delete(name)
    }
  }

  #named(name: string): TokenRecord | undefined {
    for (const record of this.#byHash.values()) if (record.name === name) return record
    return undefined
  }
}

/** Who may handle tokens: this machine, and holders of one; `access.open` does not count, nor do other nodes. */
function admit(call: CallContext): void {
  if (call.transport === 'link') {
    throw new ServiceError('PERMISSION_DENIED', 'tokens are handled on the node itself, not from other nodes')
  }
  if (!call.isLoopback && call.identity === undefined) {
    throw new ServiceError('PERMISSION_DENIED', 'tokens are handled on the machine of the node, or with a token')
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function tokenOf({ name, createdAt, lastUsedAt }: TokenRecord): Token {
  return {
    name,
    createdAt: new Date(createdAt),
    ...(lastUsedAt === undefined ? {} : { lastUsed: new Date(lastUsedAt) }),
  }
}
