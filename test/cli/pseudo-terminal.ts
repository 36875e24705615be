/** Types at the real command line in a pseudo-terminal, and reads what it shows. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../../src/package-root.ts'

export const KEYS = { up: '\x1b[A', down: '\x1b[B', right: '\x1b[C', left: '\x1b[D', enter: '\r', interrupt: '\x03' }

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what an escape sequence starts with
const ESCAPES = /\x1b\[[0-9;?]*[A-Za-z]/g

export class PseudoTerminal {
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>
  #shown = ''
  /** All that was written to the terminal, with its escape sequences. */
  raw = ''
  #wake: () => void = () => undefined

  /** `penstock …args`. */
  constructor(args: readonly string[], env: Record<string, string>) {
    const driver = fileURLToPath(new URL('terminal.py', import.meta.url))
    const command = [process.execPath, `${packageRoot()}/bin/penstock.js`, ...args]
    this.#child = spawn('python3', [driver, ...command], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NO_COLOR: '1', ...env },
    })
    this.#closed = once(this.#child, 'close')
    this.#child.stdout?.on('data', (text) => {
      this.raw += String(text)
      this.#shown += String(text).replaceAll(ESCAPES, '').replaceAll('\r\n', '\n')
      this.#wake()
    })
    this.#child.once('close', () => this.#wake())
  }

  /** For who must end it. */
  get process(): ChildProcess {
    return this.#child
  }

  /** Sends the command a signal, as kill(1) would from elsewhere: the terminal stays. */
  signal(name: NodeJS.Signals): void {
    const { pid } = this.#child
    process.kill(Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')), name)
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Waits until what was shown since the last call matches; what comes up to there is read then. */
  async see(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#shown)
      if (match !== null) {
        this.#shown = this.#shown.slice(match.index + match[0].length)
        return match
      }
      if (this.#child.exitCode !== null) throw new Error(`ended without showing ${pattern}; unread:\n${this.#shown}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** The exit code, once it has ended. */
  async code(): Promise<number | null> {
    await this.#closed
    return this.#child.exitCode
  }
}
