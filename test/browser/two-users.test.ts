/** What a page does with a pipeline that somebody else changes meanwhile: it shows what is stored, keeps what is typed, and undoes nobody's change. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { close, describeInBrowser, hold, open } from './browser.ts'
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

  /** Stores values of the emulated loss, as somebody else would. */
  async function storeElsewhere(id: string, values: object): Promise<void> {
    const { name, jsonConfig, instructionsTimeout, defaultLoggingLevel } = await node.get(id)
    const config = JSON.parse(jsonConfig)
    Object.assign(config.engine_config.pipeline.loss.uniform_loss, values)
    const settings = { name, jsonConfig: JSON.stringify(config), instructionsTimeout, defaultLoggingLevel }
    const { body } = await node.call('PUT', `/pipelines/${id}`, settings)
    expect(body.message).toBeUndefined()
  }

  /** Pipelines whose loss has these variables. */
  const createWith = (...fields: string[]): Promise<string> => {
    const paths = (field: string) => [`/engine_config/pipeline/loss/uniform_loss/${field}`]
    const variables = fields.map((id) => ({ id, label: id, paths: paths(id) }))
    const pipeline = lossy(0.1)
    Object.assign(pipeline.loss.uniform_loss, { seed: 5 })
    return node.create({}, { jsonConfig: JSON.stringify({ engine_config: { pipeline }, variables }) })
  }

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

  test('who has typed nothing into the editor sees there what the other stores, and what one types then is about that', async () => {
    const id = await createWith('loss_prob')
    const view = await openTab(id, 'edit')
    const { page } = view
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    const loss = page.getByLabel(/^loss_prob/)
    await loss.waitFor()
    await storeElsewhere(id, { loss_prob: 0.5 })
    await until(async () => (await loss.inputValue()) === '0.5')
    await page.getByLabel(/^seed/).fill('9')
    expect(await page.getByText('The stored configuration has changed meanwhile.').count()).toBe(0)
    await storeElsewhere(id, { loss_prob: 0.75 })
    await page.getByText('The stored configuration has changed meanwhile.').waitFor()
    expect([await loss.inputValue(), await page.getByLabel(/^seed/).inputValue()]).toEqual(['0.5', '9'])
    await close(view)
  })

  test('who compares sees every setting that differs, and of a configuration what does, however its text is laid out', async () => {
    const id = await createWith('loss_prob')
    const view = await openTab(id, 'edit')
    const { page } = view
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    await page.getByLabel(/^loss_prob/).fill('0.3')
    const { jsonConfig, instructionsTimeout, defaultLoggingLevel } = await node.get(id)
    const restartPolicy = { always: { maxRestarts: 3 } }
    const settings = { name: 'named anew', jsonConfig, instructionsTimeout, defaultLoggingLevel, restartPolicy }
    const { body } = await node.call('PUT', `/pipelines/${id}`, settings)
    expect(body.message).toBeUndefined()
    await page.getByRole('button', { name: 'Compare' }).click()
    expect((await page.locator('.diff .removed').allTextContents()).map((line) => line.trim())).toEqual([
      '− name: "named anew"',
      '− restartPolicy: {"always":{"maxRestarts":3}}',
      '−           "loss_prob": 0.1,',
    ])
    expect((await page.locator('.diff .added').allTextContents()).map((line) => line.trim())).toEqual([
      '+ name: "test"',
      '+ restartPolicy: {"never":{}}',
      '+           "loss_prob": 0.3,',
    ])
    await page.getByRole('button', { name: 'Take the stored one' }).click()
    await close(view)
  })

  test('values of Impair that are not taken are told, also once one is elsewhere', async () => {
    const id = await node.create(lossy(0.1), { name: 'left' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/impair`, {
      failsRequests: true,
    })
    const { page } = view
    const release = await hold(page, 'PUT')
    const loss = page.getByLabel('loss', { exact: true })
    await loss.fill('25')
    await loss.press('Enter')
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('link', { name: 'left', exact: true }).waitFor()
    await node.call('DELETE', `/pipelines/${id}`)
    release()
    await page.locator('.toast', { hasText: 'The values were not taken' }).waitFor()
    await close(view)
  })

  test('the one who is asked about a restart keeps what the other stores meanwhile, and is asked again', async () => {
    const id = await createWith('loss_prob', 'seed')
    await node.start(id)
    const view = await openTab(id, 'variables')
    const { page } = view
    await page.getByLabel('seed').fill('9')
    await page.getByRole('button', { name: 'Apply' }).click()
    const question = page.getByRole('dialog', { name: 'Restart the pipeline?' })
    await question.waitFor()
    await storeElsewhere(id, { loss_prob: 0.5 })
    // The page knows of it.
    await until(async () => (await page.getByLabel('loss_prob').inputValue()) === '0.5')
    await question.getByRole('button', { name: 'Restart' }).click()
    await question.getByText('changed meanwhile by somebody else').waitFor()
    expect((await fieldsOf(id, 'loss'))?.seed).toBe(5)
    await question.getByRole('button', { name: 'Restart' }).click()
    await page.locator('.toast', { hasText: 'The values are stored' }).waitFor()
    expect(await fieldsOf(id, 'loss')).toMatchObject({ loss_prob: 0.5, seed: 9 })
    await close(view)
  })

  test('what one types into a variable stays when the other stores a value, and leaving asks about it', async () => {
    const id = await createWith('loss_prob', 'seed')
    const view = await openTab(id, 'variables')
    const { page } = view
    const [loss, seed] = [page.getByLabel('loss_prob'), page.getByLabel('seed')]
    await loss.fill('0.3')
    await storeElsewhere(id, { loss_prob: 0.25, seed: 6 })
    // What is not typed into shows what is stored.
    await until(async () => (await seed.inputValue()) === '6')
    expect(await loss.inputValue()).toBe('0.3')
    const notice = page.getByText('The stored value has changed meanwhile: it is 0.25')
    await notice.waitFor()
    await page.getByRole('link', { name: 'Graph' }).click()
    const question = page.getByRole('dialog', { name: 'Leave without saving?' })
    await question.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Keep mine' }).click()
    await notice.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.locator('.toast', { hasText: 'The values are stored' }).waitFor()
    expect(await fieldsOf(id, 'loss')).toMatchObject({ loss_prob: 0.3, seed: 6 })

    await loss.fill('0.4')
    await storeElsewhere(id, { loss_prob: 0.2 })
    await page.getByRole('button', { name: 'Take the stored one' }).click()
    expect(await loss.inputValue()).toBe('0.2')
    // Nothing is typed any more.
    await page.getByRole('link', { name: 'Graph' }).click()
    await page.locator('.react-flow__node').first().waitFor()
    await close(view)
  })

  test('a restart is over when the other starts the pipeline at the moment it has stopped', async () => {
    const id = await node.create(lossy())
    const first = await node.start(id)
    const view = await openTab(id, 'log')
    const { page } = view
    const restart = page.getByRole('button', { name: 'Restart', exact: true })
    await restart.waitFor()
    // From now on the page hears of the stop and the start in one frame.
    await page.evaluate(() => {
      const next = requestAnimationFrame
      globalThis.requestAnimationFrame = (draw) => {
        setTimeout(() => next(draw), 2_000)
        return 0
      }
    })
    await restart.click()
    await node.when(id, ({ started }) => !started)
    const second = await node.start(id)
    await page.locator('.toast', { hasText: 'test runs again' }).waitFor()
    expect(await restart.isEnabled()).toBe(true)
    expect(second).not.toBe(first)
    expect((await node.get(id)).currentRun.id).toBe(second)
    await close(view)
  })
})
