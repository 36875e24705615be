/** The pages that compare: their configurations are valid and keep their packets, and their commands print what they show. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { components } from '../../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { simulate } from '../../src/dataplane/engine/simulate.ts'
import { packageRoot } from '../../src/package-root.ts'
import { conservation } from '../harness/component.ts'
import { blocksOf, Desk, hasOwnNetwork, readPage } from './terminals.ts'
import '../harness/slow.ts'

/** Nodes at the addresses that are the default. */
const NEED_A_NETWORK = ['headscale.md']
const pages = readdirSync(join(packageRoot(), 'docs/compare'))
const configurations = pages.flatMap((page) =>
  [...readPage(`compare/${page}`).matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(
    ([, text = ''], i) => [page, i, text] as const,
  ),
)

let desk: Desk | undefined
afterEach(async () => {
  await desk?.close()
  desk = undefined
})

describe('a page that compares', () => {
  it('is there for each, with what each does better and how to move', () => {
    expect(pages.sort()).toEqual([
      'headscale.md',
      'netem.md',
      'srt.md',
      'toxiproxy.md',
      'udpspeeder.md',
      'wireguard.md',
    ])
    for (const page of pages) {
      const headings = [...readPage(`compare/${page}`).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
      expect(headings[0], page).toMatch(/^What .+ does better$/)
      expect(headings[1], page).toBe('What penstock does better')
      expect(headings, page).toContain('How to move')
    }
  })

  it.each(configurations)('%s: configuration %i is valid and runs on the virtual clock', (_page, _i, text) => {
    const { config, problems, warnings } = checkPipelineConfig(text, components)
    expect([...problems, ...warnings]).toEqual([])
    const { end, metrics } = simulate(config!, { registry: components, duration: 2e9 })
    expect(end).toEqual({ outcome: 'STOPPED' })
    expect(conservation(config!, metrics)).toEqual([])
  })

  const withCommands = pages.filter((page) => blocksOf(readPage(`compare/${page}`)).length > 0)
  it.for(withCommands)('%s shows what its commands print', async (page, { skip }) => {
    skip(NEED_A_NETWORK.includes(page) && !hasOwnNetwork, 'it takes root, and the right to make network namespaces')
    desk = new Desk()
    await desk.open()
    for (const block of blocksOf(readPage(`compare/${page}`))) {
      const { told, difference } = await desk.type(block)
      expect({ commands: block.commands, difference, told }).toEqual({ commands: block.commands, told })
    }
  })
})
