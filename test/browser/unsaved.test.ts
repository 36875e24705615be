/** What is typed in a browser and not stored yet: it stays until it is given up, step by step, as it was typed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { startReal } from '../hub/callers.ts'
import { close, describeInBrowser, hold, open } from './browser.ts'
import { lossy } from './pipelines.ts'

describeInBrowser('what is not stored', () => {
  let directory: string
  let node: RunningNode
  let id: string
  beforeAll(async () => {
    directory = temporaryDirectory()
    node = await startReal(directory, { loopback: 'token' })
    const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy(0.25) } })
    const { pipeline } = await call('POST', `/nodes/${node.node.id}/pipelines`, { name: 'uplink', jsonConfig })
    id = pipeline.id
  })
  afterAll(() => node.node.close())

  async function call(method: string, path: string, body?: object) {
    const token = readFileSync(join(directory, 'local.token'), 'utf8').trim()
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(`http://${node.node.http}/v1${path}`, init)
    expect(answer.status).toBe(200)
    // biome-ignore lint/suspicious/noExplicitAny: whatever the operation answers
    return (await answer.json()) as any
  }

  const tokenOf = async (name: string): Promise<string> => (await call('POST', '/access/tokens', { name })).secret

  async function signIn(page: Page, token: string): Promise<void> {
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  const lossOf = async (): Promise<unknown> => {
    const { pipeline } = await call('GET', `/nodes/${node.node.id}/pipelines/${id}`)
    return JSON.parse(pipeline.jsonConfig).engine_config.pipeline.loss.uniform_loss.loss_prob
  }

  /** Opens the editor and sets the loss. */
  async function edited(token: string, loss: string) {
    const editor = `http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/edit`
    const view = await open(editor, { viewport: { width: 1600, height: 900 }, failsRequests: true })
    const { page } = view
    await signIn(page, token)
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    await page.getByLabel(/^loss_prob/).fill(loss)
    return view
  }

  async function save(page: Page): Promise<void> {
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Update' }).click()
    await page.getByRole('heading', { name: 'uplink', exact: true }).waitFor()
  }

  test('stays and can be stored when one signs out and then does not', async () => {
    const view = await edited(await tokenOf('leaver'), '0.5')
    const { page } = view
    const question = page.getByRole('dialog', { name: 'Leave without saving?' })
    await page.getByRole('button', { name: 'Sign out' }).click()
    await question.getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByLabel(/^loss_prob/).inputValue()).toBe('0.5')
    await save(page)
    expect(await lossOf()).toBe(0.5)

    await page.getByRole('link', { name: 'Edit', exact: true }).click()
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    await page.getByLabel(/^loss_prob/).fill('0.75')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await question.getByRole('button', { name: 'Leave' }).click()
    await page.getByLabel('Token').waitFor()
    expect(await page.evaluate(() => Object.values(sessionStorage))).toEqual([])
    expect(await lossOf()).toBe(0.5)
    await close(view)
  })

  test('stays while another token is asked for, once the first is revoked', async () => {
    const view = await edited(await tokenOf('revoked'), '0.125')
    const { page } = view
    await page.getByText('valid', { exact: true }).waitFor()
    await call('DELETE', '/access/tokens/revoked')
    await page.getByLabel('Token').waitFor()
    // Nobody sees or uses the page meanwhile, and Escape is no way around.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.mouse.click(5, 5)
    await page.keyboard.press('Control+z')
    await page.keyboard.press('Delete')
    expect(await page.getByRole('button', { name: 'Save' }).isVisible()).toBe(false)
    await signIn(page, 'wrong')
    await page.getByRole('alert').getByText('the bearer token is not known here').waitFor()
    await signIn(page, await tokenOf('second'))
    await page.getByLabel('Token').waitFor({ state: 'detached' })
    expect(await page.getByLabel(/^loss_prob/).inputValue()).toBe('0.125')
    await save(page)
    expect(await lossOf()).toBe(0.125)
    // The page follows the node again.
    await call('POST', `/nodes/${node.node.id}/pipelines/${id}/start`)
    await page.getByText('running', { exact: true }).waitFor()
    await close(view)
  })
})

