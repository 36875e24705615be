/** Texts that are meant to become more than text, wherever the dashboard shows some. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { endsAtTheRight, expectOnlyText, HOSTILE } from './hostile.ts'
import { lossy, storedAt } from './pipelines.ts'

const { image, script, link, template, turned, long, huge } = HOSTILE

/** Every text of a configuration that people choose is a hostile one. */
const configuration = JSON.stringify({
  engine_config: {
    lifecycle_handler: { on_setup: [{ cmd: `echo '${image} ${template}'; echo '${script} ${'y'.repeat(3_000)}'` }] },
    pipeline: {
      [script]: { throughput_traffic_source: { output: long, throughput_mbit: 1, payload_size: 200 } },
      [image]: { uniform_loss: { input: long, output: link, loss_prob: 0.1 } },
      [template]: { traffic_sink: { input: link } },
      [turned]: { uniform_traffic_source: { output: turned, interval: 100, total_packets: 0 } },
      [long]: { traffic_sink: { input: turned } },
    },
  },
  kpis: {
    metrics: [
      { id: image, label: script, description: huge.slice(0, 4_096), value: { expression: '1', unit: image } },
      { id: 'rate', label: image, value_over_time: { expression: '2', unit: script } },
    ],
  },
  variables: [
    {
      ...{ id: script, label: image, description: huge },
      paths: [`/engine_config/pipeline/${image.replaceAll('/', '~1')}/uniform_loss/loss_prob`],
    },
  ],
  meta: { component_display_order: { [image]: 1, [huge]: 2 } },
})

let node: RunningNode
let id: string
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'node-name': image, hub: 'true', 'telemetry-interval': '200ms' })
  id = await node.create({}, { name: script, jsonConfig: configuration })
  await node.start(id)
})
afterAll(() => node.node.close())

const at = (hash: string): string => `http://${node.node.http}/${hash}`
const own = (rest = ''): string => at(`#/nodes/${node.node.id}/pipelines/${id}${rest}`)

/** Whether something on the page is just this text. */
const shows = (page: Page, text: string): Promise<void> => page.getByText(text).first().waitFor()

