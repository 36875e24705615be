/** The TCP connections of the HTTP listener: those that come while hardly a descriptor is left are closed at once. */

import { closeSync, openSync } from 'node:fs'
import { ToldLately } from '../contract/told-lately.ts'
import { MIN_CONNECTIONS, type OpenDescriptors, openDescriptors } from '../open-descriptors.ts'
import type { Warn } from './grpc-connections.ts'

/** Time between two looks at whether descriptors are left, milliseconds. */
const LOOK_MS = 250

/**
 * The library accepts connections by itself, and where that fails for want of a descriptor it tries again and again, at the cost of a CPU, while
 * nobody hears of it. So newcomers are closed before it comes to that; and a spare descriptor is kept to accept them with, in order to close them,
 * where others (runs, files) have taken all.
 */
export class HttpConnections {
  readonly #warn: Warn | undefined
  readonly #descriptors: OpenDescriptors
  readonly #told = new ToldLately()
  #spare: number | undefined
  #timer: NodeJS.Timeout | undefined
  /** That came since descriptors are short and have not ended; each older one that ended made room for another. */
  #newcomers = 0

  /** `warn` is told, rarely, that connections are refused. */
  constructor(warn: Warn | undefined, descriptors = openDescriptors) {
    this.#warn = warn
    this.#descriptors = descriptors
  }

  /** The port is open. */
  watch(): void {
    this.#look()
    this.#timer = setInterval(() => this.#look(), LOOK_MS)
    this.#timer.unref()
  }

  /** The port is closed. */
  unwatch(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#release()
  }

  /**
   * A connection came (1) or ended (-1). The library never says which one ended, so that they cannot be counted by address. False: it is to be closed.
   */
  changed(change: number): boolean {
    this.#descriptors.changed(change)
    if (change < 0) {
      if (this.#newcomers > 0) this.#newcomers--
      return true
    }
    if (!this.#descriptors.areShort) {
      this.#newcomers = 0
      return true
    }
    // Its end is told as well when it is refused.
    this.#newcomers++
    if (this.#newcomers <= MIN_CONNECTIONS && !this.#descriptors.areGone) return true
    this.#tell('are refused')
    return false
  }

  #look(): void {
    if (this.#descriptors.left === 0 || this.#descriptors.areRefused) {
      if (this.#spare === undefined) this.#tell('cannot be accepted')
      else this.#release()
    } else if (this.#spare === undefined && !this.#descriptors.areShort) this.#keep()
  }

  #keep(): void {
    try {
      this.#spare = openSync('/dev/null', 'r')
      this.#descriptors.changed(1)
    } catch {
      // The next look finds one.
    }
  }

  #release(): void {
    if (this.#spare === undefined) return
    closeSync(this.#spare)
    this.#spare = undefined
    this.#descriptors.changed(-1)
  }

  #tell(what: string): void {
    const times = this.#told.happened(what)
    if (times === undefined) return
    this.#warn?.(
      `HTTP connections ${what}: ${this.#descriptors.text}`,
      what === 'are refused' ? { connections: times } : {},
    )
  }
}
