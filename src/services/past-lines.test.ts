/** Past lines of a log, sent to a caller that is slow. */
import { expect, test } from 'vitest'
import { StreamSink } from '../api/sink.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { PastLines } from './past-lines.ts'

/** More than a sink could call one within the other. */
const WAITS = 25_000

/** Full after every message. */
class FullSink extends StreamSink {
  sent = 0

  protected override open(): void {}

  protected override write(): number {
    this.writable = false
    return this.sent++
  }

  protected override finish(): void {}
}

test('a caller of a long log, waited for however often, goes as any other', async () => {
  let isAborted = false
  const sink = new FullSink({
    identity: undefined,
    abort: () => {
      isAborted = true
    },
  } as never)
  const line: LogLine = { timestamp: 0, level: 'INFO', component: '', message: 'x', fields: {} }
  const past = new PastLines(sink)
  await past.send([line])
  for (let n = 0; n < WAITS; n++) {
    const sent = past.send([line])
    sink.drained()
    await sent
  }
  expect(sink.sent).toBe(1 + WAITS)
  const left = past.send([line])
  sink.lose()
  await left
  expect(isAborted).toBe(true)
})
