/** A pipeline from its first component to its end, with the mouse: drawn, started, made worse while datagrams pass it, stopped, deleted. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { componentsOf, connectionsOf, type Stored, storedAt } from './pipelines.ts'

let node: RunningNode
let sender: dgram.Socket
let receiver: dgram.Socket
let arrived = 0
let sending: NodeJS.Timeout | undefined
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '200ms' })
  sender = dgram.createSocket('udp4')
  receiver = dgram.createSocket('udp4').bind(0, '127.0.0.1')
  receiver.on('message', () => arrived++)
  await once(receiver, 'listening')
})
afterAll(async () => {
  clearInterval(sending)
  sender.close()
  receiver.close()
  await node.node.close()
})

const address = (rest: string): string => `http://${node.node.http}/#/nodes/${node.node.id}/${rest}`

const KINDS = ['udp_local', 'uniform_loss', 'udp'] as const

/** A component in the drawing. */
const box = (page: Page, kind: string): Locator =>
  page.locator('.react-flow__node').filter({ has: page.getByText(kind, { exact: true }) })

/** Drops a kind of component from the list at a place on the screen. */
async function dropAt(page: Page, kind: string, x: number, y: number): Promise<void> {
  await page.getByLabel('Search components').fill(kind)
  const from = await middleOf(page.locator('.palette button', { has: page.getByText(kind, { exact: true }) }))
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  await page.mouse.move(x, y, { steps: 5 })
  await page.mouse.up()
}

async function connect(page: Page, from: string, to: string): Promise<void> {
  const start = await middleOf(box(page, from).locator('.react-flow__handle.source').first())
  const end = await middleOf(box(page, to).locator('.react-flow__handle.target').first())
  await page.mouse.move(start.x, start.y)
  await page.mouse.down()
  await page.mouse.move(end.x, end.y, { steps: 5 })
  await page.mouse.up()
}

async function middleOf(locator: Locator): Promise<{ x: number; y: number }> {
  const place = await locator.boundingBox()
  if (place === null) throw new Error(`${locator} is not to be seen`)
  return { x: place.x + place.width / 2, y: place.y + place.height / 2 }
}

/** Sets a slider by dragging it to a share of its way. */
async function drag(page: Page, slider: Locator, share: number): Promise<void> {
  // Waits until it does not move any more.
  await slider.hover()
  const place = await slider.boundingBox()
  if (place === null) throw new Error('the slider is not to be seen')
  const y = place.y + place.height / 2
  await page.mouse.move(place.x + 2, y)
  await page.mouse.down()
  await page.mouse.move(place.x + place.width * share, y, { steps: 10 })
  await page.mouse.up()
}

describeInBrowser('a pipeline', () => {
  test('is drawn with the mouse and lives until it is deleted', async () => {
    const view = await open(address('editor'), { viewport: { width: 1600, height: 900 } })
    const { page } = view
    await page.getByLabel('Name of the pipeline').fill('drawn')
    const canvas = await page.locator('.canvas').boundingBox()
    for (const [i, kind] of KINDS.entries()) {
      const at = { x: (canvas?.x ?? 0) + 130 + 290 * i, y: (canvas?.y ?? 0) + 80 + 130 * i }
      await dropAt(page, kind, at.x, at.y)
      await page.getByText(`${i + 1} component${i > 0 ? 's' : ''}, 0 connections`).waitFor({ state: 'attached' })
      // It stands where it was let go, and so do those before it.
      const place = await box(page, kind).boundingBox()
      expect(Math.abs((place?.x ?? 0) + 90 - at.x)).toBeLessThan(3)
      expect(Math.abs((place?.y ?? 0) + 20 - at.y)).toBeLessThan(3)
    }
    await connect(page, 'udp_local', 'uniform_loss')
    await page.getByText('3 components, 1 connection').waitFor({ state: 'attached' })
    await connect(page, 'uniform_loss', 'udp')
    await page.getByText('3 components, 2 connections').waitFor({ state: 'attached' })

    const fields = [
      ['udp_local', 'address', '127.0.0.1:0'],
      ['uniform_loss', 'loss_prob', '0'],
      ['udp', 'remote_address', `127.0.0.1:${(receiver.address() as AddressInfo).port}`],
    ] as const
    for (const [kind, field, value] of fields) {
      await box(page, kind).locator('header').click()
      await page
        .getByRole('region', { name: kind, exact: true })
        .getByLabel(new RegExp(`^${field}`))
        .fill(value)
    }
    await page.getByText('valid', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'drawn' }).waitFor()
    const made = (await storedAt(node, 'drawn')) as Stored
    expect(connectionsOf(made)).toEqual(['udp_local uniform_loss', 'uniform_loss udp'])
    expect(made.started).toBe(false)

    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByText('running', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Log' }).click()
    const bound = await page.locator('.log-lines li', { hasText: 'bound to' }).first().textContent()
    const port = Number(/address=127\.0\.0\.1:(\d+)/.exec(bound ?? '')?.[1])
    sending = setInterval(() => sender.send('datagram', port, '127.0.0.1'), 2)
    await until(() => arrived > 100)

    await page.getByRole('link', { name: 'Impair' }).click()
    const legend = page.getByRole('region', { name: 'Link uniform_loss' }).locator('.legend li', { hasText: 'Loss' })
    await legend.getByText('0 %', { exact: true }).waitFor()
    await drag(page, page.getByRole('slider', { name: 'loss, as a slider' }), 0.9)
    const lossOf = async (): Promise<unknown> => {
      const stored = (await storedAt(node, 'drawn')) as Stored
      return componentsOf(stored).uniform_loss?.uniform_loss?.loss_prob
    }
    await until(async () => Number(await lossOf()) > 0.5)
    // What the chart shows is of the last second, so of a share around the one that is set.
    await until(async () => Number.parseFloat((await legend.locator('b').textContent()) ?? '') > 50)
    // A profile says what its link loses, and what of it this one cannot say.
    await page.getByRole('button', { name: 'geo-satellite', exact: true }).click()
    await page.getByText('The link has no component for its').waitFor()
    await until(async () => (await lossOf()) === 0.001)
    await until(async () => Number.parseFloat((await legend.locator('b').textContent()) ?? '') < 10)
    await page.getByRole('link', { name: 'Log' }).click()
    await page.locator('.log-lines li', { hasText: 'configuration applied' }).first().waitFor()

    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByText('stopped', { exact: true }).waitFor()
    expect(await storedAt(node, 'drawn')).toMatchObject({ started: false })
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete drawn?' })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await storedAt(node, 'drawn')).toBeDefined()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'This node' }).waitFor()
    expect(await storedAt(node, 'drawn')).toBeUndefined()
    await close(view)
  })
})