describeInBrowser('what is typed', () => {
  let node: RunningNode
  beforeAll(async () => {
    node = await runNode(temporaryDirectory())
  })
  afterAll(() => node.node.close())

  const network = (more: object) => ({
    source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 500 } },
    net: { simulated_network: { input: 'a', output: 'b', network_name: 'net', ...more } },
    sink: { traffic_sink: { input: 'b' } },
  })

  async function middleOf(locator: Locator): Promise<[x: number, y: number]> {
    const { x = 0, y = 0, width = 0, height = 0 } = (await locator.boundingBox()) ?? {}
    return [x + width / 2, y + height / 2]
  }

  const configOf = async (id: string) => JSON.parse((await node.get(id)).jsonConfig)

  test.each(['\n', '\r\n'])('leaves a variable with the line breaks %j as it was', async (breaks) => {
    const cmd = `echo one${breaks}echo two`
    const jsonConfig = JSON.stringify({
      engine_config: { lifecycle_handler: { on_setup: [{ cmd }] }, pipeline: lossy(0.02) },
      variables: [
        { id: 'loss', label: 'Loss', paths: ['/engine_config/pipeline/loss/uniform_loss/loss_prob'] },
        { id: 'setup', label: 'Setup', paths: ['/engine_config/lifecycle_handler/on_setup/0/cmd'] },
      ],
    })
    const id = await node.create({}, { name: 'scripted', jsonConfig })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/variables`)
    const { page } = view
    const apply = async (): Promise<void> => {
      await page.getByRole('button', { name: 'Apply' }).click()
      await page.locator('.toast', { hasText: 'The values are stored' }).last().waitFor()
    }
    const lossAndCmd = async () => {
      const { lifecycle_handler, pipeline } = (await configOf(id)).engine_config
      return [pipeline.loss.uniform_loss.loss_prob, lifecycle_handler.on_setup[0].cmd]
    }
    await page.getByLabel('Loss').fill('0.5')
    await apply()
    expect(await lossAndCmd()).toEqual([0.5, cmd])
    await page.locator('.toast').getByRole('button').click()
    await page.getByLabel('Setup').fill('echo one\necho three')
    await apply()
    expect(await lossAndCmd()).toEqual([0.5, `echo one${breaks}echo three`])
    await close(view)
  })

  const lossOf = async (id: string) => (await configOf(id)).engine_config.pipeline.loss.uniform_loss.loss_prob

  test('stays in the editor when an update is answered after its dialog was closed', async () => {
    const id = await node.create(lossy(0.25), { name: 'slow' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/edit`)
    const { page } = view
    const release = await hold(page, 'PUT')
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    const loss = page.getByLabel(/^loss_prob/)
    const save = page.getByRole('button', { name: 'Save', exact: true })
    const dialog = page.getByRole('dialog')
    await loss.fill('0.5')
    await save.click()
    await dialog.getByRole('button', { name: 'Update' }).click()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await loss.fill('0.75')
    release()
    await page.locator('.toast', { hasText: 'slow is updated' }).waitFor()
    expect(await lossOf(id)).toBe(0.5)
    expect(await loss.inputValue()).toBe('0.75')
    // It is as what was stored when it was begun, and was changed by nobody else.
    await page.getByText('changed meanwhile').waitFor({ state: 'detached' })
    await save.click()
    await dialog.getByRole('button', { name: 'Update' }).click()
    await page.getByRole('heading', { name: 'slow', exact: true }).waitFor()
    expect(await lossOf(id)).toBe(0.75)
    await close(view)
  })

  test('stays in the text of a configuration when an update is answered after its dialog was closed', async () => {
    const id = await node.create(lossy(0.25), { name: 'slow text' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/configuration`)
    const { page } = view
    const release = await hold(page, 'PUT')
    const text = page.locator('.cm-content')
    const [dialog, update] = [page.getByRole('dialog'), page.getByRole('button', { name: 'Update', exact: true })]
    const replaceText = async (loss: number): Promise<void> => {
      await text.click()
      await page.keyboard.press('Control+a')
      await page.keyboard.press('Delete')
      await page.keyboard.insertText(JSON.stringify({ engine_config: { pipeline: lossy(loss) } }))
    }
    await replaceText(0.5)
    await update.click()
    await dialog.getByRole('button', { name: 'Update' }).click()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await replaceText(0.75)
    release()
    await page.locator('.toast', { hasText: 'slow text is updated' }).waitFor()
    expect(await lossOf(id)).toBe(0.5)
    expect(await text.textContent()).toContain('0.75')
    await update.click()
    await dialog.getByRole('button', { name: 'Update' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await lossOf(id)).toBe(0.75)
    await close(view)
  })

  test('cannot be typed into the editor while a pipeline is created, and can once that is refused', async () => {
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/editor`, { failsRequests: true })
    const { page } = view
    const release = await hold(page, 'POST')
    const [name, create] = [
      page.getByLabel('Name of the pipeline'),
      page.getByRole('button', { name: 'Create' }).first(),
    ]
    await name.fill('new')
    await page.getByLabel('Search components').fill('traffic_sink')
    await page.keyboard.press('Enter')
    await create.click()
    await page.locator('.editor[inert]').waitFor()
    await page.mouse.click(...(await middleOf(name)))
    await page.keyboard.type('er')
    expect(await name.inputValue()).toBe('new')
    release()
    await page.locator('.toast', { hasText: 'It was not created' }).waitFor()
    expect(await create.evaluate((button) => button === document.activeElement)).toBe(true)
    await name.fill('newer')
    await close(view)
  })

  test('keeps line breaks in a field of the editor', async () => {
    const id = await node.create(network({ network_name: 'first\nsecond' }), { name: 'lines' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/edit`)
    const { page } = view
    await page.locator('.react-flow__node', { hasText: 'simulated_network' }).locator('header').click()
    const field = page.getByLabel(/^network_name/)
    expect(await field.inputValue()).toBe('first\nsecond')
    await field.press('Control+End')
    await field.pressSequentially('s')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Update' }).click()
    await page.getByRole('heading', { name: 'lines', exact: true }).waitFor()
    expect((await configOf(id)).engine_config.pipeline.net.simulated_network.network_name).toBe('first\nseconds')
    await close(view)
  })

  test('is undone step by step: items that were removed come back one by one', async () => {
    const id = await node.create(network({ receivers: ['one', 'two', 'three'] }), { name: 'items' })
    const view = await open(`http://${node.node.http}/#/nodes/${node.node.id}/pipelines/${id}/edit`)
    const { page } = view
    await page.locator('.react-flow__node', { hasText: 'simulated_network' }).locator('header').click()
    const items = page.getByLabel(/^receivers\[\d\]$/)
    const shown = () => items.evaluateAll((all) => all.map((each) => (each as HTMLInputElement).value))
    const remove = page.getByRole('button', { name: 'Remove receivers[0]' })
    await remove.click()
    await remove.click()
    expect(await shown()).toEqual(['three'])
    const undo = page.getByRole('button', { name: 'Undo' })
    await undo.click()
    expect(await shown()).toEqual(['two', 'three'])
    await undo.click()
    expect(await shown()).toEqual(['one', 'two', 'three'])
    await items.first().fill('o')
    await items.first().fill('on')
    await undo.click()
    expect(await shown()).toEqual(['one', 'two', 'three'])
    await close(view)
  })
})
