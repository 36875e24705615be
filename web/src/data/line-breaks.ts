/** Line breaks of texts that are edited: a page's fields have them as "\n", a text may have them as "\r\n" or "\r". */

const BREAK = /\r\n?|\n/g
/** Lines of a text that are shown at once. */
const MAX_ROWS = 10

export function hasBreaks(text: string): boolean {
  return /[\r\n]/.test(text)
}

/** The text as a field shows it. */
export function asShown(text: string): string {
  return text.replace(BREAK, '\n')
}

/** What a field holds, with the line breaks that the text before had: of several kinds, all as the first. */
export function asBefore(shown: string, before: string): string {
  const [kind = '\n'] = before.match(BREAK) ?? []
  return asShown(shown).replaceAll('\n', kind)
}

/** Rows of a field for a text as it is shown. */
export function rowsOf(shown: string): number {
  return Math.min(MAX_ROWS, shown.split('\n').length)
}
