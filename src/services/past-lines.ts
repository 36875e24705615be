/** The lines that a log has when somebody begins to follow it, in messages of a bounded size. */
import type { Sink } from '../contract/handlers.ts'
import type { LogStreamMessages } from '../contract/types.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import type { NumberedLine } from '../telemetry/run-log.ts'
import { logMessageView } from './pipelines-view.ts'

/** Past lines of one message, at most. */
const MAX_MESSAGE_LINES = 500
/** Bytes of text of one message, at most, as UTF-8; a line that has more goes alone. */
const MAX_MESSAGE_BYTES = 262_144

/** Those of `lines` from index `from` on that one message takes, one at least. */
export function fitting(lines: readonly LogLine[], from = 0): LogLine[] {
  let end = from
  for (let bytes = 0; end < lines.length && end < from + MAX_MESSAGE_LINES; end++) {
    bytes += bytesOf(lines[end] as LogLine)
    if (bytes > MAX_MESSAGE_BYTES && end > from) break
  }
  return lines.slice(from, end)
}

function bytesOf({ component, message, fields }: LogLine): number {
  let bytes = Buffer.byteLength(component) + Buffer.byteLength(message)
  for (const [name, value] of Object.entries(fields))
    bytes += Buffer.byteLength(name) + Buffer.byteLength(String(value))
  return bytes
}

/** `lines`, of those from number `from` on and before `next`, with a line where others are missing that says how many. */
export function withMissing(lines: readonly NumberedLine[], from: number, next: number): LogLine[] {
  const told: LogLine[] = []
  let expected = from
  for (const line of lines) {
    if (line.n > expected) told.push(missingNotice(line.n - expected))
    told.push(line)
    expected = line.n + 1
  }
  if (next > expected) told.push(missingNotice(next - expected))
  return told
}

function missingNotice(count: number): LogLine {
  const message = `${count} lines are missing: the log does not keep them any longer, or the disk did not take them`
  return { timestamp: Date.now(), level: 'WARN', component: '', message, fields: {} }
}

/** Sends lines to one caller as fast as it takes them; takes the sink's `onDrain` meanwhile. */
export class PastLines {
  readonly #sink: Sink<LogStreamMessages>
  #wake = () => {}

  constructor(sink: Sink<LogStreamMessages>) {
    this.#sink = sink
    // Once, however often it is waited: a sink keeps its listeners.
    sink.onClose(() => this.#wake())
  }

  /** Resolves once all `lines` are sent, or the caller is gone. */
  async send(lines: readonly LogLine[]): Promise<void> {
    const sink = this.#sink
    for (let at = 0; at < lines.length && !sink.closed; ) {
      const some = fitting(lines, at)
      if (!sink.writable) await this.#room()
      if (!sink.closed) sink.send({ messages: some.map(logMessageView) })
      at += some.length
    }
  }

  /** Resolves once the caller takes more, or is gone. */
  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      this.#sink.onDrain(resolve)
    })
  }
}
