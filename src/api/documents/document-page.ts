/** A text that is the same for as long as the process runs, as a page with a tag. */
import { createHash } from 'node:crypto'
import type { Page } from '../http-response.ts'

/** `text` is called once, when the page is first asked for. */
export function documentPage(type: string, text: () => string, headers: Readonly<Record<string, string>> = {}): Page {
  let made: { readonly text: string; readonly etag: string } | undefined
  const make = (): { readonly text: string; readonly etag: string } => {
    if (made === undefined) {
      const written = text()
      made = { text: written, etag: `"${createHash('sha256').update(written).digest('base64url')}"` }
    }
    return made
  }
  return {
    type,
    headers: { 'x-content-type-options': 'nosniff', ...headers },
    text: () => make().text,
    etag: () => make().etag,
  }
}
