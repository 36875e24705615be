/** The RTP streams that an observer follows, and those that have yet to show that they are streams. */
import type { RtpHeader } from '../../codes/rtp-header.ts'
import { MAX_SENDERS, Senders } from '../shared/senders.ts'
import { RtpStream } from './rtp-stream.ts'

/** The last packet of a source that is not followed. */
class Candidate {
  ssrc = 0
  sequence = -1
  timestamp = 0
  arrival = 0
  bytes = 0
  isTaken = false
}

export class RtpStreams {
  /** Those of no packets are nobody's. */
  readonly streams = Array.from({ length: MAX_SENDERS }, () => new RtpStream())
  private readonly senders = new Senders()
  private readonly candidates = Array.from({ length: MAX_SENDERS }, () => new Candidate())
  private draw = 1

  /** How many are followed. */
  get length(): number {
    return this.senders.length
  }

  /** A packet with `header` came; false when its source is not followed: it has not sent two in sequence yet, or there is no place. */
  take(header: RtpHeader, arrival: number, bytes: number): boolean {
    const { ssrc, sequence, payloadType, timestamp } = header
    const known = this.senders.find(ssrc)
    const place = known >= 0 ? known : this.admit(header, arrival, bytes)
    if (place < 0) return false
    this.streams[place].take(sequence, payloadType, timestamp, arrival, bytes)
    return true
  }

  /** The place of a source whose packet is the next after the one before (RFC 3550, appendix A.1), if it gets one; else -1. */
  private admit(header: RtpHeader, arrival: number, bytes: number): number {
    const { ssrc, sequence, timestamp } = header
    const candidate = this.candidateOf(ssrc)
    const follows = candidate.isTaken && sequence === ((candidate.sequence + 1) & 0xffff)
    const place = follows ? this.senders.place(ssrc) : -1
    if (place >= 0) {
      candidate.isTaken = false
      this.streams[place].begin(ssrc, candidate.sequence, candidate.timestamp, candidate.arrival, candidate.bytes)
      return place
    }
    candidate.ssrc = ssrc
    candidate.sequence = sequence
    candidate.timestamp = timestamp
    candidate.arrival = arrival
    candidate.bytes = bytes
    candidate.isTaken = true
    return -1
  }

  /**
   * Where there are too many, any gives way: were it the one silent longest, none of 65 that send in turn would still be here when its
   * second packet comes.
   */
  private candidateOf(ssrc: number): Candidate {
    const { candidates } = this
    let free = -1
    for (let i = 0; i < MAX_SENDERS; i++) {
      const candidate = candidates[i]
      if (!candidate.isTaken) free = i
      else if (candidate.ssrc === ssrc) return candidate
    }
    const chosen = candidates[free >= 0 ? free : this.any()]
    chosen.isTaken = false
    return chosen
  }

  /** Xorshift (Marsaglia, 2003), down to the numbers of candidates. */
  private any(): number {
    let { draw } = this
    draw ^= draw << 13
    draw ^= draw >>> 17
    draw ^= draw << 5
    this.draw = draw
    return (draw >>> 0) % MAX_SENDERS
  }
}
