/** A run that never sleeps leaves nothing to collect: a collection would hold up every packet that is due meanwhile. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const script = fileURLToPath(new URL('./spin.mjs', import.meta.url))
const TURNS = 1_500_000

it('a run in performance mode makes no garbage by turning', () => {
  const output = execFileSync('node', ['--trace-gc', script, String(TURNS)], { timeout: 60_000, encoding: 'utf8' })
  const [, afterWarm = ''] = output.split('warm\n')
  const [meanwhile] = afterWarm.split('done\n')
  // One number a turn, 16 bytes, would be collected a dozen times; what looks at the run from outside makes a little.
  expect(meanwhile.match(/Scavenge|Mark-Compact/g)?.length ?? 0).toBeLessThan(5)
})
