/** The whole terminal for one command: redrawn on a clock, at a key and when its size changes, and given back as it was. */
import { emitKeypressEvents, type Key } from 'node:readline'
import { cut, cutLines, harmless, restoreAtQuit } from './terminal.ts'

/** The screen beside the one with what was typed, without a cursor (xterm control sequences, DECSET 1049 and 25). */
const ENTER = '\x1b[?1049h\x1b[?25l'
const LEAVE = '\x1b[?25h\x1b[?1049l'

export interface Screen {
  /** What is to be seen, in so many columns and rows; what does not fit is cut, and the last row says how many lines are. */
  text(columns: number, rows: number): string
  /** `q`, Ctrl-C and Ctrl-D are not told: they end it. */
  press(key: Key): void
}

/** Shows a screen on standard output, a terminal, until q, Ctrl-C, Ctrl-D or `stop`; `interval`: ms from one drawing to the next. */
export async function showFullScreen(screen: Screen, interval: number, stop: AbortSignal): Promise<void> {
  const { stdin, stdout } = process
  const draw = () => {
    // 0: a terminal that was never told its size.
    const [columns, rows] = [stdout.columns || 80, stdout.rows || 24]
    const lines = cutLines(harmless(screen.text(columns, rows)).split('\n'), rows)
    stdout.write(`\x1b[H${lines.map((line) => `${cut(line, columns)}\x1b[K`).join('\r\n')}\x1b[J`)
  }
  const restore = () => {
    if (stdin.isTTY) stdin.setRawMode(false)
    stdout.write(LEAVE)
  }
  stdout.write(ENTER)
  // A second signal ends the process at once.
  process.once('exit', restore)
  const forgetQuit = restoreAtQuit(restore)
  let clock: NodeJS.Timeout | undefined
  let onKey: ((text: string | undefined, key: Key) => void) | undefined
  try {
    await new Promise<void>((resolve) => {
      stop.addEventListener('abort', () => resolve())
      if (stop.aborted) resolve()
      clock = setInterval(draw, interval)
      stdout.on('resize', draw)
      if (stdin.isTTY) {
        emitKeypressEvents(stdin)
        stdin.setRawMode(true)
        onKey = (_, key) => {
          if (key.name === 'q' || (key.ctrl === true && (key.name === 'c' || key.name === 'd'))) resolve()
          else {
            screen.press(key)
            draw()
          }
        }
        stdin.on('keypress', onKey)
      }
      draw()
    })
  } finally {
    clearInterval(clock)
    stdout.off('resize', draw)
    if (onKey !== undefined) stdin.off('keypress', onKey)
    stdin.pause()
    process.off('exit', restore)
    forgetQuit()
    restore()
  }
}
