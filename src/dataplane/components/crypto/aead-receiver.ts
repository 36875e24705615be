/** Opens packets of any number of senders and runs that share a key: one derived key and one replay window per salt. */
import type { RunClock } from '../../engine/clock.ts'
import type { Packets } from '../../engine/packets.ts'
import { AEAD_OUTCOMES } from '../../native/cipher-calls.ts'
import { native } from '../../native/native.ts'
import type { OwnSalts } from './own-salts.ts'
import { deriveKey, SALT_BYTES, SEALED_BYTES, type SuiteKey } from './suites.ts'
import { Trials } from './trials.ts'

/** Salts remembered. */
export const MAX_SALTS = 64
/** What became of a packet. */
export const { opened: OPENED, replayed: REPLAYED, malformed: MALFORMED } = AEAD_OUTCOMES
const FORGED = AEAD_OUTCOMES.forged
export const UNTRIED = 4
export const REFLECTED = 5

/** Failed trials of one salt after which it is worth a word that nothing of it opens. */
const TELLING = 3

/** A run of a sender, known by its salt; admitted with its first packet that is authentic. */
class Sender {
  high = 0
  low = 0
  /** The addon's handle of key and replay window, -1 while nobody is here. */
  aead = -1
  /** When it was last heard, by the receiver's count. */
  used = 0
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
  private readonly salt = new Uint8Array(SALT_BYTES)
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

  /** Opens `handles[0..count)` in place; `outcome[i]` says what became of each. Whether all were opened. */
  open(handles: Int32Array, count: number, outcome: Uint8Array): boolean {
    const { length, offset, view } = this.packets
    let allOpened = true
    for (let at = 0; at < count; ) {
      const packet = handles[at]
      // Too short for header and tag.
      if (length[packet] < SEALED_BYTES) {
        outcome[at++] = MALFORMED
        allOpened = false
        continue
      }
      const high = view.getInt32(offset[packet])
      const low = view.getInt32(offset[packet] + 4)
      const sender = this.find(high, low)
      if (sender) {
        sender.used = ++this.heard
        const stop = native.aeadOpenPackets(sender.aead, this.memory, handles, at, count, outcome)
        if (stop < 0) allOpened = false
        at = stop < 0 ? ~stop : stop
      } else {
        outcome[at] = this.openUnknown(handles, at, high, low, outcome)
        if (outcome[at] !== OPENED) allOpened = false
        at++
      }
    }
    return allOpened
  }

  /** What becomes of `handles[at]`, whose salt is none that was admitted: being authentic admits it. */
  private openUnknown(handles: Int32Array, at: number, high: number, low: number, outcome: Uint8Array): number {
    if (this.own.reflects(high, low, this.follows)) return REFLECTED
    if (!this.trials.take()) return this.hasFailed(high, low) ? FORGED : UNTRIED
    if (this.admit(handles, at, high, low, outcome)) return OPENED
    this.noteFailure(handles[at], high, low)
    return FORGED
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

  /** Opens `handles[at]` with the key of its salt, which takes the place of the one longest unheard if that succeeds; whether it did. */
  private admit(handles: Int32Array, at: number, high: number, low: number, outcome: Uint8Array): boolean {
    const { salt } = this
    const from = this.packets.offset[handles[at]]
    salt.set(this.packets.data.subarray(from, from + SALT_BYTES))
    const key = deriveKey(this.suite, salt)
    const aead = native.aeadOpen(this.owner, this.suite.code, key, salt)
    key.fill(0)
    native.aeadOpenPackets(aead, this.memory, handles, at, at + 1, outcome)
    if (outcome[at] !== OPENED) {
      native.close(aead)
      return false
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
    this.latest = sender
    return true
  }
}
