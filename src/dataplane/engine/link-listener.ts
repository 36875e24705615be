/** A TCP listener at an address of one link, whose network interface it follows: one made anew under the old name is another. */
import { native } from '../native/native.ts'
import { InterfaceName, indexNow } from './interface-name.ts'
import type { FollowedInterface } from './interface-socket.ts'
import type { Log } from './log.ts'
import { type ConnectionParts, type NativeConnection, NativeListener } from './native-connection.ts'
import { watchOpened } from './watch-opened.ts'

export class LinkListener extends NativeListener {
  private readonly interface: string
  private readonly called: InterfaceName
  /** The number of the interface that it listens on. */
  private index: number
  private readonly openAgain: () => number
  /** There was no interface of that name when last looked. */
  private gone = false
  /** Listening on the new interface has failed, and the log says so. */
  private refused = false

  /** `openAgain` opens another, at the same address and port. */
  constructor(
    io: ConnectionParts,
    handle: number,
    token: number,
    name: string,
    next: (listener: number) => NativeConnection | number,
    { name: link, index }: FollowedInterface,
    openAgain: () => number,
  ) {
    super(io, handle, token, name, next)
    this.interface = link
    this.called = new InterfaceName(link)
    this.index = index
    this.openAgain = openAgain
  }

  follow(log: Log): void {
    const { interface: link, name } = this
    const fields = { address: name, interface: link }
    const present = indexNow(link)
    const renamed = present !== undefined && !this.gone && this.called.isOther(this.index, present, log)
    // It is there under another name; or nothing is known of it, and the next look finds out.
    if (present === undefined || renamed !== false) return
    if (present === 0) {
      const until = 'nobody can connect until there is one of that name again'
      if (!this.gone) log('WARN', `interface ${link} is gone, on which ${name} is: ${until}`, fields)
      this.gone = true
      return
    }
    const replaced = this.index !== present
    if (!replaced && !this.gone) return
    try {
      if (replaced) this.reopen(present)
    } catch (error) {
      // Its address may be on its way: the next look tries again.
      if (!this.refused) log('WARN', `not listening on interface ${link} yet: ${(error as Error).message}`, fields)
      this.refused = true
      return
    }
    this.gone = false
    this.refused = false
    const why = replaced ? 'is another than before' : 'is there again'
    log('INFO', `listens at ${name} again: interface ${link} ${why}`, fields)
  }

  private reopen(index: number): void {
    const { io, handle, token } = this
    const fresh = this.openAgain()
    watchOpened(io.poller, fresh, token)
    native.close(handle)
    this.handle = fresh
    this.index = index
  }
}
