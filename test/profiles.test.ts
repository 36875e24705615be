/** Every impairment profile of examples/profiles is a link of the rate, delay and loss that its text tells. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { linkText, type Overrides, pipelineOf, profileOf, type Step } from '../src/cli/impairment.ts'
import { components } from '../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../src/dataplane/engine/check.ts'
import { simulate } from '../src/dataplane/engine/simulate.ts'
import { DIRECTIONS, profileNames } from '../src/node/impairment-profiles.ts'
import { conservation } from './harness/component.ts'

const readme = readFileSync(new URL('../examples/profiles/README.md', import.meta.url), 'utf8')

/** Mbit/s, mean ms, share. */
const LINKS: Readonly<Record<string, Record<'up' | 'down', Required<Pick<Overrides, 'rate' | 'delay' | 'loss'>>>>> = {
  '5g': { up: { rate: 50, delay: 12, loss: 0.0005 }, down: { rate: 250, delay: 12, loss: 0.0005 } },
  // A ten-thousandth of the packets turns it bad, for 10 packets, of which half are lost.
  adsl: { up: { rate: 1, delay: 20, loss: 0.001 }, down: { rate: 12, delay: 20, loss: 0.001 } },
  'geo-satellite': { up: { rate: 5, delay: 280, loss: 0.001 }, down: { rate: 50, delay: 280, loss: 0.001 } },
  // 40 ms of 15 s beside 0.2 %.
  'leo-satellite': { up: { rate: 17, delay: 28, loss: 0.0047 }, down: { rate: 178, delay: 28, loss: 0.0047 } },
  lte: { up: { rate: 6, delay: 35, loss: 0.001 }, down: { rate: 13, delay: 35, loss: 0.001 } },
  transatlantic: { up: { rate: 100, delay: 36, loss: 0.0001 }, down: { rate: 100, delay: 36, loss: 0.0001 } },
  'wifi-busy': { up: { rate: 15, delay: 12, loss: 0.0108 }, down: { rate: 25, delay: 12, loss: 0.0108 } },
}

const BYTES = 1000

/** What a source of so many Mbit/s at the client has at the server after so many seconds. */
function through(steps: readonly Step[], mbit: number, seconds: number) {
  const link = pipelineOf({ up: steps, down: [] }, { listen: '127.0.0.1:1', forward: '127.0.0.1:2', seed: 5 })
  Object.assign(link.engine_config.pipeline, {
    source: {
      throughput_traffic_source: { output: 'sent', throughput_mbit: mbit, payload_size: BYTES, duration_ms: 0 },
    },
    client: { udp: { remote_address: '127.0.0.1:1', input: 'sent' } },
    host: { udp: { local_address: '127.0.0.1:2', output: 'arrived' } },
    sink: { traffic_sink: { input: 'arrived' } },
  })
  const { config, problems } = checkPipelineConfig(JSON.stringify(link), components)
  if (!config) throw new Error(JSON.stringify(problems))
  const { metrics } = simulate(config, { registry: components, duration: seconds * 1e9 })
  expect(conservation(config, metrics)).toEqual([])
  return metrics
}

it('all of them are told here and in the table', () => {
  expect(profileNames()).toEqual(Object.keys(LINKS).sort())
  for (const name of profileNames()) expect(readme).toContain(`](${name}.json)`)
})

describe.each(profileNames())('%s', (name) => {
  const profile = profileOf(name)

  it('has the name of its file, and says where its numbers are from', () => {
    expect(profile.name).toBe(name)
    expect(profile.source).toMatch(/typical figures?, no source/)
    for (const direction of DIRECTIONS) expect(linkText(profile[direction])).toMatch(/^\d+ Mbit\/s, .* ms, .*loss/)
  })

  it.each(DIRECTIONS)('%s: rate, delay and loss are what is said', (direction) => {
    const { rate, delay, loss } = LINKS[name]![direction]
    // Half of the rate at most, for long: no queue. 100,000 packets or more.
    const mbit = Math.min(rate / 2, 5)
    const seconds = Math.ceil(100_000 / ((mbit * 1e6) / (8 * BYTES)) / 60) * 60
    const slow = through(profile[direction], mbit, seconds)
    // Packets 40 ms apart, so that none waits for the one before it; the delay of the link has the time in it that a packet takes to cross.
    const crossing = ((8 * BYTES) / (rate * 1e6)) * 1e3
    const single = through(profile[direction], 0.2, 240).sink.delay_mean / 1e6
    expect(Math.abs(single - delay - crossing)).toBeLessThan(0.5)
    const sent = slow.source.output_packets
    const lost = sent * loss
    // Bursts of ten are fewer events: five standard deviations of those.
    expect(Math.abs(sent - slow.sink.packets - lost)).toBeLessThan(5 * Math.sqrt(10 * lost) + 100)
    const fast = through(profile[direction], rate * 1.5, 4)
    const arrived = (fast.sink.packets * BYTES * 8) / 4e6
    expect(arrived).toBeGreaterThan(rate * 0.85)
    expect(arrived).toBeLessThan(rate * 1.005)
  })
})
