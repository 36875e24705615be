import { describe, expect, test } from 'vitest'
import { readConfiguration } from './configuration.ts'
import type { Profile } from './documents.ts'
import { linksOf } from './emulation.ts'
import { planOf } from './link-profiles.ts'
import { withValues } from './places.ts'
import { nodeProfiles, nodeSchema } from './testing.ts'

const schema = await nodeSchema()
const profiles = await nodeProfiles()
const profile = (name: string) => profiles.find((each) => each.name === name) as Profile

/** A configuration of components in a row between a source and a sink. */
function row(...steps: readonly (readonly [key: string, fields: object])[]) {
  const pipeline: Record<string, object> = {
    source: { uniform_traffic_source: { output: '0', interval: 1, total_packets: 0 } },
  }
  for (const [i, [key, fields]] of steps.entries()) {
    const ends = { input: String(i), output: String(i + 1) }
    const isFlow = 'flows' in (schema.$defs[key]?.properties ?? {})
    pipeline[`c${i}`] = { [key]: { ...(isFlow ? { flows: [ends] } : ends), ...fields } }
  }
  pipeline.sink = { traffic_sink: { input: String(steps.length) } }
  return JSON.stringify({ engine_config: { pipeline } })
}

const linkOf = (text: string) => linksOf(readConfiguration(text, schema))[0]!
const at = (name: string, key: string, field: string) => `/engine_config/pipeline/${name}/${key}/${field}`

describe('links', () => {
  test('emulation components that are joined are one link, upstream first, with its ends', () => {
    const text = JSON.stringify({
      engine_config: {
        pipeline: {
          b: { uniform_loss: { input: 'y', output: 'z', loss_prob: 0 } },
          a: { delay_constant: { flows: [{ input: 'x', output: 'y' }], delay: 1 } },
          other: { delay_fixed: { input: 'p', output: 'q', delay: 1 } },
        },
      },
    })
    const links = linksOf(readConfiguration(text, schema))
    expect(links.map(({ emulations }) => emulations.map(({ component }) => component.name))).toEqual([
      ['a', 'b'],
      ['other'],
    ])
    expect(links[0]).toMatchObject({
      inputs: [{ component: 'a', port: 'flows_0_input' }],
      outputs: [{ component: 'b', port: 'output' }],
    })
  })

  test('fields that a run takes over can be set, those of phases too; others are named', () => {
    const phases = [{ duration: 10, delay: 1 }]
    const [emulation] = linkOf(row(['delay_dynamic', { phases }])).emulations
    const live = emulation?.live.map(({ steps, value }) => [steps.join('/'), value])
    expect(live).toContainEqual(['phases/0/delay', 1])
    expect(live).toContainEqual(['phases/0/jitter', 0])
    expect(emulation?.fixed).toEqual(['seed'])
  })
})

describe('profiles', () => {
  test('each component takes the step of its own kind', () => {
    const text = row(
      ['bandwidth_limit_constant', { bandwidth_limit_mbit: 1 }],
      ['delay_constant', { delay: 1, jitter: 1 }],
      ['loss_constant', { loss_probability: 0.5 }],
    )
    const plan = planOf(linkOf(text), profile('lte').down)
    expect(plan).toMatchObject({ missing: [], kept: [], simplified: [] })
    const pipeline = JSON.parse(withValues(text, plan.values)).engine_config.pipeline
    expect(pipeline.c0.bandwidth_limit_constant).toMatchObject({ bandwidth_limit_mbit: 13, max_queue_size: 500 })
    expect(pipeline.c1.delay_constant).toMatchObject({ delay: 35, jitter: 8 })
    expect(pipeline.c2.loss_constant).toMatchObject({ loss_probability: 0.001 })
  })

  test('a component of its own kind keeps nothing that the step leaves out and that would exclude what it has', () => {
    const text = row(['timed_burst_loss', { interval_ms: 100, burst_packets: 10, cancel_timer_ms: 5 }])
    const burst = { interval_ms: 14_960, burst_duration_ms: 40 }
    const plan = planOf(linkOf(text), [{ timed_burst_loss: burst }])
    const { c0 } = JSON.parse(withValues(text, plan.values)).engine_config.pipeline
    expect(c0.timed_burst_loss).toEqual({ input: '0', output: '1', ...burst })
  })

  test('other components of the same meaning take what they can say', () => {
    const text = row(['delay_jitter', { delay: 1, jitter: 1 }], ['uniform_loss', { loss_prob: 0.5 }])
    const plan = planOf(linkOf(text), profile('lte').up)
    expect(plan.missing).toEqual(['bandwidth_limit_constant'])
    expect([...plan.values]).toEqual([
      [at('c0', 'delay_jitter', 'delay'), 35],
      [at('c0', 'delay_jitter', 'jitter'), 10],
      [at('c1', 'uniform_loss', 'loss_prob'), 0.001],
    ])
  })

  test('bursts become their mean where there is but a loss, which is said', () => {
    const gilbert = {
      ...{ good_loss_probability: 0, bad_loss_probability: 0.5 },
      ...{ good_to_bad_probability: 0.1, bad_to_good_probability: 0.4 },
    }
    const plan = planOf(linkOf(row(['uniform_loss', { loss_prob: 0 }])), [{ loss_gilbert_elliot: gilbert }])
    expect(plan.values.get(at('c0', 'uniform_loss', 'loss_prob'))).toBeCloseTo(0.1)
    expect(plan.simplified).toEqual(['c0'])
  })

  test('a loss without bursts is one of two states that lose the same', () => {
    const gilbert = { good_loss_prob: 0, bad_loss_prob: 1, good_to_bad_prob: 0.1, bad_to_good_prob: 0.1 }
    const plan = planOf(linkOf(row(['gilbert_elliot_loss', gilbert])), [{ loss_constant: { loss_probability: 0.02 } }])
    expect(plan).toMatchObject({ missing: [], kept: [], simplified: [] })
    expect([...plan.values]).toEqual([
      [at('c0', 'gilbert_elliot_loss', 'good_loss_prob'), 0.02],
      [at('c0', 'gilbert_elliot_loss', 'bad_loss_prob'), 0.02],
    ])
  })

  test('what the profile has nothing for does nothing, or is said to stay', () => {
    const text = row(
      ['uniform_loss', { loss_prob: 0.5 }],
      ['bandwidth_constrictor', { bandwidth_limit_mbit: 1 }],
      ['periodic_burst_loss', { interval: 10, burst: 1 }],
    )
    const plan = planOf(linkOf(text), [])
    expect(plan.values.get(at('c0', 'uniform_loss', 'loss_prob'))).toBe(0)
    expect(plan.values.get(at('c1', 'bandwidth_constrictor', 'bandwidth_limit_mbit'))).toBe(1_000_000)
    expect(plan.kept).toEqual(['c2'])
  })

  test.each(profiles.map((each) => [each.name, each] as const))('%s fits a link of its own components', (_, each) => {
    for (const steps of [each.up, each.down]) {
      const kinds = steps.map((step) => Object.entries(step)[0] as [string, object])
      const plan = planOf(linkOf(row(...kinds)), steps)
      expect(plan).toMatchObject({ missing: [], kept: [], simplified: [] })
      expect(plan.values.size).toBeGreaterThanOrEqual(kinds.length)
    }
  })
})
