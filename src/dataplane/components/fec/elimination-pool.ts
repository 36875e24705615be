/** The eliminations of the blocks that were worked on last: however many blocks are unfinished, no more memory goes into them. */
import { Elimination } from '../../codes/elimination.ts'
import { MAX_BLOCK } from './block-header.ts'
import type { BlockWindow } from './block-window.ts'

/** Blocks whose elimination goes on where it was; that of another begins again from what is kept of it. */
const MAX_ELIMINATIONS = 16

/** The elimination of one block, and which of its repairs it has. */
export class BlockElimination {
  readonly system = new Elimination(MAX_BLOCK, MAX_BLOCK)
  readonly taken = new Uint8Array(MAX_BLOCK)
  window: BlockWindow | null = null
  place = 0
  used = 0
}

export class EliminationPool {
  private readonly all: BlockElimination[] = []
  private uses = 0

  /** That of a block, with nothing in it when there was none; another block may lose its own for it. */
  of(window: BlockWindow, place: number): BlockElimination {
    let chosen: BlockElimination | null = null
    for (const one of this.all) {
      if (one.window === window && one.place === place) {
        one.used = ++this.uses
        return one
      }
      if (!chosen || one.used < chosen.used) chosen = one
    }
    if (!chosen || (chosen.window && this.all.length < MAX_ELIMINATIONS)) {
      chosen = new BlockElimination()
      this.all.push(chosen)
    }
    chosen.window = window
    chosen.place = place
    chosen.used = ++this.uses
    for (let j = 0; j < window.r; j++) chosen.taken[j] = 0
    chosen.system.begin(window.k, window.r)
    return chosen
  }

  /** A block has ended, or some of its repairs no longer count. */
  forget(window: BlockWindow, place: number): void {
    for (const one of this.all) {
      if (one.window !== window || one.place !== place) continue
      one.window = null
      one.used = 0
    }
  }
}
