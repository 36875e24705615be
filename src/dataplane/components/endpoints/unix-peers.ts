/** The clients of a Unix socket by the id in their name, which is how packets name theirs. */
import type { ConnectionIo } from '../../engine/io.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Connection, Peers } from './connection.ts'

/** Whether names are abstract, which everybody may take: then the user of the other end decides who is heard. */
export const isAbstract = (name: string) => name.startsWith('@')

/** Whether a connection made by or to an abstract name may be spoken to: its other end runs as this process's user. */
export const isOwnUser = (io: ConnectionIo) => io.user === process.geteuid?.()

/** The abstract name that a client with an id binds. */
export const clientName = (id: number, server: string) => `@${id}.${server}`

/** The id in the name of a client of `server`, -1 where it has none. */
export function clientId(name: string, server: string): number {
  const id = Number(/^@([1-9]\d{0,9})\./.exec(name)?.[1] ?? -1)
  return id <= 0x7fffffff && name === clientName(id, server) ? id : -1
}

export class UnixPeers implements Peers {
  private readonly packets: Packets
  private readonly server: string
  private readonly byId = new Map<number, Connection>()
  /** In the order they came; the last is the newest. */
  private readonly connections: Connection[] = []

  constructor(packets: Packets, server: string) {
    this.packets = packets
    this.server = server
  }

  add(connection: Connection): boolean {
    const io = connection.io as ConnectionIo
    if (isAbstract(this.server) && !isOwnUser(io)) return false
    connection.client = clientId(io.name, this.server)
    if (connection.client >= 0) this.byId.set(connection.client, connection)
    this.connections.push(connection)
    return true
  }

  remove(connection: Connection): void {
    const at = this.connections.indexOf(connection)
    if (at >= 0) this.connections.splice(at, 1)
    if (this.byId.get(connection.client) === connection) this.byId.delete(connection.client)
  }

  of(packet: number): Connection | null {
    const { connections, packets } = this
    const client = packets.client[packet]
    if (client >= 0) return this.byId.get(client) ?? null
    return connections.length === 0 ? null : (connections[connections.length - 1] as Connection)
  }
}
