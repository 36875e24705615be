/** All of the dashboard with the keyboard alone: what there is to do is reached, and its focus is seen; a pipeline is built and run. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { focusedName, tabThrough, tabTo } from './keyboard.ts'
import { componentsOf, connectionsOf, lossy, type Stored, storedAt } from './pipelines.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '200ms' })
})
afterAll(() => node.node.close())

const address = (rest: string): string => `http://${node.node.http}/#/nodes/${node.node.id}/${rest}`

const CONNECTED = ['throughput_traffic_source uniform_loss', 'uniform_loss traffic_sink']

describeInBrowser('the keyboard', () => {
  test('builds a pipeline and starts it', async () => {
    const view = await open(address('editor'))
    const { page } = view
    const { keyboard } = page
    await page.getByLabel('Search components').waitFor()
    await tabTo(page, /^Name of the pipeline$/)
    await keyboard.type('typed')
    await tabTo(page, /^Search components$/)
    for (const kind of ['throughput_traffic_source', 'uniform_loss', 'traffic_sink']) {
      await keyboard.press('Control+A')
      await keyboard.type(kind)
      await keyboard.press('Enter')
    }
    await page.getByText('3 components').waitFor({ state: 'attached' })
    // The sink was added last: its form is open.
    await tabTo(page, /^input/)
    await keyboard.type('uniform')
    await page.getByText('1 connection').waitFor({ state: 'attached' })
    await page.keyboard.press('Shift+Tab')
    await tabTo(page, /^throughput_traffic_source, throughput_traffic_source$/)
    await keyboard.press('Enter')
    await tabTo(page, /^output/)
    await keyboard.type('uniform')
    await page.getByText('2 connections').waitFor({ state: 'attached' })
    await tabTo(page, /^throughput_mbit/)
    await keyboard.type('1')
    await tabTo(page, /^payload_size/)
    await keyboard.type('500')
    await tabTo(page, /^uniform_loss, uniform_loss$/)
    await keyboard.press('Enter')
    await tabTo(page, /^loss_prob/)
    await keyboard.type('0')
    await tabTo(page, /^Create and start$/)
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'typed' }).waitFor()
    await page.getByText('running', { exact: true }).waitFor()
    expect(connectionsOf((await storedAt(node, 'typed')) as Stored)).toEqual(CONNECTED)
    await close(view)
  })

  test('stays with a button while it cannot be used, and with the one that comes in its place', async () => {
    const id = await node.create(lossy(), { name: 'switched' })
    const view = await open(`http://${node.node.http}/`)
    const { page } = view
    const { keyboard } = page
    const row = page.locator('.pipelines li', { hasText: 'switched' })
    const head = page.locator('.pipeline-head')
    for (const place of [row, head]) {
      await place.getByRole('button', { name: 'Start', exact: true }).focus()
      await keyboard.press('Enter')
      await place.getByText('running', { exact: true }).waitFor()
      await place.getByRole('button', { name: 'Stop', exact: true, disabled: false }).waitFor()
      expect(await focusedName(page)).toBe('Stop')
      if (place === head) {
        await tabTo(page, /^Restart$/)
        await keyboard.press('Enter')
        await page.locator('.toast', { hasText: 'runs again' }).waitFor()
        expect(await focusedName(page)).toBe('Restart')
        await page.keyboard.press('Shift+Tab')
      }
      await keyboard.press('Enter')
      await place.getByRole('button', { name: 'Start', exact: true, disabled: false }).waitFor()
      expect(await focusedName(page)).toBe('Start')
      await page.goto(address(`pipelines/${id}`))
      await head.waitFor()
    }
    await page.goto(address(`pipelines/${id}/edit`))
    await page.locator('.react-flow__node').first().focus()
    await keyboard.press('Enter')
    await keyboard.press('ArrowRight')
    await page.getByRole('button', { name: 'Undo', disabled: false }).focus()
    await keyboard.press('Enter')
    await page.getByRole('button', { name: 'Undo', disabled: true }).waitFor()
    expect(await focusedName(page)).toBe('Undo')
    await close(view)
  })

  test('returns from what was opened to what has opened it', async () => {
    const id = await node.create(lossy(), { name: 'opened' })
    await node.start(id)
    const view = await open(address(`pipelines/${id}`))
    const { page } = view
    const box = page.locator('.react-flow__node', { hasText: 'uniform_loss' })
    const line = page.locator('.log-lines button').first()
    for (const [path, opener, opened] of [
      [`pipelines/${id}`, box, '.panel'],
      [`pipelines/${id}/log`, line, '.whole-line'],
    ] as const) {
      await page.goto(address(path))
      await opener.focus()
      await page.keyboard.press('Enter')
      await page.locator(opened).getByRole('button', { name: 'Close' }).focus()
      await page.keyboard.press('Enter')
      await page.locator(opened).waitFor({ state: 'detached' })
      expect([path, await opener.evaluate((element) => element === document.activeElement)]).toEqual([path, true])
    }
    await close(view)
    await node.call('POST', `/pipelines/${id}/stop`)
  })

  test.each([1280, 320])('has its place below the bar, in a window of %i pixels', async (width) => {
    for (const name of ['one', 'two', 'three']) {
      if ((await storedAt(node, name)) === undefined) await node.create(lossy(), { name })
    }
    const view = await open(`http://${node.node.http}/`, { viewport: { width, height: 260 } })
    const { page } = view
    const bottomOfBar = () => page.locator('.bar').evaluate((bar) => bar.getBoundingClientRect().bottom)
    const topOf = (selector: string) =>
      page.locator(selector).evaluate((element) => element.getBoundingClientRect().top)
    await page.getByRole('link', { name: 'one', exact: true }).click()
    await page.locator('.pipeline-head').waitFor()
    expect(await topOf('.pipeline-head h1')).toBeGreaterThanOrEqual(await bottomOfBar())
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('link', { name: 'three', exact: true }).waitFor()
    expect(await topOf('h1')).toBeGreaterThanOrEqual(await bottomOfBar())
    // From the end of the list back to its beginning.
    await page.getByRole('link', { name: 'two', exact: true }).focus()
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
    for (let presses = 0; presses < 8; presses++) {
      await page.keyboard.press('Shift+Tab')
      const top = await page.evaluate(() => document.activeElement?.getBoundingClientRect().top)
      const isInBar = await page.evaluate(() => document.activeElement?.closest('.bar') !== null)
      if (!isInBar) expect(top).toBeGreaterThanOrEqual(await bottomOfBar())
    }
    await close(view)
  })

  test('goes on from a number on Impair once it is set, and leaves one that the field does not allow', async () => {
    const id = await node.create(lossy(0.1), { name: 'impaired' })
    const view = await open(address(`pipelines/${id}/impair`))
    const { page } = view
    const loss = page.getByLabel('loss', { exact: true })
    await loss.focus()
    await page.keyboard.press('Control+a')
    await page.keyboard.type('25')
    await page.keyboard.press('Enter')
    const lossOf = async () => componentsOf(await node.get(id)).loss?.uniform_loss?.loss_prob
    await until(async () => (await lossOf()) === 0.25)
    expect(await focusedName(page)).toBe('loss')
    await page.keyboard.press('Control+a')
    await page.keyboard.type('300')
    await page.keyboard.press('Tab')
    expect(await focusedName(page)).not.toBe('loss')
    await page.getByText('25 stays.').waitFor()
    expect(await loss.inputValue()).toBe('300')
    await page.keyboard.press('Shift+Tab')
    expect(await focusedName(page)).toBe('loss')
    await page.keyboard.press('Escape')
    expect(await loss.inputValue()).toBe('25')
    await page.getByText('25 stays.').waitFor({ state: 'detached' })
    expect(await lossOf()).toBe(0.25)
    await close(view)
  })

  test('leaves a fraction where Impair has a whole number, which stands beside it', async () => {
    const delay = { delay_fixed: { input: 'b', output: 'c', delay: 5 } }
    const id = await node.create({ ...lossy(), delay, sink: { traffic_sink: { input: 'c' } } }, { name: 'whole' })
    const view = await open(address(`pipelines/${id}/impair`))
    const { page } = view
    const field = page.getByLabel('delay', { exact: true })
    await field.fill('2.5')
    await field.press('Enter')
    await page.getByText('5 stays.').waitFor()
    await field.fill('7')
    await field.press('Enter')
    await until(async () => componentsOf(await node.get(id)).delay?.delay_fixed?.delay === 7)
    await close(view)
  })

  describe('of a view', () => {
    let id: string
    beforeAll(async () => {
      const paths = ['/engine_config/pipeline/loss/uniform_loss/loss_prob']
      const variables = [{ id: 'loss', label: 'Loss of the link', paths }]
      const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy() }, variables }, null, 2)
      id = await node.create({}, { name: 'held', jsonConfig })
      await node.start(id)
    })

    test.each([
      ['overview', '', '.traffic .number'],
      ['graph', 'pipelines/ID', '.rate b'],
      ['charts', 'pipelines/ID/charts', '.picker'],
      ['log', 'pipelines/ID/log', '.log-lines li'],
      ['variables', 'pipelines/ID/variables', '.variable'],
      ['configuration', 'pipelines/ID/configuration', '.cm-line'],
      ['impair', 'pipelines/ID/impair', '.legend'],
      ['editor', 'pipelines/ID/edit', '.react-flow__node'],
    ])('%s: Tab leads to everything that can be done, and its focus is seen', async (_name, path, ready) => {
      const view = await open(path === '' ? `http://${node.node.http}/` : address(path.replace('ID', id)))
      const { page } = view
      await page.locator(ready).first().waitFor()
      expect(await tabThrough(page)).toEqual({ missed: [], unseen: [] })
      await close(view)
    })
  })
})
