/** Texts that are meant to become more than text, and what a page has that made more of one. */
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** What would have run says so in `window.ran`. */
export const HOSTILE = {
  image: '<img src=x onerror="window.ran=1">',
  script: '"><script>window.ran=2</script>',
  link: 'javascript:window.ran=3',
  template: '{{7*7}}',
  turned: 'turned\u202egnp.exe',
  long: `<iframe srcdoc=x>${'long'.repeat(50)}`,
  /** Too long for a name of a pipeline or a component. */
  huge: `'"><svg onload=window.ran=4>${'x'.repeat(10_000)}`,
} as const

/** The page shows texts and nothing that they could have become, and none of them makes it wider than the window. */
export async function expectOnlyText(page: Page, where: string): Promise<void> {
  const found = await page.evaluate(() => {
    const roots: ParentNode[] = [document.body]
    for (const element of document.querySelectorAll('*'))
      if (element.shadowRoot !== null) roots.push(element.shadowRoot)
    const all = roots.flatMap((root) => [...root.querySelectorAll('*')])
    const isForeign = (element: Element): boolean =>
      // CodeMirror puts images without a source beside what stands for a character.
      !element.matches('img.cm-widgetBuffer:not([src])') &&
      (element.matches('img, script, iframe, object, embed, base, meta, svg[onload]') ||
        element.getAttributeNames().some((name) => name.startsWith('on')) ||
        (element instanceof HTMLAnchorElement && !element.getAttribute('href')?.startsWith('#')))
    return {
      ran: (globalThis as { ran?: unknown }).ran,
      foreign: all.filter(isForeign).map((element) => element.outerHTML.slice(0, 100)),
      // The name of a pipeline may stand before it.
      isTitled: /(^| – )penstock$/.test(document.title),
      isWide: document.documentElement.scrollWidth > innerWidth,
    }
  })
  expect([where, found]).toEqual([where, { ran: undefined, foreign: [], isTitled: true, isWide: false }])
}

/** Whether the last line of a text ends with its last letter: a text that turns around what follows it puts that elsewhere. */
export function endsAtTheRight(page: Page, selector: string): Promise<boolean> {
  return page
    .locator(selector)
    .first()
    .evaluate((element) => {
      const letters: { readonly left: number; readonly top: number }[] = []
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
      const range = document.createRange()
      while (walker.nextNode() !== null) {
        const { currentNode } = walker
        for (let i = 0; i < (currentNode.nodeValue ?? '').length; i++) {
          range.setStart(currentNode, i)
          range.setEnd(currentNode, i + 1)
          const { left, top, width } = range.getBoundingClientRect()
          if (width > 0) letters.push({ left, top })
        }
      }
      const last = letters.at(-1)
      return letters.every(({ left, top }) => top < (last?.top ?? 0) - 3 || left <= (last?.left ?? 0))
    })
}