describeInBrowser('hostile texts', () => {
  test('are text in the overview: names of nodes and pipelines, why a run failed, who asks to join', async () => {
    for (const name of [image, link, template, turned, long]) await node.create(lossy(), { name })
    const refused = await node.call('POST', '/pipelines', {
      name: 'failing',
      jsonConfig: JSON.stringify({
        engine_config: { lifecycle_handler: { pre_start: [{ cmd: `false '${image}'` }] }, pipeline: lossy() },
      }),
    })
    await node.call('POST', `/pipelines/${refused.body.pipeline.id}/start`)
    const guest = await runNode(temporaryDirectory(), { 'node-name': `${turned}${'z'.repeat(4_000)}` })
    const view = await open(at('#/'))
    const { page } = view
    for (const name of [script, image, link, template, turned, long]) {
      await page.getByRole('link', { name, exact: true }).waitFor()
    }
    await page.getByRole('heading', { name: image, exact: true }).waitFor()
    await page.locator('.cause', { hasText: image }).waitFor()
    await expectOnlyText(page, 'overview')

    const body = { hubServerAddress: `http://${node.node.http}` }
    const joined = guest.call('POST', `http://${guest.node.http}/v1/hub-client/authenticate-by-request`, body)
    await page.getByRole('button', { name: 'Accept' }).waitFor()
    await expectOnlyText(page, 'request to join')
    expect(await endsAtTheRight(page, '.request h2')).toBe(true)
    await page.getByRole('button', { name: 'Accept' }).click()
    expect((await joined).status).toBe(200)
    await page.getByRole('region', { name: 'Node turned' }).waitFor()
    await expectOnlyText(page, 'two nodes')

    await page.getByRole('listitem').filter({ hasText: turned }).getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').waitFor()
    expect(await endsAtTheRight(page, '#confirm-title')).toBe(true)
    await expectOnlyText(page, 'question')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.locator('.toast').waitFor()
    expect(await endsAtTheRight(page, '.toast p')).toBe(true)
    await expectOnlyText(page, 'message')
    await close(view)
    await guest.node.close()
  })

  test('are text in every tab of a pipeline', async () => {
    const view = await open(own())
    const { page } = view
    await page.getByRole('heading', { name: script, exact: true }).waitFor()
    await page.locator('.react-flow__node', { hasText: image }).click()
    await page.getByRole('complementary', { name: `Component ${image}` }).waitFor()
    await expectOnlyText(page, 'graph')
    await page.getByRole('button', { name: 'List' }).click()
    await page.getByRole('rowheader', { name: script }).waitFor()
    await expectOnlyText(page, 'list')

    await page.goto(own('/charts'))
    await shows(page, script)
    await page.getByLabel('Component').selectOption(image)
    await page.getByLabel('Metric', { exact: true }).fill('emulated_loss')
    await page.getByRole('button', { name: `${image} emulated_loss` }).click()
    await page
      .getByRole('region', { name: `${image} emulated_loss` })
      .locator('canvas')
      .waitFor()
    await expectOnlyText(page, 'charts')

    await page.goto(own('/log'))
    await page.locator('.log-lines li', { hasText: image }).first().click()
    await page.getByRole('region', { name: 'The line' }).getByText(image).waitFor()
    await page.locator('.log-lines li', { hasText: script }).first().click()
    await page.getByRole('region', { name: 'The line' }).getByText(script).waitFor()
    await expectOnlyText(page, 'log')

    await page.goto(own('/variables'))
    await page.getByLabel(image, { exact: true }).waitFor()
    await expectOnlyText(page, 'variables')

    await page.goto(own('/configuration'))
    await page.locator('.cm-content').getByText('<img src=x onerror=').first().waitFor()
    await expectOnlyText(page, 'configuration')

    await page.goto(own('/impair'))
    await page
      .getByRole('region', { name: `Link ${image}` })
      .getByRole('slider')
      .waitFor()
    await expectOnlyText(page, 'impair')
    await close(view)
  })

  test('are text in the editor, which connects components of such names as any others', async () => {
    const view = await open(own('/edit'), { viewport: { width: 1600, height: 900 } })
    const { page } = view
    const box = (name: string) => page.locator('.react-flow__node', { hasText: name })
    await box(script).locator('header').click()
    await page.getByRole('region', { name: script, exact: true }).waitFor()
    await expectOnlyText(page, 'editor')
    await page.getByLabel(/^output/).selectOption('not connected')
    await page.getByText('5 components, 2 connections').waitFor({ state: 'attached' })
    const from = await box(script).locator('.react-flow__handle.source').first().boundingBox()
    const to = await box(image).locator('.react-flow__handle.target').first().boundingBox()
    await page.mouse.move((from?.x ?? 0) + 3, (from?.y ?? 0) + 3)
    await page.mouse.down()
    await page.mouse.move((to?.x ?? 0) + 3, (to?.y ?? 0) + 3, { steps: 5 })
    await page.mouse.up()
    await page.getByText('5 components, 3 connections').waitFor({ state: 'attached' })
    await box(template).locator('header').click()
    await page.getByLabel('Name of the component').fill(`${link}2`)
    await page.getByLabel('Name of the component').press('Enter')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').getByText('Needs a restart').waitFor()
    await expectOnlyText(page, 'update')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Text', exact: true }).click()
    await page.locator('.cm-content').waitFor()
    await expectOnlyText(page, 'text')
    await page.getByRole('link', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Leave' }).click()
    await page.getByRole('heading', { name: script, exact: true }).waitFor()
    expect((await storedAt(node, script))?.jsonConfig).toBe(configuration)
    await close(view)
  })

  test('may be what every object has: components of such names are drawn, in the pipeline and in the editor', async () => {
    const id = await node.create(
      {
        constructor: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 500 } },
        toString: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0 } },
        valueOf: { traffic_sink: { input: 'b' } },
      },
      { name: 'objects' },
    )
    const view = await open(at(`#/nodes/${node.node.id}/pipelines/${id}`))
    const { page } = view
    const boxes = page.locator('.react-flow__node')
    await boxes.nth(2).waitFor()
    await page.goto(at(`#/nodes/${node.node.id}/pipelines/${id}/edit`))
    await boxes.filter({ hasText: 'valueOf' }).locator('header').click()
    await page.getByLabel('Name of the component').fill('hasOwnProperty')
    await page.getByLabel('Name of the component').press('Enter')
    await boxes.filter({ hasText: 'hasOwnProperty' }).waitFor()
    expect(await boxes.count()).toBe(3)
    await close(view)
  })

  test('are text in an address', async () => {
    const view = await open(at(`#/${encodeURIComponent(image)}`))
    const { page } = view
    for (const text of [script, link, image]) {
      await page.goto(at(`#/${text}`))
      await page.getByText('There is nothing at').waitFor()
      await expectOnlyText(page, 'address')
    }
    await close(view)
  })
})
