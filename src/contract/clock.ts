/** Time of everything outside the data plane: deadlines and heartbeats, which tests move by hand. */
import { uptime } from 'node:os'

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

/** The longest a timer of Node.js can be set to, milliseconds; longer ones would be over at once. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** The system's. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimeout: (fn, milliseconds) => setTimeout(fn, Math.min(milliseconds, MAX_TIMEOUT_MS)),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}

/** Milliseconds, exact to 10, on a clock that nobody sets and that goes on while the machine sleeps: tells whether the system's time was set. */
export const uptimeMs = (): number => uptime() * 1000
