/** What the commands print with: tables that fit the terminal, numbers, colours, a region that is redrawn in place. */
import { createInterface } from 'node:readline'
import { styleText } from 'node:util'
import { requirePackage } from '../require-package.ts'
import { writtenOut } from '../text/written-out.ts'
import { yamlOf } from '../text/yaml.ts'

export interface Column {
  title: string
  align?: 'left' | 'right'
  /** Takes the width that is left and wraps; without one, the widest column is cut when the table is too wide. */
  wrap?: boolean
  /** Is never cut, such as ids that one copies: a table of such columns may be wider than the terminal. */
  whole?: boolean
  /** Is left out where the table would be wider than the terminal, of several such columns the last first. */
  spare?: boolean
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what an escape sequence starts with
const ESCAPES = /\x1b\[[0-9;]*m/g

/** What `paint` writes: bold, faint and colours, which hide nothing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what an escape sequence starts with
const PAINT = /(\x1b\[(?:1|2|22|3[1-6]|39)m)/

/**
 * `text` without what a terminal would obey, colours and line ends apart: names and messages come from other machines too. What hides or steers is
 * written out.
 */
export function harmless(text: string): string {
  return text
    .split(PAINT)
    .map((part, i) => (i % 2 === 1 ? part : writtenOut(part, '\t\n')))
    .join('')
}

/** The same, of white space spaces only: a name on a line that others read as one. */
export const onOneLine = (text: string): string => harmless(text).replace(/\s/g, ' ')

/**
 * What another machine calls or says, on one line, with nothing in it that hides, moves or colours text: to be put into a text before that
 * is painted, as `harmless` lets line ends and colours through.
 */
export const named = (text: string): string => writtenOut(text)

/** What most of the output is: characters of one column each. */
const NARROW = /^[ -~\u00a0-\u00ac\u00ae-\u00ff…]*$/

/** Loaded where it is needed: that takes as long as a tenth of most commands. */
const stringWidth = (text: string): number =>
  (requirePackage('string-width') as typeof import('string-width')).default(text)

/** Columns that `text` takes on a terminal: Chinese characters and emoji take two, combining marks and colours none. */
const visible = (text: string): number => (NARROW.test(text) ? text.length : stringWidth(text))

/** Made where it is needed, as the formats of numbers are: what Intl makes takes milliseconds. */
let graphemes: Intl.Segmenter | undefined

/** The beginning of `text` that fits `width` columns, of whole characters as people see them; the first `least` of them at any rate. */
function head(text: string, width: number, least = 0): string {
  let taken = ''
  let columns = 0
  let count = 0
  graphemes ??= new Intl.Segmenter()
  for (const { segment } of graphemes.segment(text)) {
    columns += visible(segment)
    if (columns > width && count >= least) break
    taken += segment
    count++
  }
  return taken
}

/** Columns of the terminal; COLUMNS when the output is no terminal, else without limit. */
export function terminalWidth(): number {
  const columns = process.stdout.columns ?? Number(process.env.COLUMNS)
  return columns > 0 ? columns : Number.POSITIVE_INFINITY
}

export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim'

/** Colours `text` when `stream` is a terminal and NO_COLOR is unset. */
export function paint(text: string, colour: Colour, stream: { isTTY?: boolean } = process.stdout): string {
  if (!stream.isTTY || process.env.NO_COLOR || process.env.TERM === 'dumb') return text
  return styleText(colour, text)
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let line = ''
    for (const given of paragraph.split(' ')) {
      let word = given
      if (line && visible(line) + 1 + visible(word) > width) {
        lines.push(line)
        line = ''
      }
      while (visible(word) > width) {
        const fitting = head(word, width, 1)
        lines.push(fitting)
        word = word.slice(fitting.length)
      }
      line = line ? `${line} ${word}` : word
    }
    lines.push(line)
  }
  return lines
}

/** `text` in lines that fit `width` columns, broken between words. */
export function fitted(text: string, width = terminalWidth()): string {
  return width === Number.POSITIVE_INFINITY ? text : wrapped(text, width).join('\n')
}

/** Between words that stay on one line where a cell wraps. */
export const TOGETHER = '\u00a0'

/** The beginning of `text` that fits `width` columns, with a sign that there is more. */
export function cut(text: string, width: number): string {
  return visible(text) <= width ? text : `${head(text.replace(ESCAPES, ''), width - 1)}…`
}

/** Columns that a column has at least that may be cut. */
const LEAST_CUT = 8
/** Columns to which one that wraps is narrowed before others are cut. */
const LEAST_WRAPPED = 24
/** Columns that a spare column is not to take from others. */
const LEAST_READABLE = 16

/** Lays a table out in at most `width` columns; the result has no trailing newline. */
export function table(all: readonly Column[], cells: readonly string[][], width = terminalWidth()): string {
  const gap = 2
  const columns = [...all]
  const given = cells.map((row) => [...row])
  const natural = (i: number): number =>
    Math.max(columns[i].title.length, ...given.map((row) => visible(harmless(row[i] ?? ''))))
  const needed = (): number =>
    columns.reduce((sum, { whole }, i) => sum + (whole ? natural(i) : Math.min(natural(i), LEAST_READABLE)) + gap, -gap)
  for (let at = columns.findLastIndex(({ spare }) => spare); at >= 0 && needed() > width; ) {
    columns.splice(at, 1)
    for (const row of given) row.splice(at, 1)
    at = columns.findLastIndex(({ spare }) => spare)
  }
  const rows = given.map((row) => row.map((cell, i) => (columns[i]?.wrap ? harmless(cell) : onOneLine(cell))))
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => visible(row[i] ?? ''))))
  const total = (): number => widths.reduce((sum, each) => sum + each, gap * (columns.length - 1))
  if (total() > width) {
    const flexible = columns.findIndex((column) => column.wrap)
    const shrink = (i: number, least: number) => {
      widths[i] = Math.max(Math.min(least, widths[i]), widths[i] - (total() - width))
    }
    if (flexible >= 0) shrink(flexible, LEAST_WRAPPED)
    // Where a cell wraps, numbers and their units stay in one piece.
    const longestWord = (i: number): number =>
      Math.max(...rows.flatMap((row) => (row[i] ?? '').split(/[ \n]/).map(visible)))
    const least = columns.map(({ wrap, whole }, i) =>
      whole ? widths[i] : wrap ? Math.min(LEAST_WRAPPED, Math.max(longestWord(i), LEAST_CUT)) : LEAST_CUT,
    )
    for (let guard = columns.length; total() > width && guard > 0; guard--) {
      const widest = columns.reduce((best, _, i) => (widths[i] - least[i] > widths[best] - least[best] ? i : best), 0)
      shrink(widest, least[widest])
    }
  }
  const lines: string[] = []
  const line = (cells: string[]): string =>
    cells
      .map((cell, i) => {
        const space = ' '.repeat(Math.max(0, widths[i] - visible(cell)))
        return columns[i].align === 'right' ? space + cell : cell + space
      })
      .join(' '.repeat(gap))
      .trimEnd()
  if (columns.some(({ title }) => title)) {
    lines.push(line(columns.map(({ title }, i) => paint(cut(title, widths[i]), 'bold'))))
  }
  for (const row of rows) {
    const cells = columns.map((column, i) =>
      column.wrap ? wrapped(row[i] ?? '', widths[i]) : [cut(row[i] ?? '', widths[i])],
    )
    const height = Math.max(...cells.map((cell) => cell.length))
    for (let y = 0; y < height; y++) lines.push(line(cells.map((cell) => (cell[y] ?? '').replaceAll(TOGETHER, ' '))))
  }
  return lines.join('\n')
}

