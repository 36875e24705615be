/** A TUN or TAP interface that the run made, which it keeps as it is configured: one that is set down and up again has lost routes and IPv6 addresses. */
import type { NetworkInterfaceInfo } from 'node:os'
import { native } from '../native/native.ts'
import { KEPT, type TunOpenOptions } from '../native/socket-calls.ts'
import { isLinkLocal } from './address.ts'
import type { Log } from './log.ts'
import { type NativeIoParts, TunDevice } from './native-packet-io.ts'
import { errorText } from './system-errors.ts'

/** Another interface that has the address in a network too; of one link an address is on each, and one without a network takes no packets from others. */
function otherIn(name: string, { address, prefix }: TunOpenOptions): string | undefined {
  const family = address.includes(':') ? 'ipv6' : 'ipv4'
  const whole = family === 'ipv6' ? 128 : 32
  if (prefix === whole || isLinkLocal(address)) return undefined
  // Loaded where an interface is made: a thread that starts loads neither.
  const { SocketAddress } = process.getBuiltinModule('node:net')
  const { networkInterfaces } = process.getBuiltinModule('node:os')
  // As the system writes it.
  const { address: sought } = new SocketAddress({ address, family })
  const isShared = (at: NetworkInterfaceInfo) => at.address === sought && !at.cidr?.endsWith(`/${whole}`)
  try {
    return Object.entries(networkInterfaces()).find(([other, own = []]) => other !== name && own.some(isShared))?.[0]
  } catch {
    // Where the system does not tell, nothing is said of it.
    return undefined
  }
}

export class OwnInterface extends TunDevice {
  readonly alsoAt: string | undefined
  private readonly address: string
  /** It was in another network namespace when last looked. */
  private away = false
  /** It was down when last looked. */
  private down = false
  /** What could not be put back, and why, as the log says. */
  private refused = ''

  constructor(io: NativeIoParts, handle: number, name: string, options: TunOpenOptions) {
    super(io, handle, name, options.kind, false)
    this.address = options.address
    this.alsoAt = otherIn(name, options)
  }

  follow(log: Log): boolean {
    const now = native.tunKeep(this.handle)
    if (!now) return false
    const { name } = now
    const fields = { interface: name }
    if (name !== this.name) log('INFO', `interface ${this.name} is called ${name} now`, fields)
    this.name = name
    if (!now.present) {
      if (!this.away)
        log(
          'WARN',
          `interface ${name} is in another network namespace now, down and without addresses and routes as long as nobody sets it up there: it is looked after again once it is back`,
          fields,
        )
      this.away = true
      return false
    }
    if (this.away) log('INFO', `interface ${name} is back in this network namespace`, fields)
    this.away = false
    if (!now.up) {
      if (!this.down) log('WARN', `interface ${name} is down: nothing is sent or received until it is up again`, fields)
      this.down = true
      return false
    }
    if (this.down) log('INFO', `interface ${name} is up again`, fields)
    this.down = false
    const parts = [
      { what: `its address ${this.address}`, state: now.address },
      { what: 'its default route', state: now.defaultRoute },
    ]
    const back = parts.filter(({ state }) => state > KEPT.there).map(({ what }) => what)
    if (back.length > 0) log('INFO', `interface ${name} had lost ${back.join(' and ')}: put back`, fields)
    if (now.defaultRoute === KEPT.putBehind)
      log(
        'WARN',
        `another default route of the same metric as that of interface ${name} is there, which may get its traffic (ip route)`,
        fields,
      )
    const refused = parts
      .filter(({ state }) => state < 0)
      .map(({ what, state }) => `${what} (${errorText(-state)})`)
      .join(' and ')
    if (refused !== '' && refused !== this.refused)
      log('WARN', `interface ${name} has lost ${refused}, which cannot be put back so far`, fields)
    this.refused = refused
    return false
  }
}
