/** The dialogs of the dashboard with the keyboard alone: they hold the focus, close, and give it back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, hold, open } from './browser.ts'
import { focusedName, isOutside, tabTo } from './keyboard.ts'
import { lossy, storedAt } from './pipelines.ts'

let node: RunningNode
let id: string
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  id = await node.create(
    {},
    { name: 'held', jsonConfig: JSON.stringify({ engine_config: { pipeline: lossy() } }, null, 2) },
  )
  await node.start(id)
})
afterAll(() => node.node.close())

const address = (rest: string): string => `http://${node.node.http}/#/nodes/${node.node.id}/${rest}`

describeInBrowser('dialogs', () => {
  test.each([
    ['deletes', 'pipelines/ID', 'Delete', undefined],
    ['updates', 'pipelines/ID/configuration', 'Update', /^Configuration, JSON/],
    ['saves', 'pipelines/ID/edit', 'Save', /^Name of the pipeline/],
    ['leaves what is not saved', 'pipelines/ID/edit', 'Close', /^Name of the pipeline/],
  ])(
    'a dialog that %s holds the focus, closes with Escape or Cancel, and gives the focus back',
    async (...dialogOf) => {
      const [, path, button, field] = dialogOf
      const view = await open(address(path.replace('ID', id)))
      const { page } = view
      const { keyboard } = page
      await page.getByText(button, { exact: true }).first().waitFor()
      if (field !== undefined) {
        await tabTo(page, field)
        await keyboard.press('End')
        await keyboard.type(' ')
      }
      for (const way of ['Escape', 'Cancel']) {
        await tabTo(page, new RegExp(`^${button}$`))
        await keyboard.press('Enter')
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        for (let presses = 0; presses < 5; presses++) {
          await keyboard.press('Tab')
          expect(await isOutside(page)).toBe(false)
        }
        if (way === 'Escape') await keyboard.press('Escape')
        else {
          await tabTo(page, /^Cancel$/)
          await keyboard.press('Enter')
        }
        // Closed it is no dialog any more, but the page hears of that a moment later and then takes it away.
        await page.locator('dialog').waitFor({ state: 'detached' })
        expect(await focusedName(page)).toBe(button)
      }
      expect(await storedAt(node, 'held')).toBeDefined()
      await close(view)
    },
  )

  test('the editor hears no keys that are pressed while a dialog is before it, or while it waits for a pipeline to be created', async () => {
    const view = await open(address(`pipelines/${id}/edit`))
    const { page } = view
    const { keyboard } = page
    const boxes = page.locator('.react-flow__node')
    const undo = page.getByRole('button', { name: 'Undo' })
    await boxes.nth(2).waitFor()
    await boxes.nth(1).focus()
    await keyboard.press('Enter')
    await keyboard.press('ArrowRight')
    for (const [role, name] of [
      ['button', 'Save'],
      ['link', 'Close'],
    ] as const) {
      for (const key of ['Delete', 'Backspace', 'Control+z']) {
        await page.getByRole(role, { name, exact: true }).click()
        await page.getByRole('dialog').waitFor()
        await keyboard.press(key)
        await keyboard.press('Escape')
        await page.locator('dialog').waitFor({ state: 'detached' })
        expect([name, key, await boxes.count(), await undo.isEnabled()]).toEqual([name, key, 3, true])
      }
    }
    // What was selected is, and keys are heard again.
    await keyboard.press('Delete')
    await boxes.nth(2).waitFor({ state: 'detached' })
    await page.context().close()

    const creating = await open(address('editor'), { failsRequests: true })
    const release = await hold(creating.page, 'POST')
    await creating.page.getByLabel('Search components').fill('traffic_sink')
    await creating.page.keyboard.press('Enter')
    await creating.page.getByRole('button', { name: 'Create', exact: true }).click()
    await creating.page.locator('.editor[inert]').waitFor()
    await creating.page.keyboard.press('Delete')
    release()
    await creating.page.locator('.toast', { hasText: 'It was not created' }).waitFor()
    expect(await creating.page.locator('.react-flow__node').count()).toBe(1)
    await creating.page.context().close()
  })
})