/** By how many digits they write behind the point, at most. */
const formats = new Map<number, Intl.NumberFormat>()

/** `1,234,568`, `123.457` and `0.00035`: fractions only where they matter, and below 1 three digits of them, however small. */
export function number(value: number): string {
  // 0 has no sign.
  if (value === 0) return '0'
  if (Math.abs(value) < 1) return String(Number(value.toPrecision(3)))
  const digits = Math.abs(value) < 1e4 ? 3 : 0
  const format = formats.get(digits) ?? new Intl.NumberFormat('en-US', { maximumFractionDigits: digits })
  formats.set(digits, format)
  return format.format(value)
}

/** Three significant digits and an SI prefix: `1.25 M`. */
export function scaled(value: number): string {
  const magnitude = Math.abs(value)
  for (const [factor, prefix] of [
    [1e15, ' P'],
    [1e12, ' T'],
    [1e9, ' G'],
    [1e6, ' M'],
  ] as const) {
    // What would be rounded up to 1000 of a prefix has the next.
    if (magnitude >= 0.9995 * factor) return `${(value / factor).toPrecision(3)}${prefix}`
  }
  if (magnitude >= 1e4) return `${(value / 1e3).toPrecision(3)} k`
  return magnitude >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3)
}

/** `1.25 Mbit/s` and `12 bit/s`. */
export function scaledWith(value: number, unit: string): string {
  const text = scaled(value)
  return text.includes(' ') ? `${text}${unit}` : `${text} ${unit}`
}

