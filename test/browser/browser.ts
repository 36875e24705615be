/** Chromium for tests of the dashboard: one of a test file, a context of its own for each page, and what must never happen in any. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect } from 'vitest'

/** Far above what a loaded machine takes, below the time limit of a test. */
const DEADLINE_MS = 25_000

/** Debian's chromium; undefined where there is none. */
const program = (process.env.PATH ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'chromium'))
  .find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

let browser: Browser | undefined

/** As `describe`, with a browser; skipped, and said so, where there is no chromium. */
export function describeInBrowser(name: string, tests: () => void): void {
  if (program === undefined) console.warn(`skipped, for want of chromium on the PATH: ${name}`)
  describe.skipIf(program === undefined)(name, () => {
    beforeAll(async () => {
      browser = await startBrowser()
    })
    afterAll(async () => {
      await browser?.close()
    })
    tests()
  })
}

/** Throws where there is no chromium. */
function startBrowser(): Promise<Browser> {
  if (program === undefined) throw new Error('there is no chromium on the PATH; install it (Debian: chromium)')
  // Neither its sandbox nor its crash handler run as root in a container.
  return chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

export interface Watched {
  readonly page: Page
  /** What the page did that it must never do: violations of its policy, errors in its scripts, dialogs, requests to others. */
  readonly faults: readonly string[]
}

interface PageOptions extends BrowserContextOptions {
  /** Whether requests of the page may fail, as where the node is away or refuses a token. */
  readonly failsRequests?: boolean
}

/** Opens `url` in a context of its own. */
export async function open(url: string, { failsRequests = false, ...options }: PageOptions = {}): Promise<Watched> {
  const context = await (browser as Browser).newContext({ viewport: { width: 1280, height: 900 }, ...options })
  context.setDefaultTimeout(DEADLINE_MS)
  const page = await context.newPage()
  const faults = await watch(page, new URL(url).host, failsRequests)
  await page.goto(url)
  return { page, faults }
}

/** Ends the page, which must have had no fault. */
export async function close({ page, faults }: Watched): Promise<void> {
  await page.context().close()
  expect(faults).toEqual([])
}

/** What Chromium says of a request that failed, by itself. */
const FAILED_REQUEST = /^(Failed to load resource|WebSocket connection to)/

async function watch(page: Page, host: string, failsRequests: boolean): Promise<readonly string[]> {
  const faults: string[] = []
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      console.error(`policy: ${violatedDirective} refused ${blockedURI}`)
    })
  })
  page.on('console', (message) => {
    if (message.type() !== 'error' || (failsRequests && FAILED_REQUEST.test(message.text()))) return
    faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`))
  page.on('dialog', (dialog) => {
    // A page that is left with something unsaved asks by itself.
    if (dialog.type() !== 'beforeunload') faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { protocol, host: asked } = new URL(request.url())
    if (protocol !== 'data:' && protocol !== 'blob:' && asked !== host) faults.push(`request: ${request.url()}`)
  })
  return faults
}
