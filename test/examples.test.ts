/** Every example configuration is valid, is named in the table, and those without sockets run. What scripts share counts what it says. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { components } from '../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../src/dataplane/engine/check.ts'
import { withFilesIn } from '../src/dataplane/engine/files.ts'
import { simulate } from '../src/dataplane/engine/simulate.ts'
import { conservation } from './harness/component.ts'

const folder = new URL('../examples/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  // Profiles are parts of pipelines: profiles.test.ts.
  (file) => file.endsWith('.json') && !file.startsWith('profiles/'),
)

describe('examples', () => {
  it('are there', () => {
    expect(files.length).toBeGreaterThanOrEqual(8)
  })

  it.each(files)('%s is valid and in the table', (file) => {
    expect(checkPipelineConfig(read(file), components)).toMatchObject({ problems: [], warnings: [] })
    expect(read('README.md')).toContain(`](${file.includes('/') ? `${file.split('/')[0]}/` : file})`)
  })

  it.each(files)('%s runs on the virtual clock and keeps its packets in balance', (file) => {
    const { config } = checkPipelineConfig(read(file), components)
    if (!config) throw new Error('refused')
    const own = withFilesIn(config, components, fileURLToPath(new URL('.', new URL(file, folder))))
    const { end, metrics } = simulate(own, { registry: components, duration: 2e9 })
    expect(end).toEqual({ outcome: 'STOPPED' })
    expect(conservation(config, metrics)).toEqual([])
  })

  it('those with block encoders close blocks after 8 ms of silence', () => {
    // flushed-blocks.json shows what does it in the place of flush_after_ms.
    const usual = files.filter((file) => file !== 'flushed-blocks.json')
    const encoders = usual.flatMap((file) =>
      Object.values(checkPipelineConfig(read(file), components).config?.components ?? {}).filter(
        ({ key }) => key === 'reed_solomon_encoder',
      ),
    )
    expect(encoders.map(({ config }) => config.flush_after_ms)).toEqual(Array(5).fill(8))
  })

  it.each([
    ['tunnel/a-fec', 'tunnel/b-fec'],
    ['tunnel/a-plain', 'tunnel/b-plain'],
    ['encrypted-port-forward/near', 'encrypted-port-forward/far'],
    ['relay/a', 'relay/relay'],
    ['relay/b', 'relay/relay'],
    ['relay/stranger', 'relay/relay'],
  ])('%s and %s have a key for each direction', (...ends) => {
    const keys = ends.map((end) => {
      const { encrypt, decrypt } = checkPipelineConfig(read(`${end}.json`), components).config?.components ?? {}
      return [encrypt.config.aes_128_gcm_sha_256, decrypt.config.aes_128_gcm_sha_256]
    })
    expect(keys[0]).toEqual([...keys[1]].reverse())
    expect(keys[0][0]).not.toEqual(keys[0][1])
  })

  it('generator.json loses what it says', () => {
    const { config } = checkPipelineConfig(read('generator.json'), components)
    if (!config) throw new Error('refused')
    const { metrics } = simulate(config, { registry: components, duration: 10e9 })
    expect(metrics.sink.loss).toBeGreaterThan(0.015)
    expect(metrics.sink.loss).toBeLessThan(0.025)
    expect(metrics.sink.packets + metrics.loss.emulated_loss).toBe(metrics.source.output_packets)
  })
})

describe('namespaces.sh', () => {
  /** What `goodput` makes of intervals of 100 ms with this many bytes each; those in front are omitted. */
  function goodput(omitted: readonly number[], counted: readonly number[]): string {
    const interval = (bytes: number, isOmitted: boolean) => ({ sum: { bytes, seconds: 0.1, omitted: isOmitted } })
    const intervals = [
      ...omitted.map((bytes) => interval(bytes, true)),
      ...counted.map((bytes) => interval(bytes, false)),
    ]
    const directory = mkdtempSync(join(tmpdir(), 'penstock-goodput-'))
    writeFileSync(join(directory, 'iperf'), JSON.stringify({ intervals }))
    const script = `source ${fileURLToPath(new URL('namespaces.sh', folder))}; rm -r "$work"; work=${directory}; goodput`
    try {
      return execFileSync('bash', ['-c', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  it('counts the goodput and the longest silence without what iperf3 was told to omit', () => {
    expect(goodput([], [100_000, 100_000])).toBe('8.00 0')
    expect(goodput([0, 0, 0, 20_000], [100_000, 0, 0, 300_000])).toBe('8.00 200')
  })
})