export function print(text: string): void {
  process.stdout.write(`${harmless(text)}\n`)
}

let isYaml = false

/** What is data is written as YAML from now on in place of JSON, each value of several as a document of its own. */
export function writeYaml(): void {
  isYaml = true
}

/** Data as the command's one answer. */
export function printJson(value: unknown): void {
  print(isYaml ? yamlOf(value).trimEnd() : JSON.stringify(value, null, 2))
}

/** One of several values that follow each other: a line of JSON, or a document of YAML. */
export const dataLine = (value: unknown): string => (isYaml ? `---\n${yamlOf(value).trimEnd()}` : JSON.stringify(value))

/** Prints one of several values that follow each other. */
export function printDataLine(value: unknown): void {
  print(dataLine(value))
}

/** Asks a question that yes or no answers, no being what anything else means; undefined where there is no person to ask. */
export async function ask(question: string): Promise<boolean | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const answer = new Promise<string>((resolve) => {
    // Ctrl-C and Ctrl-D.
    lines.once('close', () => resolve(''))
    lines.question(`${harmless(question)} [y/N] `, resolve)
  })
  try {
    return /^y(es)?$/i.test((await answer).trim())
  } finally {
    lines.close()
  }
}

/** Calls `restore` before SIGQUIT ends the process: Node.js gives a terminal its modes back at its other ends, not at this one. Gives what takes that back. */
export function restoreAtQuit(restore: () => void): () => void {
  const quit = () => {
    restore()
    // Nobody hears it any more: it ends the process, with a core dump where those are wanted.
    process.kill(process.pid, 'SIGQUIT')
  }
  process.once('SIGQUIT', quit)
  return () => process.off('SIGQUIT', quit)
}

/** The first of the lines, as many as there is room for; the last of these says how many are left out, where some are. */
export function cutLines(lines: readonly string[], room: number): readonly string[] {
  return lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`]
}

/** A block of lines at the bottom of a terminal that every `draw` replaces; nothing is drawn elsewhere. */
export class LiveRegion {
  private readonly stream: NodeJS.WriteStream
  private height = 0

  constructor(stream: NodeJS.WriteStream = process.stdout) {
    this.stream = stream
  }

  get available(): boolean {
    return this.stream.isTTY === true && process.env.TERM !== 'dumb'
  }

  /** Lines that a drawing may have; of a longer one the last are cut. */
  get room(): number {
    return Math.max(3, (this.stream.rows || 24) - 1)
  }

  draw(text: string): void {
    if (!this.available) return
    const lines = cutLines(harmless(text).split('\n'), this.room)
    // 0: a terminal that was never told its size.
    const width = this.stream.columns || 80
    this.clear()
    this.stream.write(`${lines.map((line) => cut(line, width)).join('\n')}\n`)
    this.height = lines.length
  }

  /** Removes the block, so that ordinary lines can be written; the next draw comes below them. */
  clear(): void {
    if (this.height > 0) this.stream.write(`\x1b[${this.height}A\x1b[0J`)
    this.height = 0
  }

  /** Leaves the last drawing where it is. */
  keep(): void {
    this.height = 0
  }
}
