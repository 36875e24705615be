/** Says on stderr that something is being waited for: a line that moves on a terminal, one plain line elsewhere. */
import { LiveRegion, paint } from './terminal.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100

export class Spinner {
  readonly #region = new LiveRegion(process.stderr)
  readonly #timer: NodeJS.Timeout | undefined
  readonly #since = performance.now()
  #frame = 0

  /** `text` says what is waited for. */
  constructor(text: string) {
    if (!this.#region.available) {
      process.stderr.write(`${text}\n`)
      return
    }
    const draw = () => {
      this.#frame = (this.#frame + 1) % FRAMES.length
      const seconds = Math.floor((performance.now() - this.#since) / 1000)
      const frame = paint(FRAMES[this.#frame] as string, 'cyan', process.stderr)
      this.#region.draw(`${frame} ${text} ${paint(`${seconds} s`, 'dim', process.stderr)}`)
    }
    draw()
    this.#timer = setInterval(draw, FRAME_MS)
  }

  /** Removes the line. */
  stop(): void {
    clearInterval(this.#timer)
    this.#region.clear()
  }
}
