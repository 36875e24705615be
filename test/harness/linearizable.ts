/**
 * Whether a history of concurrent calls to one object could come of an object that does one operation after the other, each at some moment
 * between its call and its answer. The search is that of Wing and Gong, "Testing and verifying concurrent objects" (1993), with the memory of
 * Lowe, "Testing for linearizability" (2017): what has been tried once, a set of operations done and the state they lead to, is not tried again.
 */

/** One operation, as the one who called it knows it. */
export interface Operation<Input, Answer> {
  readonly input: Input
  /** When it was called, on any clock that is the same for all operations of a history. */
  readonly called: number
  /** What was answered and when; undefined: nobody knows. It may have taken effect at any time after the call, once, or never. */
  readonly answered: { readonly at: number; readonly answer: Answer } | undefined
}

/** The object, done one operation after the other. */
export interface SequentialModel<State, Input, Answer> {
  readonly initial: State
  /**
   * The state after an operation; undefined where the object would not have given this answer. Without `answered` any answer will do. States are
   * never changed in place.
   */
  readonly apply: (state: State, operation: Operation<Input, Answer>) => State | undefined
  /** A text that is the same for equal states and differs for others. */
  readonly textOf: (state: State) => string
}

export type Verdict<Op> =
  /** `order`: one order that explains all answers; operations of unknown outcome that it does without are not in it. */
  | { readonly kind: 'linearizable'; readonly order: readonly Op[] }
  /** `order`: the longest one found; none of `stuck`, those that could have come next, may follow it. */
  | { readonly kind: 'not linearizable'; readonly order: readonly Op[]; readonly stuck: readonly Op[] }
  /** More steps would have been needed than were allowed: nothing is known. */
  | { readonly kind: 'gave up'; readonly steps: number }

/** Steps of a search unless told otherwise: some seconds. */
const STEPS = 500_000

/** A call or an answer of the history, in a list from which operations are taken out and into which they are put back. */
interface Entry {
  /** Index of the operation. */
  readonly id: number
  readonly time: number
  /** Of a call: its answer. */
  readonly answer: Entry | undefined
  before: Entry
  after: Entry | undefined
}

/** An operation that was done: one whose answer is known, or the one at this place among the others. */
interface Step<State> {
  readonly entry: Entry | number
  readonly state: State
}

/** Checks the history of one object, in any order. `steps`: how many operations are tried at most before it gives up. */
export function checkLinearizable<State, Input, Answer>(
  model: SequentialModel<State, Input, Answer>,
  history: readonly Operation<Input, Answer>[],
  steps = STEPS,
): Verdict<Operation<Input, Answer>> {
  const head = listOf(history)
  /** Indices of the operations whose outcome nobody knows, by their calls. They are tried where no other may follow. */
  const unknown = [...history.keys()].filter((id) => called(id).answered === undefined)
  unknown.sort((a, b) => called(a).called - called(b).called)
  /** Of each the one before it with the same input: whichever is done first, what is left can be done later. */
  const alike = alikeBefore(unknown.map((id) => called(id).input))
  const seen = new Set<string>()
  const done: Step<State>[] = []
  let state = model.initial
  let linearized = 0n
  let longest: { order: Operation<Input, Answer>[]; stuck: Operation<Input, Answer>[] } = { order: [], stuck: [] }
  let tried = 0

  let next: Entry | number = head.after ?? 0
  while (head.after !== undefined) {
    if (typeof next !== 'number' && next.answer === undefined) next = 0
    const id = typeof next === 'number' ? unknown[next] : next.id
    if (id !== undefined && called(id).called <= firstAnswer(head)) {
      if (++tried > steps) return { kind: 'gave up', steps }
      if (isDone(id, next)) next = head.after ?? 0
      else next = following(next)
      continue
    }
    // What was answered by now has to be done before anything else.
    if (done.length >= longest.order.length) longest = { order: order(), stuck: candidates(head).map(called) }
    const last = done.pop()
    if (last === undefined) return { kind: 'not linearizable', ...longest }
    const { entry } = last
    if (typeof entry !== 'number') putBack(entry)
    state = last.state
    linearized &= ~bitOf(typeof entry === 'number' ? (unknown[entry] as number) : entry.id)
    next = following(entry)
  }
  return { kind: 'linearizable', order: order() }

  function called(id: number): Operation<Input, Answer> {
    return history[id] as Operation<Input, Answer>
  }

  function order(): Operation<Input, Answer>[] {
    return done.map(({ entry }) => called(typeof entry === 'number' ? (unknown[entry] as number) : entry.id))
  }

  /** Does an operation, unless it may not come next, or has been tried. */
  function isDone(id: number, entry: Entry | number): boolean {
    if ((linearized & bitOf(id)) !== 0n) return false
    const before = typeof entry === 'number' ? alike[entry] : undefined
    if (before !== undefined && (linearized & bitOf(unknown[before] as number)) === 0n) return false
    const after = model.apply(state, called(id))
    if (after === undefined) return false
    const text = model.textOf(after)
    // Of unknown outcome and without effect: it need not have been.
    if (typeof entry === 'number' && text === model.textOf(state)) return false
    const key = `${(linearized | bitOf(id)).toString(36)} ${text}`
    if (seen.has(key)) return false
    seen.add(key)
    done.push({ entry, state })
    state = after
    linearized |= bitOf(id)
    if (typeof entry !== 'number') takeOut(entry)
    return true
  }
}

/** For each input the index of the last equal one before it. */
function alikeBefore(inputs: readonly unknown[]): (number | undefined)[] {
  const last = new Map<string, number>()
  return inputs.map((input, i) => {
    const text = JSON.stringify(input)
    const before = last.get(text)
    last.set(text, i)
    return before
  })
}

const bitOf = (id: number): bigint => 1n << BigInt(id)

const following = (entry: Entry | number): Entry | number =>
  typeof entry === 'number' ? entry + 1 : (entry.after ?? 0)

/** The calls and answers whose outcome is known, by time, a call before the answers of the same moment; the entry returned stands before all. */
function listOf(history: readonly Operation<unknown, unknown>[]): Entry {
  const head: Pick<Entry, 'after'> = { after: undefined }
  const entries = history.flatMap(({ called, answered }, id): Entry[] => {
    if (answered === undefined) return []
    const common = { id, before: head as Entry, after: undefined }
    const answer: Entry = { ...common, time: answered.at, answer: undefined }
    return [{ ...common, time: called, answer }, answer]
  })
  entries.sort((a, b) => a.time - b.time || Number(a.answer === undefined) - Number(b.answer === undefined))
  let last = head as Entry
  for (const entry of entries) {
    entry.before = last
    last.after = entry
    last = entry
  }
  return head as Entry
}

function takeOut({ before, after, answer }: Entry): void {
  before.after = after
  if (after !== undefined) after.before = before
  if (answer !== undefined) takeOut(answer)
}

/** The reverse of takeOut, in the reverse order. */
function putBack(entry: Entry): void {
  if (entry.answer !== undefined) putBack(entry.answer)
  entry.before.after = entry
  if (entry.after !== undefined) entry.after.before = entry
}

/** When the first of the answers was given to operations that are not done. */
function firstAnswer(head: Entry): number {
  let entry = head.after
  while (entry?.answer !== undefined) entry = entry.after
  return entry?.time ?? Number.POSITIVE_INFINITY
}

/** The operations that may come next, by time alone, and whose answers are known. */
function candidates(head: Entry): number[] {
  const found: number[] = []
  for (let entry = head.after; entry?.answer !== undefined; entry = entry.after) found.push(entry.id)
  return found
}
