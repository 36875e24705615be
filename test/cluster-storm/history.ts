/** What is done to a node of the hub in a storm, and what a registry that does one operation after the other would answer. */
import type { Operation, SequentialModel } from '../harness/linearizable.ts'

/** Where an answered admission put the node, as the server said it. */
export interface Place {
  readonly nodeId: string
  readonly isNew: boolean
  readonly admission: number
}

/** `name` is what the node's record says; each is given once. */
export type Input =
  | { readonly kind: 'admit'; readonly name: string }
  | { readonly kind: 'update'; readonly name: string }
  | { readonly kind: 'remove' }
  | { readonly kind: 'expel'; readonly place: Place }
  /** After a barrier. */
  | { readonly kind: 'read' }
  /** A link of the node that is refused because it is certain that it is no member. */
  | { readonly kind: 'connect'; readonly name: string }

export type Answer =
  | Place
  /** remove, expel, update: whether it was a member that was meant. */
  | { readonly done: boolean }
  /** read; undefined: no member. */
  | { readonly name: string | undefined }

export interface NodeOperation extends Operation<Input, Answer> {
  readonly server: string
}

interface Member {
  readonly name: string
  /** Revision of the admission; undefined where its answer is not known. */
  readonly admission: number | undefined
}

interface NodeState {
  readonly member: Member | undefined
  /** The newest admission that was answered. */
  readonly newest: number
}

type Model = SequentialModel<NodeState, Input, Answer>

const applyTo = (
  { member, newest }: NodeState,
  { input, answered }: Operation<Input, Answer>,
): NodeState | undefined => {
  const answer = answered?.answer
  const gives = (right: Answer) => answer === undefined || JSON.stringify(answer) === JSON.stringify(right)
  const without = { member: undefined, newest }
  switch (input.kind) {
    case 'admit': {
      const place = answer as Place | undefined
      if (place === undefined) return { member: { name: input.name, admission: undefined }, newest }
      if (place.isNew !== (member === undefined) || place.admission <= newest) return undefined
      return { member: { name: input.name, admission: place.admission }, newest: place.admission }
    }
    case 'remove':
      return gives({ done: member !== undefined }) ? without : undefined
    case 'expel': {
      const isMeant = member !== undefined && member.admission === input.place.admission
      if (!gives({ done: isMeant })) return undefined
      return isMeant ? without : { member, newest }
    }
    case 'update':
      // That the node was a member is taken from what the server has seen, which may be older; that it is none is certain.
      if (answer !== undefined && 'done' in answer && !answer.done && member !== undefined) return undefined
      return member === undefined ? without : { member: { ...member, name: input.name }, newest }
    case 'read':
      return gives({ name: member?.name }) ? { member, newest } : undefined
    case 'connect':
      return member === undefined ? without : undefined
  }
}

const textOf = ({ member, newest }: NodeState): string =>
  `${newest} ${member === undefined ? '' : `${member.admission} ${member.name}`}`

const initial: NodeState = { member: undefined, newest: 0 }

/** A node without links. */
export const unlinkedNode: Model = { initial, apply: applyTo, textOf }

/**
 * A node with links: its servers write what it says of itself whenever they have been away, so that only who is a member can be foretold.
 */
export const linkedNode: Model = {
  initial,
  apply: (state, operation) => {
    const { answered } = operation
    if (answered === undefined || !('name' in answered.answer)) return applyTo(state, operation)
    return (answered.answer.name !== undefined) === (state.member !== undefined) ? state : undefined
  },
  textOf: ({ member, newest }) => `${newest} ${member === undefined ? '' : member.admission}`,
}

/** A history as text, a line an operation, by the time of its call; milliseconds since `begun`. */
export function historyText(history: readonly NodeOperation[], begun: number): string {
  const since = (time: number) => (time - begun).toFixed(0).padStart(6)
  return [...history]
    .sort((a, b) => a.called - b.called)
    .map(({ input, called, answered, server }) => {
      const end = answered === undefined ? '     ?' : since(answered.at)
      return `${since(called)} to ${end} at ${server}: ${JSON.stringify(input)} ${JSON.stringify(answered?.answer) ?? 'unknown'}`
    })
    .join('\n')
}
