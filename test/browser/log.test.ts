/** The log of a run: its filters, and how it is followed and held. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, settingsOf, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
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

  test('stays held, at the line that is read, whatever is filtered and when another run begins', async () => {
    // Each component tells its seed: more lines than are seen at once.
    const names = Array.from({ length: 60 }, (_, i) => `loss${i}`)
    const chain = names.map((name, i) => [
      name,
      { uniform_loss: { input: `c${i}`, output: `c${i + 1}`, loss_prob: 0.01 } },
    ])
    const long = await node.create(
      {
        source: { throughput_traffic_source: { output: 'c0', throughput_mbit: 1, payload_size: 500 } },
        ...Object.fromEntries(chain),
        sink: { traffic_sink: { input: 'c60' } },
      },
      { name: 'long' },
    )
    await node.start(long)
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${long}/log`)
    const { page } = view
    const lines = page.locator('.log-lines li')
    const running = lines.filter({ hasText: 'running' })
    const text = page.getByRole('searchbox', { name: 'Lines that contain' })
    const follow = page.getByRole('button', { name: /^Follow/ })
    await running.waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await text.fill('loss7')
    await until(async () => (await lines.count()) === 1)
    await text.fill('')
    await running.waitFor()
    // What scrolling does is told a frame later.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
    expect(await follow.isVisible()).toBe(true)

    await text.fill('loss5')
    const first = (await node.get(long)).currentRun.id
    expect(await node.call('POST', `/pipelines/${long}/stop`)).toMatchObject({ status: 200 })
    await node.when(long, ({ started }) => !started)
    const second = await node.start(long)
    const back = page.getByRole('button', { name: 'Back to the current run' })
    await back.waitFor()
    expect(await follow.isVisible()).toBe(true)
    expect(await page.getByLabel('Run', { exact: true }).inputValue()).toBe(first)
    await back.click()
    await until(async () => (await page.getByLabel('Run', { exact: true }).inputValue()) === second)
    await until(async () => (await lines.count()) === 11)
    expect(await text.inputValue()).toBe('loss5')
    await close(view)
  })
})
