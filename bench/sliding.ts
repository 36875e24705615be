/**
 * rely over packets of 1,200 bytes with one repair in ten: its encoder and its decoder, against a C loop of nothing but their multiply-adds, and
 * against a C program that does all that they have to do for each packet.
 */
import { spawnSync } from 'node:child_process'
import { type BenchResult, type BenchRow, inTurn, nativeProgram, runAlone } from './measure.ts'
import { Stage } from './support/stage.ts'

const BYTES = 1200
const RATE = 0.1
const WINDOWS = [16, 64, 256] as const
const ROUNDS = 25
const MILLISECONDS = 8
/** One source in so many is lost; repairs mend all of them. */
const LOST = 20
const SYMBOL_BYTES = BYTES + 2

/** rely_encoder on full batches: nanoseconds per source. */
function encoding(window: number) {
  const stage = new Stage('rely_encoder', { repair_target_rate: RATE, max_payloads: window })
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < MILLISECONDS * 1e6) {
      while (!stage.batch.full) stage.add(BYTES)
      packets += stage.batch.length
      spent += stage.send()
    }
    return spent / packets
  }
  return { measure, stop: () => stage.stop() }
}

/** What an encoder sends: `packets` of it, the same payload in each but the numbers. */
function wire(window: number, sources: number): Uint8Array[] {
  const sent: Uint8Array[] = []
  const stage = new Stage('rely_encoder', { repair_target_rate: RATE, max_payloads: window })
  stage.look = ({ handles, length, packets }) => {
    for (let i = 0; i < length; i++) {
      const at = packets.offset[handles[i]]
      sent.push(packets.data.slice(at, at + packets.length[handles[i]]))
    }
  }
  for (let n = 0; n < sources; n++) {
    stage.add(BYTES)
    if (stage.batch.full || n === sources - 1) stage.send()
  }
  stage.stop()
  return sent
}

/** rely_decoder on full batches with one source in `LOST` lost: nanoseconds per source of the encoder, and how many repairs each took. */
function decoding(window: number) {
  const sources = 64 * 256
  const arriving = wire(window, sources).filter((bytes) => {
    const number = new DataView(bytes.buffer).getUint32(4)
    return bytes[0] !== 0xb8 || number % LOST !== LOST >> 1
  })
  const stage = new Stage('rely_decoder', {})
  let at = 0
  let rounds = 0
  let done = 0
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < MILLISECONDS * 1e6) {
      for (; !stage.batch.full && at < arriving.length; at++) {
        const bytes = arriving[at] as Uint8Array
        // Numbers run on: the first window of a round is over packets of the one before, and of no use.
        const view = new DataView(bytes.buffer)
        view.setUint32(4, (view.getUint32(4) % sources) + rounds * sources)
        stage.add(bytes)
        if (bytes[0] === 0xb8) packets += LOST / (LOST - 1)
      }
      if (at === arriving.length) {
        at = 0
        rounds++
      }
      spent += stage.send()
    }
    done += packets
    return spent / packets
  }
  const used = () => stage.metrics().used_repair_packets / done
  const stop = () => {
    const { recovered_packets: recovered, malformed_packets: malformed } = stage.metrics()
    if (recovered < (done / LOST) * 0.9 || malformed > 0) throw new Error(`${recovered} of ${done / LOST} recovered`)
    stage.stop()
  }
  return { measure, used, stop }
}

export async function bench(): Promise<BenchResult> {
  const [multiplyAdds, whole] = [nativeProgram('sliding'), nativeProgram('rely')]
  const rows: BenchRow[] = []
  for (const window of WINDOWS) {
    const run = (program: string, bytes: number): Record<string, number> => {
      const { stdout } = spawnSync(program, [bytes, MILLISECONDS, window].map(String), { encoding: 'utf8' })
      return JSON.parse(stdout)
    }
    const encoder = encoding(window)
    const decoder = decoding(window)
    let c: Record<string, number> = {}
    const ns = await inTurn(ROUNDS, {
      loop: () => run(multiplyAdds, SYMBOL_BYTES).ns,
      encoderInC: () => {
        c = run(whole, BYTES)
        return c.encoder
      },
      encoder: encoder.measure,
      encoderAgain: encoder.measure,
      decoderInC: () => c.decoder,
      decoder: decoder.measure,
      decoderAgain: decoder.measure,
    })
    // The loop makes one sum for ten sources, the decoder one for each repair that it uses.
    const decoderLoop = ns.loop * (decoder.used() / RATE)
    encoder.stop()
    decoder.stop()
    const unit = 'ns per source packet'
    // Right behind a program that was started, pages have to be made this process's own again, one by one (fork(2)), and caches filled, which takes a
    // seventh of the time: what is measured again has that behind it, as the programs have.
    const row = (label: string, value: number, again: number, reference: number, inC: number): BenchRow[] => [
      { label: `window ${window} ${label}, multiply-adds alone in C`, value: reference, unit },
      { label: `window ${window} ${label}, all of it`, value, unit, ratio: reference / value, goal: '≥ 0.8' },
      { label: `window ${window} ${label}, all that it has to do in C`, value: inC, unit },
      { label: `window ${window} ${label}, all of it, against that`, value, unit, ratio: inC / value },
      {
        label: `window ${window} ${label}, again, against multiply-adds`,
        value: again,
        unit,
        ratio: reference / again,
      },
      { label: `window ${window} ${label}, again, against all in C`, value: again, unit, ratio: inC / again },
      {
        label: `window ${window} ${label}`,
        value: 1000 / value,
        unit: 'Mpps',
        ...(window === 64 && { goal: '≥ 1' }),
      },
    ]
    rows.push(
      ...row('encoder', ns.encoder, ns.encoderAgain, ns.loop, ns.encoderInC),
      ...row('decoder', ns.decoder, ns.decoderAgain, decoderLoop, ns.decoderInC),
    )
  }
  return { name: `sliding: ${BYTES} B, 1 repair for 10 sources, 1 source in ${LOST} lost`, rows }
}

await runAlone(import.meta.url, bench)
