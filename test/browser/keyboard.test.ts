/** A pipeline is built and run, in a browser, with the keyboard alone. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { connectionsOf, lossy, type Stored, storedAt } from './pipelines.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '200ms' })
})
afterAll(() => node.node.close())

const address = (rest: string): string => `http://${node.node.http}/#/nodes/${node.node.id}/${rest}`

const CONNECTED = ['throughput_traffic_source uniform_loss', 'uniform_loss traffic_sink']

/** Goes on with Tab until what has the focus is so called. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const seen: string[] = []
  for (let presses = 0; presses < 150; presses++) {
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement
      const label = (element as HTMLInputElement).labels?.[0]?.textContent
      return element.getAttribute('aria-label') ?? label ?? element.textContent ?? ''
    })
    if (name.test(focused)) return
    seen.push(focused)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not lead to ${name}, but to ${seen.join(' | ')}`)
}

describeInBrowser('a pipeline', () => {
  test('is built with the keyboard alone', async () => {
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

  test('has every action at the keyboard, its focus seen; a dialog holds the focus and closes with Escape', async () => {
    await node.create(lossy(), { name: 'held' })
    const view = await open(`http://${node.node.http}/`)
    const { page } = view
    await page.getByRole('link', { name: 'held' }).waitFor()
    const count = await page.locator('a[href]:visible, button:visible:enabled').count()
    const reached = new Set<string>()
    for (let presses = 0; presses < count + 5; presses++) {
      await page.keyboard.press('Tab')
      const focused = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement
        if (element === document.body) return undefined
        const all = [...document.querySelectorAll('a[href], button')]
        return { place: String(all.indexOf(element)), outline: getComputedStyle(element).outlineStyle }
      })
      if (focused === undefined) continue
      expect(focused.outline).not.toBe('none')
      reached.add(focused.place)
    }
    expect(reached.size).toBeGreaterThanOrEqual(count)
    const row = page.getByRole('listitem').filter({ hasText: 'held' })
    await row.getByRole('button', { name: 'Delete' }).press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    for (let presses = 0; presses < 5; presses++) {
      await page.keyboard.press('Tab')
      const isHeld = await page.evaluate(() => {
        const element = document.activeElement
        return element === document.body || document.querySelector('dialog')?.contains(element) === true
      })
      expect(isHeld).toBe(true)
    }
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(await storedAt(node, 'held')).toBeDefined()
    await close(view)
  })
})
