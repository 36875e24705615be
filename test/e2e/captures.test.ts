/** What tcpdump has recorded is replayed: packet by packet and at its times, as tcpdump itself reads the recording. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { drive } from '../harness/component.ts'

const possible =
  spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up']).status === 0 &&
  spawnSync('tcpdump', ['--version']).status === 0
if (!possible) console.warn('SKIPPED: recording real traffic needs root, unshare, ip and tcpdump')

/** Packets of each recording: every second of the gaps between them is 25 ms or more, the others next to nothing. */
const COUNT = 60
/** Frames of this length are cut by the snap length of one recording. */
const SNAP = 300
/** How late a loaded machine may be, ns. */
const LATE = 400e6
const forms = [
  'plain -i lo',
  'nanoseconds -i lo --time-stamp-precision nano',
  'sll2 -i any',
  'sll -i any -y LINUX_SLL',
  `cut -i lo -s ${SNAP}`,
]
/** Between the IP packet and what is in it. */
const HEADERS = 28

interface Packet {
  /** ns. */
  time: bigint
  bytes: Buffer
}

const directory = mkdtempSync(join(tmpdir(), 'penstock-captures-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A recording as tcpdump reads it: IP packets without what is in front of them. */
function readByTcpdump(name: string): Packet[] {
  const args = ['-r', join(directory, `${name}.pcap`), '--time-stamp-precision', 'nano', '-nn', '-tt', '-x', '-q']
  const packets: Packet[] = []
  for (const line of execFileSync('tcpdump', args, { encoding: 'utf8', stdio: 'pipe' }).split('\n')) {
    const [, seconds, fraction] = /^(\d+)\.(\d{9}) /.exec(line) ?? []
    const [, hex] = /^\s+0x[0-9a-f]+: +([0-9a-f ]+)$/.exec(line) ?? []
    if (seconds !== undefined) packets.push({ time: BigInt(seconds + fraction), bytes: Buffer.alloc(0) })
    else if (hex !== undefined) {
      const last = packets.at(-1) as Packet
      last.bytes = Buffer.concat([last.bytes, Buffer.from(hex.replaceAll(' ', ''), 'hex')])
    }
  }
  return packets
}

describe.skipIf(!possible)('a recording of tcpdump', { timeout: 120_000 }, () => {
  beforeAll(() => {
    const script = fileURLToPath(new URL('captures.mjs', import.meta.url))
    const penstock = join(packageRoot(), 'bin/penstock.js')
    const command = ['-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, script]
    execFileSync('unshare', [...command, directory, penstock, String(COUNT), ...forms], {
      stdio: 'pipe',
      timeout: 100_000,
    })
  }, 120_000)

  test.each(['plain', 'nanoseconds', 'sll2', 'sll'])('%s: the same packets at the same times', (name) => {
    const expected = readByTcpdump(name)
    expect(expected).toHaveLength(COUNT)
    const trace_file = join(directory, `${name}.pcap`)
    const bench = drive({ source: { trace_traffic_source: { output: 'out', trace_file } } })
    bench.advance(60e9)
    const out = bench.take('out')
    expect(out.map(({ time }) => time)).toEqual(expected.map(({ time }) => Number(time - expected[0].time)))
    expect(out.map(({ bytes }) => Buffer.from(bytes))).toEqual(expected.map(({ bytes }) => bytes))
    expect(new Set(out.map(({ bytes }) => bytes[0] >>> 4))).toEqual(new Set([4, 6]))
    bench.stop()
  })

  test('cut: what was not recorded in whole is counted, the rest is sent', () => {
    const whole = readByTcpdump('plain').filter(({ bytes }) => bytes.length + 14 <= SNAP)
    const trace_file = join(directory, 'cut.pcap')
    const bench = drive({ source: { trace_traffic_source: { output: 'out', trace_file } } })
    bench.advance(60e9)
    expect(bench.take('out').map(({ bytes }) => Buffer.from(bytes))).toEqual(whole.map(({ bytes }) => bytes))
    expect(bench.metrics().source.unsendable_packets).toBe(COUNT - whole.length)
    bench.stop()
  })

  test('replayed by a run, and recorded again: the same packets, as long after the first as they were', () => {
    const recorded = readByTcpdump('plain')
    const replayed = readByTcpdump('replayed')
    expect(replayed.map(({ bytes }) => bytes.subarray(HEADERS))).toEqual(recorded.map(({ bytes }) => bytes))
    const span = Number(recorded[COUNT - 1].time - recorded[0].time)
    expect(span).toBeGreaterThan(1e9)
    for (let i = 1; i < COUNT; i++) {
      const late = Number(replayed[i].time - replayed[0].time - (recorded[i].time - recorded[0].time))
      expect(Math.abs(late), `packet ${i} after ${span} ns`).toBeLessThan(LATE)
    }
  })
})
