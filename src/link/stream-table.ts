/** The streams of one session by their ids: which are open, which id comes next, who may say what of which. */
import { IdTable } from '../id-table.ts'
import { MAX_STREAMS, Violation } from './messages.ts'
import type { Stream } from './stream.ts'

const MAX_STREAM_ID = 0xffff_fffe

/** Ids are odd from the node, even from the hub, rising, never used again. */
export class StreamTable {
  readonly #streams = new IdTable<Stream>()
  /** What the ids of this side leave when divided by 2. */
  readonly #parity: number
  #nextOwn: number
  #nextOther: number

  constructor(side: 'node' | 'hub') {
    this.#parity = side === 'node' ? 1 : 0
    this.#nextOwn = side === 'node' ? 1 : 2
    this.#nextOther = side === 'node' ? 2 : 1
  }

  /** Those that have an id. */
  get all(): Iterable<Stream> {
    return this.#streams.values()
  }

  /** Gives a stream of this side its id; false when they are used up. */
  open(stream: Stream): boolean {
    if (this.#nextOwn >= MAX_STREAM_ID) return false
    stream.id = this.#nextOwn
    this.#nextOwn += 2
    this.#streams.set(stream.id, stream)
    return true
  }

  /** Throws Violation unless the other side, of which `openCount` streams are open, may open a stream of that id now. */
  mayOpen(id: number, openCount: number): void {
    if (this.#isOwn(id) || id < this.#nextOther)
      throw new Violation(`stream ${id} cannot be opened, the next is ${this.#nextOther}`)
    if (id > MAX_STREAM_ID) throw new Violation('a stream id that is too high')
    if (openCount >= MAX_STREAMS) throw new Violation(`more than ${MAX_STREAMS} open streams`)
  }

  /** Enters a stream of the other side, which `mayOpen` has let pass. */
  opened(stream: Stream, id: number): void {
    this.#nextOther = id + 2
    stream.id = id
    this.#streams.set(id, stream)
  }

  forget(stream: Stream): void {
    if (stream.id !== 0) this.#streams.delete(stream.id)
  }

  /** Throws Violation unless a stream of that id is opened by that side; `what` has been done to it. */
  mustBe(opener: 'own' | 'other', id: number, what: string): void {
    if (this.#isOwn(id) !== (opener === 'own')) throw new Violation(`stream ${id} was ${what} from the wrong side`)
  }

  /** The open stream of that id; undefined when it is over. Throws Violation when it was never opened. */
  find(id: number): Stream | undefined {
    const stream = this.#streams.get(id)
    if (stream !== undefined) return stream
    if (id === 0 || id >= (this.#isOwn(id) ? this.#nextOwn : this.#nextOther)) {
      throw new Violation(`stream ${id} was never opened`)
    }
    return undefined
  }

  #isOwn(id: number): boolean {
    return id % 2 === this.#parity
  }
}
