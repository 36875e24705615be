/** Every view of the dashboard, light and dark, under the rules of axe-core; and how much of it is loaded. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { AxeResults, RunOptions } from 'axe-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { startReal } from '../hub/callers.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'

/** Kilobytes of script, compressed, of all views together. */
const MAX_SCRIPT_KB = 400

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

test(`all scripts together have less than ${MAX_SCRIPT_KB} kB, compressed`, () => {
  const assets = join(packageRoot(), 'dist/web/assets')
  const scripts = readdirSync(assets).filter((name) => name.endsWith('.js.br'))
  expect(scripts.length).toBeGreaterThan(3)
  const bytes = scripts.reduce((sum, name) => sum + readFileSync(join(assets, name)).length, 0)
  expect(bytes / 1000).toBeLessThan(MAX_SCRIPT_KB)
})

describeInBrowser('the views', () => {
  let node: RunningNode
  let id: string
  beforeAll(async () => {
    node = await runNode(temporaryDirectory(), { 'node-name': 'lone' })
    const metrics = [{ id: 'rate', label: 'Rate', value_over_time: { expression: 'rate({sink/input_bytes}) * 8' } }]
    const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy(0.02) }, kpis: { metrics } })
    id = await node.create({}, { name: 'uplink', jsonConfig })
    await node.start(id)
  })
  afterAll(() => node.node.close())

  /** Serious and critical faults: the rule and the first element. */
  async function faultsOf(url: string, ready: string, colorScheme: 'light' | 'dark'): Promise<string[]> {
    const view = await open(url, { colorScheme, failsRequests: true })
    const { page } = view
    await page.locator(ready).first().waitFor()
    // Evaluated by the debugger, which the page's policy does not bind.
    await page.evaluate(axe)
    const { violations } = await page.evaluate(
      (options) => (globalThis as unknown as { axe: { run(o: RunOptions): Promise<AxeResults> } }).axe.run(options),
      { resultTypes: ['violations' as const] },
    )
    await close(view)
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join('  ')}`)
  }

  test.each([
    ['overview', '', '.traffic .number'],
    ['graph', '/pipelines/ID', '.react-flow__node'],
    ['charts', '/pipelines/ID/charts', '.kpi'],
    ['log', '/pipelines/ID/log', '.log-lines li'],
    ['impair', '/pipelines/ID/impair', 'input[type="range"]'],
    ['editor', '/pipelines/ID/edit', '.react-flow__node'],
  ])('%s has no serious fault', async (_name, path, ready) => {
    const hash = path === '' ? '#/' : `#/nodes/${node.node.id}${path.replace('ID', id)}`
    for (const scheme of ['light', 'dark'] as const) {
      expect([scheme, await faultsOf(`http://${node.node.http}/${hash}`, ready, scheme)]).toEqual([scheme, []])
    }
  })

  test('sign-in has no serious fault', async () => {
    const locked = await startReal(temporaryDirectory(), { loopback: 'token' })
    for (const scheme of ['light', 'dark'] as const) {
      expect([scheme, await faultsOf(`http://${locked.node.http}/`, '.sign-in', scheme)]).toEqual([scheme, []])
    }
    await locked.node.close()
  })
})
