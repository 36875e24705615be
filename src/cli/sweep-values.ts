/** The values of a `--set`: single ones, several with commas between them, ranges. */
import { UsageFailure } from './failure.ts'
import { finite, typedValue } from './typed-value.ts'

/** Most runs of one sweep, and so most values of one setting. */
export const MAX_RUNS = 100_000

/** Greatest seed there is. */
export const MAX_SEED = 2 ** 31 - 1

/** Most simulations at once: each is a thread with its packets in memory. */
export const MAX_JOBS = 256

/** `text` at its commas, but for those within brackets, braces and quotes of JSON. */
function pieces(text: string): string[] {
  const found: string[] = []
  let depth = 0
  let quoted = false
  let begin = 0
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (character === '\\' && quoted) i++
    else if (character === '"') quoted = !quoted
    else if (quoted) continue
    else if (character === '[' || character === '{') depth++
    else if (character === ']' || character === '}') depth--
    else if (character === ',' && depth === 0) {
      found.push(text.slice(begin, i))
      begin = i + 1
    }
  }
  return [...found, text.slice(begin)]
}

const NUMBER = '-?\\d+(?:\\.\\d+)?'
const RANGE = new RegExp(`^(${NUMBER})\\.\\.(${NUMBER})(?::(${NUMBER}))?$`)

/** The numbers of `from..to` or `from..to:step`, both ends included where a step leads there; undefined when the text is no range. */
function range(text: string, target: string): number[] | undefined {
  const [, first, last, stride] = RANGE.exec(text) ?? []
  if (first === undefined || last === undefined) return undefined
  const wrong = (what: string) => new UsageFailure(`--set ${target}: the range ${text} ${what}`)
  const read = (digits: string) => finite(Number(digits), text, `--set ${target}`)
  const [from, to] = [read(first), read(last)]
  if (stride === undefined && !(Number.isInteger(from) && Number.isInteger(to))) {
    throw wrong(`has no step, which only one of whole numbers may leave out: write ${text}:0.01, or another step`)
  }
  const step = read(stride ?? '1')
  if (!(step > 0)) throw wrong('needs a step above 0; a range from a greater to a smaller number goes down by it')
  // What is a hair above a whole number of steps by binary fractions alone is that number.
  const steps = Math.floor(Math.abs(to - from) / step + 1e-9)
  if (steps >= MAX_RUNS) throw wrong(`has more than ${MAX_RUNS} values: take a greater step`)
  const direction = Math.sign(to - from)
  // Whole numbers are exact as they are; of fractions binary ones leave a hair, which is rounded away.
  const isWhole = Number.isInteger(from) && Number.isInteger(step)
  const round = (value: number) => (isWhole ? value : Number(value.toPrecision(12)))
  return Array.from({ length: steps + 1 }, (_, i) => round(from + direction * i * step))
}

function single(text: string, target: string, isText: boolean): unknown {
  return isText && !text.startsWith('"') ? text : typedValue(text, `--set ${target}`)
}

/** The values that `text` stands for, `target` being what they are of. `isText`: the field takes texts, which are no numbers nor ranges. */
export function readValues(text: string, target: string, isText: boolean): unknown[] {
  return pieces(text).flatMap((piece) => {
    const trimmed = piece.trim()
    if (trimmed === '')
      throw new UsageFailure(`--set ${target}: a value is missing in "${text}": write ${target}=1,2,3`)
    return (isText ? undefined : range(trimmed, target)) ?? [single(trimmed, target, isText)]
  })
}
