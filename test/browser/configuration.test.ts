/** The text of a configuration: problems, completion, what an update restarts; what is typed is kept, whatever becomes of the pipeline meanwhile. */
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { close, describeInBrowser, hold, open } from './browser.ts'
import { componentsOf, lossy, type Stored, storedAt } from './pipelines.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
})
afterAll(() => node.node.close())

const addressOf = (id: string): string =>
  `http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/configuration`

const textOf = (page: Page): Locator => page.getByRole('textbox', { name: 'Configuration, JSON' })

/** Puts `typed` in the place of the text that is shown. */
async function replaceText(page: Page, typed: string): Promise<void> {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), typed)
  await textOf(page).getByText('uniform_loss').first().waitFor()
  await textOf(page).press('Control+A')
  await page.keyboard.press('Control+V')
}

const jsonOf = (pipeline: object): string => JSON.stringify({ engine_config: { pipeline } }, null, 2)

describeInBrowser('the text of a configuration', () => {
  test('has its problems beside their lines, and an update says what applies at once and what restarts', async () => {
    const id = await node.create({}, { name: 'edited', jsonConfig: jsonOf(lossy(0.01)) })
    await node.start(id)
    const view = await open(addressOf(id))
    const { page } = view
    await page.getByText('valid', { exact: true }).waitFor()
    await replaceText(page, jsonOf(lossy(7)))
    const problem = page.getByRole('list', { name: 'Problems' }).getByRole('listitem')
    await problem.getByText('loss/uniform_loss/loss_prob').waitFor()
    await page.getByText('1 problem', { exact: true }).waitFor()
    const wrong = page.locator('.cm-lintRange-error')
    expect(await wrong.allTextContents()).toEqual(['7'])
    const sign = await page.locator('.cm-lint-marker-error').boundingBox()
    const line = await wrong.boundingBox()
    expect(Math.abs((sign?.y ?? Number.NaN) - (line?.y ?? Number.NaN))).toBeLessThan(10)

    const { loss, ...others } = lossy(0.5)
    const seeded = { ...others, loss: { uniform_loss: { ...loss.uniform_loss, seed: 5 } } }
    await replaceText(page, jsonOf(seeded))
    await page.getByText('valid', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Update', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Update edited' })
    const changesBelow = (heading: string): Locator =>
      dialog.getByRole('heading', { name: heading }).locator('+ ul').locator('code')
    await changesBelow('Applies at once').first().waitFor()
    const field = '/engine_config/pipeline/loss/uniform_loss'
    expect(await changesBelow('Applies at once').allTextContents()).toEqual([`${field}/loss_prob`])
    expect(await changesBelow('Needs a restart').allTextContents()).toEqual([`${field}/seed`])
    const lossOf = async (): Promise<unknown> =>
      componentsOf((await storedAt(node, 'edited')) as Stored).loss?.uniform_loss?.loss_prob
    expect(await lossOf()).toBe(0.01)
    await dialog.getByRole('button', { name: 'Update and restart' }).click()
    await dialog.waitFor({ state: 'detached' })
    await until(async () => (await lossOf()) === 0.5)
    await close(view)
  })

  test('is that of a file, unless the file is larger than a node takes', async () => {
    const id = await node.create(lossy(0.01), { name: 'uploaded' })
    const view = await open(addressOf(id))
    const { page } = view
    await textOf(page).getByText('uniform_loss').first().waitFor()
    const file = page.getByLabel('Configuration file')
    const upload = (name: string, text: string) =>
      file.setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) })
    await upload('huge.json', JSON.stringify('x'.repeat(4 * 1024 * 1024)))
    await page.locator('.toast', { hasText: 'huge.json was not read' }).getByText('4 MiB').waitFor()
    expect(await textOf(page).textContent()).toContain('uniform_loss')
    await upload('other.json', '{"other": 1}')
    await textOf(page).getByText('other').waitFor()
    await close(view)
  })

  test('is completed from the schema', async () => {
    const id = await node.create(lossy(), { name: 'typed' })
    const view = await open(addressOf(id))
    const { page } = view
    await replaceText(page, '{"engine_config": {"pipeline": {"link": {')
    await page.keyboard.type('"uniform_l')
    // The schema may be on its way: until it is there nothing is offered.
    const offered = page.locator('.cm-tooltip-autocomplete li').getByText('uniform_loss', { exact: true })
    await until(async () => {
      await page.keyboard.press('Control+Space')
      return offered.waitFor({ timeout: 1_000 }).then(
        () => true,
        () => false,
      )
    })
    await offered.click()
    await textOf(page).getByText('"uniform_loss"').waitFor()
    await close(view)
  })

  test('stays when the pipeline is deleted, which the page says, and makes a new one', async () => {
    const id = await node.create(lossy(), { name: 'short-lived' })
    const view = await open(addressOf(id))
    const { page } = view
    await replaceText(page, JSON.stringify({ engine_config: { pipeline: lossy(0.25) } }))
    const text = textOf(page)
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

  test('is that of an update from its answer on, however late the stream of changes tells it', async () => {
    const id = await node.create({}, { name: 'late stream', jsonConfig: jsonOf(lossy(0.25)) })
    const view = await open(`http://${node.node.http}/v1/local-node-id`, { failsRequests: true })
    const { page } = view
    let isHeld = false
    const held: (() => void)[] = []
    await page.routeWebSocket(/.*/, (socket) => {
      const server = socket.connectToServer()
      server.onMessage((message) => {
        if (isHeld) held.push(() => socket.send(message))
        else socket.send(message)
      })
    })
    await page.goto(addressOf(id))
    await replaceText(page, jsonOf(lossy(0.5)))
    isHeld = true
    await page.getByRole('button', { name: 'Update', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Update' }).click()
    await page.locator('.toast', { hasText: 'late stream is updated' }).waitFor()
    expect(await textOf(page).textContent()).toContain('"loss_prob": 0.5')
    // What is typed now is typed into that.
    await textOf(page).press('Control+End')
    await page.keyboard.type(' ')
    isHeld = false
    for (const send of held) send()
    await node.call('DELETE', `/pipelines/${id}`)
    await page.getByText('The pipeline was deleted meanwhile.').waitFor()
    expect(await textOf(page).textContent()).toContain('"loss_prob": 0.5')
    expect(await page.getByText('The stored configuration has changed meanwhile.').count()).toBe(0)
    await close(view)
  })

  test('a pipeline that is made anew takes nobody to it who has left meanwhile', async () => {
    const id = await node.create(lossy(), { name: 'made anew' })
    const view = await open(addressOf(id))
    const { page } = view
    await textOf(page).waitFor()
    await node.call('DELETE', `/pipelines/${id}`)
    const release = await hold(page, 'POST')
    await page.getByRole('button', { name: 'Create anew' }).click()
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await page.getByRole('heading', { name: 'This node' }).waitFor()
    release()
    await page.locator('.toast', { hasText: 'made anew is created' }).waitFor()
    await page.getByRole('link', { name: 'made anew', exact: true }).waitFor()
    expect(new URL(page.url()).hash).toBe('#/')
    await close(view)
  })

  test('a pipeline that is deleted takes nobody to the overview who has left meanwhile', async () => {
    const [gone, other] = [
      await node.create(lossy(), { name: 'leaving' }),
      await node.create(lossy(), { name: 'other' }),
    ]
    const view = await open(addressOf(gone))
    const { page } = view
    const release = await hold(page, 'DELETE')
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.goto(addressOf(other))
    await page.getByRole('heading', { name: 'other', exact: true }).waitFor()
    release()
    await page.locator('.toast', { hasText: 'leaving is deleted' }).waitFor()
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.getByRole('region', { name: 'Log' }).or(page.getByText('there is no log yet')).waitFor()
    expect(page.url()).toContain(other)
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
