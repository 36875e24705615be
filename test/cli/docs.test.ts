/** The component reference is what the schemas say now, and its examples are configurations that pass. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exampleOf } from '../../src/cli/component-example.ts'
import { REFERENCE_DIRECTORY, referencePages } from '../../src/cli/docs.ts'
import { fieldsOf, metricsOf } from '../../src/cli/reference.ts'
import { setVariables } from '../../src/cli/variables.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import type { PipelineConfig } from '../../src/dataplane/engine/config.ts'
import { packageRoot } from '../../src/package-root.ts'

describe('configurations.md', () => {
  const page = readFileSync(join(packageRoot(), 'docs/configurations.md'), 'utf8')
  const [, text = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []

  it('has an example that passes the check, and variables that are set as it says', () => {
    expect(checkPipelineConfig(text, components).problems).toEqual([])
    const [, assignments = ''] = /penstock pipelines set \w+ (.*)/.exec(page) ?? []
    const set = setVariables(text, assignments.trim().split(' '))
    expect(checkPipelineConfig(set, components).problems).toEqual([])
    const { pipeline } = JSON.parse(set).engine_config
    expect([pipeline.up.uniform_loss.loss_prob, pipeline.late.delay_constant.delay]).toEqual([0.05, 80])
  })

  it('names every field of a variable', () => {
    const { variables } = checkPipelineConfig(text, components).config as PipelineConfig
    for (const field of Object.keys(variables[0] as object))
      expect(page).toMatch(new RegExp(`^\\| \`${field}\` +\\|`, 'm'))
  })
})

describe('component reference', () => {
  const directory = join(packageRoot(), REFERENCE_DIRECTORY)

  it('is up to date: if this fails, run "npm run docs"', () => {
    const pages = referencePages()
    expect(readdirSync(directory).sort()).toEqual([...pages.keys()].sort())
    for (const [file, text] of pages) expect(readFileSync(join(directory, file), 'utf8'), file).toBe(text)
  })

  it('says how many entries a list takes, and the range of each', () => {
    const ranges = Object.fromEntries(
      fieldsOf(components.get('uniform_loss_sequencer')!).map(({ name, range }) => [name, range]),
    )
    expect(ranges).toMatchObject({
      loss_probs: '1 to 4096 entries, each 0 to 1',
      intervals: '1 to 4096 entries, each 1 to 2147483647',
    })
  })

  it('has one row for the same metric of all numbered places', () => {
    const names = metricsOf(components.get('rtp_observer')!).map(({ name }) => name)
    expect(names.slice(0, 6)).toEqual([
      'rtp_packets',
      'other_packets',
      'unfollowed_packets',
      'streams',
      'stream_0..63_ssrc',
      'stream_0..63_payload_type',
    ])
    expect(new Set(names).size).toBe(names.length)
    expect(names).toHaveLength(14)
  })

  it.each([...components.keys()])('has an example of %s that passes the check', (key) => {
    const example = exampleOf(components.get(key)!)
    expect(checkPipelineConfig(JSON.stringify(example), components).problems).toEqual([])
  })
})
