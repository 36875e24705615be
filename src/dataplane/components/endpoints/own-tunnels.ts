/** Whether a socket's packets leave the machine through an interface whose packets come to that socket: the tunnel's own go into the tunnel, without end. */
import type { PacketIo, SocketAddress } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'

/** The interfaces that components of a run have opened, by the components' names; all are open before anybody looks at anything. */
export const runInterfaces = (context: Pick<TunnelContext, 'shared'>): Map<string, PacketIo> =>
  context.shared('interfaces', () => new Map())

/** The parts of a component's context that are needed for it. */
interface TunnelContext {
  shared<T>(name: string, make: () => T): T
  /** Whether packets that leave the component `name` reach this one inside the graph. */
  follows(name: string): boolean
  log: Log
}

export class OwnTunnels {
  private readonly interfaces: ReadonlyMap<string, PacketIo>
  private readonly context: TunnelContext
  private readonly peer: SocketAddress
  /** The interface that the log has named; '': none, or the way does not lead through it any more. */
  private told = ''

  constructor(context: TunnelContext, peer: SocketAddress) {
    this.context = context
    this.peer = peer
    this.interfaces = runInterfaces(context)
  }

  /** The run has interfaces. */
  get possible(): boolean {
    return this.interfaces.size > 0
  }

  /** Looks which way the packets of the connected `socket` take now, and says, once, if it is such a way. */
  look(socket: PacketIo): void {
    const way = this.possible ? (socket.leavesBy?.() ?? '') : ''
    const { address } = this.peer
    const through = [...this.interfaces].find(
      ([name, { name: called }]) => called === way && this.context.follows(name),
    )
    if (through === undefined) this.told = ''
    else if (this.told !== way) {
      this.told = way
      const cure = `give the peer a route of its own outside of the tunnel: ip route add ${address} via GATEWAY`
      this.context.log(
        'WARN',
        `the way to ${address} leads through interface ${way}, whose packets are sent there: those of the tunnel go into the tunnel themselves, again and again; ${cure}`,
        { interface: way, remote: address, component: through[0] },
      )
    }
  }
}
