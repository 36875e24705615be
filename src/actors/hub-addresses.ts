/** In which order a node tries the servers of its hub. */
import type { SignInRecord } from '../store/sign-in.ts'

/** What is known of where the hub is. */
type KnownAddresses = Pick<SignInRecord, 'hubAddress' | 'servers'>

/**
 * Where the node may look for its hub: the address that it joined by, and those that the hub has told of, each once. A node that joined over HTTPS does
 * not come over plain HTTP.
 */
export function addressesOf({ hubAddress, servers }: KnownAddresses): string[] {
  const isSecure = hubAddress.startsWith('https:')
  const told = (servers?.servers ?? [])
    .flatMap(({ address }) => (address === '' ? [] : [new URL(address).href]))
    .filter((address) => !isSecure || address.startsWith('https:'))
  return [...new Set([new URL(hubAddress).href, ...told])]
}

/** At the start: the server of the last link first, the others in an order left to chance. */
export function startingOrder(signIn: SignInRecord, random: () => number): string[] {
  const last = new URL(signIn.lastAddress ?? signIn.hubAddress).href
  const addresses = addressesOf(signIn)
  const others = othersOf(signIn, last, random)
  return addresses.includes(last) ? [last, ...others] : others
}

/** After the link with the server at `lost`: the others in an order left to chance, so that its nodes spread over them, and that one last. */
export function orderAfter(signIn: KnownAddresses, lost: string, random: () => number): string[] {
  const others = othersOf(signIn, lost, random)
  return addressesOf(signIn).includes(lost) ? [...others, lost] : others
}

/** All but `address`, in an order left to chance (Fisher and Yates, in Durstenfeld's form). */
export function othersOf(signIn: KnownAddresses, address: string, random: () => number): string[] {
  const others = addressesOf(signIn).filter((each) => each !== address)
  for (let i = others.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[others[i], others[j]] = [others[j] as string, others[i] as string]
  }
  return others
}
