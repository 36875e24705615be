/** The tutorial, typed from its first command to its last: everything works, and prints what the pages show. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { blocksOf, Desk, hasOwnNetwork, readPage } from './terminals.ts'
import '../harness/slow.ts'

const pages = readdirSync(join(packageRoot(), 'docs/tutorial')).sort()
/** TUN devices, and nodes at the addresses that are the default. */
const NEED_A_NETWORK = ['4-tunnel.md', '5-two-nodes.md']

let desk: Desk | undefined
afterEach(async () => {
  await desk?.close()
  desk = undefined
})

describe('the tutorial', () => {
  it('has five steps, each of which leads to the next', () => {
    expect(pages.map((page) => Number.parseInt(page, 10))).toEqual([1, 2, 3, 4, 5])
    for (const [i, next] of pages.slice(1).entries()) expect(readPage(`tutorial/${pages[i]}`)).toContain(`](${next})`)
  })

  it.for(pages)('%s shows what is printed', { timeout: 180_000 }, async (page, { skip }) => {
    const blocks = blocksOf(readPage(`tutorial/${page}`))
    expect(blocks.filter(({ shown }) => shown !== undefined).length).toBeGreaterThanOrEqual(2)
    skip(NEED_A_NETWORK.includes(page) && !hasOwnNetwork, 'it takes root, and the right to make network namespaces')
    desk = new Desk()
    await desk.open()
    for (const block of blocks) {
      const { told, difference } = await desk.type(block)
      expect({ commands: block.commands, difference, told }).toEqual({ commands: block.commands, told })
      if (block.shown === undefined)
        expect({ commands: block.commands, told }).toEqual({ commands: block.commands, told: '' })
    }
  })
})
