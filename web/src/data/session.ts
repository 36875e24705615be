/** The node that served this page, and the token it is called with. */
import { type Connection, connect } from '@penstock/client'

const KEY = 'penstock.token'

/** The node; its token is that of the tab. */
export const node: Connection = connect({
  url: location.origin,
  streams: 'socket',
  token: () => sessionStorage.getItem(KEY) ?? undefined,
})

/** Calls carry the token from now on, for as long as the tab is open. */
export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token)
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY)
}

export function hasToken(): boolean {
  return sessionStorage.getItem(KEY) !== null
}
