/** The checker of histories: right and wrong ones made by hand, and generated ones against a search that tries every order. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkLinearizable, type Operation, type SequentialModel } from './linearizable.ts'

type Input = { readonly write: number } | { readonly swap: readonly [from: number, to: number] } | 'read'
type Op = Operation<Input, number | boolean>

/** A register that holds a number: a write answers with what it has written, a swap whether the register held `from`. */
const register: SequentialModel<number, Input, number | boolean> = {
  initial: 0,
  apply: (state, { input, answered }) => {
    const { next, answer } = act(state, input)
    return answered === undefined || answered.answer === answer ? next : undefined
  },
  textOf: String,
}

function act(state: number, input: Input): { next: number; answer: number | boolean } {
  if (input === 'read') return { next: state, answer: state }
  if ('write' in input) return { next: input.write, answer: input.write }
  const [from, to] = input.swap
  return state === from ? { next: to, answer: true } : { next: state, answer: false }
}

const op = (input: Input, called: number, at: number, answer: number | boolean): Op => ({
  input,
  called,
  answered: { at, answer },
})
const write = (value: number, called: number, at: number) => op({ write: value }, called, at, value)
const read = (value: number, called: number, at: number) => op('read', called, at, value)
const unknown = (input: Input, called: number): Op => ({ input, called, answered: undefined })
const kindOf = (...history: Op[]) => checkLinearizable(register, history).kind

describe('histories that one order explains', () => {
  test.each<[string, Op[]]>([
    ['nothing', []],
    ['one after the other', [write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7)]],
    ['a read beside a write sees either value', [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4)]],
    ['two writes at once, in the order that a read shows', [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)]],
    ['an answer at the moment of another call', [write(1, 0, 5), read(0, 5, 6)]],
    ['a write of unknown outcome that was never made', [unknown({ write: 1 }, 0), read(0, 5, 6)]],
    ['one that took effect', [unknown({ write: 1 }, 0), read(1, 5, 6)]],
    ['one that took effect much later', [unknown({ write: 1 }, 0), write(2, 1, 2), read(2, 3, 4), read(1, 5, 6)]],
    ['one of two swaps', [op({ swap: [0, 1] }, 0, 9, true), op({ swap: [0, 2] }, 0, 9, false), read(1, 10, 11)]],
    ['nothing but unknown outcomes', [unknown({ write: 1 }, 0), unknown('read', 1)]],
  ])('%s', (_, history) => {
    expect(kindOf(...history)).toBe('linearizable')
    expect(kindOf(...history.reverse())).toBe('linearizable')
  })
})

describe('histories that no order explains', () => {
  test.each<[string, Op[]]>([
    ['a lost write', [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]],
    ['a stale read after a write that was answered', [write(1, 0, 1), read(0, 2, 3)]],
    ['a value that nobody wrote', [write(1, 0, 10), read(3, 1, 2)]],
    ['answers out of order', [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)]],
    ['an unknown one before its call', [read(1, 0, 1), unknown({ write: 1 }, 2)]],
    ['an unknown one twice', [unknown({ write: 1 }, 0), write(2, 1, 2), read(1, 3, 4), write(2, 5, 6), read(1, 7, 8)]],
    ['two swaps of one value', [op({ swap: [0, 1] }, 0, 9, true), op({ swap: [0, 2] }, 0, 9, true)]],
  ])('%s', (_, history) => {
    expect(kindOf(...history)).toBe('not linearizable')
    expect(kindOf(...history.reverse())).toBe('not linearizable')
  })
})

test('what it says: an order that explains everything, or how far it came and what could not follow', () => {
  const [one, two, three] = [write(1, 0, 1), read(1, 2, 3), unknown({ write: 7 }, 2)]
  expect(checkLinearizable(register, [three, two, one])).toEqual({ kind: 'linearizable', order: [one, two] })
  const stale = read(0, 4, 5)
  expect(checkLinearizable(register, [one, two, stale])).toEqual({
    kind: 'not linearizable',
    order: [one, two],
    stuck: [stale],
  })
})

