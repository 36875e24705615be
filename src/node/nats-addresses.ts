/** Addresses of NATS servers in the configuration: read, shown without their password, and taken apart for the connection. */
import { bad, type Kind, list } from './config-values.ts'

const FORM =
  'an address of a NATS server is nats://HOST:PORT or tls://HOST:PORT, perhaps with USER:PASSWORD@ before the host'

/** A list of `nats://` and `tls://` addresses, which name one user at most. */
export const natsAddresses: Kind<string[]> = {
  form: 'yaml',
  read: (value) => {
    const items = list.read(value, '')
    if ('problem' in items)
      return bad('must be a list of addresses, as in [nats://n1.example:4222, nats://n2.example:4222]')
    const addresses = items.value.map(addressOf)
    const faulty = addresses.indexOf(undefined)
    if (faulty >= 0) return bad(`number ${faulty + 1}: ${FORM}`)
    const users = new Set(addresses.map((address) => `${address?.username}:${address?.password}`))
    if (users.size > 1) return bad('all addresses must have the same user and password, or all none')
    return { value: items.value }
  },
  // As URLs are read: the user ends at the first colon, the password at the last @, so that there may be more of either in it.
  shown: (value) => (value as string[]).map((text) => text.replace(/(:\/\/[^:]*):.*@/, '$1:…@')),
}

/** Where NATS servers are, and as whom they are asked. */
export interface NatsServers {
  /** `host:port` each. */
  readonly servers: readonly string[]
  /** Whether an address says `tls://`: then all are spoken to over TLS. */
  readonly isTls: boolean
  readonly login: { readonly user: string; readonly password: string } | undefined
}

/** Takes what `natsAddresses` has read apart. */
export function natsServersOf(texts: readonly string[]): NatsServers {
  const addresses = texts.map((text) => addressOf(text) as URL)
  const [{ username = '', password = '' } = {}] = addresses
  return {
    servers: addresses.map(({ hostname, port }) => `${hostname}:${port || 4222}`),
    isTls: addresses.some(({ protocol }) => protocol === 'tls:'),
    login: username === '' ? undefined : { user: decodeURIComponent(username), password: decodeURIComponent(password) },
  }
}

function addressOf(text: string): URL | undefined {
  if (!/^(nats|tls):\/\/[^\s/?#]+\/?$/.test(text) || !URL.canParse(text)) return undefined
  const address = new URL(text)
  // NATS knows no password without a user.
  if (address.hostname === '' || (address.username === '' && address.password !== '')) return undefined
  return hasText(address.username) && hasText(address.password) ? address : undefined
}

/** Whether its percent signs are those of an encoding. */
function hasText(encoded: string): boolean {
  try {
    decodeURIComponent(encoded)
    return true
  } catch {
    return false
  }
}
