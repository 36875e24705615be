/** Writes man pages: the requests of man(7) that they take, and texts with what is special to roff escaped. */

/** `text` as it stands, in a line of its own: roff reads a backslash, a hyphen, and a dot or quote that begins a line as its own. */
export function literal(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replace(/^\./gm, '\\&.')
}

export const bold = (text: string): string => `\\fB${literal(text)}\\fR`

const quoted = (text: string): string => `"${literal(text).replaceAll('"', '\\(dq')}"`

/** A page of section 1: its name, its date in UTC, what it belongs to, and its lines. A heading begins a paragraph by itself. */
export function manPage(name: string, date: Date, source: string, lines: readonly string[]): string {
  const title = `.TH ${name.toUpperCase()} 1 ${date.toISOString().slice(0, 10)} ${quoted(source)} "User Commands"`
  const needed = lines.filter((line, i) => line !== '.PP' || !/^\.S[HS] /.test(lines[i - 1] ?? ''))
  return `${[title, ...needed].join('\n')}\n`
}

export const section = (heading: string): string[] => [`.SH ${heading}`]

export const subsection = (heading: string): string[] => [`.SS ${quoted(heading)}`]

/** Empty lines part paragraphs. */
export function paragraphs(text: string): string[] {
  return text
    .split(/\n\s*\n/)
    .filter((each) => each.trim() !== '')
    .flatMap((each) => [
      '.PP',
      ...each
        .trim()
        .split(/\s*\n\s*/)
        .map(literal),
    ])
}

/** A term in bold, and what it means, indented. */
export const tagged = (term: string, meaning: string): string[] => [
  '.TP',
  bold(term),
  literal(meaning.replaceAll('\n', ' ')),
]

/** Lines that are not filled, such as those of a command. */
export const indented = (text: string): string[] => [
  '.PP',
  '.RS',
  '.nf',
  ...text.split('\n').map(literal),
  '.fi',
  '.RE',
]
