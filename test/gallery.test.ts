/** Every example shows what the text beside it says. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { setVariables } from '../src/cli/variables.ts'
import { components } from '../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../src/dataplane/engine/check.ts'
import type { PipelineConfig } from '../src/dataplane/engine/config.ts'
import { withFilesIn } from '../src/dataplane/engine/files.ts'
import { Simulation, simulate } from '../src/dataplane/engine/simulate.ts'
import { start } from './cli/cli.ts'
import { type Bench, conservation, drive, type Pipeline, payload, tagOf } from './harness/component.ts'
import { until } from './harness/waiting.ts'

type Metrics = Record<string, Record<string, number>>

const folder = new URL('../examples/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')
const names = readdirSync(folder, 'utf8')
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.slice(0, -'.json'.length))

function checked(text: string): PipelineConfig {
  const { config, problems } = checkPipelineConfig(text, components)
  if (!config) throw new Error(JSON.stringify(problems))
  return withFilesIn(config, components, fileURLToPath(folder))
}

/** Metrics after each of `seconds`, rising, of one simulation. */
function simulated<T extends number[]>(name: string, ...seconds: T): { [K in keyof T]: Metrics } {
  const config = checked(read(`${name}.json`))
  const simulation = new Simulation(config, { registry: components, seed: 1 })
  const metrics = seconds.map((second) => {
    simulation.advanceTo(second * 1e9)
    return simulation.metrics()
  })
  simulation.stop()
  expect(conservation(config, simulation.metrics())).toEqual([])
  return metrics as { [K in keyof T]: Metrics }
}

/** Fails unless `value` is between both. */
function between(value: number | undefined, low: number, high: number): void {
  expect(value).toBeGreaterThanOrEqual(low)
  expect(value).toBeLessThanOrEqual(high)
}

/** Whether so many of `count` packets may be lost with probability `share`: within 4.5 standard deviations, more than 99.999 %. */
function lost(packets: number, count: number, share: number): void {
  expect(Math.abs(packets - count * share)).toBeLessThan(4.5 * Math.sqrt(count * share * (1 - share)))
}

const ms = (nanoseconds: number | undefined): number => (nanoseconds ?? Number.NaN) / 1e6

