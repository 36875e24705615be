/** What callers do to one node through all servers of its hub, and what would be answered if one thing were done after the other. */
import type { Operation, SequentialModel } from '../harness/linearizable.ts'

export type MembershipInput =
  /** The node asks to join, and is accepted. */
  | { readonly kind: 'join' }
  /** While it asks: an acceptance that it does not hear, since its server dies or their link breaks; it asks another then. */
  | { readonly kind: 'accepted unheard' }
  | { readonly kind: 'remove' }
  /** The node leaves by itself; whether a server heard of it is not known. */
  | { readonly kind: 'leave' }
  /** The node was told, signed, that it is no member; or all servers show it, or do not. */
  | { readonly kind: 'look' }

/** join: true. accepted unheard: false, there may have been none. remove: whether it was a member. look: whether it is. */
export type MembershipAnswer = boolean

/** `unconfirmed`: let in by a request whose answer never came; such an acceptance is taken back by itself, at some time. */
type Standing = 'out' | 'in' | 'unconfirmed'

export const membership: SequentialModel<Standing, MembershipInput, MembershipAnswer> = {
  initial: 'out',
  apply: (state, { input, answered }: Operation<MembershipInput, MembershipAnswer>) => {
    const answer = answered?.answer
    switch (input.kind) {
      case 'join':
        if (answer !== undefined) return 'in'
        return state === 'out' ? 'unconfirmed' : state
      case 'accepted unheard':
        return state === 'out' ? 'unconfirmed' : state
      case 'leave':
        return 'out'
      case 'remove':
        return answer === undefined || mayBe(state, answer) ? 'out' : undefined
      case 'look':
        if (answer === undefined || !mayBe(state, answer)) return undefined
        return answer ? state : 'out'
    }
  },
  textOf: (state) => state,
}

const mayBe = (state: Standing, isMember: boolean): boolean => state === 'unconfirmed' || (state === 'in') === isMember

/** What a node is called; every name is given once. */
export type NameInput = { readonly kind: 'set'; readonly name: string } | { readonly kind: 'get' }

/** `initial`: before anybody has set it. Both are answered with the name after it. */
export const naming = (initial: string): SequentialModel<string, NameInput, string> => ({
  initial,
  apply: (state, { input, answered }: Operation<NameInput, string>) => {
    const name = input.kind === 'set' ? input.name : state
    return answered === undefined || answered.answer === name ? name : undefined
  },
  textOf: (state) => state,
})
