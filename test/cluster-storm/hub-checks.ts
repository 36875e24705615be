/** What was answered about the nodes of a hub, checked against what it may have been. */
import { checkLinearizable, type Operation } from '../harness/linearizable.ts'
import { BrokenPromise } from '../storm/broken-promise.ts'
import type { Target } from './hub-client.ts'
import { membership, type NameInput, naming } from './hub-history.ts'

type NameOperation = Operation<NameInput, string>

/** `begun`: zero of the times shown. Throws BrokenPromise. */
export function checkTargets(targets: readonly Target[], begun: number): void {
  for (const { party, memberships, names } of targets) {
    const verdicts = [
      { of: 'membership', history: memberships, verdict: checkLinearizable(membership, memberships) },
      { of: 'name', history: names, verdict: checkLinearizable(naming(party.name), withoutUnseen(names)) },
    ]
    for (const { of, history, verdict } of verdicts) {
      if (verdict.kind === 'linearizable') continue
      const stuck = verdict.kind === 'gave up' ? '' : `\nnone of these could follow:\n${textOf(verdict.stuck, begun)}`
      throw new BrokenPromise(`${of} of ${party.name}: ${verdict.kind}\n${textOf(history, begun)}${stuck}`)
    }
  }
}

/** A name whose setting was not answered and that was never seen afterwards explains nothing, since every name is given once. */
function withoutUnseen(names: readonly NameOperation[]): NameOperation[] {
  const seen = new Set(names.map(({ answered }) => answered?.answer))
  return names.filter(({ input, answered }) => answered !== undefined || (input.kind === 'set' && seen.has(input.name)))
}

function textOf(history: readonly Operation<unknown, unknown>[], begun: number): string {
  const since = (time: number) => (time - begun).toFixed(0).padStart(6)
  return [...history]
    .sort((a, b) => a.called - b.called)
    .map(({ input, called, answered }) => {
      const end = answered === undefined ? '     ?' : since(answered.at)
      return `${since(called)} to ${end}: ${JSON.stringify(input)} ${JSON.stringify(answered?.answer) ?? 'unknown'}`
    })
    .join('\n')
}
