/** What a page does with a pipeline that somebody else changes meanwhile: it shows what is stored, keeps what is typed, and undoes nobody's change. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { componentsOf, lossy } from './pipelines.ts'

describeInBrowser('of two users', () => {
  let node: RunningNode
  beforeAll(async () => {
    node = await runNode(temporaryDirectory())
  })
  afterAll(() => node.node.close())

  const openTab = (id: string, tab: string) =>
    open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/${tab}`)

  const fieldsOf = async (id: string, name: string) => componentsOf(await node.get(id))[name]?.uniform_loss

  test('each sees on Impair what the other has set last, and undoes nothing of it', async () => {
    const id = await node.create({
      ...lossy(0.1),
      loss2: { uniform_loss: { input: 'b', output: 'c', loss_prob: 0.01 } },
      sink: { traffic_sink: { input: 'c' } },
    })
    await node.start(id)
    const [a, b] = [await openTab(id, 'impair'), await openTab(id, 'impair')]
    const field = (page: Page, place: number) => page.locator('.emulated input[type=number]').nth(place)
    const set = async (page: Page, percent: string, place = 0): Promise<void> => {
      await field(page, place).fill(percent)
      await field(page, place).press('Enter')
      for (const each of [a.page, b.page]) {
        await until(async () => (await field(each, place).inputValue()) === percent)
      }
    }
    await set(a.page, '20')
    await set(b.page, '10')
    await set(a.page, '20')
    await set(b.page, '10')
    await set(a.page, '20')
    await set(b.page, '3', 1)
    expect((await fieldsOf(id, 'loss'))?.loss_prob).toBe(0.2)
    expect((await fieldsOf(id, 'loss2'))?.loss_prob).toBe(0.03)
    await close(a)
    await close(b)
  })
})
