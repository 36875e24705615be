/** Numbers that a node has, as the page writes them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'

describeInBrowser('numbers', () => {
  let node: RunningNode
  beforeAll(async () => {
    node = await runNode(temporaryDirectory(), { 'telemetry-interval': '200ms' })
  })
  afterAll(() => node.node.close())

  const openTab = (id: string, tab = '') =>
    open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}${tab}`)

  test('of a component are exact: its port, and what it is set to', async () => {
    const id = await node.create({
      peer: { udp: { input: 'a', output: 'b', local_address: '127.0.0.1:0' } },
      loss: { uniform_loss: { input: 'b', output: 'a', loss_prob: 0.123456, seed: 123456789 } },
    })
    await node.start(id)
    const view = await openTab(id)
    const { page } = view
    const valueText = (name: string) => page.locator('.panel .pairs > div', { hasText: name }).locator('dd')
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).click()
    await valueText('loss_prob').waitFor()
    expect([await valueText('seed').textContent(), await valueText('loss_prob').textContent()]).toEqual([
      '123456789',
      '0.123456',
    ])
    await page.locator('.react-flow__node', { hasText: 'peer' }).click()
    await valueText('local_port').waitFor()
    expect(await valueText('local_port').textContent()).toMatch(/^\d{4,5}$/)
    await close(view)
  })

  test('of a component are those of the box that was clicked last, however fast clicks follow each other', async () => {
    const view = await openTab(await node.create(lossy()))
    const { page } = view
    const boxes = page.locator('.react-flow__node')
    await boxes.nth(2).waitFor()
    for (const place of [0, 1, 2, 0, 1]) await boxes.nth(place).dispatchEvent('click')
    await page.getByRole('complementary', { name: 'Component loss', exact: true }).waitFor()
    // By keyboard too.
    await boxes.nth(2).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('complementary', { name: 'Component sink', exact: true }).waitFor()
    await close(view)
  })

  test('of how long ago something was are by the clock of the node, however wrong that of the browser is', async () => {
    const id = await node.create(lossy())
    await node.start(id)
    for (const wrong of [3_600_000, -3_600_000]) {
      const view = await openTab(id)
      const { page } = view
      await page.clock.install({ time: Date.now() + wrong })
      await page.reload()
      await page.getByText('Started less than a minute ago.').waitFor()
      // Another minute, by any clock.
      await page.clock.fastForward(80_000)
      await page.getByText('Started 1 minute ago.').waitFor()
      await close(view)
    }
    await node.call('POST', `/pipelines/${id}/stop`)
  })

  test('of a run that has ended and is to be restarted are said to be those of its end', async () => {
    const pipeline = { ...lossy(), bomb: { bomb: { delay: 200, poison: 'LOG_FATAL' } } }
    const id = await node.create(pipeline, { restartPolicy: { always: {} } })
    await node.start(id)
    const view = await openTab(id)
    await view.page.getByText('waiting to restart').waitFor()
    await view.page.getByText('The figures are those of the last run’s end.').waitFor()
    await node.call('POST', `/pipelines/${id}/stop`)
    await close(view)
  })

  test('of KPIs may be negative or huge, and their colour loads nothing', async () => {
    const color = 'url(http://elsewhere.example/x)'
    const metrics = [
      { id: 'text', value_to_text_conditions: { conditions: [{ expression: 'true', text: 'up', color }] } },
      { id: 'negative', value: { expression: '0 - 5000000', unit: 'bit/s' } },
      { id: 'share', value: { expression: '1e308', unit: 'fraction' } },
    ]
    const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy() }, kpis: { metrics } })
    const id = await node.create({}, { jsonConfig })
    await node.start(id)
    const view = await openTab(id, '/charts')
    const shown = (label: string) => view.page.getByRole('region', { name: label }).locator('.big').textContent()
    expect([await shown('text'), await shown('negative'), await shown('share')]).toEqual([
      'up',
      '-5.00 Mbit/s',
      '1.00e+310 %',
    ])
    // The browser would have asked for it by now.
    await view.page.waitForTimeout(200)
    await close(view)
  })

  test('beyond the largest are refused in a variable, and stay in a text that is formatted: they were taken for none', async () => {
    const pipeline = { ...lossy(0.1), loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.1, seed: 5 } } }
    const variables = [{ id: 'seed', label: 'seed', paths: ['/engine_config/pipeline/loss/uniform_loss/seed'] }]
    const jsonConfig = JSON.stringify({ engine_config: { pipeline }, variables })
    const id = await node.create({}, { jsonConfig })
    const address = `http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/variables`
    const view = await open(address, { failsRequests: true })
    const { page } = view
    await page.getByLabel('seed').fill('1e400')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('alert').getByText('The values were not taken').waitFor()
    expect(await page.getByLabel('seed').inputValue()).toBe('1e400')
    expect((await node.get(id)).jsonConfig).toBe(jsonConfig)
    await page.getByLabel('seed').fill('5')

    await page.getByRole('link', { name: 'Edit', exact: true }).click()
    await page.locator('.react-flow__node').first().waitFor()
    await page.getByLabel('Configuration file').setInputFiles({
      name: 'huge.json',
      mimeType: 'application/json',
      buffer: Buffer.from(jsonConfig.replace('"seed":5', '"seed":1e400')),
    })
    // It is no drawing either, whose first change would write it anew.
    await page.getByText('This text cannot be drawn yet').waitFor()
    await page.getByRole('button', { name: 'Format' }).click()
    await page.locator('.toast', { hasText: 'The text was not formatted' }).getByText('"seed" is beyond').waitFor()
    await page.getByRole('textbox', { name: 'Configuration, JSON' }).getByText('1e400').waitFor()
    await close(view)
  })

  test('that are no whole ones stay as they are typed into the settings, which says what holds: 1.5 became 5, -5 too', async () => {
    const id = await node.create(lossy(), { restartPolicy: { always: { maxRestarts: 3 } }, instructionsTimeout: 20 })
    const view = await openTab(id, '/edit')
    const { page } = view
    for (const [label, stays] of [
      ['Restarts in a row', 3],
      ['Timeout of instructions', 20],
    ] as const) {
      const field = page.getByLabel(label)
      for (const text of ['1.5', '-5', '9'.repeat(12)]) {
        await field.press('Control+A')
        await page.keyboard.type(text)
        expect(await field.inputValue()).toBe(text)
        await page.getByRole('alert').getByText(`“${text}” is no whole number`).waitFor()
      }
      await field.fill(String(stays))
      await page.getByRole('alert').getByText('is no whole number').waitFor({ state: 'detached' })
    }
    await close(view)
  })
})
