/** Nodes that ask to join the hub, as they come. */
import {
  type AuthenticationByRequestAnswer,
  type AuthenticationByRequestRequest,
  authenticationByRequests,
  type Exchange,
  getPendingAuthenticationRequests,
  PenstockError,
} from '@penstock/client'
import { LiveStore } from './live.ts'
import { node } from './session.ts'

interface JoinRequests {
  /** Those that wait for an answer, oldest first. */
  readonly waiting: readonly AuthenticationByRequestRequest[]
  /** Why the last answer that was not taken was not. */
  readonly refusal?: PenstockError
}

/** Milliseconds after which the list is read again: of requests that ended unanswered nothing is told. */
const READ_AGAIN = 10_000

let exchange: Exchange<AuthenticationByRequestAnswer, AuthenticationByRequestRequest> | undefined
let answered: (requestId: string) => void = () => {}

export const joinRequests = new LiveStore<JoinRequests>({ waiting: [] }, async ({ signal, set, get, opened }) => {
  const onRefused = (refusal: PenstockError): void => set({ ...get(), refusal })
  const others = (requestId: string) => get().waiting.filter((request) => request.requestId !== requestId)
  const requests = await authenticationByRequests(node, { signal, onRefused })
  const read = async (): Promise<void> => {
    const { requests: waiting } = await getPendingAuthenticationRequests(node, {}, { signal })
    set({ ...get(), waiting })
    opened()
  }
  const timer = setInterval(() => void read().catch(() => requests.close()), READ_AGAIN)
  exchange = requests
  answered = (requestId) => set({ ...get(), waiting: others(requestId) })
  try {
    await read()
    for await (const request of requests) {
      set({ ...get(), waiting: [...others(request.requestId), request] })
    }
  } finally {
    clearInterval(timer)
    exchange = undefined
  }
  throw new PenstockError('UNAVAILABLE', 'the requests to join broke off')
})

/** Lets the node in or refuses it. Throws PenstockError while the hub is not reached: the request stays. */
export function answer(requestId: string, accept: boolean): void {
  if (exchange === undefined) throw new PenstockError('UNAVAILABLE', 'the node that serves this page is not reached')
  exchange.send({ requestId, accept })
  answered(requestId)
}
