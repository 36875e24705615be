/** Time of everything outside the data plane: deadlines and heartbeats, which tests move by hand. */

export interface Timers {
  setTimeout(fn: () => void, milliseconds: number): unknown
  /** A wait that is over is left alone. */
  clearTimeout(timer: unknown): void
}

/** XState's SimulatedClock is one. */
export interface Clock extends Timers {
  /** Monotonic, milliseconds. */
  now(): number
}

/** The system's. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimeout: (fn, milliseconds) => setTimeout(fn, milliseconds),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}
