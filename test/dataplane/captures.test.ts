/** Captures of a run in its thread: the memory that they take, and give back. */
import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import type { Capture } from '../../src/dataplane/engine/run.ts'
import { traffic } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { startRun, testPool } from './running.ts'

const pool = testPool()
afterAll(() => pool.close())

const AT_ONCE = 24
const RING_MIB = 4

/** What this process has in memory that is no file's, MiB. */
const memory = () => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024

test('of many captures at once, again and again, no memory is left, neither while the run is on nor after it', async () => {
  const run = await startRun(pool, traffic(100))
  const before = memory()
  const captures = (): Capture[] =>
    Array.from({ length: AT_ONCE }, () => run.handle.capture({ component: 'source', side: 'output', length: 65_535 }))
  const full = (open: Capture[]) => until(() => open.every(({ reader }) => reader.dropped > 0))
  for (let round = 0; round < 4; round++) {
    const open = captures()
    await full(open)
    expect(memory() - before).toBeGreaterThan(0.8 * AT_ONCE * RING_MIB)
    for (const { close } of open) close()
  }
  expect(memory() - before).toBeLessThan(0.4 * AT_ONCE * RING_MIB)
  const last = captures()
  await full(last)
  await run.stop()
  for (const { close } of last) close()
  expect(memory() - before).toBeLessThan(0.4 * AT_ONCE * RING_MIB)
})
