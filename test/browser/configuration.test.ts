/** What is typed into a configuration is kept, whatever becomes of the pipeline meanwhile. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy, storedAt } from './pipelines.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
})
afterAll(() => node.node.close())

describeInBrowser('the text of a configuration', () => {
  test('stays when the pipeline is deleted, which the page says, and makes a new one', async () => {
    const id = await node.create(lossy(), { name: 'short-lived' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/configuration`)
    const { page } = view
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const typed = JSON.stringify({ engine_config: { pipeline: lossy(0.25) } })
    await page.evaluate((copied) => navigator.clipboard.writeText(copied), typed)
    const text = page.getByRole('textbox', { name: 'Configuration, JSON' })
    await text.getByText('uniform_loss').first().waitFor()
    await text.press('Control+A')
    await page.keyboard.press('Control+V')
    await node.call('DELETE', `/pipelines/${id}`)
    await page.getByText('The pipeline was deleted meanwhile.').waitFor()
    await text.getByText('0.25').waitFor()
    expect(
      await page
        .getByRole('button', { name: 'Stop' })
        .or(page.getByRole('button', { name: 'Start' }))
        .count(),
    ).toBe(0)
    await page.getByRole('button', { name: 'Create anew' }).click()
    await page.getByRole('heading', { name: 'short-lived' }).waitFor()
    await page.getByRole('button', { name: 'Start', exact: true }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    const made = await storedAt(node, 'short-lived')
    expect(made?.id).not.toBe(id)
    expect(made?.jsonConfig).toContain('"loss_prob":0.25')
    await close(view)
  })

  test('a pipeline that is deleted elsewhere is said to be, with a way on', async () => {
    const id = await node.create(lossy(), { name: 'gone' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}`)
    const { page } = view
    await page.getByRole('heading', { name: 'gone' }).waitFor()
    await node.call('DELETE', `/pipelines/${id}`)
    await page.getByText('deleted', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Go to the overview' }).click()
    await page.getByRole('heading', { name: 'This node' }).waitFor()
    await close(view)
  })
})
