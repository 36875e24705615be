/** A stream of changes and the lists that its server gave meanwhile: both have to be one order of states. */
import { ServerCopy, type ShownNode, type ToldEvent } from './server-copy.ts'

/** One stream from its first message to its end, with what was listed meanwhile. */
export class Following {
  readonly copy: ServerCopy
  /** What the stream has told, after each message. */
  readonly states: string[]
  readonly lists: string[] = []

  constructor(first: readonly ShownNode[]) {
    this.copy = new ServerCopy(first, { isAdmittedAgain: true })
    this.states = [this.copy.text]
  }

  take(event: ToldEvent): void {
    this.copy.take(event)
    this.states.push(this.copy.text)
  }

  /** Lists that are no states of the stream, or such as came before those that were listed already. `isCut`: those at its end may be ahead of it, otherwise the last one. */
  misfits(isCut: boolean): string[] {
    let at = 0
    let unmatched: string[] = []
    const wrong: string[] = []
    for (const list of this.lists) {
      const found = this.states.indexOf(list, at)
      if (found < 0) {
        unmatched.push(list)
        continue
      }
      at = found
      wrong.push(...unmatched)
      unmatched = []
    }
    return isCut ? wrong : [...wrong, ...unmatched.slice(0, -1)]
  }
}
