/** The dialogs of the dashboard with the keyboard alone: they hold the focus, close, and give it back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, open } from './browser.ts'
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
})
