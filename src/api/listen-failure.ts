/** Why an address cannot be listened on: the system's own word, asked for with a plain socket, as neither listener passes it on. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { socketAddressText } from '../contract/address.ts'
import { ServiceError } from '../contract/errors.ts'
import { messageOf } from '../text/error-message.ts'

/** The failure of a listener for `what` (HTTP, gRPC) on `address`:`port`, whose setting is `setting`. */
export async function listenFailure(
  what: string,
  address: string,
  port: number,
  setting: string,
): Promise<ServiceError> {
  const place = socketAddressText(address, port)
  const cause = await bindFailure(address, port)
  const why = reason(cause, address, port, setting)
  return new ServiceError('UNAVAILABLE', `cannot listen on ${place} for ${what}: ${why}`, { cause })
}

/** What the system says to a bind; undefined when there is nothing against it now. */
function bindFailure(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}

function reason(cause: NodeJS.ErrnoException | undefined, address: string, port: number, setting: string): string {
  if (cause === undefined) return `the port was in use a moment ago: try again, or set ${setting} to another`
  const { code } = cause
  switch (code) {
    case 'EACCES':
      return `${lowPort(port)}: run as root, grant the capability (setcap cap_net_bind_service+ep on node), or set ${setting} to a higher port (${code})`
    case 'EADDRINUSE':
      return `the port is taken (ss -ltnp names the process that has it): stop that, or set ${setting} to another (${code})`
    case 'EADDRNOTAVAIL':
      return `the address is not of this machine (ip address lists those that are): set ${setting} to one that is (${code})`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the name ${address} has no address that this machine can find: set ${setting} to an IP address or another name (${code})`
    case 'EAFNOSUPPORT':
      return `this machine has no ${address.includes(':') ? 'IPv6' : 'IPv4'}: set ${setting} to another address (${code})`
    default:
      return `${messageOf(cause)}: see ${setting}`
  }
}

function lowPort(port: number): string {
  const first = firstFreePort()
  return port < first
    ? `this user may not take ports below ${first}, which needs the capability CAP_NET_BIND_SERVICE`
    : 'this user may not take it'
}

/** The first port that every user may take (ip(7), ip_unprivileged_port_start). */
function firstFreePort(): number {
  try {
    return Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'latin1')) || 1024
  } catch {
    return 1024
  }
}
