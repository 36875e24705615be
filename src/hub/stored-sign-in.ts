/** The sign-in on disk: whatever changes it, one change after the other. */
import { isSameList } from '../actors/hub-addresses.ts'
import { SerialQueue } from '../contract/serial-queue.ts'
import type { SeenCertificate } from '../link/link.ts'
import type { SignIn, SignInRecord } from '../store/sign-in.ts'
import type { MembershipFact } from './facts.ts'

export interface StoredSignInOptions {
  signIn: Pick<SignIn, 'get' | 'put' | 'remove'>
  /** Hears of changes, and of those that nobody waits for and that could not be written. */
  onFact(fact: MembershipFact): void
}

export class StoredSignIn {
  readonly #options: StoredSignInOptions
  readonly #changes = new SerialQueue()

  constructor(options: StoredSignInOptions) {
    this.#options = options
  }

  /** Resolves once it is on disk. */
  put(record: SignInRecord): Promise<void> {
    return this.#changes.run(() => this.#options.signIn.put(record))
  }

  /** Resolves once it is off the disk. */
  signOut(): Promise<void> {
    const { signIn, onFact } = this.#options
    return this.#changes.run(async () => {
      const hub = signIn.get()?.hubAddress
      await signIn.remove()
      if (hub !== undefined) onFact({ kind: 'signed out', hub })
    })
  }

  /** The hub does not know this node any more. */
  forget(): void {
    const { onFact, signIn } = this.#options
    const hub = signIn.get()?.hubAddress ?? ''
    onFact({ kind: 'removed', hub })
    this.#changes
      .run(() => signIn.remove())
      .catch((error: unknown) => onFact({ kind: 'sign-in not deleted', hub, error }))
  }

  /** The hub has proven itself: what it shows now is pinned from here on. */
  repin({ hubId, hubAddress: hub }: SignInRecord, shown: SeenCertificate): void {
    const { onFact } = this.#options
    this.#change(hubId, (record) => {
      if (record.certificate === shown.fingerprint && record.certificateKey === shown.key) return undefined
      if (record.certificate !== shown.fingerprint) {
        onFact({ kind: 'certificate renewed', hub, fingerprint: shown.fingerprint })
      }
      return pinOf(shown)
    }).catch((error: unknown) => onFact({ kind: 'certificate not pinned', hub, error }))
  }

  /** What the machine holds of the hub's servers, and of the last link. */
  keepServers({ hubId, hubAddress: hub, servers, former, lastAddress }: SignInRecord): void {
    this.#change(hubId, (record) => {
      if (isSameList(record.servers, servers) && record.lastAddress === lastAddress) return undefined
      return { ...(servers && { servers }), ...(former && { former }), ...(lastAddress && { lastAddress }) }
    }).catch((error: unknown) => this.#options.onFact({ kind: 'servers not kept', hub, error }))
  }

  /** Writes what `changed` gives over the sign-in to this hub, if that is still the one on disk. */
  #change(hubId: string, changed: (record: SignInRecord) => Partial<SignInRecord> | undefined): Promise<void> {
    const { signIn } = this.#options
    return this.#changes.run(async () => {
      const record = signIn.get()
      if (record?.hubId !== hubId) return
      const change = changed(record)
      if (change !== undefined) await signIn.put({ ...record, ...change })
    })
  }
}

/** What a sign-in keeps of a certificate. */
export function pinOf({ fingerprint, key }: SeenCertificate) {
  return { certificate: fingerprint, certificateKey: key }
}
