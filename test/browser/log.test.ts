/** The log of a run: its filters, and how it is followed and held. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, settingsOf, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'

let node: RunningNode
let id: string
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  id = await node.create(lossy(), { name: 'told' })
  await node.start(id)
})
afterAll(() => node.node.close())

describeInBrowser('the log of a run', () => {
  test('is narrowed to a level, a component, a text; held it stands still, and followed it goes on', async () => {
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/log`)
    const { page } = view
    const lines = page.locator('.log-lines li')
    const drawn = lines.filter({ hasText: 'drawn for' })
    const running = lines.filter({ hasText: 'running' })
    await running.first().waitFor()
    await drawn.nth(1).waitFor()
    const component = page.getByRole('combobox', { name: 'Component' })
    await component.selectOption('loss')
    await drawn.nth(1).waitFor({ state: 'detached' })
    expect(new Set(await lines.locator('i').allTextContents())).toEqual(new Set(['loss']))
    await component.selectOption('*')
    await running.first().waitFor()
    const level = page.getByRole('combobox', { name: 'Least level' })
    await level.selectOption('ERROR')
    await drawn.first().waitFor({ state: 'detached' })
    // What a run says of its state is of no level.
    expect(new Set(await lines.locator('b').allTextContents())).toEqual(new Set(['STATE']))
    await level.selectOption('DEBUG')
    await page.getByRole('searchbox', { name: 'Lines that contain' }).fill('UNIFORM_loss')
    await running.first().waitFor({ state: 'detached' })
    expect(await lines.count()).toBe(1)
    await page.getByRole('searchbox', { name: 'Lines that contain' }).fill('')
    await running.first().waitFor()

    await page.getByRole('button', { name: 'Pause' }).click()
    const settings = settingsOf(lossy(0.3), { name: 'told', instructionsTimeout: 10 })
    expect(await node.call('PUT', `/pipelines/${id}`, settings)).toMatchObject({ status: 200 })
    const follow = page.getByRole('button', { name: /^Follow \(\d+ new\)$/ })
    await follow.waitFor()
    const applied = lines.filter({ hasText: 'configuration applied' })
    expect(await applied.count()).toBe(0)
    await follow.click()
    await applied.first().waitFor()
    await close(view)
  })
})
