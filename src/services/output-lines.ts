/** What a command prints, cut into lines for the log of a run. */
import type { Readable } from 'node:stream'
import { cutAt } from '../text/characters.ts'

/** Longest line, characters; what is longer is cut into several. */
const MAX_LINE_LENGTH = 4_096
/** Lines that all commands of a run may print in one second; more are dropped and counted. */
const MAX_LINES_PER_SECOND = 500

/** How many lines may still be taken in this second; shared by the commands of a run. */
export class LineAllowance {
  readonly #now: () => number
  readonly #dropped: (count: number) => void
  #second = 0
  #taken = 0
  #count = 0
  #timer: NodeJS.Timeout | undefined

  /** `now` in milliseconds. `dropped` is told how many lines were, once the second is over. */
  constructor(now: () => number, dropped: (count: number) => void) {
    this.#now = now
    this.#dropped = dropped
  }

  /** Whether one more line may be told. */
  take(): boolean {
    const second = Math.floor(this.#now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#taken = 0
      this.tell()
    }
    if (this.#taken++ < MAX_LINES_PER_SECOND) return true
    this.#count++
    // No line of a later second, which would tell, may follow for long.
    this.#timer ??= setTimeout(() => this.tell(), (second + 1) * 1000 - this.#now()).unref()
    return false
  }

  /** Tells what was dropped and not told yet. */
  tell(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const count = this.#count
    this.#count = 0
    if (count > 0) this.#dropped(count)
  }
}

/** Calls `line` with each line of `stream`, UTF-8, without its end; the last one need not have any. Lines beyond the allowance are dropped. */
export function readLines(stream: Readable, allowance: LineAllowance, line: (text: string) => void): void {
  let rest = ''
  const tell = (text: string) => {
    if (allowance.take()) line(text)
  }
  /** Tells what stands in front of what does not fit into one line with it; returns that. */
  const tellPart = (text: string): string => {
    const end = cutAt(text, MAX_LINE_LENGTH)
    tell(text.slice(0, end))
    return text.slice(end)
  }
  stream.setEncoding('utf8')
  stream.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() as string
    for (const each of lines) {
      let left = tellPart(each.replace(/\r$/, ''))
      while (left !== '') left = tellPart(left)
    }
    while (rest.length > MAX_LINE_LENGTH) rest = tellPart(rest)
  })
  stream.on('end', () => {
    if (rest !== '') tell(rest)
  })
  // Its other end is gone with the process.
  stream.on('error', () => {})
}
