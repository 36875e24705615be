/** Opens packets of any number of senders and runs that share a key: one derived key and one replay window per salt. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import type { OwnSalts } from './own-salts.ts'
import { ReplayWindow } from './replay-window.ts'
import { deriveKey, SALT_BYTES, type SuiteKey } from './suites.ts'
import { Trials } from './trials.ts'

/** Salts remembered. */
export const MAX_SALTS = 64
/** What became of a packet. */
export const OPENED = 0
const FORGED = 1
export const REPLAYED = 2
export const UNTRIED = 3
export const REFLECTED = 4

/** Failed trials of one salt after which it is worth a word that nothing of it opens. */
const TELLING = 3

/** A run of a sender, known by its salt; admitted with its first packet that is authentic. */
class Sender {
  high = 0
  low = 0
  /** The addon's handle, -1 while nobody is here. */
  aead = -1
  /** When it was last heard, by the receiver's count. */
  used = 0
  readonly window = new ReplayWindow()
}

/** A salt of which no packet was authentic when it was tried. */
class Failure {
  high = 0
  low = 0
  /** Trials that failed, 0 while nothing is noted here. */
  trials = 0
  used = 0
}

/** What a receiver wants to know of its surroundings. */
export interface AeadReceiverOptions {
  packets: Packets
  memory: number
  owner: number
  suite: SuiteKey
  clock: RunClock
  /** Salts of the run's own encrypters, and whether what one of them seals comes here inside the graph, as it was wired. */
  own: OwnSalts
  follows(component: string): boolean
  /** Told once, with the packet at hand, when nothing of a sender opens. */
  wrongKey(packet: number): void
}

export class AeadReceiver {
  private readonly packets: Packets
  private readonly memory: number
  private readonly owner: number
  private readonly suite: SuiteKey
  private readonly trials: Trials
  private readonly own: OwnSalts
  private readonly follows: (component: string) => boolean
  private readonly wrongKey: (packet: number) => void
  private readonly senders = Array.from({ length: MAX_SALTS }, () => new Sender())
  private readonly failures = Array.from({ length: MAX_SALTS }, () => new Failure())
  private warned = false
  private readonly counters = new Float64Array(BATCH_CAPACITY)
  private readonly salt = new Uint8Array(SALT_BYTES)
  private readonly one = new Int32Array(1)
  private latest: Sender
  private heard = 0

  constructor({ packets, memory, owner, suite, clock, own, follows, wrongKey }: AeadReceiverOptions) {
    this.packets = packets
    this.memory = memory
    this.owner = owner
    this.suite = suite
    this.trials = new Trials(clock)
    this.own = own
    this.follows = follows
    this.wrongKey = wrongKey
    this.latest = this.senders[0]
  }

  /** Senders admitted. */
  get admitted(): number {
    let count = 0
    for (const { aead } of this.senders) if (aead >= 0) count++
    return count
  }

  /**
   * Opens `handles[0..count)`, all of the salt (`high`, `low`), in place; `outcome[i]` says what became of each. The packets
   * have at least header and tag.
   */
  open(handles: Int32Array, count: number, high: number, low: number, outcome: Uint8Array): void {
    let from = 0
    let sender = this.find(high, low)
    if (!sender && this.own.reflects(high, low, this.follows)) {
      outcome.fill(REFLECTED, 0, count)
      return
    }
    // Unknown: a first authentic packet admits the salt, and the rest goes the usual way.
    while (!sender && from < count) {
      if (this.trials.take()) {
        sender = this.admit(handles[from], high, low)
        if (!sender) this.noteFailure(handles[from], high, low)
        outcome[from++] = sender ? OPENED : FORGED
      } else outcome[from++] = this.hasFailed(high, low) ? FORGED : UNTRIED
    }
    if (!sender || from === count) return
    sender.used = ++this.heard
    const { window } = sender
    const { counters } = this
    const rest = from > 0 ? handles.subarray(from, count) : handles
    native.aeadOpenPackets(sender.aead, this.memory, rest, count - from, counters)
    for (let i = from; i < count; i++) {
      const counter = counters[i - from]
      outcome[i] = counter < 0 ? FORGED : window.accept(counter) ? OPENED : REPLAYED
    }
  }

  /** Closes every key. */
  close(): void {
    for (const sender of this.senders) {
      if (sender.aead >= 0) native.close(sender.aead)
      sender.aead = -1
    }
  }

  private find(high: number, low: number): Sender | null {
    const { latest } = this
    if (latest.high === high && latest.low === low && latest.aead >= 0) return latest
    for (const sender of this.senders) {
      if (sender.high === high && sender.low === low && sender.aead >= 0) {
        this.latest = sender
        return sender
      }
    }
    return null
  }

  private hasFailed(high: number, low: number): boolean {
    for (const failure of this.failures) {
      if (failure.trials === 0 || failure.high !== high || failure.low !== low) continue
      failure.used = ++this.heard
      return true
    }
    return false
  }

  /** A salt that fails time and again is a sender with another key, and not what a network does to packets now and then. */
  private noteFailure(packet: number, high: number, low: number): void {
    let noted = this.failures[0]
    for (const failure of this.failures) {
      if (failure.trials > 0 && failure.high === high && failure.low === low) {
        noted = failure
        break
      }
      if (failure.used < noted.used) noted = failure
    }
    if (noted.high !== high || noted.low !== low || noted.trials === 0) {
      noted.high = high
      noted.low = low
      noted.trials = 0
    }
    noted.used = ++this.heard
    if (++noted.trials < TELLING || this.warned) return
    this.warned = true
    this.wrongKey(packet)
  }

  /** Opens `packet` with the key of a salt not known yet; it takes the place of the one longest unheard, if it is authentic. */
  private admit(packet: number, high: number, low: number): Sender | null {
    const { salt, one, counters } = this
    const at = this.packets.offset[packet]
    salt.set(this.packets.data.subarray(at, at + SALT_BYTES))
    const key = deriveKey(this.suite, salt)
    const aead = native.aeadOpen(this.owner, this.suite.code, key)
    key.fill(0)
    one[0] = packet
    native.aeadOpenPackets(aead, this.memory, one, 1, counters)
    const counter = counters[0]
    if (counter < 0) {
      native.close(aead)
      return null
    }
    let sender = this.senders[0]
    for (const other of this.senders) {
      if (other.aead < 0) {
        sender = other
        break
      }
      if (other.used < sender.used) sender = other
    }
    if (sender.aead >= 0) native.close(sender.aead)
    sender.aead = aead
    sender.high = high
    sender.low = low
    sender.used = ++this.heard
    sender.window.reset()
    sender.window.accept(counter)
    this.latest = sender
    return sender
  }
}
