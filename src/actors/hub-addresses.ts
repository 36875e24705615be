/** In which order a node tries the servers of its hub. */
import type { SignInRecord } from '../store/sign-in.ts'

/** How many servers that the newest list does not name a node remembers: as many as a list names. */
export const MAX_FORMER = 32

/** What is known of where the hub is. */
type KnownAddresses = Pick<SignInRecord, 'hubAddress' | 'servers' | 'former'>
type ServerList = NonNullable<SignInRecord['servers']>

/**
 * Where the node may look for its hub: the address that it joined by, and those that the hub has told of, each once. A node that joined over HTTPS does
 * not come over plain HTTP.
 */
export function addressesOf({ hubAddress, servers }: KnownAddresses): string[] {
  return [...new Set([new URL(hubAddress).href, ...usable(hubAddress, servers?.servers)])]
}

/** Those of servers that earlier lists have named. */
function formerOf(signIn: KnownAddresses): string[] {
  const newest = addressesOf(signIn)
  return [...new Set(usable(signIn.hubAddress, signIn.former))].filter((address) => !newest.includes(address))
}

function usable(hubAddress: string, told: ServerList['servers'] = []): string[] {
  const isSecure = hubAddress.startsWith('https:')
  return told
    .flatMap(({ address }) => (address === '' ? [] : [new URL(address).href]))
    .filter((address) => !isSecure || address.startsWith('https:'))
}

/** Whether both lists say the same, by the same number. */
export function isSameList(one: ServerList | undefined, other: ServerList | undefined): boolean {
  if (one?.issue !== other?.issue || one?.servers.length !== other?.servers.length) return false
  return (
    one?.servers.every(({ id, address }, i) => other?.servers[i]?.id === id && other.servers[i].address === address) ??
    true
  )
}

/**
 * The servers that are remembered once `newest` has taken the place of the list there was, those named last first. A server that has started while all
 * others were down knows of none of them, and they may be all there is when it goes. One that the newest list names is where that says.
 */
export function formerAfter({ servers, former = [] }: KnownAddresses, newest: ServerList): ServerList['servers'] {
  const ids = new Set(newest.servers.map(({ id }) => id))
  const kept = []
  for (const server of [...(servers?.servers ?? []), ...former]) {
    if (server.address === '' || ids.has(server.id)) continue
    ids.add(server.id)
    kept.push(server)
  }
  return kept.slice(0, MAX_FORMER)
}

/** At the start: the server of the last link first, the others in an order left to chance. */
export function startingOrder(signIn: SignInRecord, random: () => number): string[] {
  const last = new URL(signIn.lastAddress ?? signIn.hubAddress).href
  const addresses = addressesOf(signIn)
  const others = shuffledWithout(addresses, last, random)
  return withFormer(addresses.includes(last) ? [last, ...others] : others, formerOf(signIn), random)
}

/** After the link with the server at `lost`: the others in an order left to chance, so that its nodes spread over them, and that one last. */
export function orderAfter(signIn: KnownAddresses, lost: string, random: () => number): string[] {
  const addresses = addressesOf(signIn)
  const others = shuffledWithout(addresses, lost, random)
  return withFormer(addresses.includes(lost) ? [...others, lost] : others, formerOf(signIn), random)
}

/** All but `address`, in an order left to chance. */
export function othersOf(signIn: KnownAddresses, address: string, random: () => number): string[] {
  const former = formerOf(signIn).filter((each) => each !== address)
  return withFormer(shuffledWithout(addressesOf(signIn), address, random), former, random)
}

/** After each round of the servers in `order` one that only earlier lists have named: most of those are gone for good. */
function withFormer(order: string[], former: string[], random: () => number): string[] {
  if (former.length === 0) return order
  return shuffledWithout(former, undefined, random).flatMap((each) => [...order, each])
}

/** All but `address`, in an order left to chance (Fisher and Yates, in Durstenfeld's form). */
function shuffledWithout(addresses: string[], address: string | undefined, random: () => number): string[] {
  const others = addresses.filter((each) => each !== address)
  for (let i = others.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[others[i], others[j]] = [others[j] as string, others[i] as string]
  }
  return others
}
