/** Every view of the dashboard, light and dark, under the rules of axe-core; and how much of it is loaded. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
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
    const paths = ['/engine_config/pipeline/loss/uniform_loss/loss_prob']
    const variables = [{ id: 'loss', label: 'Loss of the link', description: 'As a share.', paths }]
    const jsonConfig = JSON.stringify(
      { engine_config: { pipeline: lossy(0.02) }, kpis: { metrics }, variables },
      null,
      2,
    )
    id = await node.create({}, { name: 'uplink', jsonConfig })
    await node.start(id)
    const pipeline = {
      in: { udp: { local_address: '192.0.2.1:5000', output: 'a' } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const failed = await node.create({}, { name: 'away', jsonConfig: JSON.stringify({ engine_config: { pipeline } }) })
    await node.call('POST', `/pipelines/${failed}/start`)
  })
  afterAll(() => node.node.close())

  const COLOURS = ['light', 'dark'] as const

  /** Rules that axe-core holds moderate: by headings a screen reader finds its way. */
  const HEADINGS = ['heading-order', 'page-has-heading-one']

  /** Serious and critical faults of a view in both colours: the rule and the elements. */
  async function faultsOf(page: Page, ready: string): Promise<string[]> {
    await page.locator(ready).first().waitFor()
    // Evaluated by the debugger, which the page's policy does not bind.
    await page.evaluate(axe)
    const faults: string[] = []
    for (const colorScheme of COLOURS) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.locator(`html[data-theme="${colorScheme}"]`).waitFor()
      const { violations } = await page.evaluate(
        (options) => (globalThis as unknown as { axe: { run(o: RunOptions): Promise<AxeResults> } }).axe.run(options),
        { resultTypes: ['violations' as const] },
      )
      for (const { impact, id, nodes } of violations) {
        if (impact !== 'serious' && impact !== 'critical' && !HEADINGS.includes(id)) continue
        faults.push(`${colorScheme} ${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join('  ')}`)
      }
    }
    return faults
  }

  const VIEWS = [
    ['overview', '', '.traffic .number'],
    ['graph', '/pipelines/ID', '.react-flow__node'],
    ['charts', '/pipelines/ID/charts', '.kpi'],
    ['log', '/pipelines/ID/log', '.log-lines li'],
    ['variables', '/pipelines/ID/variables', '.variable'],
    ['configuration', '/pipelines/ID/configuration', '.cm-line'],
    ['impair', '/pipelines/ID/impair', 'input[type="range"]'],
    ['editor', '/pipelines/ID/edit', '.react-flow__node'],
    ['empty editor', '/editor', '.palette'],
    ['address of nothing', '/nothing', 'h1'],
    ['pipeline that is none', '/pipelines/none', 'h1'],
  ] as const

  const addressOf = (path: string): string =>
    `http://${node.node.http}/${path === '' ? '#/' : `#/nodes/${node.node.id}${path.replace('ID', id)}`}`

  test.each(VIEWS)('%s has no serious fault', async (_name, path, ready) => {
    const view = await open(addressOf(path))
    expect(await faultsOf(view.page, ready)).toEqual([])
    await close(view)
  })

  test('the editor has no serious fault where a value is wrong, and says what is wrong of the field', async () => {
    const view = await open(addressOf('/pipelines/ID/edit'))
    const { page } = view
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    const field = page.getByLabel(/^loss_prob/)
    await field.fill('7')
    expect(await faultsOf(page, '.inspector .wrong')).toEqual([])
    const described = await field.evaluate((element) => {
      const id = element.getAttribute('aria-describedby') ?? ''
      return document.getElementById(id)?.textContent
    })
    expect(described).toContain('7 is above the maximum of 1')
    await page.context().close()
  })

  test('rows are looked for by one observer, and followed while they are seen', async () => {
    const view = await open(addressOf(''), { viewport: { width: 1280, height: 900 } })
    const { page } = view
    await page.addInitScript(() => {
      const Platform = IntersectionObserver
      Object.assign(globalThis, { observers: 0 })
      globalThis.IntersectionObserver = class extends Platform {
        constructor(...given: ConstructorParameters<typeof Platform>) {
          super(...given)
          ;(globalThis as unknown as { observers: number }).observers++
        }
      }
    })
    await page.reload()
    const figures = page.locator('.pipelines li', { hasText: 'uplink' }).locator('.traffic')
    await figures.waitFor()
    expect(await page.evaluate(() => (globalThis as unknown as { observers: number }).observers)).toBe(1)
    // Farther below the window than what comes soon.
    await page.evaluate(() => {
      ;(document.querySelector('main') as HTMLElement).style.paddingTop = '3000px'
      scrollTo(0, 0)
    })
    await figures.waitFor({ state: 'detached' })
    await page.evaluate(() => scrollTo(0, 3_000))
    await figures.waitFor()
    await close(view)
  })

  test('why a pipeline failed stands beside its buttons, not below them', async () => {
    const view = await open(`http://${node.node.http}/`)
    const { page } = view
    const row = page.locator('.pipelines li', { hasText: 'away' })
    for (const width of [1280, 820]) {
      await page.setViewportSize({ width, height: 900 })
      const cause = await row.locator('.cause').boundingBox()
      const button = await row.getByRole('button', { name: 'Start' }).boundingBox()
      expect((cause?.x ?? 0) + (cause?.width ?? Number.NaN)).toBeLessThanOrEqual(button?.x ?? Number.NaN)
    }
    await close(view)
  })

  test('on a phone nothing is wider than the screen, and a pipeline that failed keeps its name', async () => {
    const view = await open(`http://${node.node.http}/`, { viewport: { width: 390, height: 844 } })
    const { page } = view
    await page.getByText('failed', { exact: true }).waitFor()
    const name = await page.getByRole('link', { name: 'away', exact: true }).boundingBox()
    expect(name?.width).toBeGreaterThan(100)
    for (const [, path, ready] of VIEWS) {
      await page.goto(addressOf(path))
      // A phone has the graph as a list.
      await page
        .locator(path === '/pipelines/ID' ? '.components' : ready)
        .first()
        .waitFor()
      expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, 390])
    }
    await close(view)
  })

  test('on a narrow phone charts of a long unit are no wider than the screen', async () => {
    const [label, unit] = ['l'.repeat(60), 'u'.repeat(60)]
    const metrics = [
      { id: 'curve', label, value_over_time: { expression: '1', unit } },
      { id: 'number', label, value: { expression: '1', unit } },
    ]
    const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy() }, kpis: { metrics } })
    const long = await node.create({}, { name: 'long unit', jsonConfig })
    await node.start(long)
    const address = `http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${long}/charts`
    const view = await open(address, { viewport: { width: 360, height: 740 } })
    const { page } = view
    await page.locator('.legend').getByText(unit).first().waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
    await close(view)
    await node.call('DELETE', `/pipelines/${long}`)
  })

  test.each(COLOURS)(
    'what is chosen is seen in %s colours of the system, which take all backgrounds away',
    async (colorScheme) => {
      const view = await open(addressOf('/pipelines/ID'), { forcedColors: 'active', colorScheme })
      const { page } = view
      /** What is not as the system has what is chosen, of so many elements. */
      const unlike = async (count: number): Promise<string[]> => {
        const chosen = page.locator('[aria-pressed="true"], [aria-selected="true"], [aria-current]')
        expect(await chosen.count()).toBe(count)
        return chosen.evaluateAll((elements) => {
          const sample = document.createElement('p')
          sample.style.cssText = 'forced-color-adjust: none; background: SelectedItem; color: SelectedItemText'
          document.body.append(sample)
          const lookOf = (element: Element): string => {
            const { backgroundColor, color } = getComputedStyle(element)
            return `${color} on ${backgroundColor}`
          }
          const expected = lookOf(sample)
          sample.remove()
          return elements
            .filter((each) => lookOf(each) !== expected)
            .map((each) => `${each.outerHTML}: ${lookOf(each)}`)
        })
      }
      await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).click()
      await page.getByRole('button', { name: 'List', exact: true }).click()
      await page.locator('tr[aria-selected="true"]').waitFor()
      // The tab, the form of the graph, the row.
      expect(await unlike(3)).toEqual([])
      await page.goto(addressOf('/pipelines/ID/edit'))
      await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
      await page.getByRole('tab', { name: /^Components/ }).click()
      await page.locator('.list [aria-pressed="true"]').waitFor()
      // The form of the configuration, the list, the component.
      expect(await unlike(3)).toEqual([])
      await close(view)
    },
  )

  test('sign-in has no serious fault', async () => {
    const locked = await startReal(temporaryDirectory(), { loopback: 'token' })
    const view = await open(`http://${locked.node.http}/`, { failsRequests: true })
    expect(await faultsOf(view.page, '.sign-in')).toEqual([])
    await close(view)
    await locked.node.close()
  })
})
