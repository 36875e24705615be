/** The keyboard of tests: where Tab leads. */
import type { Page } from 'playwright-core'

/** Presses after which Tab is held not to lead there. */
const MAX_PRESSES = 200

/** What the element that has the focus is called. */
export function focusedName(page: Page): Promise<string> {
  return page.evaluate(() => {
    let element = document.activeElement as HTMLElement
    while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement as HTMLElement
    const label = (element as HTMLInputElement).labels?.[0]?.textContent
    return (element.getAttribute('aria-label') ?? label ?? element.textContent ?? '').slice(0, 80)
  })
}

/** Whether something of the page beside the dialog that is open has the focus; the browser itself may have it. */
export function isOutside(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const element = document.activeElement
    return element !== document.body && document.querySelector('dialog')?.contains(element) !== true
  })
}

/** Goes on with Tab until what has the focus is so called. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  const seen: string[] = []
  for (let presses = 0; presses < MAX_PRESSES; presses++) {
    const focused = await focusedName(page)
    if (name.test(focused)) return
    seen.push(focused)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not lead to ${name}, but to ${seen.join(' | ')}`)
}

/** Goes around with Tab until all that can be used was reached: what was not, and what does not show that it has the focus. */
export async function tabThrough(page: Page): Promise<{ missed: string[]; unseen: string[] }> {
  const unseen = new Set<string>()
  const reached = new Set<number>()
  const count = await page.evaluate(() => {
    const roots: ParentNode[] = [document]
    for (const element of document.querySelectorAll('*'))
      if (element.shadowRoot !== null) roots.push(element.shadowRoot)
    const all = roots.flatMap((root) => [
      ...root.querySelectorAll<HTMLElement>(
        'a[href], button, input, select, textarea, summary, [contenteditable="true"]',
      ),
    ])
    const usable = all.filter((element) => !element.matches(':disabled') && element.checkVisibility())
    Object.assign(globalThis, { usable })
    return usable.length
  })
  for (let presses = 0; presses < count + 20 && reached.size < count; presses++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(async () => {
      let element = document.activeElement as HTMLElement
      while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement as HTMLElement
      if (element === document.body) return undefined
      // An outline of its own, or of the box in or around it.
      const shown = [element, element.firstElementChild, element.closest('.cm-editor')].filter((each) => each !== null)
      const isSeen = (): boolean =>
        shown
          .map((each) => getComputedStyle(each))
          .some((look) => look.outlineStyle !== 'none' && look.outlineWidth !== '0px')
      // CodeMirror hears of it a moment later.
      for (let frames = 0; frames < 60 && !isSeen(); frames++) await new Promise(requestAnimationFrame)
      const { usable } = globalThis as unknown as { usable: HTMLElement[] }
      return { place: usable.indexOf(element), isSeen: isSeen(), html: element.outerHTML.slice(0, 120) }
    })
    if (focused === undefined) continue
    if (focused.place >= 0) reached.add(focused.place)
    if (!focused.isSeen) unseen.add(focused.html)
  }
  const missed = await page.evaluate(
    (places) => {
      const { usable } = globalThis as unknown as { usable: HTMLElement[] }
      // What was taken away meanwhile, or cannot be used any more, need not be reached.
      const left = usable.filter((element) => element.isConnected && !element.matches(':disabled'))
      return left
        .filter((element) => !places.includes(usable.indexOf(element)))
        .map((element) => element.outerHTML.slice(0, 120))
    },
    [...reached],
  )
  return { missed, unseen: [...unseen] }
}
