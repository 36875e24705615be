/** Every example configuration is valid, is named in the table, and those without sockets run. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkPipelineConfig } from '../src/dataplane/engine/check.ts'
import { simulate } from '../src/dataplane/engine/simulate.ts'
import { conservation } from './harness/component.ts'

const folder = new URL('../examples/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'))

describe('examples', () => {
  it('are there', () => {
    expect(files.length).toBeGreaterThanOrEqual(8)
  })

  it.each(files)('%s is valid and in the table', (file) => {
    expect(checkPipelineConfig(read(file)).problems).toEqual([])
    expect(read('README.md')).toContain(`](${file.includes('/') ? `${file.split('/')[0]}/` : file})`)
  })

  it.each(files)('%s runs on the virtual clock and keeps its packets in balance', (file) => {
    const { config } = checkPipelineConfig(read(file))
    if (!config) throw new Error('refused')
    const { end, metrics } = simulate(config, { duration: 2e9 })
    expect(end).toEqual({ outcome: 'STOPPED' })
    expect(conservation(config, metrics)).toEqual([])
  })

  it('generator.json loses what it says', () => {
    const { config } = checkPipelineConfig(read('generator.json'))
    if (!config) throw new Error('refused')
    const { metrics } = simulate(config, { duration: 10e9 })
    expect(metrics.sink.loss).toBeGreaterThan(0.015)
    expect(metrics.sink.loss).toBeLessThan(0.025)
    expect(metrics.sink.packets + metrics.loss.emulated_loss).toBe(metrics.source.output_packets)
  })
})
