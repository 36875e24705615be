/** Debian's Chromium, which tests, benches and the pictures of the dashboard drive. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { LaunchOptions } from 'playwright-core'

/** Its path; undefined where there is none on the PATH. */
export function chromiumProgram(): string | undefined {
  return (process.env.PATH ?? '')
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
}

/** How playwright-core starts it. Throws where there is none. */
export function chromiumOptions(): LaunchOptions {
  const executablePath = chromiumProgram()
  if (executablePath === undefined) throw new Error('there is no chromium on the PATH; install it (Debian: chromium)')
  // Neither its sandbox nor its crash handler run as root in a container.
  return { executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] }
}
