/** Texts that the browser keeps for the page. */

/** One text. Where the browser keeps nothing, as when it is told to block what sites store, it is kept until the page is left. */
export class Kept {
  readonly #storage: () => Storage
  readonly #key: string
  #here: string | undefined
  /** The browser has refused the last one. */
  #isHere = false

  /** `storage` is asked each time: naming it throws where nothing is kept. */
  constructor(key: string, storage: () => Storage) {
    this.#key = key
    this.#storage = storage
  }

  get(): string | undefined {
    if (this.#isHere) return this.#here
    try {
      return this.#storage().getItem(this.#key) ?? undefined
    } catch {
      return this.#here
    }
  }

  /** Undefined: it is forgotten. */
  set(text: string | undefined): void {
    this.#here = text
    try {
      if (text === undefined) this.#storage().removeItem(this.#key)
      else this.#storage().setItem(this.#key, text)
      this.#isHere = false
    } catch {
      this.#isHere = true
    }
  }
}
