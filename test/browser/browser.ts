/** Chromium for tests of the dashboard: a context of its own for each page, and what must never happen in any. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject } from 'vitest'

/** Far above what a loaded machine takes, below the time limit of a test. */
const DEADLINE_MS = 25_000

let browser: Browser | undefined

/** What the pages of this test file did that no page may do. */
const all: string[] = []

/** As `describe`, with a browser; skipped, and said so, where there is no chromium. No page that was opened in it may have had a fault. */
export function describeInBrowser(name: string, tests: () => void): void {
  const endpoint = inject('chromium')
  if (endpoint === undefined) console.warn(`skipped, for want of chromium on the PATH: ${name}`)
  describe.skipIf(endpoint === undefined)(name, () => {
    beforeAll(async () => {
      browser = await chromium.connect(endpoint as string)
    })
    afterAll(async () => {
      await browser?.close()
      expect(all).toEqual([])
    })
    tests()
  })
}

export interface Watched {
  readonly page: Page
  /** What the page did that it must never do: violations of its policy, errors in its scripts, dialogs, requests to others. */
  readonly faults: readonly string[]
}

interface PageOptions extends BrowserContextOptions {
  /** Whether requests of the page may fail, as where the node is away or refuses a token. */
  readonly failsRequests?: boolean
  /** Whether it is another one's page, which may do what it likes. */
  readonly isForeign?: boolean
}

/** Opens `url` in a context of its own. */
export async function open(url: string, options: PageOptions = {}): Promise<Watched> {
  const { failsRequests = false, isForeign = false, ...contextOptions } = options
  const context = await (browser as Browser).newContext({ viewport: { width: 1280, height: 900 }, ...contextOptions })
  context.setDefaultTimeout(DEADLINE_MS)
  const page = await context.newPage()
  const faults = isForeign ? [] : await watch(page, new URL(url).host, failsRequests)
  await page.goto(url)
  return { page, faults }
}

/** Ends the page, which must have had no fault. */
export async function close({ page, faults }: Watched): Promise<void> {
  await page.context().close()
  expect(faults).toEqual([])
}

/** Holds the page's calls of `method` for pipelines back until the function returned is called. */
export async function hold(page: Page, method: string): Promise<() => void> {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  await page.route(/\/pipelines(\/[^/]+)?$/, async (route) => {
    if (route.request().method() === method) await released
    await route.continue()
  })
  return release
}

/** What Chromium says of a request that failed, by itself. */
const FAILED_REQUEST = /^(Failed to load resource|WebSocket connection to)/

async function watch(page: Page, host: string, failsRequests: boolean): Promise<readonly string[]> {
  const faults: string[] = []
  const add = (fault: string): void => {
    faults.push(fault)
    all.push(fault)
  }
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`policy: ${violatedDirective} refused ${blockedURI}`)
    })
  })
  page.on('console', (message) => {
    if (message.type() !== 'error' || (failsRequests && FAILED_REQUEST.test(message.text()))) return
    add(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => add(`script: ${error.message}`))
  page.on('dialog', (dialog) => {
    // A page that is left with something unsaved asks by itself.
    if (dialog.type() !== 'beforeunload') add(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('popup', (popup) => add(`window: ${popup.url()}`))
  page.on('request', (request) => {
    const { protocol, host: asked } = new URL(request.url())
    if (protocol !== 'data:' && protocol !== 'blob:' && asked !== host) add(`request: ${request.url()}`)
  })
  return faults
}
