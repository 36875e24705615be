/** Which sessions of parity_2d_encoders a decoder follows. */
import { MAX_SENDERS, Senders } from '../shared/senders.ts'
import { ParityWindow } from './parity-window.ts'

export class ParitySessions {
  /** By the sender's place. */
  readonly windows: (ParityWindow | null)[] = Array(MAX_SENDERS).fill(null)
  private readonly senders = new Senders()
  private readonly leave: (window: ParityWindow) => void
  private count = 0

  /** `leave` is called before a session gives way to another. */
  constructor(leave: (window: ParityWindow) => void) {
    this.leave = leave
  }

  get followed(): number {
    return this.senders.length
  }

  /**
   * The window of a session, which is known by its id and the shape of its blocks: with another shape it is another sender's. A new one
   * begins with `block`. Null: there is no place for the session.
   */
  find(session: number, columns: number, rows: number, block: number): ParityWindow | null {
    // Both of up to 64, so that only shapes that nobody has together meet in one number.
    const place = this.senders.place(session ^ Math.imul((columns << 6) ^ rows, 0x9e3779b1))
    if (place < 0) return null
    let window = this.windows[place]
    if (!window?.is(session, columns, rows)) {
      // Who had to wait for the place of another has had sources passed.
      const hadToWait = window !== null
      if (window) this.leave(window)
      window = new ParityWindow(session, columns, rows)
      window.open(block, hadToWait)
      this.windows[place] = window
    }
    window.used = ++this.count
    return window
  }

  /** Forgets every session. */
  reset(): void {
    this.windows.forEach((window, place) => {
      if (window) this.leave(window)
      this.windows[place] = null
    })
    this.senders.reset()
  }
}
