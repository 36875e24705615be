/** What comes of a stream, packet after packet, for the connection that it is sent over. */
import type { Connection } from './connection.ts'
import type { Stream } from './streams.ts'

/** A stream at where it is sent from. */
export class Flow {
  readonly stream: Stream
  /** Whether a hole ends it. */
  readonly isWhole: boolean
  /** The connection that its last packet went to. */
  connection: Connection | null = null
  /** Number that its next packet has. */
  next = 0
  /** What comes of it is discarded. */
  broken = false

  /** `whole`: where its packets go to, a hole would pass as data. */
  constructor(stream: Stream, whole: boolean) {
    this.stream = stream
    this.isWhole = whole && stream.isBytes
  }
}
