/** Who gets what, in a browser: tokens, and pages of other origins. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { startReal } from '../hub/callers.ts'
import { close, describeInBrowser, open } from './browser.ts'
import { lossy } from './pipelines.ts'

describeInBrowser('a node that asks for tokens', () => {
  test('has them typed in, says when one is wrong, asks again once it is revoked, and keeps no cookie', async () => {
    const directory = temporaryDirectory()
    const node = await startReal(directory, { loopback: 'token' })
    const own = readFileSync(join(directory, 'local.token'), 'utf8').trim()
    const call = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${own}`, 'content-type': 'application/json' }
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(`http://${node.node.http}/v1${path}`, init)
      expect(answer.status).toBe(200)
      return answer.json()
    }
    const { secret: token } = (await call('POST', '/access/tokens', { name: 'visitor' })) as { secret: string }
    const view = await open(`http://${node.node.http}/`, { failsRequests: true })
    const { page } = view
    const field = page.getByLabel('Token')
    await field.fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('the bearer token is not known here').waitFor()
    await field.fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'This node' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'This node' }).waitFor()
    expect(await page.context().cookies()).toEqual([])
    expect(await page.evaluate(() => [document.cookie, Object.values(localStorage)])).toEqual(['', []])
    await call('DELETE', '/access/tokens/visitor')
    await field.waitFor()
    expect(await page.getByRole('heading', { name: 'This node' }).count()).toBe(0)
    await close(view)
    await node.node.close()
  })

  test('lets one in whose browser keeps nothing for a page', async () => {
    const directory = temporaryDirectory()
    const node = await startReal(directory, { loopback: 'token' })
    const view = await open('about:blank', { isForeign: true, colorScheme: 'light' })
    const { page } = view
    // As a browser that is told to block what sites store.
    await page.addInitScript(() => {
      for (const name of ['localStorage', 'sessionStorage']) {
        const get = (): never => {
          throw new DOMException('Access is denied for this document.', 'SecurityError')
        }
        Object.defineProperty(globalThis, name, { get })
      }
    })
    await page.goto(`http://${node.node.http}/`)
    await page.getByLabel('Token').fill(readFileSync(join(directory, 'local.token'), 'utf8').trim())
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'This node' }).waitFor()
    await page.getByRole('button', { name: 'Dark colours' }).click()
    await page.locator('html[data-theme="dark"]').waitFor()
    await close(view)
    await node.node.close()
  })

  test('has the colours that were chosen in another tab', async () => {
    const node = await runNode(temporaryDirectory())
    const view = await open(`http://${node.node.http}/`, { colorScheme: 'light' })
    const other = await view.page.context().newPage()
    await other.goto(`http://${node.node.http}/`)
    await other.getByRole('button', { name: 'Dark colours' }).click()
    await view.page.locator('html[data-theme="dark"]').waitFor()
    await close(view)
    await node.node.close()
  })
})

describeInBrowser('a page of another origin', () => {
  let node: RunningNode
  let other: Server
  beforeAll(async () => {
    node = await runNode(temporaryDirectory())
    other = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end('<!doctype html><title>other</title><body></body>')
    }).listen(0, '127.0.0.1')
    await once(other, 'listening')
  })
  afterAll(async () => {
    other.close()
    await node.node.close()
  })

  test('can neither read nor act', async () => {
    const id = await node.create(lossy(), { name: 'kept' })
    const base = `http://${node.node.http}`
    const { page } = await open(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`, { isForeign: true })
    const asked = { base, nodeId: node.node.id, id }
    const got = await page.evaluate(async ({ base, nodeId, id }) => {
      const outcome = (promise: Promise<unknown>) =>
        promise.then(
          () => 'done',
          () => 'refused',
        )
      const heard = (target: EventTarget, good: string) =>
        new Promise<string>((resolve) => {
          target.addEventListener(good, () => resolve('done'))
          target.addEventListener('error', () => resolve('refused'))
        })
      const loaded = (element: HTMLElement) => {
        document.body.append(element)
        return new Promise((resolve) => element.addEventListener('load', resolve))
      }
      const pipeline = `${base}/v1/nodes/${nodeId}/pipelines/${id}`
      const simple = { method: 'POST', mode: 'no-cors', body: '{}' } as const
      const opaque = await fetch(`${pipeline}/start`, simple)
      const form = Object.assign(document.createElement('form'), { method: 'post', action: `${pipeline}/start` })
      const target = Object.assign(document.createElement('iframe'), { name: 'answer' })
      document.body.append(target)
      form.target = 'answer'
      document.body.append(form)
      const answered = new Promise((resolve) => target.addEventListener('load', resolve))
      form.submit()
      await answered
      const frame = Object.assign(document.createElement('iframe'), { src: `${base}/` })
      await loaded(frame)
      const streams = `${base}/v1/streams/nodes/${nodeId}/pipelines`
      return {
        read: await outcome(fetch(`${base}/v1/nodes/${nodeId}/pipelines`).then((answer) => answer.text())),
        page: await outcome(fetch(`${base}/`).then((answer) => answer.text())),
        remove: await outcome(fetch(pipeline, { method: 'DELETE' })),
        opaque: opaque.type,
        events: await heard(new EventSource(streams), 'open'),
        socket: await heard(new WebSocket(streams.replace('http', 'ws'), ['penstock']), 'open'),
        frame: frame.contentDocument === null ? 'not ours' : 'read',
      }
    }, asked)
    expect(got).toEqual({
      ...{ read: 'refused', page: 'refused', remove: 'refused', opaque: 'opaque' },
      ...{ events: 'refused', socket: 'refused', frame: 'not ours' },
    })
    expect(await page.frames().at(-1)?.locator('#root').count()).toBe(0)
    expect(await node.get(id)).toMatchObject({ name: 'kept', started: false })
    await page.context().close()
  })
})
