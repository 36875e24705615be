/** Starts the one Chromium that all tests of the dashboard share; each test file has contexts of its own in it. */
import { chromium } from 'playwright-core'
import type { TestProject } from 'vitest/node'
import { chromiumOptions, chromiumProgram } from '../../bench/support/chromium.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where playwright-core reaches it; undefined: there is no chromium. */
    chromium: string | undefined
  }
}

/** Called before the first of these tests; what it returns, after the last. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (chromiumProgram() === undefined) return undefined
  const server = await chromium.launchServer({ ...chromiumOptions(), host: '127.0.0.1' })
  project.provide('chromium', server.wsEndpoint())
  return () => server.close()
}
