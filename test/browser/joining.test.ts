/** The overview in a browser: nodes that ask, come and go, and a node that is away for a while. */
import { afterAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../api/running-node.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'

afterAll(endProcesses)

describeInBrowser('the overview', () => {
  test('a node is rejected and accepted by clicking, shows its pipelines, leaves when it is killed, and returns', async () => {
    const hubFlags = { hub: 'true', 'node-name': 'hall', grpc: await freeAddress() }
    const hub = await NodeProcess.start({ directory: temporaryDirectory(), flags: hubFlags, speed: 10 })
    const edgeFlags = { 'node-name': 'edge', grpc: await freeAddress() }
    let edge = await NodeProcess.start({ directory: temporaryDirectory(), flags: edgeFlags, speed: 10 })
    const jsonConfig = JSON.stringify({ engine_config: { pipeline: lossy() } })
    await edge.caller.unary('createPipeline', { nodeId: edge.id, name: 'uplink', jsonConfig })
    const view = await open(`http://${hub.address}/`)
    const { page } = view
    const card = page.getByRole('region', { name: 'Node edge' })
    await page.getByRole('heading', { name: 'Nodes on the hub' }).waitFor()
    expect(await card.count()).toBe(0)

    const ask = () => edge.caller.unary('authenticateByRequest', { hubServerAddress: `http://${hub.address}` })
    const request = page.getByRole('region', { name: 'Request to join of edge' })
    const refused = expect(ask()).rejects.toThrow('rejected')
    await request.getByRole('button', { name: 'Reject' }).click()
    await refused
    await request.waitFor({ state: 'detached' })
    expect(await card.count()).toBe(0)

    const joined = ask()
    const fingerprint = (await request.locator('code').first().textContent()) ?? ''
    expect(fingerprint.replaceAll(' ', '')).toBe(edge.id)
    await request.getByRole('button', { name: 'Accept' }).click()
    await joined
    await request.waitFor({ state: 'detached' })
    await card.getByText('online', { exact: true }).waitFor()
    await card.getByRole('link', { name: 'uplink' }).click()
    await page.getByRole('heading', { name: 'uplink' }).waitFor()
    // The page is that of another node: which one has the pipeline is said, and in the browser's history what was looked at.
    await page.locator('.pipeline-head').getByText('on edge').waitFor()
    expect(await page.title()).toBe('uplink – penstock')
    await page.getByRole('link', { name: 'Edit', exact: true }).click()
    await page.locator('.editor-bar').getByText('on edge').waitFor()
    expect(await page.title()).toBe('Edit uplink – penstock')
    await page.getByRole('link', { name: 'Overview' }).click()
    await card.getByRole('link', { name: 'New pipeline' }).click()
    await page.locator('.editor-bar').getByText('on edge').waitFor()
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Nodes on the hub' }).waitFor()
    expect(await page.title()).toBe('penstock')

    await edge.kill()
    await card.getByText('offline', { exact: true }).waitFor()
    await card.getByText('Its pipelines are not known while it is away.').waitFor()
    edge = await edge.again()
    await card.getByText('online', { exact: true }).waitFor()
    await card.getByRole('link', { name: 'uplink' }).waitFor()
    await close(view)
    await Promise.all([edge.kill(), hub.kill()])
  })

  test('an answer to a request while the hub is away is not taken, which the page says: the request stays', async () => {
    const hub = await NodeProcess.start({
      directory: temporaryDirectory(),
      flags: { hub: 'true', grpc: 'none' },
    })
    const edge = await NodeProcess.start({
      directory: temporaryDirectory(),
      flags: { 'node-name': 'edge', grpc: await freeAddress() },
    })
    const view = await open(`http://${hub.address}/`, { failsRequests: true })
    const { page } = view
    const request = page.getByRole('region', { name: 'Request to join of edge' })
    const asked = edge.caller.unary('authenticateByRequest', { hubServerAddress: `http://${hub.address}` })
    asked.catch(() => {})
    await request.waitFor()
    await hub.kill()
    await page.getByText('Connection lost').waitFor()
    await request.getByRole('button', { name: 'Accept' }).click()
    await page.locator('.toast', { hasText: 'The answer was not taken' }).waitFor()
    expect(await request.count()).toBe(1)
    await close(view)
    await edge.kill()
  })

  test('a node that is stopped and started again: the page says so, and that goes by itself', async () => {
    let node = await NodeProcess.start({
      directory: temporaryDirectory(),
      flags: { 'node-name': 'lone', grpc: 'none' },
    })
    const view = await open(`http://${node.address}/`, { failsRequests: true })
    const { page } = view
    await page.getByText('No pipelines yet.').waitFor()
    // It is not said to have none where they were not told.
    const lists = /\/v1\/nodes\/[^/]+\/pipelines$/
    await page.route(lists, (route) => route.abort())
    await page.reload()
    await page.getByText('Its pipelines are not known while it is not reached.').waitFor()
    expect(await page.getByText('No pipelines yet.').count()).toBe(0)
    await page.unroute(lists)
    await page.getByText('No pipelines yet.').waitFor()
    const banner = page.getByText('Connection lost')
    expect(await banner.count()).toBe(0)
    await node.kill()
    await banner.waitFor()
    // What was known stays on the page.
    expect(await page.getByRole('region', { name: 'Node lone' }).count()).toBe(1)
    node = await node.again()
    await banner.waitFor({ state: 'detached' })
    await until(async () => (await page.getByText('not connected', { exact: true }).count()) === 0)
    await close(view)
    await node.kill()
  })
})
