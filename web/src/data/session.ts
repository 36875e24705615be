/** The node that served this page, and the token it is called with. */
import { type Connection, connect } from '@penstock/client'
import { timedFetch } from './clock.ts'
import { Kept } from './kept.ts'

const token = new Kept('penstock.token', () => sessionStorage)

/** Milliseconds of silence after which the node is taken for away: it says every 5 s that it is there, and a slow link may hold that up. */
const SILENCE = 15_000

/** The node; its token is that of the tab. */
export const node: Connection = connect({
  url: location.origin,
  streams: 'socket',
  silence: SILENCE,
  fetch: timedFetch,
  token: () => token.get(),
})

/** Calls carry the token from now on, for as long as the tab is open. */
export function keepToken(text: string): void {
  token.set(text)
}

export function forgetToken(): void {
  token.set(undefined)
}

export function hasToken(): boolean {
  return token.get() !== undefined
}