test('operations of unknown outcome that are alike are one choice, not many', () => {
  const alike = Array.from({ length: 16 }, () => unknown({ write: 1 }, 0))
  const others = Array.from({ length: 8 }, (_, i) => [
    write(2, 10 * i + 1, 10 * i + 2),
    read(1, 10 * i + 3, 10 * i + 4),
  ]).flat()
  const never = read(9, 200, 201)
  expect(checkLinearizable(register, [...alike, ...others], 1_000).kind).toBe('linearizable')
  expect(checkLinearizable(register, [...alike, ...others, never], 1_000).kind).toBe('not linearizable')
})

test('too much work: it gives up, and says neither yes nor no', () => {
  const many = Array.from({ length: 30 }, (_, i) => write(i + 1, 0, 100))
  expect(checkLinearizable(register, [...many, read(99, 101, 102)], 10_000)).toEqual({ kind: 'gave up', steps: 10_000 })
})

/** Small numbers, so that values come back. */
const inputs: fc.Arbitrary<Input> = fc.oneof(
  fc.constant<Input>('read'),
  fc.record({ write: fc.nat(3) }),
  fc.record({ swap: fc.tuple(fc.nat(3), fc.nat(3)) }),
)
/** When an operation takes effect, how long before that it was called and how long after it is answered; whether the answer arrives. */
const moments = fc.record({ at: fc.double({ min: 0, max: 100, noNaN: true }), before: fc.nat(20), after: fc.nat(20) })
const calls = (maxLength: number) =>
  fc.array(fc.record({ input: inputs, moments, arrives: fc.nat(9), isMade: fc.boolean() }), { maxLength })

/** What a register that does one operation after the other answers, and what its callers see. */
const histories = (maxLength: number): fc.Arbitrary<Op[]> =>
  calls(maxLength).map((given) => {
    let state = 0
    const ordered = [...given].sort((a, b) => a.moments.at - b.moments.at)
    return ordered.map(({ input, moments: { at, before, after }, arrives, isMade }): Op => {
      if (arrives === 0 && !isMade) return unknown(input, at - before)
      const { next, answer } = act(state, input)
      state = next
      return arrives === 0 ? unknown(input, at - before) : op(input, at - before, at + after, answer)
    })
  })

/** Whether any order explains the history: all of them are tried. */
function isExplained(left: readonly Op[], state = 0): boolean {
  if (left.every(({ answered }) => answered === undefined)) return true
  const firstAnswer = Math.min(...left.map(({ answered }) => answered?.at ?? Number.POSITIVE_INFINITY))
  return left.some((each, i) => {
    const { next, answer } = act(state, each.input)
    if (each.called > firstAnswer || (each.answered !== undefined && each.answered.answer !== answer)) return false
    return isExplained(left.toSpliced(i, 1), next)
  })
}

test('histories of a register that does one operation after the other always pass', () => {
  fc.assert(fc.property(histories(60), (history) => kindOf(...history) === 'linearizable'))
})

test('with one answer changed they are refused exactly when no order explains them', () => {
  let refused = 0
  const changed = fc.tuple(histories(7), fc.nat(), fc.nat(3))
  fc.assert(
    fc.property(changed, ([history, index, value]) => {
      const other = history.map((each, i): Op => {
        if (i !== index % history.length || each.answered === undefined) return each
        const { at, answer } = each.answered
        return { ...each, answered: { at, answer: typeof answer === 'boolean' ? !answer : value } }
      })
      const isRight = isExplained(other)
      if (!isRight) refused++
      return kindOf(...other) === (isRight ? 'linearizable' : 'not linearizable')
    }),
    { numRuns: 2_000 },
  )
  expect(refused).toBeGreaterThan(200)
})
