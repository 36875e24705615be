/** What was edited, step by step, to be undone and redone. */

export interface History<Value> {
  readonly past: readonly Value[]
  readonly now: Value
  readonly future: readonly Value[]
  /** What the last step changed: one that changes the same goes on with it. */
  readonly subject: string | undefined
}

/** Steps that can be undone. */
export const MAX_STEPS = 200

export function historyOf<Value>(now: Value): History<Value> {
  return { past: [], now, future: [], subject: undefined }
}

/** `now` after a step; typing in one field, which is its `subject`, is one step. */
export function after<Value>(history: History<Value>, now: Value, subject?: string): History<Value> {
  if (Object.is(now, history.now)) return history
  const goesOn = subject !== undefined && subject === history.subject && history.past.length > 0
  const past = goesOn ? history.past : [...history.past, history.now].slice(-MAX_STEPS)
  return { past, now, future: [], subject }
}

export function undone<Value>(history: History<Value>): History<Value> {
  const now = history.past.at(-1)
  if (history.past.length === 0) return history
  return {
    past: history.past.slice(0, -1),
    now: now as Value,
    future: [history.now, ...history.future],
    subject: undefined,
  }
}

export function redone<Value>(history: History<Value>): History<Value> {
  const [now, ...future] = history.future
  if (history.future.length === 0) return history
  return { past: [...history.past, history.now], now: now as Value, future, subject: undefined }
}
