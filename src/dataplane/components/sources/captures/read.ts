/** Reads a capture in any of the formats there are. */
import { readCsv } from './csv.ts'
import { isPcap, readPcap } from './pcap.ts'
import { isPcapng, readPcapng } from './pcapng.ts'
import { CaptureError, type Recording } from './recording.ts'

/** Bytes at the beginning of a file that is compressed, most often: gzip, zstd, xz, bzip2, LZ4. */
const COMPRESSED = [0x1f8b, 0x28b5, 0xfd37, 0x425a, 0x0422]

/**
 * The recording in the bytes of a file: pcap, pcapng, or lines `time_ms,size`. Throws CaptureError when it is none of them, when it is
 * damaged, or when it holds no packet to be sent.
 */
export function readCapture(bytes: Uint8Array): Recording {
  const recording = recordingOf(bytes)
  if (recording.packets > 0) return recording
  const { skippedFrames, unsendablePackets } = recording
  throw new CaptureError(
    `it holds no packet to send: ${skippedFrames} frames have no IP packet in them, and ${unsendablePackets} packets are cut or too long`,
  )
}

function recordingOf(bytes: Uint8Array): Recording {
  if (bytes.length === 0) throw new CaptureError('it is empty')
  const magic = bytes.length < 4 ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
  if (isPcap(magic)) return readPcap(bytes)
  if (isPcapng(magic)) return readPcapng(bytes)
  if (isText(bytes)) return readCsv(bytes)
  const packed = COMPRESSED.includes(magic >>> 16) ? '; it looks compressed: unpack it first' : ''
  const first = Buffer.from(bytes.subarray(0, 4)).toString('hex')
  throw new CaptureError(`byte 0: ${first} begins neither pcap nor pcapng nor lines "time_ms,size"${packed}`)
}

/** Whether it begins with what lines of text begin with, a byte-order mark or printable ASCII. */
function isText(bytes: Uint8Array): boolean {
  const [first, second = 0x20] = bytes
  if (first === 0xef && second === 0xbb) return true
  return isPrintable(first) && isPrintable(second)
}

function isPrintable(byte: number): boolean {
  return (byte >= 0x20 && byte < 0x7f) || byte === 9 || byte === 10 || byte === 13
}
