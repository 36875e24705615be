/** Many open event streams of a server, read by a program in C on the first CPU. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { nativeProgram } from '../measure.ts'
import { LOAD_CPU, type Server } from './servers.ts'

export class Subscribers {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #directory: string
  readonly count: number

  private constructor(child: ChildProcess, lines: AsyncIterator<string>, directory: string, count: number) {
    this.#child = child
    this.#lines = lines
    this.#directory = directory
    this.count = count
  }

  static async open(server: Server, path: string, count: number): Promise<Subscribers> {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
    const file = join(directory, 'request')
    writeFileSync(file, `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`)
    const child = spawn(nativeProgram('load'), ['sse', server.port, count, LOAD_CPU, file].map(String), {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const subscribers = new Subscribers(child, lines, directory, count)
    await subscribers.#line('ready')
    return subscribers
  }

  /** Fulfilled once `events` more events have come to every stream. */
  async expect(events: number): Promise<void> {
    this.#child.stdin?.write(`expect ${events * this.count}\n`)
    await this.#line('got')
  }

  async close(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #line(start: string): Promise<void> {
    const { value, done } = await this.#lines.next()
    if (done || !value.startsWith(start)) throw new Error(`the load program ended, or said ${value}`)
  }
}
