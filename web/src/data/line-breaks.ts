/** Line breaks of texts that are edited: a page's fields have them as "\n", a text may have them as "\r\n" or "\r". */

const BREAK = /\r\n?|\n/g

export function hasBreaks(text: string): boolean {
  return /[\r\n]/.test(text)
}

/** The text as a field shows it. */
export function asShown(text: string): string {
  return text.replace(BREAK, '\n')
}

/** What a field holds, with the line breaks that the text before had. */
export function asBefore(shown: string, before: string): string {
  const [kind = '\n'] = before.match(BREAK) ?? []
  return asShown(shown).replaceAll('\n', kind)
}
