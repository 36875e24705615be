/** RTP that ffmpeg makes, through real sockets and an emulated path: what rtp_observer shows is what the receiver of the path sees. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, describe, expect, it } from 'vitest'
import { Peer, startRun, type TestRun, testPool } from '../dataplane/running.ts'
import { until } from '../harness/waiting.ts'

const possible = spawnSync('ffmpeg', ['-version']).status === 0
if (!possible) console.warn('SKIPPED: the test of rtp_observer with streams of ffmpeg needs ffmpeg')

const SECONDS = 5
const VOICE = 0x1001
const MUSIC = 0x2002

const pool = testPool()
afterAll(() => pool.close())

/** Voice as PCMU, payload type 0, and music as Opus, a dynamic type with 48 kHz, in packets of 20 ms each; RTCP beside them. */
function sendRtp(port: number): ChildProcess {
  const tone = (frequency: number) => ['-re', '-f', 'lavfi', '-i', `sine=frequency=${frequency}:duration=${SECONDS}`]
  const to = `rtp://127.0.0.1:${port}?rtcpport=${port}`
  const voice = [
    '-map',
    '0:a',
    '-c:a',
    'pcm_mulaw',
    '-ar',
    '8000',
    '-ac',
    '1',
    '-af',
    'aresample=8000,asetnsamples=n=160',
  ]
  const music = ['-map', '1:a', '-c:a', 'libopus', '-ar', '48000', '-frame_duration', '20']
  const rtp = (ssrc: number, type: number) => ['-ssrc', String(ssrc), '-payload_type', String(type), '-f', 'rtp', to]
  const args = [...tone(440), ...tone(880), ...voice, ...rtp(VOICE, 0), ...music, ...rtp(MUSIC, 97)]
  return spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}

interface Heard {
  sequence: number
  timestamp: number
  /** ms. */
  at: number
}

/** What a receiver hears of each source, by SSRC; RTCP left out. */
function listen({ socket }: Peer): Map<number, Heard[]> {
  const heard = new Map<number, Heard[]>()
  socket.on('message', (bytes: Buffer) => {
    const at = performance.now()
    const type = (bytes[1] as number) & 0x7f
    if (type >= 72 && type <= 76) return
    const ssrc = bytes.readUInt32BE(8)
    if (!heard.has(ssrc)) heard.set(ssrc, [])
    heard.get(ssrc)?.push({ sequence: bytes.readUInt16BE(2), timestamp: bytes.readUInt32BE(4), at })
  })
  return heard
}

/** RFC 3550, A.8, in ms. */
function jitterOf(packets: readonly Heard[], rate: number): number {
  let jitter = 0
  for (let i = 1; i < packets.length; i++) {
    const [now, before] = [packets[i], packets[i - 1]] as [Heard, Heard]
    const transit = now.at - before.at - (((now.timestamp - before.timestamp) | 0) * 1000) / rate
    jitter += (Math.abs(transit) - jitter) / 16
  }
  return jitter
}

/** Sequences that are missing between the first and the last of packets in order. */
function missing(packets: readonly Heard[]): number {
  const [first, last] = [packets[0], packets.at(-1)] as [Heard, Heard]
  return ((last.sequence - first.sequence) & 0xffff) + 1 - packets.length
}

/** From the first two in sequence on, where an observer begins. */
function asStream(packets: readonly Heard[]): readonly Heard[] {
  const isNext = (i: number) => packets[i + 1]?.sequence === (((packets[i] as Heard).sequence + 1) & 0xffff)
  return packets.slice(packets.findIndex((_, i) => isNext(i)))
}

/** What an observer shows of a source. */
function shown(run: TestRun, observer: string, ssrc: number): Record<string, number> {
  const own = run.metrics()[observer] as Record<string, number>
  const place = Array.from({ length: 64 }, (_, i) => i).find((i) => own[`stream_${i}_ssrc`] === ssrc) ?? -1
  const prefix = `stream_${place}_`
  const figures = Object.entries(own).filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(figures.map(([name, value]) => [name.slice(prefix.length), value]))
}

describe.skipIf(!possible)('a voice and a music stream of ffmpeg', () => {
  it('lose and jitter as the receiver behind the path sees it, and in front of it lose nothing', async () => {
    const receiver = await Peer.open()
    const heard = listen(receiver)
    const run = await startRun(pool, {
      from: { udp: { local_address: '127.0.0.1:0', output: 'a' } },
      before: { rtp_observer: { input: 'a', output: 'b' } },
      loss: { uniform_loss: { input: 'b', output: 'c', loss_prob: 0.1, seed: 3 } },
      delay: { delay_constant: { flows: [{ input: 'c', output: 'd' }], delay: 80, jitter: 70, seed: 4 } },
      after: { rtp_observer: { input: 'd', output: 'e' } },
      to: { udp: { local_address: '127.0.0.1:0', remote_address: receiver.address, input: 'e' } },
    })
    const [code] = await once(sendRtp(run.port('from')), 'exit')
    expect(code).toBe(0)
    await until(() => run.metrics().delay?.held_packets === 0, 'the path is empty')
    await run.stop()
    await receiver.hears(run.metrics().after?.output_packets as number)
    receiver.close()

    expect([...heard.keys()].sort()).toEqual([VOICE, MUSIC])
    for (const [ssrc, rate, type] of [
      [VOICE, 8000, 0],
      [MUSIC, 48_000, 97],
    ] as const) {
      const packets = asStream(heard.get(ssrc) as Heard[])
      const [before, after] = [shown(run, 'before', ssrc), shown(run, 'after', ssrc)]
      const clean = { clock_rate: rate, payload_type: type, reordered_packets: 0, duplicate_packets: 0 }
      expect(before).toMatchObject({ ...clean, lost_packets: 0 })
      expect(Math.abs((before.packets as number) - SECONDS * 50)).toBeLessThan(3)
      expect(after).toMatchObject({ ...clean, packets: packets.length, lost_packets: missing(packets) })
      expect(missing(packets)).toBeGreaterThan(5)
      // The receiver reads its own clock when its turn comes, on a machine that has more to do.
      const jitter = jitterOf(packets, rate)
      expect(Math.abs((after.jitter as number) / 1e6 - jitter)).toBeLessThan(1 + jitter / 4)
      expect(after.jitter).toBeGreaterThan(before.jitter as number)
    }
    const { rtp_packets, other_packets } = run.metrics().before as Record<string, number>
    expect(rtp_packets).toBe(
      (shown(run, 'before', VOICE).packets as number) + (shown(run, 'before', MUSIC).packets as number),
    )
    expect(other_packets).toBeGreaterThan(0) // RTCP sender reports
  }, 60_000)
})
