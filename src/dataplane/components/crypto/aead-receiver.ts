/** Opens packets of any number of senders and runs that share a key: one derived key and one replay window per salt. */
import type { RunClock } from '../../engine/clock.ts'
import type { Packets } from '../../engine/packets.ts'
import { AEAD_OUTCOMES } from '../../native/cipher-calls.ts'
import { native } from '../../native/native.ts'
import { FailingSenders, type TellFailing } from './failing-senders.ts'
import type { OwnSalts } from './own-salts.ts'
import { deriveKey, SALT_BYTES, SEALED_BYTES, type SuiteKey } from './suites.ts'
import { Trials } from './trials.ts'

/** Salts with a place of their own, and places that newcomers beyond them share. */
export const MAX_SALTS = 64
/** Packets that a newcomer has opened before the sender silent longest gives way to it. */
export const MIN_OPENED_TO_STAY = 8
/** What became of a packet. */
export const { opened: OPENED, replayed: REPLAYED, malformed: MALFORMED } = AEAD_OUTCOMES
const FORGED = AEAD_OUTCOMES.forged
export const UNTRIED = 4
export const REFLECTED = 5

/** A run of a sender, known by its salt; known from its first packet that is authentic. */
class Sender {
  high = 0
  low = 0
  /** The addon's handle of key and replay window, -1 while nobody is here. */
  aead = -1
  /** When it was last heard, by the receiver's count. */
  used = 0
  /** Of a newcomer: packets that were opened, and when the first of them was. */
  opened = 0
  first = 0
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
  /** Nothing of a sender opens: told of one sender a minute at most. */
  wrongKey: TellFailing
}

export class AeadReceiver {
  private readonly packets: Packets
  private readonly memory: number
  private readonly owner: number
  private readonly suite: SuiteKey
  private readonly trials: Trials
  private readonly own: OwnSalts
  private readonly follows: (component: string) => boolean
  private readonly senders = Array.from({ length: MAX_SALTS }, () => new Sender())
  /** Known too, with windows of their own, until others beyond the senders need the place. */
  private readonly newcomers = Array.from({ length: MAX_SALTS }, () => new Sender())
  private readonly failing: FailingSenders
  /** Runs whose keys and windows are kept; once it is closed, how many were. */
  known = 0
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
    this.failing = new FailingSenders(packets, clock, wrongKey)
    this.latest = this.senders[0]
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
      let stop: number
      if (sender) {
        sender.used = ++this.heard
        stop = native.aeadOpenPackets(sender.aead, this.memory, handles, at, count, outcome)
      } else stop = this.openOther(handles, at, count, high, low, outcome)
      if (stop < 0) allOpened = false
      at = stop < 0 ? ~stop : stop
    }
    return allOpened
  }

  /** As `aeadOpenPackets`, for what comes of none that has a place of its own. */
  private openOther(
    handles: Int32Array,
    at: number,
    count: number,
    high: number,
    low: number,
    outcome: Uint8Array,
  ): number {
    for (const newcomer of this.newcomers) {
      if (newcomer.high === high && newcomer.low === low && newcomer.aead >= 0) {
        return this.openNewcomer(newcomer, handles, at, count, outcome)
      }
    }
    outcome[at] = this.openUnknown(handles, at, high, low, outcome)
    return outcome[at] === OPENED ? at + 1 : ~(at + 1)
  }

  /** As `aeadOpenPackets`, for a newcomer, who gets a place of its own once enough was opened. */
  private openNewcomer(newcomer: Sender, handles: Int32Array, at: number, count: number, outcome: Uint8Array): number {
    newcomer.used = ++this.heard
    const stop = native.aeadOpenPackets(newcomer.aead, this.memory, handles, at, count, outcome)
    const end = stop < 0 ? ~stop : stop
    for (let i = at; i < end; i++) if (outcome[i] === OPENED) newcomer.opened++
    if (newcomer.opened >= MIN_OPENED_TO_STAY) this.settle(newcomer)
    return stop
  }

  /** Changes places with the sender silent longest, unless that one was heard since the newcomer's first packet. */
  private settle(newcomer: Sender): void {
    const { senders, newcomers } = this
    const silent = silentLongest(senders)
    const isHeard = silent.used >= newcomer.first
    newcomer.opened = 0
    newcomer.first = this.heard
    // Who was heard all the while keeps the place: one of too many senders must not cost all the others theirs in turn.
    if (isHeard) return
    senders[senders.indexOf(silent)] = newcomer
    newcomers[newcomers.indexOf(newcomer)] = silent
    silent.first = this.heard
    silent.opened = 0
    this.latest = newcomer
  }

  /** What becomes of `handles[at]`, whose salt is none that is known: being authentic makes it known. */
  private openUnknown(handles: Int32Array, at: number, high: number, low: number, outcome: Uint8Array): number {
    if (this.own.reflects(high, low, this.follows)) return REFLECTED
    if (!this.trials.take()) return this.failing.has(high, low) ? FORGED : UNTRIED
    if (this.admit(handles, at, high, low, outcome)) return OPENED
    this.failing.add(handles[at], high, low)
    return FORGED
  }

  /** To be called now and then: somebody that nothing opens of may wait to be told of. */
  observe(): void {
    this.failing.tellDue()
  }

  /** Closes every key. */
  close(): void {
    for (const senders of [this.senders, this.newcomers]) {
      for (const sender of senders) {
        if (sender.aead >= 0) native.close(sender.aead)
        sender.aead = -1
      }
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

  /**
   * Opens `handles[at]` with the key of its salt, which takes a free place if that succeeds, or else that of the newcomer longest
   * unheard; whether it did.
   */
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
    this.failing.remove(high, low)
    const silent = silentLongest(this.senders)
    const isFree = silent.aead < 0
    const sender = isFree ? silent : silentLongest(this.newcomers)
    if (sender.aead >= 0) native.close(sender.aead)
    else this.known++
    sender.aead = aead
    sender.high = high
    sender.low = low
    sender.used = sender.first = ++this.heard
    sender.opened = 1
    if (isFree) this.latest = sender
    return true
  }
}

/** A place where nobody has been counts as silent from the beginning. */
function silentLongest(senders: readonly Sender[]): Sender {
  let silent = senders[0]
  for (const sender of senders) if (sender.used < silent.used) silent = sender
  return silent
}
