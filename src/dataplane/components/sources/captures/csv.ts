/** Reads lists of packets as lines `time_ms,size`; the first line may be that heading. */
import { CaptureError, MAX_RECORDED_PACKET, Recorder, type Recording } from './recording.ts'

/** Smallest packet of a list, bytes: a probe's header. */
const MIN_PACKET = 32
/** Longest line, bytes. */
const MAX_LINE_LENGTH = 128
/** Most characters of a line that an error repeats. */
const MAX_QUOTE_LENGTH = 40
const NS_PER_MS = 1e6
const LINE_FEED = 10
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]

/** The recording in the bytes of a list: sizes, 32 to 9,216 bytes, and their times. Throws CaptureError. */
export function readCsv(bytes: Uint8Array): Recording {
  const recorder = new Recorder(bytes)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let from = BYTE_ORDER_MARK.every((byte, i) => bytes[i] === byte) ? BYTE_ORDER_MARK.length : 0
  for (let line = 1; from < bytes.length; line++) {
    const found = text.indexOf(LINE_FEED, from)
    const end = found < 0 ? bytes.length : found
    if (end - from > MAX_LINE_LENGTH) {
      throw new CaptureError(`line ${line}: it has ${end - from} bytes, which is no "time_ms,size"`)
    }
    take(text.toString('latin1', from, end).trim(), line, recorder)
    from = end + 1
  }
  return recorder.finish('SIZES')
}

function take(text: string, line: number, recorder: Recorder): void {
  if (text === '' || (line === 1 && /^time_ms *, *size$/i.test(text))) return
  const [, time = '', size = ''] = /^(\d+(?:\.\d*)?) *, *(\d+)$/.exec(text) ?? []
  if (time === '') {
    throw new CaptureError(
      `line ${line}: ${JSON.stringify(text.slice(0, MAX_QUOTE_LENGTH))} is no "time_ms,size", as in 12.5,1200`,
    )
  }
  const bytes = Number(size)
  if (bytes < MIN_PACKET || bytes > MAX_RECORDED_PACKET) {
    throw new CaptureError(`line ${line}: the size ${size} is not within ${MIN_PACKET} to ${MAX_RECORDED_PACKET} bytes`)
  }
  recorder.at(Math.round(Number(time) * NS_PER_MS))
  recorder.size(bytes)
}