describe('beside each example', () => {
  it.each(names)('%s: a text says how to see it and what to look for; the table names both', (name) => {
    const text = read(`${name}.md`)
    expect(text).toMatch(/^# .+\n\n/)
    expect(text).toMatch(new RegExp(`\`\`\`sh\\n[\\s\\S]*(examples/${name}\\.json|npm run demo)`))
    expect(text).toContain('What to look for:')
    const row = read('README.md')
      .split('\n')
      .find((line) => line.startsWith(`| [${name}.json]`))
    expect(row).toContain(`](${name}.md)`)
    // A metric that is named is one that there is.
    const config = checked(read(`${name}.json`))
    const known = new Simulation(config, { registry: components })
    const metrics = known.metrics()
    known.stop()
    for (const [, component, metric] of text.matchAll(/`([a-z][a-z 0-9]*)\/([a-z_]+)`/g)) {
      const ofIt = Object.keys(metrics[component as string] ?? {})
      expect(
        ofIt.some((each) => each === metric || each === `${metric}_count`),
        `${component}/${metric}`,
      ).toBe(true)
    }
  })

  it('no text is without its example', () => {
    for (const file of readdirSync(folder, 'utf8')) {
      if (file.endsWith('.md') && file !== 'README.md')
        expect(existsSync(new URL(file.replace(/\.md$/, '.json'), folder)), file).toBe(true)
    }
  })
})

describe('on the virtual clock', () => {
  it('impaired-link: loss, delay and order', () => {
    const [{ sink, rate }] = simulated('impaired-link', 60)
    // 10 ms of jitter and the time on a link of 10 Mbit/s.
    between(ms(sink.delay_min), 30, 40)
    between(ms(sink.delay_mean), 40, 51)
    between(ms(sink.delay_max), 45, 51)
    between(sink.loss, 0.012, 0.019)
    expect(sink.late_packets).toBeGreaterThan(0)
    expect([sink.reordered_packets, rate.queue_full_packets]).toEqual([0, 0])
  })

  it('bursty-loss-repaired: what a link loses in bursts comes back', () => {
    const [{ encoder, loss, decoder, sink }] = simulated('bursty-loss-repaired', 60)
    between(loss.emulated_loss / encoder.output_packets, 0.025, 0.037)
    expect(decoder.recovered_packets).toBeGreaterThan(800)
    expect(sink.loss).toBeLessThan(0.001)
    expect(sink.reordered_packets).toBeGreaterThan(0)
    expect(ms(sink.delay_max)).toBeLessThan(65)
  })

  it('video-over-bursty-link: frames are repaired before the next one is due', () => {
    const [{ camera, encoder, rate, loss, sink }] = simulated('video-over-bursty-link', 120)
    between(loss.emulated_loss / rate.flows_0_output_packets, 0.024, 0.034)
    expect(sink.loss).toBeLessThan(0.005)
    expect([sink.late_packets, rate.queue_full_packets]).toEqual([0, 0])
    between(encoder.output_bytes / camera.output_bytes, 2.7, 3.2)
  })

  it('bursts-and-queues: a short queue loses, a long one delays', () => {
    const [metrics] = simulated('bursts-and-queues', 120)
    const [short, long] = [metrics['short sink'], metrics['long sink']]
    expect(short.loss).toBeGreaterThan(0.5)
    expect(metrics['short queue'].queue_full_packets).toBeGreaterThan(1000)
    expect(ms(short.delay_max)).toBeLessThan(33)
    expect([long.lost_packets, metrics['long queue'].queue_full_packets]).toEqual([0, 0])
    between(ms(long.delay_max), 110, 121)
    // A fifth of 4 Mbit/s.
    between((long.bytes * 8) / 120e6, 0.4, 0.8)
  })

  it('trace-replay: what was recorded, at its times, and then the end', () => {
    const simulation = new Simulation(checked(read('trace-replay.json')), { registry: components })
    simulation.advanceTo(60e9)
    const { recording, sink, rate } = simulation.metrics()
    const lines = read('trace-replay.csv').trim().split('\n')
    expect(lines).toHaveLength(18)
    expect(recording.output_packets).toBe(18 * 20)
    expect(sink.bytes).toBe(20 * lines.reduce((sum, line) => sum + Number(line.split(',')[1]), 0))
    // 400 ms of recording and 100 ms between, and the last packet's bits.
    between(simulation.clock.now / 1e9, 9.9, 9.91)
    expect([sink.lost_packets, rate.queue_full_packets]).toEqual([0, 0])
    between(ms(sink.delay_min), 0.29, 0.31)
    between(ms(sink.delay_max), 20, 33)
    expect(simulation.stop()).toEqual({ outcome: 'COMPLETED' })
  })

  it('measured-path: the trackers see what the path does', () => {
    const [metrics] = simulated('measured-path', 60)
    const [loss, delay] = [metrics['loss receiver'], metrics['delay receiver']]
    between(metrics.loss.emulated_loss - loss.lost_packets, 0, 30)
    expect(loss.lost_packets).toBeGreaterThan(350)
    expect(loss.longest_loss).toBeGreaterThan(1)
    between(ms(delay.delay_min), 20, 21)
    between(ms(delay.delay_max), 39, 40)
    between(delay.late_packets / delay.input_packets, 0.22, 0.28)
    between(metrics.rate.bytes_per_second, 215_000, 250_000)
    expect(metrics.sink.bytes).toBe(metrics.sink.packets * 1000)
  })

  it('simulated-network: to all, and to one', () => {
    const [metrics] = simulated('simulated-network', 10)
    const sinks = ['first', 'second', 'third'].map((name) => metrics[`sink ${name}`])
    expect(sinks.map(({ flows }) => flows)).toEqual([0, 1, 2])
    const [announced, called] = [metrics.announcer.output_packets, metrics.caller.output_packets]
    between(announced, 100, 101)
    between(sinks[1].packets, announced - 1, announced)
    between(sinks[2].packets, announced + called - 2, announced + called)
    expect(sinks.map(({ lost_packets }) => lost_packets)).toEqual([0, 0, 0])
    expect([metrics.first.members, metrics.second.members]).toEqual([2, 1])
  })

  it('relay-two-clients: each hears its own packets, who is not listed none', () => {
    const [metrics] = simulated('relay-two-clients', 10)
    for (const client of [1, 2]) {
      const sink = metrics[`sink ${client}`]
      expect(sink.flows).toBe(1)
      expect(sink.lost_packets).toBe(0)
      between(metrics[`source ${client}`].output_packets - sink.packets, 0, 1)
      expect(sink.packets).toBeGreaterThan(800)
    }
    expect(metrics['sink 3'].packets).toBe(0)
    expect(metrics.lookup.unlisted_client_packets).toBe(metrics['socket 3'].sent_packets)
    expect(metrics.lookup.known_clients).toBe(2)
  })

  it('tags-over-one-path: each sink hears its own source', () => {
    const [{ mux, demux, loss, ...rest }] = simulated('tags-over-one-path', 60)
    for (const name of ['voice', 'bulk']) {
      const sink = rest[`${name} sink`]
      expect([sink.flows, sink.reordered_packets]).toEqual([1, 0])
      lost(sink.lost_packets, rest[name].output_packets, 0.01)
    }
    expect(mux.output_bytes).toBe(rest.voice.output_bytes + rest.bulk.output_bytes + 4 * mux.output_packets)
    expect(demux.unknown_tag_packets).toBe(0)
    expect(loss.emulated_loss).toBeGreaterThan(100)
  })

  it('fragments-small-mtu: three fragments a packet, which is lost with any of them', () => {
    const [{ source, cut, sink }] = simulated('fragments-small-mtu', 60)
    expect(cut.output_packets).toBe(3 * source.output_packets)
    expect(cut.output_bytes).toBeLessThanOrEqual(500 * cut.output_packets)
    lost(sink.lost_packets, source.output_packets, 1 - 0.99 ** 3)
    expect([sink.corrupt_packets, sink.bytes / sink.packets]).toEqual([0, 1400])
  })

  it('worsening-link: each step is worse, and the last one stays', () => {
    const [first, second, third, fourth, after] = simulated('worsening-link', 9.9, 19.9, 29.9, 39.9, 49.9)
    const steps = [first, second, third, fourth]
    expect(steps.map(({ rate, delay, loss }) => [rate.phase, delay.phase, loss.phase])).toEqual(
      [0, 1, 2, 3].map((phase) => [phase, phase, phase]),
    )
    const losses = steps.map(({ sink }) => sink.loss as number)
    expect(losses[0]).toBe(0)
    for (const step of [1, 2, 3]) expect(losses[step]).toBeGreaterThan(losses[step - 1]!)
    expect(steps.map(({ rate }) => rate.queue_full_packets > 0)).toEqual([false, false, false, true])
    expect(steps.map(({ sink }) => sink.late_packets > 0)).toEqual([false, false, false, true])
    expect(ms(third.sink.delay_max)).toBeLessThan(83)
    expect([after.rate.phase, after.delay.phase, after.loss.phase]).toEqual([3, 3, 3])
  })

  it('signed-telemetry: only what is signed gets through', () => {
    const [{ meter, stranger, check, sink }] = simulated('signed-telemetry', 60)
    expect([sink.packets, sink.flows]).toEqual([meter.output_packets, 1])
    expect(check.authentication_failures).toBe(stranger.output_packets)
    expect(stranger.output_packets).toBeGreaterThan(100)
    expect(check.replayed_packets).toBe(0)
  })

  it('several-flows-one-link: one rate and one queue for both', () => {
    const [metrics] = simulated('several-flows-one-link', 30)
    const [a, b] = [metrics['sink a'], metrics['sink b']]
    between(a.mean_goodput + b.mean_goodput, 4.8e6, 4.93e6)
    expect(a.packets).toBeGreaterThan(b.packets * 1.5)
    for (const sink of [a, b]) between(ms(sink.delay_p99), 185, 195)
  })

  it('two-paths: lost is what both lose', () => {
    const [{ source, sink }] = simulated('two-paths', 60)
    lost(sink.lost_packets, source.output_packets, 0.01)
    lost(sink.duplicate_packets, source.output_packets, 0.81)
    expect([ms(sink.delay_min), ms(sink.delay_max)]).toEqual([15, 40])
    expect(sink.reordered_packets).toBeGreaterThan(0)
  })

  it('outages: a tenth of the time nothing gets through', () => {
    const [first, last] = simulated('outages', 5.1, 20)
    expect(first.tracker.packets_per_second).toBe(0)
    expect(last.tracker.packets_per_second).toBeLessThan(250)
    between(last.sink.loss, 0.098, 0.102)
  })

  it('changing-conditions: home loses nothing, the tunnel has a queue', () => {
    const [home, street, tunnel, again] = simulated('changing-conditions', 20, 30, 35, 50)
    expect(home.sink.loss).toBe(0)
    expect(ms(home.sink.delay_max)).toBeLessThan(23)
    expect(street.sink.loss).toBeGreaterThan(0)
    expect(street.rate.queue_full_packets).toBe(0)
    expect(tunnel.rate.queue_full_packets).toBeGreaterThan(100)
    expect(ms(again.sink.delay_max)).toBeGreaterThan(900)
    // All that the tunnel held is through at once; then nothing is lost at home.
    expect(again.rate.queue_full_packets).toBe(tunnel.rate.queue_full_packets)
    expect([again.rate.phase, again.delay.phase, again.loss.phase]).toEqual([0, 0, 0])
  })

  it('reordering: jitter with and without', () => {
    const [metrics] = simulated('reordering', 30)
    const [kept, free] = [metrics['sink in order'], metrics['sink out of order']]
    expect(kept.reordered_packets).toBe(0)
    between(ms(kept.delay_mean), 38, 43)
    between(ms(free.delay_mean), 29, 31)
    expect(free.reordered_packets).toBeGreaterThan(free.packets / 2)
  })

  it('loss-models: four times 5 %', () => {
    const [metrics] = simulated('loss-models', 100)
    for (const name of ['uniform', 'random', 'periodic', 'chain']) between(metrics[`sink ${name}`].loss, 0.045, 0.055)
    expect(metrics['sink periodic'].lost_packets).toBe(5000)
  })

  it('stream-cipher: what arrives is whole, whatever is missing', () => {
    const [{ source, loss, watch, sink }] = simulated('stream-cipher', 60)
    lost(loss.emulated_loss, source.output_packets, 0.05)
    between(loss.emulated_loss - sink.lost_packets, 0, 2)
    expect([sink.corrupt_packets, watch.packet_size_min, watch.packet_size_max]).toEqual([0, 516, 516])
  })

  it("shared-constant: one's own packets get through, and no others", () => {
    const [{ sender, verify, sink, ...rest }] = simulated('shared-constant', 60)
    expect([sink.packets, sink.flows, sink.bytes]).toEqual([sender.output_packets, 1, sender.output_bytes])
    expect(verify.verify_failures).toBe(rest['other pipeline'].output_packets)
    expect(verify.verify_failures).toBeGreaterThan(1000)
  })

  it('restarted-sender: what is late of the former run is dropped', () => {
    const [{ reader, sink }] = simulated('restarted-sender', 20)
    expect([reader.sessions, sink.flows, sink.lost_packets]).toEqual([2, 2, 0])
    between(reader.stale_session_packets, 99, 101)
  })

  it('flushed-blocks: what is lost comes back within 100 ms, at five times the repair', () => {
    const [metrics] = simulated('flushed-blocks', 60)
    const [full, timed] = ['full', 'timed'].map((way) => metrics[`${way} sink`])
    for (const way of ['full', 'timed']) expect(metrics[`${way} decoder`].recovered_packets).toBeGreaterThan(80)
    between(ms(full.delay_max), 400, 500)
    between(ms(timed.delay_max), 75, 100)
    const [fullRepair, timedRepair] = ['full', 'timed'].map((way) => metrics[`${way} encoder`].repair_packets)
    between(timedRepair / fullRepair, 4.8, 5.2)
    between(metrics['timed injector'].injected_notifications, 599, 600)
  })

  it('failing-run: works, and then fails', () => {
    const options = { registry: components, duration: 4.9e9 }
    const before = simulate(checked(read('failing-run.json')), options)
    expect([before.end.outcome, before.metrics.sink.packets, before.metrics.bomb.exploded]).toEqual(['STOPPED', 491, 0])
    const after = simulate(checked(read('failing-run.json')), { ...options, duration: 6e9 })
    expect(after.end).toMatchObject({ outcome: 'FAILED', error: expect.stringContaining('"bomb"') })
    expect(after.elapsed).toBe(5e9)
  })

  it('gate: closed and opened by its variable while it runs', () => {
    const text = read('gate.json')
    const simulation = new Simulation(checked(text), { registry: components })
    const passed: number[] = []
    for (const [i, closed] of ['false', 'true', 'false'].entries()) {
      simulation.graph.reconfigure(checked(setVariables(text, [`closed=${closed}`])))
      simulation.advanceTo((i + 1) * 5e9)
      passed.push(simulation.metrics().sink.packets!)
      expect(simulation.metrics().sink.finished).toBe(closed === 'true' ? 1 : 0)
    }
    expect(simulation.metrics().gate.gated_packets).toBeGreaterThanOrEqual(499)
    simulation.stop()
    expect(passed[1]! - passed[0]!).toBeLessThanOrEqual(1)
    expect(passed[2]! - passed[1]!).toBeGreaterThanOrEqual(499)
  })
})

describe('with IP packets in the place of the device', () => {
  /** The example without its tun and `others`: what they bring in is sent to their outputs, what they would take is received from their inputs. */
  function withoutDevice(name: string, ...others: string[]): Bench {
    const { pipeline } = JSON.parse(read(`${name}.json`)).engine_config as { pipeline: Pipeline }
    expect(Object.keys(pipeline.device ?? {})).toEqual(['tun'])
    const rest = Object.entries(pipeline).filter(([component]) => !['device', ...others].includes(component))
    return drive(Object.fromEntries(rest))
  }

  /** A UDP packet of IPv4 from `source` to port `port` of `destination`. */
  function udpPacket(source: string, destination: string, port: number): Uint8Array {
    const bytes = Buffer.alloc(28)
    bytes[0] = 0x45
    bytes.writeUInt16BE(bytes.length, 2)
    bytes[9] = 17
    bytes.set(source.split('.').map(Number), 12)
    bytes.set(destination.split('.').map(Number), 16)
    bytes.writeUInt16BE(port, 22)
    return new Uint8Array(bytes)
  }

  it('paths-by-port: calls take the direct path, all else the cheap one', () => {
    const bench = withoutDevice('paths-by-port')
    const here = '10.94.1.1'
    bench.send('packets', [
      udpPacket(here, '10.94.1.2', 5060),
      udpPacket(here, '10.94.8.7', 4000),
      udpPacket(here, '10.94.1.2', 4000),
      udpPacket(here, '10.94.9.7', 5061),
      Uint8Array.from([0x60, ...new Uint8Array(47)]),
    ])
    const metrics = bench.metrics()
    expect([metrics['direct path'].sent_packets, metrics['cheap path'].sent_packets]).toEqual([2, 3])
    expect([metrics.filter.matched_packets, metrics.filter.not_ipv4_packets]).toEqual([2, 1])
    bench.stop()
  })

  it('server-of-many: answers go where each inner address was heard from', () => {
    const suite = { aes_128_gcm_sha_256: { key: '000102030405060708090a0b0c0d0e0f' } }
    const sealed = (seed: number, packets: Uint8Array[]) => {
      const client = drive({ it: { ssl_encrypt: { input: 'in', output: 'out', ...suite } } }, { seed })
      client.send('in', packets)
      const out = client.take('out').map(({ bytes }) => bytes)
      client.stop()
      return out
    }
    const server = withoutDevice('server-of-many', 'network')
    const [home, phone, abroad] = ['198.51.100.1:4000', '203.0.113.7:5000', '192.0.2.9:6000']
    const answeredAt = (...hosts: number[]) => {
      server.send(
        'for clients',
        hosts.map((host) => udpPacket('10.94.2.1', `10.94.2.${host}`, 7)),
      )
      return server.take('to encrypt back').map(({ remote }) => remote)
    }
    expect(answeredAt(2)).toEqual([])
    server.send('encrypted', sealed(1, [udpPacket('10.94.2.2', '10.94.2.1', 7)]), { remote: home })
    const [first, second] = sealed(
      2,
      [1, 2].map(() => udpPacket('10.94.2.3', '10.94.2.1', 7)),
    ) as [Uint8Array, Uint8Array]
    server.send('encrypted', first, { remote: phone })
    expect(server.take('inside')).toHaveLength(2)
    expect(answeredAt(2, 3, 3)).toEqual([home, phone, phone])
    server.send('encrypted', second, { remote: abroad })
    expect(answeredAt(2, 3)).toEqual([home, abroad])
    server.send('encrypted', udpPacket('10.94.2.3', '10.94.2.1', 7), { remote: phone })
    expect(answeredAt(3)).toEqual([abroad])
    const { router } = server.metrics()
    expect(router).toMatchObject({ unroutable_packets: 1, moved_addresses: 1, known_addresses: 2 })
    server.stop()
  })
})

describe('between a client at port 9000 and a server at 9001', () => {
  /** The example with both; what the client sends enters at "asked", what it hears leaves at "told". */
  function withEnds(name: string, answers: boolean): Bench {
    const { pipeline } = JSON.parse(read(`${name}.json`)).engine_config as { pipeline: Pipeline }
    const host = { local_address: '127.0.0.1:9001', lock_to_first_peer: true, output: 'served' }
    return drive({
      ...pipeline,
      application: { udp: { remote_address: '127.0.0.1:9000', input: 'asked', ...(answers && { output: 'told' }) } },
      host: { udp: answers ? { ...host, input: 'echoed' } : host },
      ...(answers && { echo: { observer: { input: 'served', output: 'echoed' } } }),
    })
  }

  function send(bench: Bench, count: number): void {
    for (let tag = 0; tag < count; tag++) {
      bench.send('asked', payload(300, tag))
      bench.advance(1e6)
    }
    bench.advance(1e9)
  }

  it('udp-forward: there and back', () => {
    const bench = withEnds('udp-forward', true)
    send(bench, 100)
    expect(bench.received('told').map(({ bytes }) => tagOf(bytes))).toEqual([...Array(100).keys()])
    bench.stop()
  })

  it('rtp-call: what the link does to a stream is seen behind it, and not before', () => {
    const bench = withEnds('rtp-call', false)
    const packets = 5000
    for (let sequence = 0; sequence < packets; sequence++) {
      const packet = Buffer.alloc(172)
      packet[0] = 0x80
      packet.writeUInt16BE(sequence, 2)
      packet.writeUInt32BE(sequence * 160, 4)
      packet.writeUInt32BE(0xcafe, 8)
      bench.send('asked', new Uint8Array(packet))
      bench.advance(20e6)
    }
    bench.advance(1e9)
    const { before, after, loss } = bench.metrics()
    expect([before.streams, after.streams]).toEqual([1, 1])
    expect([before.stream_0_packets, before.stream_0_loss, before.stream_0_jitter]).toEqual([packets, 0, 0])
    expect([after.stream_0_ssrc, after.stream_0_clock_rate]).toEqual([0xcafe, 8000])
    between(after.stream_0_loss, 0.015, 0.035)
    between(loss.emulated_loss - after.stream_0_lost_packets, 0, 10)
    between(ms(after.stream_0_jitter), 5, 15)
    expect(after.stream_0_reordered_packets).toBeGreaterThan(10)
    expect(bench.received('served')).toHaveLength(packets - loss.emulated_loss)
    bench.stop()
  })

  it('udp-fec: more than 99 % arrive of what a path that loses 10 % was given', () => {
    const bench = withEnds('udp-fec', false)
    send(bench, 10_000)
    const { encoder, loss } = bench.metrics()
    lost(loss.emulated_loss, encoder.output_packets, 0.1)
    expect(new Set(bench.received('served').map(({ bytes }) => tagOf(bytes))).size).toBeGreaterThan(9_900)
    bench.stop()
  })

  it('unix-socket-to-udp: packets of a program leave as datagrams, answers come back as packets', () => {
    const { pipeline } = JSON.parse(read('unix-socket-to-udp.json')).engine_config as { pipeline: Pipeline }
    const bench = drive({
      ...pipeline,
      client: { unix_socket: { client: { server_address: '@penstock-example' }, input: 'asked', output: 'told' } },
      host: { udp: { local_address: '127.0.0.1:9001', lock_to_first_peer: true, output: 'served', input: 'echoed' } },
      echo: { observer: { input: 'served', output: 'echoed' } },
    })
    bench.advance(1e9)
    send(bench, 100)
    bench.send('asked', payload(1473))
    expect(bench.received('told').map(({ bytes }) => [tagOf(bytes), bytes.length])).toEqual(
      [...Array(100).keys()].map((tag) => [tag, 300]),
    )
    expect(bench.metrics().network.oversize_packets).toBe(1)
    bench.stop()
  })

  it('loss-delay: answers take 50 to 70 ms, and some do not come', () => {
    const bench = withEnds('loss-delay', true)
    send(bench, 5_000)
    const told = bench.received('told')
    // Sent a millisecond apart; the link takes 0.12 ms for each of 300 bytes, each way.
    const times = told.map(({ bytes, time }) => time / 1e6 - tagOf(bytes))
    between(Math.min(...times), 50, 62)
    between(Math.max(...times), 60, 71)
    // 5,000 packets meet some 240 bad states: three standard deviations of bursts.
    between(told.length, 4_650, 4_880)
    bench.stop()
  })
})

describe('over real sockets', () => {
  const open: (() => void)[] = []
  afterEach(() => {
    for (const close of open.splice(0)) close()
  })

  async function bound(): Promise<Socket> {
    const made = createSocket('udp4').bind(0, '127.0.0.1')
    await once(made, 'listening')
    return made
  }

  /** Closed when the test is over. */
  async function socket(): Promise<Socket> {
    const made = await bound()
    open.push(() => made.close())
    return made
  }

  /** Ports that are free now. */
  async function freePorts(count: number): Promise<number[]> {
    const sockets = await Promise.all(Array.from({ length: count }, bound))
    const ports = sockets.map((each) => each.address().port)
    for (const each of sockets) each.close()
    return ports
  }

  /** Runs an example on other ports until the test is over. */
  async function run(name: string, ports: Readonly<Record<string, number>>, change = (text: string) => text) {
    const text = change(read(`${name}.json`).replaceAll(/(?<=\d:)9\d{3}\b/g, (port) => `${ports[port] ?? port}`))
    const child: ChildProcess = start(['run', '-', '-o', 'json'])
    open.push(() => child.kill('SIGKILL'))
    let told = ''
    child.stderr!.on('data', (chunk) => {
      told += chunk
    })
    child.stdin!.end(text)
    await until(
      () => /STATE running/.test(told) || child.exitCode !== null,
      () => `running: ${told}`,
    )
    expect(told).toMatch(/STATE running/)
  }

  it('encrypted-port-forward carries a conversation that nobody between can read', async () => {
    const [clients, near, far] = (await freePorts(3)) as [number, number, number]
    const [application, host, nearSide, farSide] = await Promise.all([socket(), socket(), socket(), socket()])
    const portOf = (each: Socket) => each.address().port
    const example = 'encrypted-port-forward'
    await run(`${example}/near`, { 9000: clients, 9101: near, 9102: portOf(nearSide) })
    await run(`${example}/far`, { 9101: portOf(farSide), 9102: far, 9001: portOf(host) })
    const between: Buffer[] = []
    nearSide.on('message', (message) => {
      between.push(message)
      farSide.send(message, far, '127.0.0.1')
    })
    farSide.on('message', (message) => {
      between.push(message)
      nearSide.send(message, near, '127.0.0.1')
    })
    host.on('message', (message, { port, address }) => host.send(`${message}, and you?`, port, address))
    const heard: string[] = []
    application.on('message', (message) => heard.push(`${message}`))
    application.send('very well', clients, '127.0.0.1')
    await until(() => heard.length > 0, 'an answer')
    expect(heard).toEqual(['very well, and you?'])
    expect(between.map(({ length }) => length)).toEqual(['very well'.length + 32, 'very well, and you?'.length + 32])
    for (const message of between) expect(message.includes('well')).toBe(false)
  })

  it('far-away-tcp: a stream goes there and back, whole, 40 ms each way', async () => {
    const [listen] = (await freePorts(1)) as [number]
    const service = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1')
    open.push(() => service.close())
    await once(service, 'listening')
    await run('far-away-tcp', { 9000: listen, 9001: (service.address() as AddressInfo).port })
    const client = connect(listen, '127.0.0.1')
    open.push(() => client.destroy())
    const heard: Buffer[] = []
    client.on('data', (chunk) => heard.push(chunk))
    await once(client, 'connect')
    const length = () => heard.reduce((sum, each) => sum + each.length, 0)
    const sent = performance.now()
    client.write('x')
    await until(() => length() === 1, 'the first byte back')
    expect(performance.now() - sent).toBeGreaterThanOrEqual(80)
    const stream = Buffer.from(payload(200_000, 7))
    client.write(stream)
    await until(
      () => length() === 1 + stream.length,
      () => `${length()} bytes are back`,
    )
    expect(Buffer.concat(heard).subarray(1).equals(stream)).toBe(true)
  })

  it.skipIf(spawnSync('test', ['-d', '/sys/class/net/lo']).status !== 0)(
    'multicast-to-unicast hands the group on',
    async () => {
      const receiver = await socket()
      const [group] = (await freePorts(1)) as [number]
      // By the loopback interface: whether there is a route to the group is this machine's affair.
      const onLoopback = (text: string) => text.replace('"multicast_group"', '"interface": "lo", "multicast_group"')
      await run('multicast-to-unicast', { 9400: group, 9401: receiver.address().port }, onLoopback)
      const heard: string[] = []
      receiver.on('message', (message) => heard.push(`${message}`))
      const sender = await socket()
      sender.setMulticastInterface('127.0.0.1')
      sender.send('to all', group, '239.255.94.0')
      await until(() => heard.length > 0, 'the datagram of the group')
      expect(heard).toEqual(['to all'])
    },
  )
})
