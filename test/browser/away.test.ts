/** Views in a browser while their node is away: the one that serves the page, and one behind it. */
import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../api/running-node.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { freeAddress } from '../hub/callers.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'

afterAll(endProcesses)

/** Gives the node a pipeline called uplink, which runs; returns its id. */
async function uplinkOf({ id: nodeId, caller }: NodeProcess): Promise<string> {
  const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy() } })
  const { pipeline } = await caller.unary('createPipeline', { nodeId, name: 'uplink', jsonConfig })
  await caller.unary('startPipeline', { nodeId, id: pipeline.id })
  return pipeline.id
}

const banner = (page: Page) => page.getByText('Connection lost')

describeInBrowser('a view', () => {
  test('that is opened for the first time while its node is away is there, and comes to life with the node', async () => {
    const flags = { 'node-name': 'lone', grpc: 'none' }
    let node = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    await uplinkOf(node)
    const view = await open(`http://${node.address}/`, { failsRequests: true })
    const { page } = view
    // Once the overview is there, the others are fetched.
    await page.getByRole('link', { name: 'uplink', exact: true }).waitFor()
    await page.waitForFunction(() => {
      const files = performance.getEntriesByType('resource').map(({ name }) => name)
      return ['pipeline', 'editor', 'family'].every((part) => files.some((file) => file.includes(`/assets/${part}-`)))
    })
    await node.kill()
    await banner(page).waitFor()
    await page.getByRole('link', { name: 'uplink', exact: true }).click()
    await page.getByRole('heading', { name: 'uplink', exact: true }).waitFor()
    node = await node.again()
    await page.getByRole('link', { name: 'Log', exact: true }).waitFor()
    await banner(page).waitFor({ state: 'detached' })
    await close(view)
    await node.kill()
  })

  test('that has heard nothing of its node yet says so', async () => {
    const flags = { 'node-name': 'lone', grpc: 'none' }
    const node = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    const view = await open(`http://${node.address}/v1/hub-client/local-node-id`, { failsRequests: true })
    const { page } = view
    let answer = (): void => {}
    const released = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route('**/local-node-id', async (route) => {
      await released
      await route.continue()
    })
    await page.goto(`http://${node.address}/#/`)
    await page.getByText('Loading…').waitFor()
    answer()
    await page.getByRole('region', { name: 'Node lone' }).waitFor()
    await close(view)
    await node.kill()
  })

  test('says within 16 s that nothing is heard of its node any more, and goes on once there is', async () => {
    const flags = { 'node-name': 'lone', grpc: 'none' }
    const node = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    const view = await open(`http://${node.address}/`, { failsRequests: true })
    const { page } = view
    await page.clock.install()
    await page.reload()
    await page.getByText('on no hub', { exact: true }).waitFor()
    // As where a cable is drawn: nothing ends, and nothing comes.
    node.signal('SIGSTOP')
    await page.clock.fastForward(16_000)
    await banner(page).waitFor()
    node.signal('SIGCONT')
    await banner(page).waitFor({ state: 'detached' })
    await close(view)
    await node.kill()
  })

  test('names the node that answers at its address, also when it has another name, or another one does', async () => {
    const firstFlags = { 'node-name': 'first', grpc: 'none' }
    const first = await NodeProcess.start({ directory: temporaryDirectory(), flags: firstFlags })
    const http = first.address
    const view = await open(`http://${http}/`, { failsRequests: true })
    const { page } = view
    const [bar, card] = [
      page.locator('.bar .where'),
      (name: string) => page.getByRole('region', { name: `Node ${name}` }),
    ]
    await page.clock.install()
    await page.reload()
    await card('first').waitFor()
    await bar.getByText('first', { exact: true }).waitFor()
    await first.caller.unary('setNode', { nodeId: first.id, name: 'named anew' })
    await page.clock.fastForward(10_000)
    await card('named anew').waitFor()
    await bar.getByText('named anew', { exact: true }).waitFor()
    await first.kill()
    const flags = { 'node-name': 'second', grpc: 'none', http }
    const second = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    await card('second').waitFor()
    await bar.getByText('second', { exact: true }).waitFor()
    expect(await card('named anew').count()).toBe(0)
    await close(view)
    await second.kill()
  })

  test('whose files do not come says so, and comes when it is asked for again or the page is loaded anew', async () => {
    const flags = { 'node-name': 'lone', grpc: 'none' }
    const node = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    await uplinkOf(node)
    const address = `http://${node.address}`
    const view = await open(`${address}/v1/local-node-id`, { failsRequests: true })
    const { page } = view
    const files = /\/assets\/(pipeline|editor|family)-/
    // As of a node that is away, and of one that has become another version.
    await page.route(files, (route) => route.abort())
    await page.goto(`${address}/#/`)
    const failure = page.getByRole('alert').getByText('This part of the page did not come')
    await page.getByRole('link', { name: 'uplink', exact: true }).click()
    await failure.waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await failure.waitFor()
    await page.unroute(files)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'uplink', exact: true }).waitFor()
    // Its looks have come too.
    await page.locator('.pipeline-head').waitFor()
    expect(await page.locator('.pipeline-head').evaluate((element) => getComputedStyle(element).display)).toBe('flex')

    await page.route(files, (route) => route.fulfill({ status: 404 }))
    await page.reload()
    await failure.waitFor()
    await page.unroute(files)
    await page.getByRole('button', { name: 'Reload the page' }).click()
    await page.getByRole('heading', { name: 'uplink', exact: true }).waitFor()
    await close(view)
    await node.kill()
  })

  test('that has a fault says so, and the rest of the page stays', async () => {
    const flags = { 'node-name': 'lone', grpc: 'none' }
    const node = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    await uplinkOf(node)
    // The browser tells of the fault on its console, as it should.
    const { page } = await open(`http://${node.address}/v1/local-node-id`, { isForeign: true })
    await page.route(/\/assets\/pipeline-.*js$/, async (route) => {
      const text = await (await route.fetch()).text()
      const [, view = ''] = /([\w$]+) as default/.exec(text) ?? []
      const faulty = `function ${view}(){throw new Error("told by the test")}function whole(`
      const body = text.replace(`function ${view}(`, () => faulty)
      await route.fulfill({ contentType: 'text/javascript', body })
    })
    await page.goto(`http://${node.address}/#/`)
    await page.getByRole('link', { name: 'uplink', exact: true }).click()
    await page.getByRole('alert').getByText('told by the test').waitFor()
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('region', { name: 'Node lone' }).waitFor()
    await page.context().close()
    await node.kill()
  })

  test('of a node behind the one that serves the page says that it is away, and goes on once it is back', async () => {
    const hubFlags = { hub: 'true', 'node-name': 'hall', grpc: await freeAddress() }
    const hub = await NodeProcess.start({ directory: temporaryDirectory(), flags: hubFlags, speed: 10 })
    const edgeFlags = { 'node-name': 'edge', grpc: await freeAddress() }
    let edge = await NodeProcess.start({ directory: temporaryDirectory(), flags: edgeFlags, speed: 10 })
    const id = await uplinkOf(edge)
    const view = await open(`http://${hub.address}/`, { failsRequests: true })
    const { page } = view
    const joined = edge.caller.unary('authenticateByRequest', { hubServerAddress: `http://${hub.address}` })
    await page.getByRole('button', { name: 'Accept' }).click()
    await joined
    const own = `http://${hub.address}/#/nodes/${edge.id}/pipelines/${id}`
    for (const [address, ready] of [
      [own, '.react-flow__node'],
      [`${own}/edit`, '.palette'],
    ] as const) {
      await page.goto(address)
      await page.locator(ready).first().waitFor()
      expect(await banner(page).count()).toBe(0)
      await edge.kill()
      await banner(page).waitFor()
      expect(await banner(page).count()).toBe(1)
      expect(await page.locator(ready).count()).toBeGreaterThan(0)
      edge = await edge.again()
      await banner(page).waitFor({ state: 'detached' })
    }
    await close(view)
    await Promise.all([edge.kill(), hub.kill()])
  })

  test('in which something is edited says when another node answers in the place of its own, and goes on once that is back', async () => {
    const flags = { 'node-name': 'own', grpc: 'none' }
    let node = await NodeProcess.start({ directory: temporaryDirectory(), flags })
    const http = node.address
    const id = await uplinkOf(node)
    const view = await open(`http://${http}/#/nodes/${node.id}/pipelines/${id}/edit`, { failsRequests: true })
    const { page } = view
    await page.locator('.react-flow__node', { hasText: 'uniform_loss' }).locator('header').click()
    const loss = page.getByLabel(/^loss_prob/)
    await loss.fill('0.25')
    await page.getByText('valid', { exact: true }).waitFor()
    await node.kill()
    // What is typed meanwhile cannot be checked, which is made up for by itself.
    await loss.fill('7')
    await page.getByText('not checked', { exact: true }).waitFor()
    const other = await NodeProcess.start({ directory: temporaryDirectory(), flags: { ...flags, http } })
    const notice = page.locator('.banner', { hasText: 'The pipelines of the node are not known any more' })
    await notice.getByText('What is shown may be old').waitFor()
    await other.kill()
    await banner(page).waitFor()
    node = await node.again()
    await banner(page).waitFor({ state: 'detached' })
    await notice.getByRole('button', { name: 'Try again' }).click()
    await notice.waitFor({ state: 'detached' })
    await page.getByText('1 problem', { exact: true }).waitFor()
    expect(await loss.inputValue()).toBe('7')
    await node.caller.unary('deletePipeline', { nodeId: node.id, id })
    await page.getByText('The pipeline was deleted meanwhile.').waitFor()
    await close(view)
    await node.kill()
  })
})
