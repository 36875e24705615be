/** The lives of this server: the one it has, and those before it whose links have yet to be noted again. */
import { ServiceError } from '../../contract/errors.ts'
import { Life, type LifeOptions, leaseKey } from './life.ts'

/** Names of lives that are known for what they are when something of theirs comes late. */
const MAX_KNOWN = 16

export class OwnLives {
  readonly #options: LifeOptions
  readonly #names = new Set<string>()
  /** All of them, those that are over too; the newest ones. */
  readonly #known: string[] = []
  #current: Life | undefined
  #isClosed = false

  /** `onLost`: a life has ended, and another has begun. */
  constructor(options: LifeOptions) {
    this.#options = options
  }

  get current(): Life | undefined {
    return this.#current
  }

  /** The name of the current life; there is one once it has begun. */
  get name(): string {
    return (this.#current as Life).name
  }

  get isHeld(): boolean {
    return this.#current?.isHeld === true && !this.#isClosed
  }

  has(life: string): boolean {
    return this.#names.has(life)
  }

  /** Whether it is or was one of them. */
  knows(life: string): boolean {
    return this.#known.includes(life)
  }

  /** Throws UNAVAILABLE when this server may not write now. */
  mayWrite(): void {
    if (this.isHeld) return
    throw new ServiceError(
      'UNAVAILABLE',
      'this server is cut off from the state of its hub (NATS JetStream), and changes nothing until it is back: try again, or at another server of the hub',
    )
  }

  begin(): void {
    const { onLost, onHeld, ...options } = this.#options
    const life: Life = new Life({
      ...options,
      onHeld,
      onLost: (error) => {
        if (this.#isClosed || this.#current !== life) return
        this.begin()
        onLost(error)
      },
    })
    this.#names.add(life.name)
    this.#known.push(life.name)
    if (this.#known.length > MAX_KNOWN) this.#known.shift()
    this.#current = life
  }

  /** Every link has been noted for `life`: those before it are over for everybody. */
  async keepOnly(life: string): Promise<void> {
    if (this.#current?.name !== life) return
    const over = [...this.#names].filter((name) => name !== life)
    for (const name of over) this.#names.delete(name)
    await Promise.all(over.map((name) => this.#options.engine.session?.presence.delete(leaseKey(name))))
  }

  /** Gives the lease up, so that the others see its end at once. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#current?.close()
  }
}
