/** The line of runs that are about to start: threads that load at the same time take as much longer each, so a crowd goes a few at a time. */

/** So many at a time; those for which somebody waits first, otherwise in the order in which they came. */
export class StartLine {
  private readonly places: number
  private taken = 0
  private readonly awaited = new Set<() => void>()
  private readonly others = new Set<() => void>()

  constructor(places: number) {
    this.places = places
  }

  /** Resolves with the turn of who comes now. `over` settles when the start is over, or who waits for it has gone away. */
  join(over: Promise<unknown>, isAwaited: boolean): Promise<void> {
    const line = isAwaited ? this.awaited : this.others
    return new Promise((resolve) => {
      const leave = () => {
        if (!line.delete(resolve)) this.taken--
        this.advance()
      }
      line.add(resolve)
      over.then(leave, leave)
      this.advance()
    })
  }

  private advance(): void {
    for (const line of [this.awaited, this.others]) {
      for (const begin of line) {
        if (this.taken >= this.places) return
        line.delete(begin)
        this.taken++
        begin()
      }
    }
  }
}
