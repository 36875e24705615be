/** Reads pcap files (draft-ietf-opsawg-pcap): microseconds or nanoseconds, in either byte order. */
import { CaptureError, Recorder, type Recording } from './recording.ts'

const HEADER_BYTES = 24
const RECORD_BYTES = 16
const NS_PER_S = 1e9

/** Magic numbers as they read in big-endian order: which unit the fractions of a second have, ns, and in which order numbers are. */
const KINDS: ReadonlyMap<number, { unit: number; little: boolean }> = new Map([
  [0xa1b2c3d4, { unit: 1000, little: false }],
  [0xd4c3b2a1, { unit: 1000, little: true }],
  [0xa1b23c4d, { unit: 1, little: false }],
  [0x4d3cb2a1, { unit: 1, little: true }],
])

/** Whether a file that begins with the number `magic`, read in big-endian order, is a pcap file. */
export function isPcap(magic: number): boolean {
  return KINDS.has(magic)
}

/** The recording in the bytes of a pcap file. Throws CaptureError. */
export function readPcap(bytes: Uint8Array): Recording {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const kind = bytes.length >= 4 ? KINDS.get(view.getUint32(0)) : undefined
  if (kind === undefined) throw new CaptureError('it is no pcap file')
  if (bytes.length < HEADER_BYTES) {
    throw new CaptureError(`it ends at byte ${bytes.length}, within the file header of ${HEADER_BYTES} bytes`)
  }
  const { unit, little } = kind
  const version = view.getUint16(4, little)
  if (version !== 2) {
    throw new CaptureError(
      `byte 4: its format has version ${version}.${view.getUint16(6, little)}; 2.4 is what is read`,
    )
  }
  // The upper half says how long a frame check sequence is.
  const linkType = view.getUint32(20, little) & 0xffff
  const recorder = new Recorder(bytes)
  let base = 0
  for (let at = HEADER_BYTES, record = 1; at < bytes.length; record++) {
    const from = at + RECORD_BYTES
    if (from > bytes.length) throw cutOff(record, at, `the file ends at byte ${bytes.length}, within its header`)
    const seconds = view.getUint32(at, little)
    const fraction = view.getUint32(at + 4, little)
    const captured = view.getUint32(at + 8, little)
    if (captured > bytes.length - from) {
      throw cutOff(record, at, `it says that ${captured} bytes follow, the file has ${bytes.length - from} more`)
    }
    if (record === 1) base = seconds
    recorder.at((seconds - base) * NS_PER_S + fraction * unit)
    at = from + captured
    recorder.frame(linkType, from, at, view.getUint32(from - 4, little))
  }
  return recorder.finish('FRAMES')
}

function cutOff(record: number, at: number, what: string): CaptureError {
  return new CaptureError(
    `record ${record} at byte ${at}: ${what}; if the rest was lost, "tcpdump -r FILE -w WHOLE" keeps what is whole`,
  )
}
